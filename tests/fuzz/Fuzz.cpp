// The fuzzer: bazel run //tests/fuzz -- --programs=100000 --seed=N. Shows progress, replays and
// shrinks what is wrong, and ends with the calls by op and dtype; the exit code is 1 if anything
// was.
#include <unistd.h>

#include <chrono>
#include <iostream>

#include "absl/flags/flag.h"
#include "absl/flags/parse.h"
#include "absl/flags/usage.h"
#include "fl/base/Flags.h"
#include "tests/fuzz/Differential.h"

ABSL_FLAG(uint64_t, programs, 1000, "how many programs to run");
ABSL_FLAG(uint64_t, seed, 1, "the first program's seed; each has the next one");
ABSL_FLAG(std::string, dump, "fuzz_failures", "folder for the plans of programs that are wrong");

namespace fl::testing {
namespace {

void report(uint64_t seed, const std::string& wrong) {
  std::cout << "\nprogram " << seed << ": " << wrong << std::flush;
  const int statements = shrinkProgram(seed);
  const std::string folder = absl::GetFlag(FLAGS_dump) + "/seed" + std::to_string(seed);
  dumpProgram(seed, statements, folder);
  std::cout << "its first " << statements << " statements are enough; their plans are in " << folder
            << "\nreplay with --programs=1 --seed=" << seed << "\n";
}

int run() {
  flags().check = "verify";
  const uint64_t first = absl::GetFlag(FLAGS_seed), count = absl::GetFlag(FLAGS_programs);
  const auto start = std::chrono::steady_clock::now();
  uint64_t wrongs = 0;
  for (uint64_t i = 0; i < count; ++i) {
    const std::string wrong = checkProgram(first + i);
    if (!wrong.empty()) {
      ++wrongs;
      report(first + i, wrong);
    }
    if (isatty(STDOUT_FILENO) && i % 10 == 9) {
      std::cout << "\r" << i + 1 << " of " << count << " programs, " << wrongs << " wrong"
                << std::flush;
    }
  }
  const double seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  std::cout << "\ncalls by op and dtype:\n"
            << describeCalls(1000) << count << " programs from seed " << first << " in " << seconds
            << " s, " << wrongs << " wrong\n";
  return wrongs == 0 ? 0 : 1;
}

}  // namespace
}  // namespace fl::testing

int main(int argc, char** argv) {
  absl::SetProgramUsageMessage("fuzz [--programs=N] [--seed=N] [--dump=FOLDER]");
  absl::ParseCommandLine(argc, argv);
  return fl::testing::run();
}
