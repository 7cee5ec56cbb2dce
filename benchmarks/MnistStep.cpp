// Times one training step of apps/mnist, lazy and eager, in one run: for the digits at batch 32 and
// for random images of 28x28 at batch 64. A step is forward, reading the loss, backward and the
// update, until all of it is done; batches are made beforehand. Blocks of steps alternate between
// the modes (and with --peers PyTorch, each block a process of its own), so that whatever else the
// machine does falls on all of them; the figures are medians.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <iostream>
#include <limits>
#include <map>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "apps/mnist/Mnist.h"
#include "apps/mnist/Runfile.h"
#include "benchmarks/Peer.h"
#include "benchmarks/Program.h"
#include "benchmarks/Report.h"
#include "fl/fl.h"
#include "fl/runtime/Counters.h"

ABSL_FLAG(int, rounds, 9, "blocks of steps of each mode");
ABSL_FLAG(int, steps, 20, "timed steps in a block");
ABSL_FLAG(int, threads, 0, "threads to compute with; 0: FL_NUM_THREADS, or one a processor");
ABSL_FLAG(bool, peers, false, "also PyTorch (./setup.sh --peers installs it)");
ABSL_FLAG(std::string, json, "", "file for the results, a JSON object a line");

namespace {

using fl::Tensor;
using fl::bench::Clock;
using fl::bench::Json;
using fl::bench::median;
using fl::bench::millisecondsSince;

// Steps before the timed ones: at the start, and in each block (the other mode emptied the caches).
constexpr int kWarmup = 20;
constexpr int kBlockWarmup = 2;
constexpr char kPeerScript[] = "benchmarks/peers/mnist_step_torch.py";

struct PeerRun {
  std::string python;
  std::string options;  // of the script
};

// By the peers' names. Debian's PyTorch 1.13 belongs to Debian's interpreter.
const std::map<std::string, PeerRun> kPeers = {
    {"torch 1.13", {"/usr/bin/python3", ""}},
    {"torch 1.13 channels-last", {"/usr/bin/python3", "--channels_last"}},
    {"torch 2.15", {fl::bench::peerPython(), ""}},
    {"torch 2.15 channels-last", {fl::bench::peerPython(), "--channels_last"}},
};

struct Batch {
  Tensor x;  // (size, size, batch)
  Tensor y;  // (batch)
};

struct Case {
  std::string name;
  int size;
  int batch;
  std::vector<Batch> batches;
};

// What one step costs apart from time.
struct Counts {
  uint64_t kernels;
  uint64_t libraryCalls;
  uint64_t bytes;
};

struct Result {
  // Milliseconds a step, by "lazy", "eager" and the peers' names.
  std::map<std::string, double> times;
  std::map<std::string, Counts> counts;
  // The step's multiply-adds at the rate of a large matrix product: no step can take less.
  double limit;
};

// The program of apps/mnist under one backend, a step at a time.
class Trainer {
 public:
  Trainer(const std::string& backend, const Case& workload)
      : backend_(backend),
        batches_(workload.batches),
        model_(makeModel(backend, workload.size)),
        optimizer_(model_.params(), 0.01) {}

  void step() {
    const fl::BackendScope scope(backend_);
    const Batch& batch = batches_[next_++ % batches_.size()];
    auto output = model_(fl::noGrad(batch.x));
    auto loss = fl::categoricalCrossEntropy(output, fl::noGrad(batch.y));
    lossValue_ = loss.tensor().scalar<float>();
    loss.backward();
    optimizer_.step();
    optimizer_.zeroGrad();
    fl::sync();
  }

  void steps(int count) {
    for (int i = 0; i < count; ++i) {
      step();
    }
  }

  // Appends the milliseconds of each timed step.
  void block(std::vector<double>& times) {
    steps(kBlockWarmup);
    for (int i = 0; i < absl::GetFlag(FLAGS_steps); ++i) {
      const auto start = Clock::now();
      step();
      times.push_back(millisecondsSince(start));
    }
  }

