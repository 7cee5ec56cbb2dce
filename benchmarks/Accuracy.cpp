#include "benchmarks/Accuracy.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <map>
#include <mutex>
#include <random>

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

template <typename T>
T sigmoidOf(T x) {
  return 1 / (1 + std::exp(-x));
}

using Wide = long double (*)(long double);

// Of the functions that round.
Wide wideOf(const std::string& name) {
  static const std::map<std::string, Wide> functions = {
      {"exp", std::exp},   {"log", std::log}, {"log1p", std::log1p},
      {"sin", std::sin},   {"cos", std::cos}, {"sqrt", std::sqrt},
      {"tanh", std::tanh}, {"erf", std::erf}, {"sigmoid", sigmoidOf<long double>}};
  const auto found = functions.find(name);
  return found == functions.end() ? nullptr : found->second;
}

template <typename T>
std::vector<T> resultsOf(const UnaryFunction& function, const std::vector<T>& x, dtype type,
                         const std::string& backend) {
  const BackendScope scope(backend);
  const Tensor argument = Tensor::fromVector(x).astype(type);
  return function.apply(argument).astype(dtype_traits<T>::fl_type).template toHostVector<T>();
}

template <typename T>
bool sameBits(T x, T y) {
  return (std::isnan(x) && std::isnan(y)) || (x == y && std::signbit(x) == std::signbit(y));
}

// As of std::numeric_limits.
struct Format {
  int digits, minExponent, maxExponent;
};

Format formatOf(dtype type) {
  switch (type) {
    case dtype::f16:
      return {11, -13, 16};
    case dtype::bf16:
      return {8, -125, 128};
    case dtype::f64:
      return {53, -1021, 1024};
    default:
      return {24, -125, 128};
  }
}

// error(i, want) is that of element i.
template <typename T, typename Reference, typename Error>
Accuracy measured(const UnaryFunction& function, dtype type, const std::vector<T>& x,
                  Reference reference, Error error) {
  const std::vector<T> kernel = resultsOf(function, x, type, "lazy");
  const std::vector<T> tiles = resultsOf(function, x, type, "eager");
  std::mutex mutex;
  Accuracy all;
  const auto range = [&](int64_t begin, int64_t end) {
    Accuracy part;
    for (int64_t i = begin; i < end; ++i) {
      const auto want = reference(x[i]);
      part.add({1, error(kernel[i], want), x[i], kernel[i], static_cast<double>(want),
                !sameBits(kernel[i], tiles[i])});
    }
    const std::lock_guard<std::mutex> lock(mutex);
    all.add(part);
  };
  host::threadPool().parallelFor(static_cast<int64_t>(x.size()), kGrain, range);
  return all;
}

}  // namespace

std::vector<UnaryFunction> unaryFunctions() {
  std::vector<UnaryFunction> functions;
  const auto add = [&](ir::Op op, auto apply, double (*reference)(double)) {
    const ir::OpInfo& info = ir::opInfo(op);
    const double bound = info.result == ir::Result::Bool ? 0 : info.ulp;
    // What the reduction of f64 rounds is not kept: a register more, which GPUs do not have to
    // spare.
    const double bound64 = op == ir::Op::Exp ? 1.01 : bound;
    functions.push_back({info.name, bound, bound64,
                         [=](const Tensor& x) { return apply(defaultTensorBackend(), x); },
                         reference, wideOf(info.name)});
  };
#define FL_UNARY(Name, name)                                                                 \
  add(                                                                                       \
      ir::Op::Name, [](TensorBackend& backend, const Tensor& x) { return backend.name(x); }, \
      meaning<ir::Op::Name>);
#include "fl/tensor/Functions.def"
  functions.push_back({"sigmoid", 2.5, 2.5, [](const Tensor& x) { return sigmoid(x); },
                       sigmoidOf<double>, wideOf("sigmoid")});
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
    std::frexp(rounded == 0 ? std::numeric_limits<float>::min() : rounded, &exponent);
  }
  const int last = std::max(exponent, std::numeric_limits<float>::min_exponent) -
                   std::numeric_limits<float>::digits;
  return std::fabs(value - want) / std::ldexp(1.0, last);
}

