// Wall-clock time of the spans between resume() and stop().
//
// Recorded operators run when a value is read: call fl::sync() first to time their execution.
#pragma once

#include <chrono>
#include <cstdint>

namespace fl {

// Starts stopped.
class TimeMeter {
 public:
  // With `unit`, value() is the time a unit: divided by the number of incUnit().
  explicit TimeMeter(bool unit = false) : useUnit_(unit) {}

  // Seconds, including the running span. 0 if a time a unit is asked for and there is no unit.
  double value() const;
  // Stops and forgets.
  void reset();
  void incUnit(int64_t num = 1) { units_ += num; }
  void resume();
  void stop();
  // Sets the time in seconds and the number of units.
  void set(double val, int64_t num = 1);
  void stopAndIncUnit(int64_t num = 1);

 private:
  using Clock = std::chrono::steady_clock;
  double runningSpan() const;

  Clock::time_point start_;
  double seconds_ = 0;
  int64_t units_ = 0;
  bool isStopped_ = true;
  bool useUnit_;
};

}  // namespace fl
