// How long the steps of a plan take.
#pragma once

#include <chrono>
#include <deque>
#include <map>
#include <mutex>
#include <utility>
#include <vector>

#include "fl/runtime/Device.h"

namespace fl::view {

// What steps [begin, end) took, which ran together if they are several.
struct StepTime {
  size_t begin, end;
  double microseconds;
};

// Of the last so many runs. Thread-safe.
class StepTimes {
 public:
  explicit StepTimes(size_t runs) : runs_(runs) {}
  void add(const StepTime& time);
  std::vector<StepTime> medians() const;

 private:
  const size_t runs_;
  mutable std::mutex mutex_;
  std::map<std::pair<size_t, size_t>, std::deque<double>> times_;  // by begin and end
};

// Adds the steps of one run that this thread makes while it lives.
class StepClock final : public runtime::StepObserver {
 public:
  explicit StepClock(StepTimes& times)
      : times_(times), next_(std::exchange(runtime::stepObserver(), this)) {}
  ~StepClock() override { runtime::stepObserver() = next_; }
  void afterSteps(size_t begin, size_t end, const runtime::StepMemory& memory) override;

 private:
  using Clock = std::chrono::steady_clock;
  StepTimes& times_;
  StepObserver* const next_;
  Clock::time_point last_ = Clock::now();
};

}  // namespace fl::view