double ulpError(double got, long double want, dtype type) {
  const Format format = formatOf(type);
  if (std::isnan(got) || std::isnan(want) || std::isinf(want)) {
    return sameBits<long double>(got, want) ? 0 : std::numeric_limits<double>::infinity();
  }
  int exponent;
  const auto last = [&] { return std::max(exponent, format.minExponent) - format.digits; };
  std::frexp(want, &exponent);
  const long double rounded = std::ldexp(std::rint(std::ldexp(want, -last())), last());
  if (got == 0 && rounded == 0 && std::signbit(got) != std::signbit(want)) {
    return std::numeric_limits<double>::infinity();
  }
  // Both count as the number after the largest, as above.
  const long double beyond = std::ldexp(1.0L, format.maxExponent);
  const long double value = std::isinf(got) ? std::copysign(beyond, got) : got;
  if (std::fabs(rounded) >= beyond) {
    want = std::clamp(want, -beyond, beyond);
    exponent = format.maxExponent;
  } else if (rounded == 0) {
    exponent = format.minExponent;
  } else {
    std::frexp(rounded, &exponent);
  }
  return static_cast<double>(std::fabs(value - want) / std::ldexp(1.0L, last()));
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
  return measured(function, dtype::f32, x, function.reference,
                  [](float got, double want) { return ulpError(got, want); });
}

Accuracy measureAccuracy(const UnaryFunction& function, dtype type, const std::vector<double>& x) {
  const auto reference = [&](long double value) {
    return function.wide ? function.wide(value) : function.reference(static_cast<double>(value));
  };
  return measured(function, type, x, reference,
                  [type](double got, long double want) { return ulpError(got, want, type); });
}

std::vector<double> allOfSixteenBits(dtype type) {
  std::vector<double> all;
  for (uint64_t bits = 0; bits < 1 << 16; ++bits) all.push_back(Number(type, bits).toDouble());
  return all;
}

std::vector<double> sampleOfDoubles(size_t count) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  std::vector<double> sample = {0, -0.0, kInfinity, -kInfinity, std::nan(""), 0x1p-1074, 0x1p-1022};
  std::mt19937_64 random(20261126);
  std::uniform_real_distribution<double> wide(-750, 750), near(-7, 7), small(-1, 1);
  while (sample.size() < count) {
    sample.insert(sample.end(),
                  {std::bit_cast<double>(random()), wide(random), near(random), small(random)});
  }
  return sample;
}

std::string accuracyTable(const std::vector<UnaryFunction>& functions,
                          const std::vector<Accuracy>& found, dtype type) {
  const int digits = type == dtype::f64 ? 17 : 9;
  std::string table = "| function | largest error, ULP | bound | x | result | correct |\n";
  table += "|---|--:|--:|--:|--:|--:|\n";
  for (size_t i = 0; i < functions.size(); ++i) {
    const Accuracy& one = found[i];
    table +=
        absl::StrFormat("| %s | %.3f | %g | %a | %.*g | %.*g |\n", functions[i].name, one.worst,
                        type == dtype::f64 ? functions[i].bound64 : functions[i].bound, one.x,
                        digits, one.got, digits, one.want);
  }
  return table;
}

std::string sixteenBitTable(const std::vector<UnaryFunction>& functions,
                            const std::vector<Accuracy>& f16, const std::vector<Accuracy>& bf16) {
  std::string table = "| function | f16, ULP | bf16, ULP | bound |\n|---|--:|--:|--:|\n";
  for (size_t i = 0; i < functions.size(); ++i) {
    table += absl::StrFormat("| %s | %.4f | %.4f | %g |\n", functions[i].name, f16[i].worst,
                             bf16[i].worst, kSixteenBitBound);
  }
  return table;
}

}  // namespace fl::bench
