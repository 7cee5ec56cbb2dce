// Times what is paid before the first result: with nothing kept on disk, with the kernels of an
// earlier process, and in eager mode, each in a process of its own, in turns; and how long kernels
// take to compile. The program starts itself with --child.
#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <map>
#include <optional>
#include <regex>
#include <stdexcept>
#include <thread>

#include "absl/flags/flag.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "apps/mnist/Runfile.h"
#include "benchmarks/Folder.h"
#include "benchmarks/KernelCases.h"
#include "benchmarks/OpCases.h"
#include "benchmarks/Peer.h"
#include "benchmarks/Program.h"
#include "benchmarks/Report.h"
#include "benchmarks/TrainSteps.h"
#include "fl/codegen/cpu/Emitter.h"
#include "fl/fl.h"
#include "fl/lazy/LazyBackend.h"
#include "fl/runtime/Counters.h"

ABSL_FLAG(std::string, filter, "", "regular expression that a case's name contains");
ABSL_FLAG(int, rounds, 5, "processes of each case in each mode");
ABSL_FLAG(bool, peers, false, "also first calls of the libraries that ./setup.sh --peers installs");
ABSL_FLAG(std::string, json, "", "file for the results, a JSON object a line");
ABSL_FLAG(std::string, child, "", "of the program's own processes: the case to run");

