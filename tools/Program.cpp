#include "tools/Program.h"

#include <algorithm>
#include <cstring>
#include <variant>

#include "fl/base/Error.h"
#include "fl/base/Flags.h"
#include "fl/codegen/cpu/Emitter.h"
#include "fl/ir/Text.h"
#include "fl/runtime/Device.h"
#include "fl/tensor/Detail.h"
#include "fl/tensor/GraphRunner.h"
#include "fl/tensor/tensor.h"
#include "tools/Files.h"
#include "tools/KernelLaunch.h"

namespace fl::tools {
namespace {

class LoadedGraph : public LoadedProgram {
 public:
  LoadedGraph(const ir::Graph& graph, std::string backend, std::string device,
              const std::vector<NpyArray>& inputs)
      : graph_(graph), backend_(std::move(backend)), device_(std::move(device)) {
    const BackendScope scope(backend_, device_);
    for (size_t i = 0; i < inputs.size(); ++i) {
      const NpyArray& input = inputs[i];
      inputs_.push_back(
          graph.parameters()[i].number
              ? detail::numberTensor(numberOf(input))
              : Tensor::fromBuffer(input.shape, input.type, input.bytes.data(), Location::Host));
    }
  }

  void run() override {
    const BackendScope scope(backend_, device_);
    results_ = runGraph(graph_, inputs_);
    for (Tensor& result : results_) {
      eval(result);
    }
    sync();
  }

  std::vector<NpyArray> results() const override {
    std::vector<NpyArray> arrays;
    for (const Tensor& result : results_) {
      NpyArray array{result.type(), result.shape(), {}};
      array.bytes.resize(result.bytes());
      result.host(static_cast<void*>(array.bytes.data()));
      arrays.push_back(std::move(array));
    }
    return arrays;
  }

 private:
  const ir::Graph& graph_;
  const std::string backend_;
  const std::string device_;
  std::vector<Tensor> inputs_;
  std::vector<Tensor> results_;
};

class GraphProgram : public Program {
 public:
  explicit GraphProgram(ir::Graph graph) : graph_(std::move(graph)) {}

  const std::vector<ir::Parameter>& parameters() const override { return graph_.parameters(); }

  size_t bytes() const override {
    size_t bytes = 0;
    for (const ir::Parameter& parameter : graph_.parameters()) {
      bytes += bytesOf(parameter.type.type, parameter.type.shape);
    }
    for (ir::ValueId result : graph_.results()) {
      bytes += bytesOf(graph_.type(result).type, graph_.type(result).shape);
    }
    return bytes;
  }

  // A box begins at 0, or where one that runs backwards reaches 0.
  void fitStarts(const std::vector<bool>& drawn, std::vector<NpyArray>* inputs) const override {
    for (const ir::Node& node : graph_.nodes()) {
      if (node.op != ir::Op::Slice && node.op != ir::Op::Update) {
        continue;
      }
      const bool slices = node.op == ir::Op::Slice;
      const Shape& sizes = slices ? node.type.shape : graph_.type(node.operands[1]).shape;
      const int rank = sizes.ndim();
      for (int i = 0; i < rank; ++i) {
        const ir::ValueId start = node.operands[(slices ? 1 : 2) + i];
        const Dim stride = node.attrs[1 + (slices ? rank : 0) + i];
        if (graph_.isParameter(start) && drawn[start]) {
          const Dim first = stride < 0 ? std::max<Dim>(sizes[i] - 1, 0) * -stride : 0;
          (*inputs)[start] = arrayOf(Number::fromSigned(first, dtype::s64));
        }
      }
    }
  }

  std::unique_ptr<LoadedProgram> load(const std::string& backend, const std::string& device,
                                      const std::vector<NpyArray>& inputs) const override {
    return std::make_unique<LoadedGraph>(graph_, backend, device, inputs);
  }

 private:
  const ir::Graph graph_;
};

class LoadedLaunches : public LoadedProgram {
 public:
  LoadedLaunches(const ir::Schedule& schedule, const std::string& name,
                 const std::vector<NpyArray>& inputs)
      : device_(runtime::makeDevice(name)), loaded_(device_->load(schedule, &kernels_)) {
    for (size_t i = 0; i < inputs.size(); ++i) {
      const bool number = schedule.parameters[i].number;
      const NpyArray& input = inputs[i];
      buffers_.push_back(number ? nullptr
                                : runtime::makeBlock(input.bytes.data(), input.bytes.size()));
      numbers_.push_back(number ? numberOf(input) : Number());
    }
    if (device_->lowering() == ir::Lowering::Kernels && flags().jit != "off") {
      for (const runtime::DeviceKernelPtr& kernel : loaded_->kernels()) {
        kernel->setArtifact(codegen::cpu::emitKernel(kernel->kernel(), device_->target(), "k"));
      }
    }
  }

  void run() override {
    try {
      outputs_ = loaded_->run(buffers_, numbers_);
    } catch (const ir::IndexOutOfRange& error) {
      throw std::invalid_argument(detail::concat("a gather found the index ", error.bad.index,
                                                 " out of range for ", error.bad.bound));
    }
  }

  std::vector<NpyArray> results() const override {
    std::vector<NpyArray> arrays;
    for (size_t i = 0; i < outputs_.size(); ++i) {
      const ir::ValueType& type = loaded_->schedule().outputs[i].type;
      const auto* begin = static_cast<const uint8_t*>(outputs_[i]->data());
      arrays.push_back({type.type, type.shape, {begin, begin + bytesOf(type.type, type.shape)}});
    }
    return arrays;
  }