  Counts count() {
    const fl::runtime::Counters& counters = fl::runtime::counters();
    const Counts before{counters.kernelLaunches, counters.libraryCalls, counters.bytesMoved};
    step();
    return {counters.kernelLaunches - before.kernels, counters.libraryCalls - before.libraryCalls,
            counters.bytesMoved - before.bytes};
  }

 private:
  static fl::Sequential makeModel(const std::string& backend, int size) {
    const fl::BackendScope scope(backend);
    fl::setSeed(0);
    return fl::app::makeModel(size, size);
  }

  std::string backend_;
  const std::vector<Batch>& batches_;
  fl::Sequential model_;
  fl::SGDOptimizer optimizer_;
  size_t next_ = 0;
  float lossValue_ = 0;
};

// A tensor of its own with the elements of `view`, so that no step computes them again.
template <typename T>
Tensor computed(const Tensor& view) {
  return Tensor::fromVector(view.shape(), view.toHostVector<T>());
}

Case digits(int batch) {
  const auto [x, y] = fl::app::loadDataset(fl::app::digitsDirectory());
  Case digits{"digits 8x8", static_cast<int>(x.dim(0)), batch, {}};
  for (fl::Dim end = batch; end <= x.dim(2); end += batch) {
    const fl::range part(end - batch, end);
    digits.batches.push_back(
        {computed<float>(x(fl::span, fl::span, part)), computed<int>(y(part))});
  }
  return digits;
}

Case random(int size, int batch) {
  const Tensor x = fl::rand({size, size, batch}) - 0.5;
  const Tensor y = (fl::rand({batch}) * 9.99).astype(fl::dtype::s32);
  return {absl::StrCat("random ", size, "x", size),
          size,
          batch,
          {{computed<float>(x), computed<int>(y)}}};
}

// Floating-point operations of a step: each layer's product three times (forward, gradients of the
// weights and of the input), the first without the gradient of the images.
double stepOperations(const Case& workload) {
  const double pixels = workload.size * workload.size;
  const double features = (workload.size / 4) * (workload.size / 4) * 64;
  const double convolutions = 2 * (25. * 32 * pixels) + 3 * (25. * 32 * 64 * pixels / 4);
  const double linears = 3 * (features * 1024 + 1024. * fl::app::kMnistClasses);
  return 2 * workload.batch * (convolutions + linears);
}

// Floating-point operations a millisecond of the fastest of some 1024x1024 products.
double matmulRate() {
  constexpr int kSize = 1024;
  const fl::BackendScope scope("eager");
  const Tensor x = computed<float>(fl::rand({kSize, kSize}));
  double fastest = std::numeric_limits<double>::infinity();
  for (int i = 0; i < 100; ++i) {
    const auto start = Clock::now();
    const Tensor product = fl::matmul(x, x);
    fl::sync();
    fastest = std::min(fastest, millisecondsSince(start));
  }
  return 2. * kSize * kSize * kSize / fastest;
}

// The step times of one run of the script, which is a process of its own.
std::vector<double> runPeer(const Case& workload, const PeerRun& peer) {
  const std::string script = fl::app::runfile(kPeerScript);
  const std::string command =
      absl::StrFormat("'%s' '%s' --size %d --batch %d --threads %d --warmup %d --steps %d %s",
                      peer.python, script, workload.size, workload.batch, fl::getNumThreads(),
                      kWarmup, absl::GetFlag(FLAGS_steps), peer.options);
  std::string output;
  std::FILE* pipe = popen(command.c_str(), "r");
  for (int c; pipe != nullptr && (c = std::fgetc(pipe)) != EOF;) {
    output.push_back(static_cast<char>(c));
  }
  if (pipe == nullptr || pclose(pipe) != 0) {
    throw std::runtime_error("--peers: PyTorch failed; is it installed (./setup.sh --peers)?");
  }
  return Json::parse(output).get<std::vector<double>>();
}

std::map<std::string, std::vector<double>> measure(const Case& workload, Trainer& lazy,
                                                   Trainer& eager) {
  std::map<std::string, std::vector<double>> times;
  const uint64_t compiled = fl::runtime::counters().kernelsCompiled;
  for (int round = 0; round < absl::GetFlag(FLAGS_rounds); ++round) {
    lazy.block(times["lazy"]);
    eager.block(times["eager"]);
    for (const auto& [name, peer] : kPeers) {
      if (absl::GetFlag(FLAGS_peers)) {
        const std::vector<double> its = runPeer(workload, peer);
        times[name].insert(times[name].end(), its.begin(), its.end());
      }
    }
  }
  if (const uint64_t late = fl::runtime::counters().kernelsCompiled - compiled; late > 0) {
    std::cerr << "warning: " << late << " kernels were compiled in the timed part\n";
  }
  return times;
}

Result run(const Case& workload, double rate) {
  Trainer lazy("lazy", workload);
  Trainer eager("eager", workload);
  lazy.steps(kWarmup);
  eager.steps(kWarmup);
  Result result;
  result.limit = stepOperations(workload) / rate;
  result.counts = {{"lazy", lazy.count()}, {"eager", eager.count()}};
  for (const auto& [name, times] : measure(workload, lazy, eager)) {
    result.times[name] = median(times);
  }
  return result;
}

void print(const Case& workload, const Result& result) {
  absl::PrintF("%s, batch %d, %d threads\n", workload.name, workload.batch, fl::getNumThreads());
  const double lazy = result.times.at("lazy");
  for (const auto& [name, time] : result.times) {
    absl::PrintF("  %-24s %9.3f ms   %5.2f x lazy\n", name, time, time / lazy);
  }
  absl::PrintF("  %-24s %9.3f ms   multiply-adds alone\n", "limit", result.limit);
  for (const char* mode : {"eager", "lazy"}) {
    const Counts& counts = result.counts.at(mode);
    absl::PrintF("  a step %-17s %9d kernels, %d library calls, %.2f MB moved\n", mode,
                 counts.kernels, counts.libraryCalls, counts.bytes / 1e6);
  }
}

Json row(const Case& workload, const char* unit, double ours, double eager) {
  return {{"bench", "mnist_step"},
          {"case", absl::StrFormat("%s, batch %d", workload.name, workload.batch)},
          {"unit", unit},
          {"threads", fl::getNumThreads()},
          {"ours", ours},
          {"eager", eager},
          {"limit", nullptr},
          {"peers", Json::object()}};
}

void appendRows(const Case& workload, const Result& result, std::vector<Json>& rows) {
  const Counts& lazy = result.counts.at("lazy");
  const Counts& eager = result.counts.at("eager");
  Json time = row(workload, "ms", result.times.at("lazy"), result.times.at("eager"));
  time["limit"] = result.limit;
  for (const auto& [name, peer] : kPeers) {
    if (const auto found = result.times.find(name); found != result.times.end()) {
      time["peers"][name] = found->second;
    }
  }
  rows.push_back(std::move(time));
  rows.push_back(row(workload, "kernels", static_cast<double>(lazy.kernels),
                     static_cast<double>(eager.kernels)));
  rows.push_back(
      row(workload, "bytes", static_cast<double>(lazy.bytes), static_cast<double>(eager.bytes)));
}

int runAll() {
  if (absl::GetFlag(FLAGS_rounds) < 1 || absl::GetFlag(FLAGS_steps) < 1) {
    throw std::runtime_error("--rounds and --steps: must be at least 1");
  }
  fl::bench::prepare(absl::GetFlag(FLAGS_threads));
  fl::init();
  const double rate = matmulRate();
  absl::PrintF("matmul 1024x1024: %.0f GFLOP/s\n", rate / 1e6);
  std::vector<Json> rows;
  for (const Case& workload : {digits(32), random(28, 64)}) {
    const Result result = run(workload, rate);
    print(workload, result);
    appendRows(workload, result, rows);
  }
  if (const std::string path = absl::GetFlag(FLAGS_json); !path.empty()) {
    fl::bench::writeRows(rows, path);
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  return fl::bench::runProgram("mnist_step",
                               "Times the training step of apps/mnist, lazy and eager.", __FILE__,
                               argc, argv, runAll);
}
