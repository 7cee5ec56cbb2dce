// Values inside a kernel that a launch has run: computed again, by the tile interpreter, of what
// the launch read, which nothing may have overwritten.
#pragma once

#include <vector>

#include "fl/kernel/Schedule.h"
#include "fl/runtime/Device.h"

namespace fl::check {

class Probe {
 public:
  // All are referred to.
  Probe(const ir::Schedule& schedule, const ir::LaunchStep& launch,
        const runtime::StepMemory& memory);

  // The elements of `value` along the axes of the kernel in the set `axes`, to which those belong
  // that it varies along, in the column-major order of what the kernel was made for.
  std::vector<char> elements(int value, uint32_t axes) const;
  Dim count(uint32_t axes) const;
  // Which of the elements is at a place of KernelArgs::found.
  Dim elementAt(uint64_t place, uint32_t axes) const;

 private:
  std::vector<Dim> strides(uint32_t axes) const;

  const ir::Kernel& kernel_;
  const ir::LaunchStep& launch_;
  const runtime::StepMemory& memory_;
  const std::vector<int64_t> places_;
};

}  // namespace fl::check
