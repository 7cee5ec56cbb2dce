#include "tools/KernelLaunch.h"

#include <algorithm>

#include "fl/base/Error.h"

namespace fl::tools {
namespace {

using ir::BufferRef;
using ir::KernelOperand;

constexpr Dim kDefaultExtent = 16;

// Axes of class 1 lie innermost, those of class * around them in order.
std::vector<Dim> denseStrides(const KernelOperand& operand, const std::vector<Dim>& extents) {
  std::vector<Dim> strides(extents.size(), 0);
  Dim next = 1;
  for (size_t axis = 0; axis < extents.size(); ++axis) {
    if (operand.strides[axis] == ir::Stride::One) {
      strides[axis] = 1;
      next += std::max<Dim>(extents[axis] - 1, 0);
    }
  }
  for (size_t axis = 0; axis < extents.size(); ++axis) {
    if (operand.strides[axis] == ir::Stride::Any) {
      strides[axis] = next;
      next *= std::max<Dim>(extents[axis], 1);
    }
  }
  return strides;
}

// The extents of the axes that move, innermost first.
Shape denseShape(const std::vector<Dim>& strides, const std::vector<Dim>& extents) {
  std::vector<std::pair<Dim, Dim>> axes;
  for (size_t axis = 0; axis < extents.size(); ++axis) {
    if (strides[axis] != 0) {
      axes.emplace_back(strides[axis], extents[axis]);
    }
  }
  std::stable_sort(axes.begin(), axes.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  Shape shape;
  for (const auto& [stride, extent] : axes) {
    shape.get().push_back(extent);
  }
  return shape;
}

// The buffer of an operand, which it adds to the schedule.
BufferRef addBuffer(ir::Schedule* schedule, const KernelOperand& operand, const Shape& shape) {
  if (operand.role == KernelOperand::Role::Output) {
    schedule->outputs.push_back({.type = {operand.type, shape}, .source = {}});
    return {BufferRef::Space::Output, static_cast<int>(schedule->outputs.size()) - 1};
  }
  schedule->parameters.push_back({.type = {operand.type, shape}});
  return {BufferRef::Space::Parameter, static_cast<int>(schedule->parameters.size()) - 1};
}

}  // namespace

ir::Schedule launchOnce(const std::string& path, const ir::Kernel& kernel,
                        std::vector<Dim> extents) {
  if (extents.empty()) {
    extents.assign(kernel.rank, kDefaultExtent);
  }
  FL_USER_CHECK(static_cast<int>(extents.size()) == kernel.rank, path, ": --extents has ",
                extents.size(), ", but the kernel's rank is ", kernel.rank);
  FL_USER_CHECK(std::all_of(extents.begin(), extents.end(), [](Dim extent) { return extent >= 0; }),
                path, ": --extents: one is negative");
  Dim elements = 1;
  FL_USER_CHECK(std::none_of(extents.begin(), extents.end(),
                             [&](Dim extent) {
                               return __builtin_mul_overflow(elements, std::max<Dim>(extent, 1),
                                                             &elements);
                             }),
                path, ": --extents: there are more elements than can be counted");
  FL_USER_CHECK(kernel.gatherCount() == 0, path,
                ": the kernel gathers, and what it may read is not in its text: run a schedule "
                "that launches it");
  ir::Schedule schedule;
  schedule.kernels.push_back(kernel);
  ir::LaunchStep launch;
  launch.extents = extents;
  for (const KernelOperand& operand : kernel.operands) {
    ir::LaunchOperand binding;
    binding.strides = denseStrides(operand, extents);
    if (operand.role != KernelOperand::Role::Index) {
      binding.buffer = addBuffer(&schedule, operand, denseShape(binding.strides, extents));
    }
    launch.operands.push_back(std::move(binding));
  }
  for (dtype type : kernel.scalars) {
    launch.numbers.push_back(static_cast<int>(schedule.parameters.size()));
    schedule.parameters.push_back({.type = {type, Shape{}}, .number = true});
  }
  schedule.steps.push_back(std::move(launch));
  verify(schedule);
  return schedule;
}

}  // namespace fl::tools
