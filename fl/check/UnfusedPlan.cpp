#include "fl/check/UnfusedPlan.h"

#include <utility>

#include "fl/kernel/Lower.h"

namespace fl::check {
namespace {

class OperatorPlan final : public UnfusedPlan {
 public:
  OperatorPlan(ir::Graph graph, runtime::Device& device, runtime::KernelCache* kernels)
      : graph_(std::move(graph)), lastUses_(graph_.nodes().size()) {
    std::vector<bool> used(graph_.valueCount(), false);
    for (ir::ValueId id : graph_.results()) used[id] = true;
    for (size_t i = graph_.nodes().size(); i-- > 0;) {
      for (ir::ValueId id : graph_.nodes()[i].operands) {
        if (!used[id]) {
          used[id] = true;
          lastUses_[i].push_back(id);
        }
      }
    }
    for (const ir::Node& node : graph_.nodes()) {
      steps_.push_back(node.op == ir::Op::Reshape ? nullptr : load(node, device, kernels));
    }
  }

  Outputs run(std::span<const MemoryBlockPtr> buffers, std::span<const Number> numbers,
              std::span<const bool>) const override {
    return runWatched(buffers, numbers, nullptr);
  }

  Outputs runWatched(std::span<const MemoryBlockPtr> buffers, std::span<const Number> numbers,
                     const Watch& watch) const override {
    std::vector<MemoryBlockPtr> values(buffers.begin(), buffers.end());
    values.resize(graph_.valueCount());
    for (size_t i = 0; i < steps_.size(); ++i) {
      const ir::Node& node = graph_.nodes()[i];
      std::vector<MemoryBlockPtr> operands;
      std::vector<Number> scalars;
      for (ir::ValueId id : node.operands) {
        operands.push_back(values[id]);
        scalars.push_back(graph_.isParameter(id) ? numbers[id] : Number());
      }
      MemoryBlockPtr& result = values[graph_.idOfNode(i)];
      result = steps_[i] ? steps_[i]->run(operands, scalars, {})[0]
                         : reshaped(node, operands[0], scalars[0]);
      if (watch) show(i, operands, scalars, watch, &result);
      for (ir::ValueId id : lastUses_[i]) values[id] = nullptr;
    }
    Outputs outputs;
    for (ir::ValueId id : graph_.results()) outputs.push_back(values[id]);
    return outputs;
  }

  const std::vector<int>& reusable() const override { return none_; }
  const ir::Schedule& schedule() const override { return empty_; }
  const std::vector<runtime::DeviceKernelPtr>& kernels() const override { return noKernels_; }

 private:
  // One operator, by itself.
  std::unique_ptr<runtime::LoadedSchedule> load(const ir::Node& node, runtime::Device& device,
                                                runtime::KernelCache* kernels) const {
    ir::Graph alone;
    ir::Node copy = node;
    copy.operands.clear();
    for (ir::ValueId id : node.operands) {
      copy.operands.push_back(alone.addParameter({graph_.type(id), graph_.isNumber(id)}));
    }
    alone.setResults({alone.addNode(std::move(copy))});
    return device.load(ir::scheduleSingleNode(alone, device.lowering()), kernels);
  }

  void show(size_t number, const std::vector<MemoryBlockPtr>& blocks,
            const std::vector<Number>& scalars, const Watch& watch, MemoryBlockPtr* result) const {
    const ir::Node& node = graph_.nodes()[number];
    std::vector<uint64_t> numbers(blocks.size());
    std::vector<MemoryBlockPtr> read(blocks.size());
    std::vector<ir::HostOperand> operands;
    for (size_t i = 0; i < blocks.size(); ++i) {
      numbers[i] = scalars[i].bits();
      if (blocks[i]) read[i] = blocks[i]->onHost();
      const void* data = read[i] ? read[i]->data() : &numbers[i];
      operands.push_back({&graph_.type(node.operands[i]), data});
    }
    if (MemoryBlockPtr other = watch(number, operands, (*result)->onHost())) {
      *result = std::move(other);
    }
  }

  // The same elements: values are immutable.
  static MemoryBlockPtr reshaped(const ir::Node& node, const MemoryBlockPtr& elements,
                                 const Number& number) {
    if (elements) return elements;
    const uint64_t bits = number.bits();
    return runtime::makeBlock(&bits, bytesOf(node.type.type, node.type.shape));
  }

  const ir::Graph graph_;
  std::vector<std::vector<ir::ValueId>> lastUses_;               // by node: what no later one needs
  std::vector<std::unique_ptr<runtime::LoadedSchedule>> steps_;  // null for a reshape
  const std::vector<int> none_;
  const ir::Schedule empty_;
  const std::vector<runtime::DeviceKernelPtr> noKernels_;
};

}  // namespace

std::unique_ptr<UnfusedPlan> makeUnfusedPlan(ir::Graph graph, runtime::Device& device,
                                             runtime::KernelCache* kernels) {
  return std::make_unique<OperatorPlan>(std::move(graph), device, kernels);
}

}  // namespace fl::check
