#include "fl/custom/Conformance.h"

#include <algorithm>
#include <cmath>
#include <exception>
#include <limits>
#include <optional>
#include <random>
#include <stdexcept>

#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "fl/base/Error.h"
#include "fl/lazy/Compile.h"
#include "fl/runtime/Counters.h"
#include "fl/tensor/tensor.h"

namespace fl {
namespace {

using Values = std::vector<double>;
using Types = std::vector<ir::ValueType>;

double unitOf(dtype type) {
  return type == dtype::f64   ? 0x1p-52
         : type == dtype::f32 ? 0x1p-23
         : type == dtype::f16 ? 0x1p-10
                              : 0x1p-7;
}

double largest(const Values& values) {
  double most = 0;
  for (double value : values) most = std::isfinite(value) ? std::max(most, std::fabs(value)) : most;
  return most;
}

std::string callText(const CustomOperator& op, const Types& operands) {
  const auto print = [](std::string* out, const ir::ValueType& type) { *out += type.toString(); };
  return op.name + "(" + absl::StrJoin(operands, ", ", print) + ")";
}

class Suite {
 public:
  Suite(const CustomOperator& op, const Conformance& conformance)
      : op_(op), options_(conformance), random_(conformance.seed) {}

  std::vector<std::string> run() {
    if (options_.cases.empty()) tell(op_.name + ": there are no cases");
    if (options_.backends.empty()) tell(op_.name + ": there are no backends");
    if (!op_.type || !op_.reference) tell(op_.name + " has no rule of types or no reference");
    if (!found_.empty()) return std::move(found_);
    for (const Conformance::Case& each : options_.cases) {
      const std::string name = callText(op_, each.operands);
      where_.clear();
      try {
        checkCase(name, each);
      } catch (const std::exception& error) {
        tell(name + where_ + " throws: " + error.what());
      }
    }
    for (const Types& types : options_.refused) checkRefused(types);
    return std::move(found_);
  }

 private:
  void tell(std::string what) { found_.push_back(std::move(what)); }

  void checkRefused(const Types& types) {
    try {
      op_.type(types);
      tell(callText(op_, types) + " is not refused");
    } catch (const std::invalid_argument&) {
    } catch (const std::exception& error) {
      tell(callText(op_, types) + " is refused by no std::invalid_argument: " + error.what());
    }
  }

  void checkCase(const std::string& name, const Conformance::Case& each) {
    const ir::ValueType type = op_.type(each.operands);
    std::vector<HostValues> operands;
    for (const ir::ValueType& of : each.operands) operands.push_back(draw(of, each));
    const Values expected = op_.reference(operands);
    std::optional<Values> first;
    for (const auto& [backend, device] : options_.backends) {
      where_ = ", " + backend + " on " + device;
      const BackendScope scope(backend, device);
      const Values got = hostValues(op_.apply(variables(operands, false)).tensor()).values;
      compare(name + where_, got, expected, "the reference says", toleranceOf(type, expected));
      const bool isSame = options_.isExact && device == options_.backends[0].second;
      if (first && isSame) {
        compare(name + where_, got, *first, options_.backends[0].first + " gives", 0);
      }
      if (!first) first = got;
    }
    for (size_t i = 0; i < std::min<size_t>(2, options_.backends.size()); ++i) {
      const auto& [backend, device] = options_.backends[i];
      where_ = ", " + backend + " on " + device;
      const BackendScope scope(backend, device);
      if (isFloating(type.type)) checkGradients(name + where_, operands, expected);
    }
    if (op_.compute) checkPlans(name, operands, *first);
  }

  // Rounded to the dtype, as the reference is to have them.
  HostValues draw(const ir::ValueType& type, const Conformance::Case& each) {
    const double least = isSigned(type.type) ? each.low : std::max(each.low, 0.0);
    std::uniform_real_distribution<double> uniform(least, each.high);
    Values values(type.shape.elements());
    for (double& value : values) {
      value = uniform(random_);
      if (!isFloating(type.type)) value = std::floor(value);
    }
    return hostValues(Tensor::fromVector(type.shape, values).astype(type.type));
  }

