#include "fl/runtime/cpu/RowChunks.h"

#include <algorithm>

namespace fl::runtime::cpu {
namespace {

using ir::Kernel;
using ir::KernelOperand;
using ir::KernelStage;
using ir::KernelValue;
using ir::Stride;
using Form = KernelValue::Form;
using Role = KernelOperand::Role;

// Copies values of a kernel, with what they need, into a part of it.
class PartBuilder {
 public:
  // Operands that move along the whole kernel's axis move along each of `rank` axes.
  PartBuilder(const Kernel& whole, int rank) : whole_(whole), places_(whole.values.size(), -1) {
    part_.kernel.rank = rank;
    part_.kernel.scalars = whole.scalars;
  }

  KernelPart& part() { return part_; }

  int operand(int from, KernelOperand operand) {
    const auto found = std::ranges::find(part_.operands, from);
    const auto place = static_cast<int>(found - part_.operands.begin());
    if (found == part_.operands.end()) {
      const bool moves = operand.strides[0] != Stride::Zero;
      operand.strides.resize(part_.kernel.rank, moves ? Stride::Any : Stride::Zero);
      part_.operands.push_back(from);
      part_.kernel.operands.push_back(std::move(operand));
    }
    return place;
  }

  // The place of a value in the part. Values are in order of definition.
  int value(int root) {
    std::vector<bool> needed(whole_.values.size(), false);
    needed[root] = true;
    for (int v = root; v >= 0; --v)
      for (int arg : whole_.values[v].args) needed[arg] = needed[arg] || needed[v];
    for (int v = 0; v <= root; ++v)
      if (needed[v] && places_[v] < 0) places_[v] = add(whole_.values[v]);
    return places_[root];
  }

  int add(KernelValue value) {
    for (int& arg : value.args) arg = places_[arg];
    if (value.form == Form::Load) {
      value.index = operand(value.index, whole_.operands[value.index]);
    } else if (value.form == Form::Total) {
      value.form = Form::Load;
      value.index = operand(-1 - value.index, {Role::Input, value.type, {Stride::Zero}});
    }
    return append(std::move(value));
  }

  int append(KernelValue value) {
    part_.kernel.values.push_back(std::move(value));
    return static_cast<int>(part_.kernel.values.size()) - 1;
  }

 private:
  const Kernel& whole_;
  KernelPart part_;
  std::vector<int> places_;  // of the whole kernel's values; -1 until copied
};

KernelPart chunksOf(const Kernel& kernel) {
  PartBuilder builder(kernel, 2);
  KernelStage sweep{.sweep = true}, store;
  for (const KernelStage::Reduce& reduce : kernel.stages[0].reduces) {
    sweep.reduces.push_back({reduce.op, builder.value(reduce.value), reduce.index});
    const dtype type = kernel.values[reduce.value].type;
    const int output = builder.operand(-1 - reduce.index, {Role::Output, type, {Stride::Zero}});
    builder.part().kernel.operands[output].strides[1] = Stride::One;
    const int total =
        builder.append({.form = Form::Total, .type = type, .index = reduce.index, .args = {}});
    store.stores.push_back({output, total});
  }
  builder.part().kernel.reduced = 1;
  builder.part().kernel.stages = {std::move(sweep), std::move(store)};
  return builder.part();
}

KernelPart finishOf(const Kernel& kernel) {
  PartBuilder builder(kernel, 1);
  KernelStage stage;
  for (const KernelStage::Store& store : kernel.stages[1].stores) {
    const int value = builder.value(store.value);
    stage.stores.push_back({builder.operand(store.operand, kernel.operands[store.operand]), value});
  }
  builder.part().kernel.stages = {std::move(stage)};
  return builder.part();
}

}  // namespace

std::optional<RowChunks> cutIntoChunks(const Kernel& kernel) {
  if (kernel.rank != 1 || !kernel.rows() || kernel.gatherCount() > 0 || kernel.stages.size() != 2 ||
      !kernel.stages[0].sweep || kernel.stages[1].sweep || !kernel.stages[0].stores.empty() ||
      kernel.stages[0].reduces.empty()) {
    return std::nullopt;
  }
  return RowChunks{chunksOf(kernel), finishOf(kernel)};
}

}  // namespace fl::runtime::cpu