namespace fl::bench {
namespace {

namespace fs = std::filesystem;

constexpr char kAllKernels[] = "all kernels", kBatchSizes[] = "batch sizes",
               kManySizes[] = "many sizes", kMlir[] = "MLIR";

// Layers of four operators each, as one plan.
Workload layered(int layers) {
  return {absl::StrCat("graph of ", 4 * layers, " operators"), [=] {
            const Tensor weights = rand({16, 16}) - 0.5, bias = rand({16, 1}), x = rand({16, 4});
            sync();
            return [=] {
              Tensor y = x;
              for (int i = 0; i < layers; ++i) {
                y = tanh(matmul(weights, y) + bias) + y;
              }
              y.value()->data();
            };
          }};
}

// Each another one, between products, as one plan.
Workload manyKernels(int count) {
  return {absl::StrCat(count, " kernels"), [=] {
            const Tensor weights = rand({16, 16}) - 0.5, x = rand({16, 4});
            sync();
            return [=] {
              Tensor y = x;
              for (int kernel = 0; kernel < count; ++kernel) {
                y = matmul(weights, y);
                for (int bit = 1; bit <= kernel; bit *= 2) {
                  y = (kernel & bit) ? tanh(y) : y * 0.5;
                }
              }
              y.value()->data();
            };
          }};
}

constexpr char kOneKernel[] = "one kernel";

std::vector<Workload> workloads() {
  std::vector<Workload> result = {kernelCases().front(), manyKernels(200), mnistStep(),
                                  transformerStep(12),   layered(2500),    layered(5000)};
  result.front().name = kOneKernel;
  return result;
}

const Workload& workloadOf(const std::vector<Workload>& all, const std::string& name) {
  const auto found = std::ranges::find(all, name, &Workload::name);
  if (found == all.end()) {
    throw std::runtime_error("--child: there is no " + name);
  }
  return *found;
}

// ---- in a process of its own ----

// Prints the milliseconds of the first call, alone and with what makes data and model, and of later
// ones, and how many kernels were compiled.
void runOne(const Workload& workload) {
  const auto start = Clock::now();
  const auto call = workload.make();
  const auto made = Clock::now();
  call();
  const double first = millisecondsSince(made), total = millisecondsSince(start);
  if (defaultTensorBackend().backendType() == TensorBackendType::Jit) {
    waitForCompiler(defaultTensorBackend());
  }
  const runtime::Counters& counters = runtime::counters();
  const uint64_t compiled = counters.kernelsCompiled;
  const uint64_t machines = codegen::cpu::targetMachinesMade();
  std::vector<double> later;
  for (int i = 0; i < 5; ++i) {
    const auto begin = Clock::now();
    call();
    later.push_back(millisecondsSince(begin));
  }
  const Json result = {{"first", first},
                       {"total", total},
                       {"steady", median(later)},
                       {"compiled", compiled},
                       {"machines", machines}};
  std::cout << result.dump() << std::endl;
}

// Compiles the kernels of the benchmarks' steps, chains and operators; the log has the times.
void compileAll() {
  for (const Workload& step : {perceptronStep(), mnistStep(), residualStep(), transformerStep()}) {
    step.make()();
  }
  for (const Workload& chain : kernelCases()) {
    chain.make()();
  }
  for (const OpCase& each : opCases()) {
    for (const Tensor& result : each.run(each.inputs(1 << 10))) {
      result.value()->data();
    }
  }
}

// Plans all chains, once.
void planChains() {
  for (const Workload& chain : kernelCases()) {
    chain.make()();
  }
}

// Prints how many kernels training steps of other batches than the first of each class compile.
void runBatches() {
  trainBatches(kFirstBatches);
  const uint64_t before = runtime::counters().kernelsCompiled;
  trainBatches(kOtherBatches);
  std::cout << Json{{"compiled", runtime::counters().kernelsCompiled - before}}.dump() << std::endl;
}

// Prints the microseconds of the first call of a compiled function with each of a thousand sizes
// that differ little: around the tenth, and with the last.
void runManySizes() {
  constexpr int kSizes = 1000, kFirst = 20000;
  auto step = fl::compile([](const Tensor& x) { return sum(tanh(x) * x, {0}); });
  std::vector<double> times;
  const Tensor all = rand({16, kFirst + kSizes});
  for (int i = 0; i < kSizes; ++i) {
    const Tensor x = all(span, range(0, kFirst + i)) * 2;
    x.value()->data();
    const auto start = Clock::now();
    step(x).value()->data();
    times.push_back(millisecondsSince(start) * 1e3);
  }
  const auto around = [&](int first) {
    return median({times.begin() + first, times.begin() + first + 11});
  };
  std::cout << Json{{"tenth", around(5)}, {"last", around(kSizes - 11)}}.dump() << std::endl;
}

int runChild(const std::string& name) {
  init();
  if (name == kAllKernels) {
    compileAll();
  } else if (name == kBatchSizes) {
    runBatches();
  } else if (name == kManySizes) {
    runManySizes();
  } else if (name == kMlir) {
    planChains();
  } else {
    const std::vector<Workload> all = workloads();
    runOne(workloadOf(all, name));
  }
  return 0;
}

// ---- here ----

using Settings = std::map<std::string, std::string>;

// The output of a command with these variables set.
std::string outputOfCommand(const std::string& program, const Settings& settings) {
  std::string command;
  for (const auto& [variable, value] : settings) {
    absl::StrAppend(&command, variable, "='", value, "' ");
  }
  command += program;
  std::FILE* const pipe = popen(command.c_str(), "r");
  std::string output;
  for (std::array<char, 4096> part; pipe && std::fgets(part.data(), part.size(), pipe);) {
    output += part.data();
  }
  if (!pipe || pclose(pipe) != 0) {
    throw std::runtime_error(command + " failed");
  }
  return output;
}

// Of this program as the child `name`.
std::string outputOf(const std::string& name, const Settings& settings) {
  const std::string program = fs::read_symlink("/proc/self/exe");
  return outputOfCommand(absl::StrCat("'", program, "' --child='", name, "'"), settings);
}

// The numbers behind `prefix` in lines that begin with it.
std::vector<double> timesIn(const fs::path& log, const std::string& prefix) {
  std::ifstream file(log);
  std::vector<double> times;
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with(prefix)) {
      times.push_back(std::stod(line.substr(prefix.size())));
    }
  }
  return times;
}

// By mode: cold, warm (with the kernels of the cold one on disk) and eager.
using Figures = std::map<std::string, std::vector<Json>>;

// First calls of the peers, each in a process of its own. Those that compile leave processes behind
// for a while: they come after ours, and are waited for.
PeerTimes measurePeers(const Workload& workload) {
  constexpr std::chrono::seconds kWhile(2);
  if (!absl::GetFlag(FLAGS_peers)) return {};
  const std::string known =
      workload.name == kOneKernel ? kernelCases().front().name : workload.name;
  PeerTimes times;
  for (int round = 0; round < absl::GetFlag(FLAGS_rounds); ++round) {
    const Peers peers = startPeers(/*wanted=*/true, app::runfile("benchmarks/peers/first_calls.py"),
                                   getNumThreads(), /*compiled=*/true);
    times.block(peers, known, 0);
  }
  std::this_thread::sleep_for(kWhile);
  return times;
}

