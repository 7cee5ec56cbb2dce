// Times training steps under a profile (fl::startProfile) beside the same without one.
#include <filesystem>
#include <iostream>
#include <regex>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/strings/str_format.h"
#include "benchmarks/Folder.h"
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

// Blocks of steps in a profile of their own, whose table nobody wants to read.
void profiledBlocks(Subject* subject, const std::string& file) {
  startProfile(file);
  for (int i = 0; i < kBlocks; ++i) subject->block();
  std::ostringstream table;
  std::streambuf* const shown = std::cerr.rdbuf(table.rdbuf());
  stopProfile();
  std::cerr.rdbuf(shown);
}

Json measure(const Workload& workload, const std::string& file) {
  setSeed(0);
  const auto step = workload.make();
  Subject plain(step), profiled(step);
  for (int round = 0; round < absl::GetFlag(FLAGS_rounds); ++round) {
    for (int i = 0; i < kBlocks; ++i) plain.block();
    profiledBlocks(&profiled, file);
  }
  const double with = profiled.microseconds(), without = plain.microseconds();
  absl::PrintF("%-42s %10.1f us, profiled %10.1f us, %.3f x\n", workload.name, without, with,
               with / without);
  std::cout.flush();
  return {{"bench", "profile"},         {"case", workload.name},  {"unit", "us"},
          {"threads", getNumThreads()}, {"ours", with},           {"eager", nullptr},
          {"limit", without},           {"peers", Json::object()}};
}

int runAll() {
  if (absl::GetFlag(FLAGS_rounds) < 1) {
    throw std::runtime_error("--rounds: must be at least 1");
  }
  prepare(absl::GetFlag(FLAGS_threads));
  init();
  const Folder folder("fl-profile-");
  const std::regex filter(absl::GetFlag(FLAGS_filter));
  std::vector<Json> rows;
  for (const Workload& workload :
       {perceptronStep(), digitsStep(), mnistStep(), residualStep(), transformerStep()}) {
    if (std::regex_search(workload.name, filter)) {
      rows.push_back(measure(workload, folder.path() / "trace.json"));
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
