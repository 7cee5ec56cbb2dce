#include "benchmarks/Workload.h"

#include <algorithm>
#include <iostream>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <regex>
#include <stdexcept>
#include <string_view>

#include "absl/flags/flag.h"
#include "absl/strings/str_format.h"
#include "apps/mnist/Runfile.h"
#include "benchmarks/Floor.h"
#include "benchmarks/Peer.h"
#include "benchmarks/Phases.h"
#include "benchmarks/Program.h"
#include "benchmarks/Report.h"
#include "benchmarks/Subject.h"
#include "fl/base/Flags.h"
#include "fl/fl.h"
#include "fl/runtime/Counters.h"

ABSL_FLAG(std::string, filter, "", "regular expression that a case's name contains");
ABSL_FLAG(int, rounds, 9, "blocks of each case in each mode and peer");
ABSL_FLAG(int, threads, 0, "threads to compute with; 0: FL_NUM_THREADS, or one a processor");
ABSL_FLAG(bool, peers, false, "also PyTorch, JAX and MLX (./setup.sh --peers installs them)");
ABSL_FLAG(std::string, json, "", "file for the results, a JSON object a line");

namespace fl::bench {
namespace {

constexpr char kPeerScript[] = "benchmarks/peers/workloads.py";
constexpr const char* kModes[] = {"lazy", "eager"};

// Of one call.
struct Counts {
  uint64_t kernels, libraryCalls, bytes;
};

struct Result {
  std::map<std::string, double> microseconds;  // by mode
  std::map<std::string, double> spread;        // of the blocks, by mode
  std::map<std::string, Counts> counts;        // by mode
  std::optional<Phases> phases;                // of lazy calls
  std::optional<double> limit;
  std::map<std::string, double> peers;
  uint64_t made;  // kernels and plans in the timed part: 0, or the times are wrong
};

// Floating-point operations a microsecond of the fastest of some 1024x1024 products.
double matmulRate() {
  constexpr int kSize = 1024;
  const BackendScope scope("eager");
  const Tensor x = rand({kSize, kSize});
  double fastest = std::numeric_limits<double>::infinity();
  for (int i = 0; i < 100; ++i) {
    const auto start = Clock::now();
    const Tensor product = matmul(x, x);
    sync();
    fastest = std::min(fastest, millisecondsSince(start) * 1e3);
  }
  return 2. * kSize * kSize * kSize / fastest;
}

Counts countsNow() {
  const runtime::Counters& counters = runtime::counters();
  return {counters.kernelLaunches, counters.libraryCalls, counters.bytesMoved};
}

// A call under one backend.
class ModeSubject {
 public:
  ModeSubject(const Workload& workload, const char* backend) : backend_(backend) {
    const BackendScope scope(backend);
    setSeed(0);
    const auto call = workload.make();
    const bool isSplit = workload.hasFloor && backend == std::string_view("lazy");
    const Phases first = isSplit ? phasesOf(call) : Phases();
    subject_.emplace(call);
    if (isSplit) {
      const Phases later = phasesOf(call);
      phases_ = {later.total, later.record, first.plan, first.compile, later.run};
    }
    const Counts before = countsNow();
    call();
    const Counts after = countsNow();
    counts_ = {after.kernels - before.kernels, after.libraryCalls - before.libraryCalls,
               after.bytes - before.bytes};
  }
  void block() {
    const BackendScope scope(backend_);
    subject_->block();
  }
  double microseconds() const { return subject_->microseconds(); }
  double spread() const { return subject_->spread(); }
  const Counts& counts() const { return counts_; }
  // Where there is a floor, of lazy calls: what a later one records and runs, and the first one
  // plans and compiles.
  const std::optional<Phases>& phases() const { return phases_; }

