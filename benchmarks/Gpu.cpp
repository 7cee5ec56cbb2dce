// Times kernels, products and training steps on a GPU, lazy, beside what its copies and products
// reach, and in other libraries. Without a GPU it says so and fails.
#include <cstdlib>
#include <iostream>
#include <map>
#include <regex>
#include <string_view>
#include <stdexcept>

#include "absl/flags/declare.h"
#include "absl/flags/flag.h"
#include "absl/strings/str_format.h"
#include "apps/mnist/Runfile.h"
#include "benchmarks/GpuTimes.h"
#include "benchmarks/Peer.h"
#include "benchmarks/Program.h"
#include "fl/fl.h"

ABSL_DECLARE_FLAG(std::string, filter);
ABSL_DECLARE_FLAG(std::string, json);
ABSL_DECLARE_FLAG(int, rounds);
ABSL_DECLARE_FLAG(bool, peers);
ABSL_FLAG(std::string, python, "/usr/bin/python3",
          "with --peers: the interpreter that has PyTorch or JAX for the GPU");

namespace fl::bench {
namespace {

constexpr int64_t kCopyBytes = int64_t{1} << 29;
constexpr Dim kProductSize = 8192;

// Those of which the interpreter has the library, with a GPU.
Peers startPeersOnGpu() {
  Peers peers;
  if (!absl::GetFlag(FLAGS_peers)) return peers;
  const std::string python = absl::GetFlag(FLAGS_python);
  const std::string script = app::runfile("benchmarks/peers/gpu.py");
  for (const char* name : {"torch", "torch compile", "jax"}) {
    const std::string asks = detail::concat("'", python, "' '", script, "' --has '", name, "'");
    if (std::system(asks.c_str()) == 0) {
      peers.push_back(std::make_unique<Peer>(name, python, script, getNumThreads()));
    }
  }
  if (peers.empty()) throw std::runtime_error("--peers: " + python + " has none that has a GPU");
  return peers;
}

// A step that is compiled has the peers' times of the one that is recorded.
Json timed(const Workload& workload, const GpuLimits& limits, const Peers& peers,
           std::map<std::string, Json>* known) {
  constexpr std::string_view kCompiled = "compiled ";
  const std::string& name = workload.name;
  const bool isCompiled = name.starts_with(kCompiled);
  const auto found = known->find(isCompiled ? name.substr(kCompiled.size()) : "");
  setSeed(0);
  GpuSubject subject(workload.make());
  PeerTimes peerTimes;
  for (int round = 0; round < absl::GetFlag(FLAGS_rounds); ++round) {
    subject.block();
    if (found == known->end()) peerTimes.block(peers, name, 0);
  }
  Json row = gpuRow(name, "us", subject.microseconds());
  row["limit"] = limitOf(workload, limits);
  row["peers"] = found == known->end() ? Json(peerTimes.medians()) : found->second;
  (*known)[name] = row["peers"];
  return row;
}

void print(const Json& row) {
  absl::PrintF("%-44s %12.1f %s", row["case"].get<std::string>(), row["ours"].get<double>(),
               row["unit"].get<std::string>());
  if (!row["limit"].is_null()) absl::PrintF(", limit %.1f", row["limit"].get<double>());
  for (const auto& [name, time] : row["peers"].items()) {
    absl::PrintF(", %s %.1f", name, time.get<double>());
  }
  std::cout << std::endl;
}

int runAll() {
  prepare(0);
  init();
  const BackendScope scope("lazy", "cuda");  // throws without a GPU
  const int rounds = absl::GetFlag(FLAGS_rounds);
  if (rounds < 1) throw std::runtime_error("--rounds: must be at least 1");
  const GpuLimits limits = measureLimits(kCopyBytes, kProductSize, rounds);
  std::vector<Json> rows = rowsOfGpu(limits, rounds);
  for (const Json& row : rows) print(row);
  const Peers peers = startPeersOnGpu();
  const std::regex filter(absl::GetFlag(FLAGS_filter));
  std::map<std::string, Json> known;
  for (const Workload& workload : gpuCases()) {
    if (!std::regex_search(workload.name, filter)) continue;
    rows.push_back(timed(workload, limits, peers, &known));
    print(rows.back());
  }
  if (const std::string path = absl::GetFlag(FLAGS_json); !path.empty()) writeRows(rows, path);
  return 0;
}

}  // namespace
}  // namespace fl::bench

int main(int argc, char** argv) {
  return fl::bench::runProgram(
      "gpu", "Times kernels, products and training steps on a GPU, and in other libraries.",
      __FILE__, argc, argv, fl::bench::runAll);
}
