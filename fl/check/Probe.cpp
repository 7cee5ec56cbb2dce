#include "fl/check/Probe.h"

#include <algorithm>
#include <numeric>

#include "fl/tile/TileInterpreter.h"

namespace fl::check {

using ir::KernelOperand;
using ir::KernelStage;
using ir::KernelValue;

Probe::Probe(const ir::Schedule& schedule, const ir::LaunchStep& launch,
             const runtime::StepMemory& memory)
    : kernel_(schedule.kernels[launch.kernel]),
      launch_(launch),
      memory_(memory),
      places_(placesOf(kernel_, launch)) {}

std::vector<Dim> Probe::strides(uint32_t axes) const {
  std::vector<int> order(kernel_.rank);
  std::iota(order.begin(), order.end(), 0);
  std::ranges::stable_sort(order, {}, [&](int axis) { return places_[axis]; });
  std::vector<Dim> strides(kernel_.rank, 0);
  Dim stride = 1;
  for (int axis : order) {
    if ((axes >> axis & 1) == 0) continue;
    strides[axis] = stride;
    stride *= launch_.extents[axis];
  }
  return strides;
}

Dim Probe::count(uint32_t axes) const {
  Dim count = 1;
  for (int axis = 0; axis < kernel_.rank; ++axis) {
    count *= axes >> axis & 1 ? launch_.extents[axis] : 1;
  }
  return count;
}

Dim Probe::elementAt(uint64_t place, uint32_t axes) const {
  const std::vector<Dim> own = strides(axes);
  Dim element = 0;
  for (int axis = 0; axis < kernel_.rank; ++axis) {
    const Dim extent = std::max<Dim>(1, launch_.extents[axis]);  // of what is added up, maybe none
    element += static_cast<Dim>(place) / places_[axis] % extent * own[axis];
  }
  return element;
}

// A kernel of the same values that stores the one.
std::vector<char> Probe::elements(int value, uint32_t axes) const {
  ir::Kernel kernel = kernel_;
  kernel.operands.clear();
  std::vector<int> renamed;
  std::vector<void*> data;
  std::vector<int64_t> all;
  std::vector<MemoryBlockPtr> read;
  for (size_t i = 0; i < launch_.operands.size(); ++i) {
    const KernelOperand& operand = kernel_.operands[i];
    renamed.push_back(static_cast<int>(kernel.operands.size()));
    if (operand.role == KernelOperand::Role::Output) continue;
    kernel.operands.push_back(operand);
    const auto& [buffer, offset, steps] = launch_.operands[i];
    if (buffer) read.push_back(memory_.read(*buffer, offset, operand.type));
    data.push_back(buffer ? read.back()->data()
                          : reinterpret_cast<void*>(memory_.elementAt(offset)));
    all.insert(all.end(), steps.begin(), steps.end());
  }
  for (KernelValue& each : kernel.values) {
    const bool reads =
        each.form == KernelValue::Form::Load || each.form == KernelValue::Form::Gather;
    if (reads) each.index = renamed[each.index];
  }
  KernelOperand output{KernelOperand::Role::Output, kernel.values[value].type, {}};
  for (Dim stride : strides(axes)) {
    output.strides.push_back(stride == 0   ? ir::Stride::Zero
                             : stride == 1 ? ir::Stride::One
                                           : ir::Stride::Any);
    all.push_back(stride);
  }
  std::vector<char> result(static_cast<size_t>(count(axes)) * getTypeSize(output.type));
  data.push_back(result.data());
  for (KernelStage& stage : kernel.stages) stage.stores.clear();
  std::erase_if(kernel.stages, [](const KernelStage& stage) { return stage.reduces.empty(); });
  KernelStage last{.sweep = (axes & kernel.reduced) != 0};
  last.stores.push_back({static_cast<int>(kernel.operands.size()), value});
  kernel.operands.push_back(std::move(output));
  kernel.stages.push_back(std::move(last));
  std::vector<uint64_t> numbers;
  for (int number : launch_.numbers) numbers.push_back(memory_.number(number));
  ir::BadIndex bad;
  const std::vector<int64_t> extents(launch_.extents.begin(), launch_.extents.end());
  tile::TileProgram(kernel).run({data.data(), extents.data(), all.data(), numbers.data(), &bad}, 0,
                                kernelDomain(kernel, extents.data()));
  return result;
}

}  // namespace fl::check
