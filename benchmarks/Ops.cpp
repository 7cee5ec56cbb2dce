// Times every operator at several sizes: its kernels alone, lazy, eager, beside a copy of the same
// bytes, and lists what breaks a bound (OpTimes.h). About ten minutes in full.
#include <algorithm>
#include <cstdint>
#include <iostream>
#include <memory>
#include <optional>
#include <regex>
#include <stdexcept>
#include <string>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_format.h"
#include "apps/mnist/Runfile.h"
#include "benchmarks/OpTimes.h"
#include "benchmarks/Peer.h"
#include "benchmarks/Program.h"
#include "fl/fl.h"

ABSL_FLAG(std::string, filter, "", "regular expression that a case's name contains, as \"^exp f\"");
ABSL_FLAG(std::vector<std::string>, sizes,
          std::vector<std::string>({"1024", "65536", "1048576", "16777216"}),
          "elements, powers of 4 from 1024 on");
ABSL_FLAG(int, rounds, 7, "blocks of each subject; a cell that breaks a bound gets more");
ABSL_FLAG(int, threads, 0, "threads to compute with; 0: FL_NUM_THREADS, or one a processor");
ABSL_FLAG(bool, peers, false, "also PyTorch, JAX and MLX (./setup.sh --peers installs them)");
ABSL_FLAG(bool, check, false, "exit code 1 if a bound is broken");
ABSL_FLAG(std::string, json, "", "file for the results, a JSON object a line");

namespace {

using fl::bench::OpCase;
using fl::bench::OpTimes;
using fl::bench::Peers;

constexpr char kPeerScript[] = "benchmarks/peers/ops.py";
// A cell that breaks a bound is measured again with this many times the rounds before it counts.
constexpr int kSecondLook = 3;
constexpr double kLong = 1e5;  // microseconds

std::vector<fl::Dim> sizes() {
  std::vector<fl::Dim> sizes;
  for (const std::string& text : absl::GetFlag(FLAGS_sizes)) {
    int64_t size = 0;
    const bool isNumber = absl::SimpleAtoi(text, &size);
    if (!isNumber || size < 1024 || (size & (size - 1)) != 0 || __builtin_ctzll(size) % 2 != 0) {
      throw std::runtime_error("--sizes: \"" + text + "\" is no power of 4 from 1024 on");
    }
    sizes.push_back(size);
  }
  return sizes;
}

void printHeader(const Peers& peers) {
  absl::PrintF("%d threads; microseconds a call\n", fl::getNumThreads());
  absl::PrintF("%-38s %9s %11s %11s %11s %11s %6s %6s", "case", "elements", "kernel", "lazy",
               "eager", "copy", "l/e", "l/c");
  for (const auto& peer : peers) {
    absl::PrintF(" %11s", peer->name());
  }
  absl::PrintF("\n");
}

std::string toText(std::optional<double> time) {
  return time ? absl::StrFormat("%.2f", *time) : "-";
}

void print(const OpTimes& times, const Peers& peers) {
  absl::PrintF("%-38s %9d %11s %11.2f %11.2f %11.2f %6.2f %6.2f", times.name, times.elements,
               toText(times.kernel), times.lazy, times.eager, times.limit, times.lazy / times.eager,
               times.lazy / times.limit);
  for (const auto& peer : peers) {
    const auto found = times.peers.find(peer->name());
    absl::PrintF(" %11s",
                 toText(found == times.peers.end() ? std::nullopt : std::optional(found->second)));
  }
  absl::PrintF("%s\n", times.compiled > 0 ? "  COMPILED WHILE TIMED" : "");
  std::cout.flush();
}

std::vector<OpTimes> measureAll(const Peers& peers) {
  const std::regex filter(absl::GetFlag(FLAGS_filter));
  const int rounds = absl::GetFlag(FLAGS_rounds);
  const std::vector<OpCase> cases = fl::bench::opCases();
  std::vector<OpTimes> all;
  for (const OpCase& opCase : cases) {
    if (!std::regex_search(opCase.name, filter)) {
      continue;
    }
    for (fl::Dim size : sizes()) {
      OpTimes times = timeOp(opCase, size, rounds, peers);
      if (!brokenBounds(times, all).empty()) {
        const auto single = std::ranges::find_if(
            cases, [&](const OpCase& each) { return isSingleOf(each, opCase); });
        times = single == cases.end() || times.lazy > kLong
                    ? timeOp(opCase, size, kSecondLook * rounds, peers)
                    : timeBeside(*single, opCase, size, rounds, peers);
      }
      print(times, peers);
      all.push_back(std::move(times));
    }
  }
  return all;
}

// How many there are.
int printBroken(const std::vector<OpTimes>& all) {
  int count = 0;
  for (const OpTimes& times : all) {
    for (const std::string& broken : brokenBounds(times, all)) {
      absl::PrintF("%s %-38s %9d  %s\n", count == 0 ? "\nbroken bounds\n" : "", times.name,
                   times.elements, broken);
      ++count;
    }
  }
  absl::PrintF("%d bounds broken in %d cells\n", count, all.size());
  return count;
}

int runAll() {
  if (absl::GetFlag(FLAGS_rounds) < 1) {
    throw std::runtime_error("--rounds: must be at least 1");
  }
  fl::bench::prepare(absl::GetFlag(FLAGS_threads));
  fl::init();
  const Peers peers =
      fl::bench::startPeers(absl::GetFlag(FLAGS_peers), fl::app::runfile(kPeerScript),
                            fl::getNumThreads(), /*compiled=*/false);
  printHeader(peers);
  const std::vector<OpTimes> all = measureAll(peers);
  const int broken = printBroken(all);
  if (const std::string path = absl::GetFlag(FLAGS_json); !path.empty()) {
    std::vector<fl::bench::Json> rows;
    for (const OpTimes& times : all) {
      rows.push_back(toRow(times));
    }
    fl::bench::writeRows(rows, path);
  }
  return absl::GetFlag(FLAGS_check) && broken > 0 ? 1 : 0;
}

}  // namespace

int main(int argc, char** argv) {
  return fl::bench::runProgram(
      "ops", "Times every operator: kernels alone, lazy, eager, and a copy of the same bytes.",
      __FILE__, argc, argv, runAll);
}
