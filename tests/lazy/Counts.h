// What the engine did since an object of this class was made; tests assert plans and kernels by it.
#pragma once

#include "fl/runtime/Counters.h"

namespace fl::testing {

class Counts {
 public:
  uint64_t plansBuilt() const { return runtime::counters().plansBuilt - plans_; }
  uint64_t plansLoaded() const { return runtime::counters().plansLoaded - plansLoaded_; }
  uint64_t kernelsCompiled() const { return runtime::counters().kernelsCompiled - kernels_; }
  uint64_t kernelsLoaded() const { return runtime::counters().kernelsLoaded - loaded_; }
  uint64_t realizes() const { return runtime::counters().realizes - realizes_; }
  uint64_t launches() const { return runtime::counters().kernelLaunches - launches_; }
  uint64_t fallbacks() const { return runtime::counters().fallbacks - fallbacks_; }

 private:
  uint64_t plans_ = runtime::counters().plansBuilt;
  uint64_t plansLoaded_ = runtime::counters().plansLoaded;
  uint64_t kernels_ = runtime::counters().kernelsCompiled;
  uint64_t loaded_ = runtime::counters().kernelsLoaded;
  uint64_t realizes_ = runtime::counters().realizes;
  uint64_t launches_ = runtime::counters().kernelLaunches;
  uint64_t fallbacks_ = runtime::counters().fallbacks;
};

}  // namespace fl::testing
