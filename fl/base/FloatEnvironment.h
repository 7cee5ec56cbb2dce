// The floating-point environment that computations run in, whatever the caller's is: rounding to
// nearest, subnormal numbers kept, no traps. Public functions compute in it (CallSite.h), and so do
// the threads of fl/host/ThreadPool.h and whoever runs a schedule by hand.
#pragma once

#include <xmmintrin.h>

#include <cfenv>

namespace fl {

// Of this thread, as long as it lives; then the caller's is back. One that another of this thread's
// outlives may be told so, which saves it some nanoseconds.
class FloatEnvironment {
 public:
  explicit FloatEnvironment(bool isOuter = true) {
    if (!isOuter || (_mm_getcsr() & ~kSticky) == kComputing) return;
    std::feholdexcept(&callers_);  // the x87 unit, by which libgcc raises exceptions, traps too
    _mm_setcsr(kComputing);
    isOther_ = true;
  }
  ~FloatEnvironment() {
    if (isOther_) std::fesetenv(&callers_);
  }
  FloatEnvironment(const FloatEnvironment&) = delete;
  FloatEnvironment& operator=(const FloatEnvironment&) = delete;

 private:
  // The bits for exceptions that there were, and what all others are.
  static constexpr unsigned kSticky = 0x3f, kComputing = _MM_MASK_MASK | _MM_ROUND_NEAREST;
  std::fenv_t callers_;
  bool isOther_ = false;
};

}  // namespace fl
