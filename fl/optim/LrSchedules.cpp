#include "fl/optim/LrSchedules.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <utility>

#include "fl/base/CallSite.h"
#include "fl/base/Error.h"

namespace fl {
namespace {

// From `start` at share 0 to `end` at share 1.
double halfCosine(double start, double end, double share) {
  return end + (start - end) * (1 + std::cos(std::numbers::pi * share)) / 2;
}

void checkSteps(const char* schedule, int64_t steps) {
  FL_USER_CHECK(steps >= 1, schedule, ": the number of steps must be at least 1, not ", steps);
}

}  // namespace

LrSchedule stepDecay(double lr, int64_t stepSize, double gamma) {
  FL_API_ENTRY();
  checkSteps("stepDecay", stepSize);
  return [=](int64_t step) { return lr * std::pow(gamma, static_cast<double>(step / stepSize)); };
}

LrSchedule cosineAnnealing(double lr, int64_t steps, double minLr) {
  FL_API_ENTRY();
  checkSteps("cosineAnnealing", steps);
  return [=](int64_t step) {
    const auto share = static_cast<double>(std::min(step, steps)) / static_cast<double>(steps);
    return halfCosine(lr, minLr, share);
  };
}

LrSchedule linearWarmup(int64_t steps, LrSchedule next, double startFactor) {
  FL_API_ENTRY();
  checkSteps("linearWarmup", steps);
  FL_USER_CHECK(next, "linearWarmup: no schedule follows");
  return [=, next = std::move(next)](int64_t step) {
    if (step >= steps) return next(step - steps);
    const double share = static_cast<double>(step) / static_cast<double>(steps);
    return next(0) * (startFactor + (1 - startFactor) * share);
  };
}

LrSchedule oneCycle(double maxLr, int64_t steps, double warmupShare, double divFactor,
                    double finalDivFactor) {
  FL_API_ENTRY();
  const double last = static_cast<double>(steps) - 1;
  const double peak = warmupShare * static_cast<double>(steps) - 1;
  FL_USER_CHECK(peak >= 0 && peak < last, "oneCycle: the peak must lie within the ", steps,
                " steps, which a warm-up of ", warmupShare, " of them does not allow");
  const double first = maxLr / divFactor;
  return [=](int64_t number) {
    const auto step = static_cast<double>(number);
    if (step < peak) return halfCosine(first, maxLr, step / peak);
    const double share = std::min((step - peak) / (last - peak), 1.0);
    return halfCosine(maxLr, first / finalDivFactor, share);
  };
}

}  // namespace fl