 private:
  const std::unique_ptr<runtime::Device> device_;
  runtime::KernelCache kernels_;
  const std::unique_ptr<runtime::LoadedSchedule> loaded_;
  std::vector<MemoryBlockPtr> buffers_;
  std::vector<Number> numbers_;
  std::vector<MemoryBlockPtr> outputs_;
};

std::vector<Number> numbersOf(const ir::Schedule& schedule, const std::vector<NpyArray>& inputs) {
  std::vector<Number> numbers(inputs.size());
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (schedule.parameters[i].number) {
      numbers[i] = numberOf(inputs[i]);
    }
  }
  return numbers;
}

class ScheduleProgram : public Program {
 public:
  explicit ScheduleProgram(ir::Schedule schedule) : schedule_(std::move(schedule)) {}

  const std::vector<ir::Parameter>& parameters() const override { return schedule_.parameters; }

  size_t bytes() const override {
    size_t bytes = 0;
    for (const ir::Step& step : schedule_.steps) {
      bytes += stepBytes(schedule_, step);
    }
    return bytes;
  }

  // Operands begin as low as they can: an axis that runs backwards is taken back by the start with
  // the largest factor that does not go too far.
  void fitStarts(const std::vector<bool>& drawn, std::vector<NpyArray>* inputs) const override {
    forEachBox([&](size_t, const ir::LaunchStep& launch, size_t i) {
      for (const ir::ElementOffset::Term& term : launch.operands[i].offset.terms) {
        if (drawn[term.parameter]) {
          (*inputs)[term.parameter] = arrayOf(Number::fromSigned(0, dtype::s64));
        }
      }
    });
    forEachBox([&](size_t, const ir::LaunchStep& launch, size_t i) {
      const ir::LaunchOperand& operand = launch.operands[i];
      const std::vector<Number> numbers = numbersOf(schedule_, *inputs);
      Dim missing = -touchedElements(operand, launch.extents, numbers).begin;
      std::vector<ir::ElementOffset::Term> terms = operand.offset.terms;
      std::sort(terms.begin(), terms.end(),
                [](const auto& a, const auto& b) { return a.factor > b.factor; });
      for (const ir::ElementOffset::Term& term : terms) {
        if (drawn[term.parameter] && term.factor > 0 && missing >= term.factor) {
          const Dim first = numbers[term.parameter].toInt() + missing / term.factor;
          (*inputs)[term.parameter] = arrayOf(Number::fromSigned(first, dtype::s64));
          missing %= term.factor;
        }
      }
    });
  }

  std::unique_ptr<LoadedProgram> load(const std::string&, const std::string& device,
                                      const std::vector<NpyArray>& inputs) const override {
    const std::vector<Number> numbers = numbersOf(schedule_, inputs);
    forEachBox([&](size_t step, const ir::LaunchStep& launch, size_t i) {
      const ir::LaunchOperand& operand = launch.operands[i];
      const ir::ElementRange range = touchedElements(operand, launch.extents, numbers);
      const dtype type = schedule_.kernels[launch.kernel].operands[i].type;
      const Dim count = bufferElements(schedule_, *operand.buffer, type);
      FL_USER_CHECK(range.begin == range.end || (range.begin >= 0 && range.end <= count),
                    "the numbers given make step ", step, " touch elements ", range.begin, " to ",
                    range.end - 1, " of ", count);
    });
    return std::make_unique<LoadedLaunches>(schedule_, device, inputs);
  }

 private:
  // Calls visit(step, launch, operand's index) for every buffer whose first element numbers
  // decide.
  template <typename Visit>
  void forEachBox(Visit&& visit) const {
    for (size_t step = 0; step < schedule_.steps.size(); ++step) {
      const auto* launch = std::get_if<ir::LaunchStep>(&schedule_.steps[step]);
      for (size_t i = 0; launch && i < launch->operands.size(); ++i) {
        if (launch->operands[i].buffer && !launch->operands[i].offset.terms.empty()) {
          visit(step, *launch, i);
        }
      }
    }
  }

  const ir::Schedule schedule_;
};

}  // namespace

Number numberOf(const NpyArray& array) {
  uint64_t bits = 0;
  std::memcpy(&bits, array.bytes.data(), array.bytes.size());
  return Number(array.type, bits);
}

NpyArray arrayOf(const Number& number) {
  NpyArray array{number.type(), Shape{}, {}};
  array.bytes.resize(getTypeSize(number.type()));
  const uint64_t bits = number.bits();
  std::memcpy(array.bytes.data(), &bits, array.bytes.size());
  return array;
}

std::unique_ptr<Program> parseProgram(const std::string& path, const std::string& text,
                                      const std::vector<Dim>& extents) {
  const std::string form = parseInput(path, text, formOf);
  FL_USER_CHECK(form == "kernel" || extents.empty(), "--extents: is for a kernel, not a ", form);
  if (form == "kernel") {
    return std::make_unique<ScheduleProgram>(
        launchOnce(path, parseInput<ir::Kernel>(path, text, ir::parseKernel), extents));
  }
  if (form == "schedule") {
    return std::make_unique<ScheduleProgram>(parseInput(path, text, parsePackedSchedule));
  }
  return std::make_unique<GraphProgram>(parseInput(path, text, ir::parseGraph));
}

}  // namespace fl::tools
