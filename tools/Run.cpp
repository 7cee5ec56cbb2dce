#include "tools/Run.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <iomanip>
#include <iostream>
#include <stdexcept>

#include "absl/flags/flag.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "fl/base/Error.h"
#include "fl/base/Flags.h"
#include "fl/base/Log.h"
#include "fl/codegen/mlir/Jit.h"
#include "fl/tensor/TensorBackend.h"
#include "tools/Arguments.h"
#include "tools/Files.h"
#include "tools/Program.h"
#include "tools/Values.h"

ABSL_FLAG(std::string, backend, "lazy", "backend that runs a graph: lazy or eager");
ABSL_FLAG(std::string, device, "cpu", "device to run on: cpu, cuda, ref or null");
ABSL_FLAG(uint32_t, seed, 0, "seed of the inputs that are drawn: floats normal, integers 0 to 3");
ABSL_FLAG(std::string, inputs, "",
          "a .npy for each parameter, separated by commas, or a .npz with p0, p1, ...");
ABSL_FLAG(std::string, outputs, "", "a .npz to write the results to, as r0, r1, ...");
ABSL_FLAG(std::string, extents, "", "extents of a kernel's axes, as 64,8; 16 each if not given");
ABSL_FLAG(std::string, check, "", "ref: compare every result with the reference device's");
ABSL_FLAG(std::optional<double>, tolerance, std::nullopt,
          "largest difference that --check accepts, relative to the largest element of the result; "
          "by dtype if not given");
ABSL_FLAG(int, time, 0, "time this many runs after a warm-up");

