#include "benchmarks/Accuracy.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <mutex>

#include "absl/strings/str_format.h"
#include "fl/host/ThreadPool.h"
#include "fl/ir/HostBuilder.h"

namespace fl::bench {
namespace {

constexpr int64_t kGrain = 1 << 14;

template <ir::Op op>
double meaning(double x) {
  ir::HostBuilder b;
  return static_cast<double>(ir::Meaning<op>::apply(b, x, x, x));
}

double sigmoidOf(double x) { return 1 / (1 + std::exp(-x)); }

std::vector<float> resultsOf(const UnaryFunction& function, const std::vector<float>& x,
                             const std::string& backend) {
  const BackendScope scope(backend);
  return function.apply(Tensor::fromVector(x)).astype(dtype::f32).toHostVector<float>();
}

bool sameBits(float x, float y) {
  return (std::isnan(x) && std::isnan(y)) ||
         std::bit_cast<uint32_t>(x) == std::bit_cast<uint32_t>(y);
}

}  // namespace

std::vector<UnaryFunction> unaryFunctions() {
  std::vector<UnaryFunction> functions;
  const auto add = [&](ir::Op op, auto apply, double (*reference)(double)) {
    const ir::OpInfo& info = ir::opInfo(op);
    const double bound = info.result == ir::Result::Bool ? 0 : info.ulp;
    functions.push_back({info.name, bound,
                         [=](const Tensor& x) { return apply(defaultTensorBackend(), x); },
                         reference});
  };
#define FL_UNARY(Name, name)                                                                 \
  add(                                                                                       \
      ir::Op::Name, [](TensorBackend& backend, const Tensor& x) { return backend.name(x); }, \
      meaning<ir::Op::Name>);
#include "fl/tensor/Functions.def"
  functions.push_back({"sigmoid", 2.5, [](const Tensor& x) { return sigmoid(x); }, sigmoidOf});
  return functions;
}

double ulpError(float got, double want) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  const float rounded = static_cast<float>(want);
  if (std::isnan(got) || std::isnan(want) || std::isinf(want)) {
    return sameBits(got, rounded) ? 0 : kInfinity;
  }
  if (got == 0 && rounded == 0) {
    return std::signbit(got) == std::signbit(want) ? std::fabs(want) / 0x1p-149 : kInfinity;
  }
  // Beyond the largest number, by rounding or by far, both count as the number after it.
  constexpr double kBeyond = 0x1p128;
  const double value = std::isinf(got) ? std::copysign(kBeyond, got) : got;
  int exponent = std::numeric_limits<float>::max_exponent;
  if (std::isinf(rounded)) {
    want = std::clamp(want, -kBeyond, kBeyond);
  } else {
    std::frexp(rounded, &exponent);
  }
  const int last = std::max(exponent, std::numeric_limits<float>::min_exponent) -
                   std::numeric_limits<float>::digits;
  return std::fabs(value - want) / std::ldexp(1.0, last);
}

void Accuracy::add(const Accuracy& other) {
  const uint64_t all = arguments + other.arguments, differ = different + other.different;
  if (arguments == 0 || other.worst > worst) {
    *this = other;
  }
  arguments = all;
  different = differ;
}

Accuracy measureAccuracy(const UnaryFunction& function, const std::vector<float>& x) {
  const std::vector<float> kernel = resultsOf(function, x, "lazy");
  const std::vector<float> tiles = resultsOf(function, x, "eager");
  std::mutex mutex;
  Accuracy all;
  host::threadPool().parallelFor(static_cast<int64_t>(x.size()), kGrain,
                                 [&](int64_t begin, int64_t end) {
                                   Accuracy part;
                                   for (int64_t i = begin; i < end; ++i) {
                                     const double want = function.reference(x[i]);
                                     part.add({1, ulpError(kernel[i], want), x[i], kernel[i], want,
                                               !sameBits(kernel[i], tiles[i])});
                                   }
                                   const std::lock_guard<std::mutex> lock(mutex);
                                   all.add(part);
                                 });
  return all;
}

std::string accuracyTable(const std::vector<UnaryFunction>& functions,
                          const std::vector<Accuracy>& found) {
  std::string table = "| function | largest error, ULP | bound | x | result | correct |\n";
  table += "|---|--:|--:|--:|--:|--:|\n";
  for (size_t i = 0; i < functions.size(); ++i) {
    const Accuracy& one = found[i];
    table += absl::StrFormat("| %s | %.3f | %g | %a | %.9g | %.9g |\n", functions[i].name,
                             one.worst, functions[i].bound, one.x, one.got, one.want);
  }
  return table;
}

}  // namespace fl::bench
