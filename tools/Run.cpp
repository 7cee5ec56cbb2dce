#include "tools/Run.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <iomanip>
#include <iostream>
#include <limits>
#include <random>
#include <stdexcept>

#include "absl/flags/flag.h"
#include "absl/flags/parse.h"
#include "absl/flags/usage.h"
#include "fl/ir/Text.h"
#include "fl/tensor/GraphRunner.h"
#include "fl/tensor/tensor.h"
#include "tools/Files.h"

ABSL_FLAG(std::string, backend, "lazy", "backend to run on: lazy or eager");
ABSL_FLAG(std::string, device, "cpu", "device to run on: cpu, ref or null");
ABSL_FLAG(uint32_t, seed, 0, "seed of the inputs: floats are normal, integers 0 to 3");
ABSL_FLAG(std::string, check, "", "ref: compare every result with the reference device's");
ABSL_FLAG(double, tolerance, 1e-5,
          "largest difference that --check accepts, relative to the "
          "largest element of the result");
ABSL_FLAG(int, time, 0, "time this many runs after a warm-up");

namespace fl::tools {
namespace {

Tensor draw(const ir::Parameter& parameter, std::mt19937_64& random) {
  const auto [type, shape] = parameter.type;
  std::vector<double> elements(shape.elements());
  std::normal_distribution<double> normal;
  for (double& element : elements) {
    element = isFloating(type) ? normal(random) : static_cast<double>(random() % 4);
  }
  const Tensor drawn = Tensor::fromVector(shape, elements).astype(type);
  return parameter.number ? fromScalar(elements[0], type) : drawn;
}

// Starts of a box must fit: 0, or where a box that runs backwards reaches 0.
void fitStarts(const ir::Graph& graph, std::vector<Tensor>* inputs) {
  for (const ir::Node& node : graph.nodes()) {
    if (node.op != ir::Op::Slice && node.op != ir::Op::Update) {
      continue;
    }
    const bool slices = node.op == ir::Op::Slice;
    const Shape& sizes = slices ? node.type.shape : graph.type(node.operands[1]).shape;
    const int rank = sizes.ndim();
    for (int i = 0; i < rank; ++i) {
      const ir::ValueId start = node.operands[(slices ? 1 : 2) + i];
      const Dim stride = node.attrs[1 + (slices ? rank : 0) + i];
      if (graph.isParameter(start)) {
        const Dim first = stride < 0 ? (sizes[i] - 1) * -stride : 0;
        (*inputs)[start] = fromScalar(static_cast<long long>(first), dtype::s64);
      }
    }
  }
}

struct Job {
  ir::Graph graph;
  std::vector<Tensor> inputs;

  std::vector<std::vector<double>> run(const std::string& backend,
                                       const std::string& device) const {
    const BackendScope scope(backend, device);
    std::vector<std::vector<double>> results;
    for (const Tensor& result : runGraph(graph, inputs)) {
      results.push_back(result.astype(dtype::f64).toHostVector<double>());
    }
    return results;
  }
};

// The largest difference of two results, relative to the largest element; infinite where one is
// finite and the other is not.
double difference(const std::vector<double>& x, const std::vector<double>& y) {
  double largest = 0, worst = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    if (std::isfinite(x[i]) && std::isfinite(y[i])) {
      largest = std::max(largest, std::fabs(y[i]));
      worst = std::max(worst, std::fabs(x[i] - y[i]));
    } else if (x[i] != y[i] && !(std::isnan(x[i]) && std::isnan(y[i]))) {
      return std::numeric_limits<double>::infinity();
    }
  }
  return largest > 0 ? worst / largest : worst;
}

bool check(const Job& job, const std::vector<std::vector<double>>& results) {
  const std::vector<std::vector<double>> expected = job.run("eager", "ref");
  bool good = true;
  for (size_t i = 0; i < results.size(); ++i) {
    const double found = difference(results[i], expected[i]);
    const bool accepted = found <= absl::GetFlag(FLAGS_tolerance);
    std::cout << "result " << i << " " << job.graph.type(job.graph.results()[i]).toString()
              << ": difference " << found << (accepted ? "" : ", too large") << "\n";
    good = good && accepted;
  }
  return good;
}

void time(const Job& job, const std::string& backend, const std::string& device) {
  std::vector<double> seconds;
  for (int i = 0; i < absl::GetFlag(FLAGS_time); ++i) {
    const auto start = std::chrono::steady_clock::now();
    job.run(backend, device);
    seconds.push_back(
        std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  }
  std::sort(seconds.begin(), seconds.end());
  std::cout << "time: " << seconds[seconds.size() / 2] * 1e6 << " us, median of " << seconds.size()
            << " runs, results read back\n";
}

}  // namespace

int runRun(int argc, char** argv) {
  absl::SetProgramUsageMessage("fl run [flags] GRAPH.flir   (- reads standard input)");
  const std::vector<char*> arguments = absl::ParseCommandLine(argc, argv);
  if (arguments.size() != 2) {
    throw std::invalid_argument("run: expected one file");
  }
  const std::string path = arguments[1], reference = absl::GetFlag(FLAGS_check);
  if (!reference.empty() && reference != "ref") {
    throw std::invalid_argument("--check: \"" + reference + "\" is not ref");
  }
  Job job;
  job.graph = parseInput(path, readInput(path), ir::parseGraph);
  std::mt19937_64 random(absl::GetFlag(FLAGS_seed));
  for (const ir::Parameter& parameter : job.graph.parameters()) {
    job.inputs.push_back(draw(parameter, random));
  }
  fitStarts(job.graph, &job.inputs);
  const std::string backend = absl::GetFlag(FLAGS_backend), device = absl::GetFlag(FLAGS_device);
  const auto results = job.run(backend, device);
  for (size_t i = 0; i < results.size() && reference.empty(); ++i) {
    double sum = 0;
    for (double element : results[i]) {
      sum += element;
    }
    std::cout << "result " << i << " " << job.graph.type(job.graph.results()[i]).toString()
              << ": sum " << std::setprecision(9) << sum << "\n";
  }
  const bool good = reference.empty() || check(job, results);
  if (absl::GetFlag(FLAGS_time) > 0) {
    time(job, backend, device);
  }
  return good ? 0 : 1;
}

}  // namespace fl::tools