namespace fl::tools {
namespace {

std::vector<Dim> parseExtents(const std::string& text) {
  std::vector<Dim> extents;
  const std::vector<std::string> words = absl::StrSplit(text, ',', absl::SkipEmpty());
  for (const std::string& word : words) {
    int64_t extent = 0;
    FL_USER_CHECK(absl::SimpleAtoi(word, &extent), "--extents: \"", word, "\" is no integer");
    extents.push_back(extent);
  }
  return extents;
}

// A lookup may find an index in what the program computes from its inputs.
std::vector<NpyArray> firstResults(LoadedProgram* loaded, bool someDrawn) {
  try {
    loaded->run();
    return loaded->results();
  } catch (const std::invalid_argument& error) {
    throwUser(error.what(), someDrawn ? "; inputs that are drawn need not fit what the program "
                                        "computes from them: give them by --inputs"
                                      : "");
  }
}

bool check(const Program& program, const std::vector<NpyArray>& inputs,
           const std::vector<NpyArray>& results) {
  const std::optional<double> tolerance = runTolerance();
  const auto reference = program.load("eager", "ref", inputs);
  reference->run();
  const std::vector<NpyArray> expected = reference->results();
  std::cout << describeRule(tolerance) << "\n";
  bool good = true;
  for (size_t i = 0; i < results.size(); ++i) {
    const Difference found = compare(results[i], expected[i], program.dtypes(), tolerance);
    std::cout << "result " << i << " " << typeToString(results[i].type, results[i].shape)
              << ": difference " << found.value << (found.accepted ? "" : ", too large") << "\n";
    good = good && found.accepted;
  }
  return good;
}

void printSums(const std::vector<NpyArray>& results) {
  for (size_t i = 0; i < results.size(); ++i) {
    std::cout << "result " << i << " " << typeToString(results[i].type, results[i].shape)
              << ": sum " << std::setprecision(9) << sumOf(results[i]) << "\n";
  }
}

void time(LoadedProgram* loaded, size_t bytes, int runs) {
  std::vector<double> seconds;
  for (int i = 0; i < runs; ++i) {
    const auto start = std::chrono::steady_clock::now();
    loaded->run();
    seconds.push_back(
        std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  }
  std::sort(seconds.begin(), seconds.end());
  const double median = seconds[seconds.size() / 2];
  std::cout << std::setprecision(4) << "time: " << median * 1e6 << " us, median of " << runs
            << " runs; " << static_cast<double>(bytes) / median * 1e-9 << " GB/s of " << bytes
            << " bytes\n";
}

// The exit code.
int runProgram(const Program& program, const std::string& text) {
  const auto [inputs, someDrawn] = makeInputs(program, text, std::cout);
  const auto loaded =
      program.load(absl::GetFlag(FLAGS_backend), absl::GetFlag(FLAGS_device), inputs);
  const std::vector<NpyArray> results = firstResults(loaded.get(), someDrawn);
  if (!absl::GetFlag(FLAGS_outputs).empty()) {
    writeResults(absl::GetFlag(FLAGS_outputs), results);
  }
  bool good = true;
  if (absl::GetFlag(FLAGS_check).empty()) {
    printSums(results);
  } else {
    good = check(program, inputs, results);
  }
  const int runs = absl::GetFlag(FLAGS_time);
  if (runs > 0) {
    time(loaded.get(), program.bytes(), runs);
  }
  return good ? 0 : 2;
}

void checkFlags() {
  const std::string reference = absl::GetFlag(FLAGS_check);
  FL_USER_CHECK(reference.empty() || reference == "ref", "--check: \"", reference, "\" is not ref");
  const std::string device = absl::GetFlag(FLAGS_device);
  FL_USER_CHECK(reference.empty() || (device.empty() ? flags().device : device) != "null",
                "--check: the device null computes nothing to compare");
  const double tolerance = runTolerance().value_or(0);
  FL_USER_CHECK(tolerance >= 0 && std::isfinite(tolerance), "--tolerance: ", tolerance,
                " is no number from 0 on");
  const int runs = absl::GetFlag(FLAGS_time);
  FL_USER_CHECK(runs >= 0, "--time: ", runs, " is negative");
  // Throws for a log that cannot be: later, it would look like a fault of the inputs.
  logEnabled(1);
  // Throws for one that does not exist; so does that of the process, which tensors use.
  getBackend(absl::GetFlag(FLAGS_backend), device);
  getBackend();
}

}  // namespace

Inputs makeInputs(const Program& program, const std::string& text, std::ostream& log) {
  const uint32_t seed = absl::GetFlag(FLAGS_seed);
  const std::string files = absl::GetFlag(FLAGS_inputs);
  std::vector<NpyArray> inputs = drawInputs(program.parameters(), seed);
  const std::vector<bool> recorded = readNumbers(text, program.parameters(), &inputs);
  const std::vector<bool> missing = readInputs(files, program.parameters(), &inputs);
  std::vector<bool> drawn = missing;
  for (size_t i = 0; i < drawn.size(); ++i) drawn[i] = missing[i] && !recorded[i];
  program.fitDrawn(drawn, &inputs);
  const std::vector<std::string> paths = absl::StrSplit(files, ',', absl::SkipEmpty());
  log << "inputs:";
  for (size_t i = 0; i < inputs.size(); ++i) {
    log << (i ? ", p" : " p") << i << " " << typeToString(inputs[i].type, inputs[i].shape)
        << (drawn[i]     ? detail::concat(" drawn with seed ", seed)
            : missing[i] ? detail::concat(" recorded as ", numberOf(inputs[i]).toDouble())
                         : " from " + paths[paths.size() == 1 ? 0 : i]);
  }
  log << (inputs.empty() ? " none\n" : "\n");
  const bool someDrawn = std::find(drawn.begin(), drawn.end(), true) != drawn.end();
  return {std::move(inputs), someDrawn};
}

std::optional<double> runTolerance() { return absl::GetFlag(FLAGS_tolerance); }

int runRun(int argc, char** argv) {
  const std::string usage = std::string("fl run [flags] FILE.flir   (- reads standard input)\n\n") +
                            "With FL_EMITTER=mlir it runs graphs through MLIR, lowered by what "
                            "FL_MLIR_PIPELINE says. Ours, which\nis fl-lower within others:\n" +
                            codegen::mlir::kPipeline;
  const std::vector<char*> arguments = parseArguments(usage, __FILE__, {}, argc, argv);
  FL_USER_CHECK(arguments.size() == 2, "run: expected one file");
  const std::string path = arguments[1];
  // What runs is compiled code, from the first run on; a backend keeps what it is made with.
  flags().jit = flags().jit == "async" ? "sync" : flags().jit;
  checkFlags();
  const std::string text = readInput(path);
  const auto program = parseProgram(path, text, parseExtents(absl::GetFlag(FLAGS_extents)));
  return withMemory(path, *program, [&] { return runProgram(*program, text); });
}

}  // namespace fl::tools