 private:
  const char* backend_;
  std::optional<Subject> subject_;
  std::optional<Phases> phases_;
  Counts counts_{};
};

Result compare(const Workload& workload, double rate, const Peers& peers) {
  std::map<std::string, ModeSubject> modes;
  for (const char* mode : kModes) {
    modes.try_emplace(mode, workload, mode);
  }
  std::optional<CopyLimit> copy;
  if (workload.bytesRead > 0) {
    copy.emplace(workload.bytesRead, workload.bytesWritten);
  }
  std::optional<Floor> floor;
  if (workload.hasFloor) {
    floor.emplace(steadyPlan(workload));
  }
  PeerTimes peerTimes;
  const uint64_t made = madeSoFar();
  for (int round = 0; round < absl::GetFlag(FLAGS_rounds); ++round) {
    for (auto& [name, mode] : modes) {
      mode.block();
    }
    if (copy) {
      copy->block();
    }
    if (floor) {
      floor->block();
    }
    peerTimes.block(peers, workload.name, 0);
  }
  Result result;
  result.made = madeSoFar() - made;
  for (const auto& [name, mode] : modes) {
    result.microseconds[name] = mode.microseconds();
    result.counts[name] = mode.counts();
    result.spread[name] = mode.spread();
  }
  result.phases = modes.at("lazy").phases();
  if (copy) {
    result.limit = copy->microseconds();
  } else if (floor) {
    result.limit = floor->microseconds();
  } else if (workload.operations > 0) {
    result.limit = workload.operations / rate;
  }
  result.peers = peerTimes.medians();
  return result;
}

void print(const Workload& workload, const Result& result) {
  const double lazy = result.microseconds.at("lazy");
  absl::PrintF("%s%s\n", workload.name, result.made > 0 ? "  (COMPILED WHILE TIMED)" : "");
  const auto line = [&](const std::string& name, double time) {
    absl::PrintF("  %-16s %12.1f us  %6.2f x lazy", name, time, time / lazy);
  };
  for (const char* mode : kModes) {
    const Counts& counts = result.counts.at(mode);
    line(mode, result.microseconds.at(mode));
    absl::PrintF("  spread %4.1f %%  %5d kernels, %4d library calls, %9.3f MB moved\n",
                 100 * result.spread.at(mode), counts.kernels, counts.libraryCalls,
                 counts.bytes / 1e6);
  }
  if (result.phases) {
    const auto& [total, record, plan, compile, run] = *result.phases;
    absl::PrintF("  of lazy: recording %.1f us, running %.1f us; at first planning %.1f us, ",
                 record, run, plan);
    absl::PrintF("compiling %.1f us\n", compile);
  }
  for (const auto& [name, time] : result.peers) {
    line(name, time);
    absl::PrintF("\n");
  }
  if (result.limit) {
    line("limit", *result.limit);
    absl::PrintF("\n");
  }
  std::cout.flush();
}

void appendRows(const char* bench, const Workload& workload, const Result& result,
                std::vector<Json>* rows) {
  const auto row = [&](const char* unit, double ours, double eager) -> Json {
    return {
        {"bench", bench}, {"case", workload.name}, {"unit", unit},     {"threads", getNumThreads()},
        {"ours", ours},   {"eager", eager},        {"limit", nullptr}, {"peers", Json::object()}};
  };
  const Counts &lazy = result.counts.at("lazy"), &eager = result.counts.at("eager");
  Json time = row("us", result.microseconds.at("lazy"), result.microseconds.at("eager"));
  if (result.limit) {
    time["limit"] = *result.limit;
  }
  time["peers"] = result.peers;
  time["spread"] = result.spread.at("lazy");
  if (result.made > 0) time["made"] = result.made;  // while timed
  if (result.phases) {
    const auto& [total, record, plan, compile, run] = *result.phases;
    time.update({{"record", record}, {"plan", plan}, {"compile", compile}, {"run", run}});
  }
  rows->push_back(std::move(time));
  rows->push_back(
      row("kernels", static_cast<double>(lazy.kernels), static_cast<double>(eager.kernels)));
  Json bytes = row("bytes", static_cast<double>(lazy.bytes), static_cast<double>(eager.bytes));
  if (workload.bytesRead > 0) {
    bytes["limit"] = workload.bytesRead + workload.bytesWritten;
  }
  rows->push_back(std::move(bytes));
}

int runAll(const char* bench, const std::vector<Workload>& workloads) {
  const double rate = matmulRate();  // before the peers, whose start takes the processors
  const Peers peers = startPeers(absl::GetFlag(FLAGS_peers), app::runfile(kPeerScript),
                                 getNumThreads(), /*compiled=*/true);
  absl::PrintF("%d threads; matmul 1024x1024: %.0f GFLOP/s\n", getNumThreads(), rate / 1e3);
  const std::regex filter(absl::GetFlag(FLAGS_filter));
  std::vector<Json> rows;
  for (const Workload& workload : workloads) {
    if (std::regex_search(workload.name, filter)) {
      const Result result = compare(workload, rate, peers);
      print(workload, result);
      appendRows(bench, workload, result, &rows);
    }
  }
  if (const std::string path = absl::GetFlag(FLAGS_json); !path.empty()) {
    writeRows(rows, path);
  }
  return 0;
}

}  // namespace

int compareWorkloads(const char* bench, const char* usage, int argc, char** argv,
                     std::vector<Workload> (*workloads)()) {
  return runProgram(bench, usage, __FILE__, argc, argv, [=] {
    if (absl::GetFlag(FLAGS_rounds) < 1) {
      throw std::runtime_error("--rounds: must be at least 1");
    }
    prepare(absl::GetFlag(FLAGS_threads));
    flags().cache = "off";  // so that first calls plan and compile
    init();
    return runAll(bench, workloads());
  });
}

}  // namespace fl::bench