Figures measure(const Workload& workload) {
  Figures figures;
  for (int round = 0; round < absl::GetFlag(FLAGS_rounds); ++round) {
    const Folder folder("fl-compile-time");
    for (const char* mode : {"cold", "warm", "eager"}) {
      const Settings settings = {
          {"FL_BACKEND", mode == std::string("eager") ? "eager" : "lazy"},
          {"FL_CACHE_DIR", folder.path() / "kept"},
          {"FL_FLUSH_BYTES", "0"},
          {"FL_FLUSH_NODES", "0"},
      };
      figures[mode].push_back(Json::parse(outputOf(workload.name, settings)));
    }
  }
  return figures;
}

double medianOf(const std::vector<Json>& runs, const char* field) {
  std::vector<double> values;
  for (const Json& run : runs) {
    values.push_back(run.at(field).get<double>());
  }
  return median(values);
}

Json row(const std::string& name, const char* unit, double ours, const Json& eager,
         const Json& peers = Json::object()) {
  return {{"bench", "compile_time"},    {"case", name},  {"unit", unit},
          {"threads", getNumThreads()}, {"ours", ours},  {"eager", eager},
          {"limit", nullptr},           {"peers", peers}};
}

void report(const Workload& workload, const Figures& figures, const PeerTimes& peers,
            std::vector<Json>* rows) {
  const auto &cold = figures.at("cold"), &warm = figures.at("warm"), &eager = figures.at("eager");
  absl::PrintF("%s\n", workload.name);
  const auto line = [&](const char* what, const std::vector<Json>& runs, const char* field,
                        const Json& theirs = Json::object()) {
    const double ours = medianOf(runs, field), its = medianOf(eager, field);
    absl::PrintF("  %-28s %10.2f ms   eager %10.2f ms   %6.2f x eager\n", what, ours, its,
                 ours / its);
    for (const auto& [name, time] : theirs.items())
      absl::PrintF("    %-26s %10.2f ms\n", name, time.get<double>());
    rows->push_back(row(absl::StrCat(workload.name, ", ", what), "ms", ours, its, theirs));
  };
  line("first result, cold", cold, "total");
  Json milliseconds = Json::object();
  for (const auto& [name, time] : peers.medians()) milliseconds[name] = time / 1e3;
  line("first call, cold", cold, "first", milliseconds);
  line("first call, kernels on disk", warm, "first");
  line("later calls", warm, "steady");
  // The most of all processes.
  const auto count = [&](const char* what, const std::vector<Json>& runs, const char* field) {
    double most = 0;
    for (const Json& run : runs) most = std::max(most, run.at(field).get<double>());
    absl::PrintF("  %-28s %10.0f\n", what, most);
    rows->push_back(row(absl::StrCat(workload.name, ", ", what), "count", most, nullptr));
  };
  count("kernels compiled, cold", cold, "compiled");
  count("kernels compiled, second run", warm, "compiled");
  count("LLVM target machines, second run", warm, "machines");
  std::cout.flush();
}

// One at a time: two on the hyperthreads of one core take longer each.
void reportKernels(std::vector<Json>* rows) {
  const Folder folder("fl-compile-time");
  const fs::path log = folder.path() / "log";
  outputOf(kAllKernels, {{"FL_CACHE", "off"},
                         {"FL_JIT", "sync"},
                         {"FL_LOG", "3," + log.string()},
                         {"FL_NUM_THREADS", "1"}});
  std::vector<double> times = timesIn(log, "kernel compiled ");
  if (times.empty()) {
    throw std::runtime_error("no kernel was compiled");
  }
  std::ranges::sort(times);
  const double middle = times[times.size() / 2], late = times[times.size() * 95 / 100];
  absl::PrintF("%d kernels of four steps, %d chains and the operators\n", times.size(),
               kernelCases().size());
  absl::PrintF("  median %.2f ms, 95 of 100 within %.2f ms\n", middle, late);
  rows->push_back(row("a kernel, median", "ms", middle, nullptr));
  rows->push_back(row("a kernel, 95th percentile", "ms", late, nullptr));
}

