// The floating-point environment that computations run in, whatever the caller's is: rounding to
// nearest, subnormal numbers kept, no traps. ScheduleRunner.cpp and the threads of ThreadPool.cpp
// compute in it.
#pragma once

#include <xmmintrin.h>

namespace fl::host {

// Of this thread, as long as it lives; then the caller's is back.
class FloatEnvironment {
 public:
  FloatEnvironment() : callers_(_mm_getcsr()) {
    if ((callers_ & ~kSticky) != kComputing) _mm_setcsr(kComputing);
  }
  ~FloatEnvironment() {
    if ((callers_ & ~kSticky) != kComputing) _mm_setcsr(callers_);
  }
  FloatEnvironment(const FloatEnvironment&) = delete;
  FloatEnvironment& operator=(const FloatEnvironment&) = delete;

 private:
  static constexpr unsigned kSticky = 0x3f;  // which exceptions there were
  static constexpr unsigned kComputing = _MM_MASK_MASK | _MM_ROUND_NEAREST;
  const unsigned callers_;
};

}  // namespace fl::host
