#include "fl/meter/TimeMeter.h"

namespace fl {

double TimeMeter::runningSpan() const {
  return isStopped_ ? 0 : std::chrono::duration<double>(Clock::now() - start_).count();
}

double TimeMeter::value() const {
  const double total = seconds_ + runningSpan();
  if (!useUnit_) {
    return total;
  }
  return units_ > 0 ? total / static_cast<double>(units_) : 0;
}

void TimeMeter::reset() { *this = TimeMeter(useUnit_); }

void TimeMeter::resume() {
  if (isStopped_) {
    start_ = Clock::now();
    isStopped_ = false;
  }
}

void TimeMeter::stop() {
  seconds_ += runningSpan();
  isStopped_ = true;
}

void TimeMeter::set(double val, int64_t num) {
  seconds_ = val;
  units_ = num;
}

void TimeMeter::stopAndIncUnit(int64_t num) {
  stop();
  incUnit(num);
}

}  // namespace fl