// What `fl run` logs that a graph took to compile by that emitter; nothing for several kernels.
std::optional<double> compileTime(const fs::path& graph, const std::string& emitter) {
  const Folder folder("fl-compile-time");
  const fs::path log = folder.path() / "log";
  outputOfCommand("'" + app::runfile("tools/fl") + "' run '" + graph.string() + "'",
                  {{"FL_CACHE", "off"}, {"FL_EMITTER", emitter}, {"FL_LOG", "3," + log.string()}});
  const auto times =
      timesIn(log, emitter == "mlir" ? "graph lowered by MLIR " : "kernel compiled ");
  return times.size() == 1 ? std::make_optional(times[0]) : std::nullopt;
}

// Of the chains that are one kernel, the same graphs by our emitter and by MLIR's pass manager,
// each the first that its process compiles: what LLVM and MLIR set up is in it.
void reportMlir(std::vector<Json>* rows) {
  const Folder folder("fl-compile-time");
  outputOf(kMlir, {{"FL_CACHE", "off"}, {"FL_DUMP", folder.path()}, {"FL_JIT", "off"}});
  std::vector<double> ours, theirs;
  for (const auto& plan : fs::directory_iterator(folder.path())) {
    const fs::path graph = plan.path() / "00_recorded.flir";
    const std::optional<double> our = compileTime(graph, "llvm");
    if (!our) continue;
    ours.push_back(*our);
    theirs.push_back(compileTime(graph, "mlir").value());
  }
  absl::PrintF("%d graphs of one kernel\n  median %.2f ms, by MLIR %.2f ms\n", ours.size(),
               median(ours), median(theirs));
  rows->push_back(row("a kernel, first of its process, median", "ms", median(ours), nullptr));
  rows->push_back(
      row("a kernel by MLIR, first of its process, median", "ms", median(theirs), nullptr));
}

void reportBatches(std::vector<Json>* rows) {
  const Json child = Json::parse(outputOf(kBatchSizes, {{"FL_CACHE", "off"}, {"FL_JIT", "sync"}}));
  const auto compiled = child.at("compiled").get<double>();
  const std::string sizes =
      absl::StrCat(std::size(kFirstBatches) + std::size(kOtherBatches), " batch sizes");
  absl::PrintF("%s\n  kernels compiled after the first of each class %6.0f\n", sizes, compiled);
  rows->push_back(row(sizes + ", kernels compiled", "count", compiled, nullptr));
}

void reportManySizes(std::vector<Json>* rows) {
  const Json child = Json::parse(outputOf(kManySizes, {{"FL_CACHE", "off"}, {"FL_JIT", "sync"}}));
  const auto tenth = child.at("tenth").get<double>(), last = child.at("last").get<double>();
  absl::PrintF(
      "a compiled function of 1000 sizes\n  first call with the tenth %6.1f us, with the "
      "last %6.1f us\n",
      tenth, last);
  rows->push_back(
      row("1000 sizes, first call with the last / with the tenth", "x", last / tenth, nullptr));
}

int run() {
  if (const std::string child = absl::GetFlag(FLAGS_child); !child.empty()) {
    return runChild(child);
  }
  if (absl::GetFlag(FLAGS_rounds) < 1) {
    throw std::runtime_error("--rounds: must be at least 1");
  }
  const std::regex filter(absl::GetFlag(FLAGS_filter));
  std::vector<Json> rows;
  for (const Workload& workload : workloads()) {
    if (std::regex_search(workload.name, filter)) {
      const Figures figures = measure(workload);
      report(workload, figures, measurePeers(workload), &rows);
    }
  }
  if (std::regex_search(kAllKernels, filter)) {
    reportKernels(&rows);
  }
  if (std::regex_search(kMlir, filter)) {
    reportMlir(&rows);
  }
  if (std::regex_search(kBatchSizes, filter)) {
    reportBatches(&rows);
  }
  if (std::regex_search(kManySizes, filter)) {
    reportManySizes(&rows);
  }
  if (const std::string path = absl::GetFlag(FLAGS_json); !path.empty()) {
    writeRows(rows, path);
  }
  return 0;
}

}  // namespace
}  // namespace fl::bench

int main(int argc, char** argv) {
  return fl::bench::runProgram("compile_time", "Times what is paid before the first result.",
                               __FILE__, argc, argv, fl::bench::run);
}
