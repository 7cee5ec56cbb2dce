#include "fl/view/StepTimes.h"

#include <algorithm>

namespace fl::view {

void StepTimes::add(const StepTime& time) {
  const std::lock_guard lock(mutex_);
  std::deque<double>& times = times_[{time.begin, time.end}];
  times.push_back(time.microseconds);
  if (times.size() > runs_) times.pop_front();
}

std::vector<StepTime> StepTimes::medians() const {
  const std::lock_guard lock(mutex_);
  std::vector<StepTime> medians;
  for (auto [steps, times] : times_) {
    const auto middle = times.begin() + static_cast<ptrdiff_t>(times.size() / 2);
    std::nth_element(times.begin(), middle, times.end());
    medians.push_back({steps.first, steps.second, *middle});
  }
  return medians;
}

void StepClock::afterSteps(size_t begin, size_t end, const runtime::StepMemory& memory) {
  const std::chrono::duration<double, std::micro> elapsed = Clock::now() - last_;
  times_.add({begin, end, elapsed.count()});
  if (next_) next_->afterSteps(begin, end, memory);
  last_ = Clock::now();
}

}  // namespace fl::view
