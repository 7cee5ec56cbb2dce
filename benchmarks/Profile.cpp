// Times training steps under a profile (fl::startProfile) beside the same without one.
#include <algorithm>
#include <array>
#include <iostream>
#include <iterator>
#include <regex>
#include <stdexcept>
#include <string>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/strings/str_format.h"
#include "benchmarks/Phases.h"
#include "benchmarks/Program.h"
#include "benchmarks/Report.h"
#include "benchmarks/Subject.h"
#include "benchmarks/TrainSteps.h"
#include "fl/fl.h"

ABSL_FLAG(std::string, filter, "", "regular expression that a case's name contains");
ABSL_FLAG(int, rounds, 15, "turns of ten blocks of steps with and without a profile");
ABSL_FLAG(int, threads, 0, "threads to compute with; 0: FL_NUM_THREADS, or one a processor");
ABSL_FLAG(std::string, json, "", "file for the results, a JSON object a line");

namespace fl::bench {
namespace {

// So many blocks in turn, as a profile is of a while: it makes its memory at first.
constexpr int kBlocks = 10;

// Blocks of steps in a profile of their own. The share of its time in which operators were
// recorded.
double profiledBlocks(Subject* subject) {
  const Phases phases = phasesOf([&] {
    for (int i = 0; i < kBlocks; ++i) subject->block();
  });
  return phases.record / phases.total;
}

// Microseconds under a profile and without one, and the share of recording.
std::array<Json, 2> measure(const Workload& workload) {
  setSeed(0);
  const auto step = workload.make();
  Subject plain(step), profiled(step);
  std::vector<double> shares;
  for (int round = 0; round < absl::GetFlag(FLAGS_rounds); ++round) {
    for (int i = 0; i < kBlocks; ++i) plain.block();
    shares.push_back(profiledBlocks(&profiled));
  }
  const double with = profiled.microseconds(), without = plain.microseconds();
  absl::PrintF("%-42s %10.1f us, profiled %10.1f us, %.3f x, recording %.3f\n", workload.name,
               without, with, with / without, median(shares));
  std::cout.flush();
  const auto row = [&](const char* unit, double ours, const Json& limit) -> Json {
    return {{"bench", "profile"}, {"case", workload.name},
            {"unit", unit},       {"threads", getNumThreads()},
            {"ours", ours},       {"eager", nullptr},
            {"limit", limit},     {"peers", Json::object()}};
  };
  return {row("us", with, without), row("recording", median(shares), nullptr)};
}

int runAll() {
  if (absl::GetFlag(FLAGS_rounds) < 1) {
    throw std::runtime_error("--rounds: must be at least 1");
  }
  prepare(absl::GetFlag(FLAGS_threads));
  init();
  const std::regex filter(absl::GetFlag(FLAGS_filter));
  std::vector<Json> rows;
  for (const Workload& workload :
       {perceptronStep(), digitsStep(), mnistStep(), residualStep(), transformerStep()}) {
    if (std::regex_search(workload.name, filter)) {
      std::ranges::copy(measure(workload), std::back_inserter(rows));
    }
  }
  if (const std::string path = absl::GetFlag(FLAGS_json); !path.empty()) {
    writeRows(rows, path);
  }
  return 0;
}

}  // namespace
}  // namespace fl::bench

int main(int argc, char** argv) {
  return fl::bench::runProgram("profile", "Times training steps with and without a profile.",
                               __FILE__, argc, argv, fl::bench::runAll);
}
