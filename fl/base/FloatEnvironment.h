// The floating-point environment that computations run in, whatever the caller's is: rounding to
// nearest, subnormal numbers kept, no traps. Public functions compute in it (CallSite.h), and so do
// the threads of fl/host/ThreadPool.h and whoever runs a schedule by hand.
#pragma once

#include <xmmintrin.h>

#include <cfenv>

namespace fl {

// Of this thread, as long as it lives; then the caller's is back, without a trace of exceptions.
class FloatEnvironment {
 public:
  FloatEnvironment() : control_(_mm_getcsr()) {
    if (isComputing()) return;
    std::feholdexcept(&callers_);  // the x87 unit, by which libgcc raises exceptions, traps too
    _mm_setcsr(kComputing);
  }
  ~FloatEnvironment() {
    if (!isComputing()) std::fesetenv(&callers_);
    if (_mm_getcsr() != control_) _mm_setcsr(control_);
  }
  FloatEnvironment(const FloatEnvironment&) = delete;
  FloatEnvironment& operator=(const FloatEnvironment&) = delete;

 private:
  static constexpr unsigned kSticky = 0x3f;  // which exceptions there were
  static constexpr unsigned kComputing = _MM_MASK_MASK | _MM_ROUND_NEAREST;
  bool isComputing() const { return (control_ & ~kSticky) == kComputing; }

  const unsigned control_;
  std::fenv_t callers_;
};

}  // namespace fl
