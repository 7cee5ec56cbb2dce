// Times fl::multiheadAttention (8 heads of 64 features, f32), forward and forward with backward,
// against the same written with matmul and softmax, lazy and eager, in one run. Blocks of calls
// alternate between them; the figures are medians.
#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "benchmarks/Program.h"
#include "benchmarks/Report.h"
#include "fl/fl.h"

ABSL_FLAG(std::vector<std::string>, times,
          std::vector<std::string>({"64", "128", "256", "512", "1024", "2048", "4096"}),
          "lengths of the sequence");
ABSL_FLAG(int, rounds, 5, "blocks of calls of each");
ABSL_FLAG(int, threads, 0, "threads to compute with; 0: FL_NUM_THREADS, or one a processor");
ABSL_FLAG(std::string, json, "", "file for the results, a JSON object a line");

namespace {

using fl::Variable;
using fl::bench::Clock;
using fl::bench::Json;
using fl::bench::millisecondsSince;

constexpr int kHeads = 8, kFeatures = 64;
// A block of calls takes at least as long.
constexpr double kBlockMilliseconds = 20;

using Attention = std::function<Variable(const Variable&, const Variable&, const Variable&)>;

Variable ours(const Variable& q, const Variable& k, const Variable& v) {
  const Variable none;
  return fl::multiheadAttention(q, k, v, none, none, none, kHeads, 0);
}

// With all scores in memory.
Variable plain(const Variable& q, const Variable& k, const Variable& v) {
  const auto heads = [](const Variable& x) {
    return fl::moddims(x, {0, kFeatures, kHeads, x.dim(2)});
  };
  const Variable scores = fl::matmulNT(heads(q) / std::sqrt(double{kFeatures}), heads(k));
  return fl::moddims(fl::matmul(fl::softmax(scores, 1), heads(v)), q.shape());
}

struct Runner {
  std::string name;
  std::string backend;
  Attention attention;
  std::vector<Variable> inputs;  // query, key and value

  void call(bool backward) {
    const fl::BackendScope scope(backend);
    const Variable out = attention(inputs[0], inputs[1], inputs[2]);
    if (!backward) {
      fl::eval(out.tensor());
      fl::sync();
      return;
    }
    fl::sum(out, {0, 1, 2}).backward();
    for (Variable& input : inputs) {
      fl::eval(input.grad().tensor());
    }
    fl::sync();
    for (Variable& input : inputs) {
      input.zeroGrad();
    }
  }

  // Milliseconds a call.
  double block(bool backward) {
    call(backward);  // the others emptied the caches
    const auto start = Clock::now();
    int calls = 0;
    double elapsed = 0;
    while (elapsed < kBlockMilliseconds) {
      call(backward);
      ++calls;
      elapsed = millisecondsSince(start);
    }
    return elapsed / calls;
  }
};

std::vector<Runner> makeRunners(fl::Dim time, bool backward) {
  std::vector<Runner> runners;
  for (const auto& [name, function] :
       std::vector<std::pair<std::string, Attention>>{{"", ours}, {"plain ", plain}}) {
    for (const char* backend : {"lazy", "eager"}) {
      const fl::BackendScope scope(backend);
      Runner runner{name + backend, backend, function, {}};
      for (int i = 0; i < 3; ++i) {
        const fl::Shape shape = {time, kHeads * kFeatures, 1};
        runner.inputs.emplace_back(fl::rand(shape) * 4 - 2, backward);
      }
      fl::sync();
      runners.push_back(std::move(runner));
    }
  }
  return runners;
}

Json measure(fl::Dim time, bool backward) {
  std::vector<Runner> runners = makeRunners(time, backward);
  std::map<std::string, std::vector<double>> blocks;
  for (int round = 0; round < absl::GetFlag(FLAGS_rounds); ++round) {
    for (Runner& runner : runners) {
      blocks[runner.name].push_back(runner.block(backward));
    }
  }
  std::map<std::string, double> medians;
  for (const auto& [name, times] : blocks) {
    medians[name] = fl::bench::median(times);
  }
  const std::string name = absl::StrCat(time, backward ? ", with backward" : ", forward");
  absl::PrintF("%-22s %9.3f %9.3f %9.3f %9.3f   %5.2f %5.2f\n", name, medians["lazy"],
               medians["eager"], medians["plain lazy"], medians["plain eager"],
               medians["lazy"] / medians["plain lazy"], medians["eager"] / medians["plain eager"]);
  return {{"bench", "attention"},
          {"case", name},
          {"unit", "ms"},
          {"threads", fl::getNumThreads()},
          {"ours", medians["lazy"]},
          {"eager", medians["eager"]},
          {"limit", nullptr},
          {"peers", {{"plain", medians["plain lazy"]}, {"plain eager", medians["plain eager"]}}}};
}

int runAll() {
  fl::bench::prepare(absl::GetFlag(FLAGS_threads));
  fl::init();
  absl::PrintF("milliseconds a call, %d threads\n%-22s %9s %9s %9s %9s   %s\n", fl::getNumThreads(),
               "length", "lazy", "eager", "plain", "plain", "ours / plain");
  std::vector<Json> rows;
  for (const std::string& word : absl::GetFlag(FLAGS_times)) {
    fl::Dim time = 0;
    if (!absl::SimpleAtoi(word, &time) || time < 1) {
      throw std::runtime_error("--times: \"" + word + "\" is no length");
    }
    for (const bool backward : {false, true}) {
      rows.push_back(measure(time, backward));
    }
  }
  if (const std::string path = absl::GetFlag(FLAGS_json); !path.empty()) {
    fl::bench::writeRows(rows, path);
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  return fl::bench::runProgram("attention",
                               "Times attention in blocks against all scores in memory.", __FILE__,
                               argc, argv, runAll);
}