  static std::vector<Variable> variables(const std::vector<HostValues>& operands, bool calcGrad) {
    std::vector<Variable> made;
    for (const auto& [type, values] : operands) {
      made.emplace_back(Tensor::fromVector(type.shape, values).astype(type.type),
                        calcGrad && isFloating(type.type));
    }
    return made;
  }

  double toleranceOf(const ir::ValueType& type, const Values& expected) const {
    return isFloating(type.type) ? options_.units * unitOf(type.type) * largest(expected) : 0;
  }

  // Tells the first element that is further off.
  void compare(const std::string& name, const Values& got, const Values& expected,
               const std::string& other, double tolerance) {
    if (got.size() != expected.size()) {
      tell(detail::concat(name, ": ", got.size(), " elements, ", other, " ", expected.size()));
      return;
    }
    for (size_t i = 0; i < got.size(); ++i) {
      const double x = got[i], y = expected[i];
      if (x == y || (std::isnan(x) && std::isnan(y)) || std::fabs(x - y) <= tolerance) continue;
      tell(absl::StrFormat("%s: element %d is %.9g, %s %.9g", name, i, x, other, y));
      return;
    }
  }

  void checkGradients(const std::string& name, const std::vector<HostValues>& operands,
                      const Values& expected) {
    std::vector<Variable> inputs = variables(operands, true);
    Variable result = op_.apply(inputs);
    if (!result.isCalcGrad()) return;
    Values weights(expected.size());
    for (double& weight : weights)
      weight = std::uniform_real_distribution<double>(0.5, 1.5)(random_);
    const Tensor drawn = Tensor::fromVector(result.shape(), weights).astype(result.type());
    result.backward(Variable(drawn, false));
    std::vector<Values> slopes(operands.size());
    double floor = 0;  // an operand that hardly counts has rounding for a gradient
    for (size_t i = 0; i < operands.size(); ++i) {
      if (!isFloating(operands[i].type.type)) continue;
      slopes[i] = differencesOf(op_, operands, i, hostValues(drawn).values);
      floor = std::max(floor, 1e-4 * largest(slopes[i]));
    }
    for (size_t i = 0; i < operands.size(); ++i) {
      const auto& [type, shape] = operands[i].type;
      if (!isFloating(type)) continue;
      const Values got = inputs[i].isGradAvailable() ? hostValues(inputs[i].grad().tensor()).values
                                                     : Values(shape.elements());
      compare(detail::concat(name, ", gradient of operand ", i), got, slopes[i], "differences say",
              (1e-6 + 16 * unitOf(type)) * std::max(floor, largest(slopes[i])));
    }
  }

  void checkPlans(const std::string& name, const std::vector<HostValues>& operands,
                  const Values& expected) {
    where_ = ", lazy on cpu";
    const BackendScope scope("lazy", "cpu");
    std::vector<Variable> inputs = variables(operands, false);
    syncBackends();
    runtime::Counters& counters = runtime::counters();
    const uint64_t fallbacks = counters.fallbacks;
    auto replayed = compile([&] { return op_.apply(inputs).tensor(); });
    Values got;
    for (int call = 0; call < 4; ++call) got = hostValues(replayed()).values;
    compare(name + ", replayed", got, expected, options_.backends[0].first + " gives", 0);

    std::vector<Variable> mapped;
    const uint64_t launches = counters.kernelLaunches;
    for (const Variable& input : inputs) {
      mapped.emplace_back((input.tensor() * 2).astype(input.type()), false);
    }
    hostValues(op_.apply(mapped).tensor() * 2);
    const uint64_t taken = counters.kernelLaunches - launches;
    if (taken != options_.kernels) {
      tell(detail::concat(name, " between two maps takes ", taken, " kernels, not ",
                          options_.kernels));
    }
    if (counters.fallbacks != fallbacks) tell(name + " is not compiled: its plan fails");
  }

  const CustomOperator& op_;
  const Conformance& options_;
  std::mt19937_64 random_;
  std::string where_;  // what runs
  std::vector<std::string> found_;
};

}  // namespace

std::vector<std::string> checkOperator(const CustomOperator& op, const Conformance& conformance) {
  return Suite(op, conformance).run();
}

}  // namespace fl
