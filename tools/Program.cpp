#include "tools/Program.h"

#include "fl/base/Error.h"
#include "fl/base/Flags.h"
#include "fl/codegen/cpu/Emitter.h"
#include "fl/codegen/cuda/KernelCode.h"
#include "fl/definitions/GraphRunner.h"
#include "fl/ir/Text.h"
#include "fl/kernel/cuda/Launch.h"
#include "fl/runtime/Device.h"
#include "fl/tensor/tensor.h"
#include "tools/Files.h"
#include "tools/FitInputs.h"
#include "tools/KernelLaunch.h"
#include "tools/Mlir.h"
#include "tools/ReferenceSchedule.h"
#include "tools/Values.h"

namespace fl::tools {
namespace {

// Where our emitters would make machine code.
bool throughMlir(const std::string& backend, const std::string& device) {
  return flags().emitter == "mlir" && backend == "lazy" && device == "cpu";
}

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
              ? Tensor(defaultTensorBackend().fromNumber(numberOf(input)))
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

// The value with the most bytes among those shown to it, in words.
class Largest {
 public:
  void see(const std::string& name, const ir::ValueType& type) {
    see(detail::concat(name, " ", type.toString()), bytesOf(type.type, type.shape));
  }
  void see(const std::string& value, size_t bytes) {
    if (words_.empty() || bytes > bytes_) {
      bytes_ = bytes;
      words_ = detail::concat(value, ", ", bytes, " bytes");
    }
  }
  const std::string& words() const { return words_; }

 private:
  size_t bytes_ = 0;
  std::string words_;
};

class GraphProgram : public Program {
 public:
  explicit GraphProgram(ir::Graph graph) : graph_(std::move(graph)) {}

  const std::vector<ir::Parameter>& parameters() const override { return graph_.parameters(); }
  std::vector<dtype> dtypes() const override { return dtypesOf(graph_); }

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

  std::string largestValue() const override {
    Largest largest;
    const int parameters = static_cast<int>(graph_.parameters().size());
    for (ir::ValueId id = 0; id < graph_.valueCount(); ++id) {
      largest.see(
          graph_.isParameter(id) ? detail::concat("p", id) : detail::concat("%", id - parameters),
          graph_.type(id));
    }
    return largest.words();
  }

  void fitDrawn(const std::vector<bool>& drawn, std::vector<NpyArray>* inputs) const override {
    fitInputs(graph_, drawn, inputs);
  }

  std::unique_ptr<LoadedProgram> load(const std::string& backend, const std::string& device,
                                      const std::vector<NpyArray>& inputs) const override {
    checkBoxes(graph_, inputs);
    if (throughMlir(backend, device)) return loadMlir(graph_, inputs);
    return std::make_unique<LoadedGraph>(graph_, backend, device, inputs);
  }

 private:
  const ir::Graph graph_;
};

class LoadedLaunches : public LoadedProgram {
 public:
  LoadedLaunches(const ir::Schedule& schedule, const std::string& name,
                 const std::vector<NpyArray>& inputs)
      : device_(runtime::makeDevice(name)) {
    const bool compiles = device_->lowering() == ir::Lowering::Kernels;
    loaded_ = compiles ? device_->load(schedule, &kernels_)
                       : std::make_unique<ReferenceSchedule>(schedule, name == "ref");
    for (size_t i = 0; i < inputs.size(); ++i) {
      const bool number = schedule.parameters[i].number;
      const NpyArray& input = inputs[i];
      buffers_.push_back(number ? nullptr
                                : runtime::makeBlock(input.bytes.data(), input.bytes.size()));
      numbers_.push_back(number ? numberOf(input) : Number());
    }
    for (const runtime::DeviceKernelPtr& kernel : loaded_->kernels()) {
      if (flags().jit != "off") {
        const ir::Target target = device_->target();
        kernel->setArtifact(
            ir::cuda::isGpu(target)
                ? codegen::cuda::compileKernel(kernel->kernel(), kernel->launches(), target, "k")
                : codegen::cpu::emitKernel(kernel->kernel(), target, "k"));
      }
    }
  }

  void run() override {
    try {
      outputs_ = loaded_->run(buffers_, numbers_);
    } catch (const ir::IndexOutOfRange& error) {
      throw std::invalid_argument(detail::concat("a lookup found the index ", error.bad.index,
                                                 ", out of range for ", error.bad.bound));
    }
  }

  std::vector<NpyArray> results() const override {
    std::vector<NpyArray> arrays;
    for (size_t i = 0; i < outputs_.size(); ++i) {
      const ir::ValueType& type = loaded_->schedule().outputs[i].type;
      const MemoryBlockPtr elements = outputs_[i]->onHost();
      const auto* begin = static_cast<const uint8_t*>(elements->data());
      arrays.push_back({type.type, type.shape, {begin, begin + bytesOf(type.type, type.shape)}});
    }
    return arrays;
  }

 private:
  const std::unique_ptr<runtime::Device> device_;
  runtime::KernelCache kernels_;
  std::unique_ptr<runtime::LoadedSchedule> loaded_;
  std::vector<MemoryBlockPtr> buffers_;
  std::vector<Number> numbers_;
  runtime::LoadedSchedule::Outputs outputs_;
};

class ScheduleProgram : public Program {
 public:
  explicit ScheduleProgram(ir::Schedule schedule) : schedule_(std::move(schedule)) {}

  const std::vector<ir::Parameter>& parameters() const override { return schedule_.parameters; }

  std::vector<dtype> dtypes() const override {
    std::vector<dtype> all;
    for (const ir::Parameter& parameter : schedule_.parameters) all.push_back(parameter.type.type);
    for (const ir::Kernel& kernel : schedule_.kernels) {
      for (const ir::KernelValue& value : kernel.values) all.push_back(value.type);
    }
    for (const ir::Step& step : schedule_.steps) {
      if (const auto* call = std::get_if<ir::LibraryStep>(&step)) {
        all.push_back(call->resultType.type);
      }
    }
    return all;
  }

  size_t bytes() const override {
    size_t bytes = 0;
    for (const ir::Step& step : schedule_.steps) {
      bytes += stepBytes(schedule_, step);
    }
    return bytes;
  }

  std::string largestValue() const override {
    Largest largest;
    for (size_t i = 0; i < schedule_.parameters.size(); ++i) {
      largest.see(detail::concat("p", i), schedule_.parameters[i].type);
    }
    for (size_t i = 0; i < schedule_.outputs.size(); ++i) {
      largest.see(detail::concat("result ", i), schedule_.outputs[i].type);
    }
    for (size_t i = 0; i < schedule_.temporaries.size(); ++i) {
      largest.see(detail::concat("temporary ", i), schedule_.temporaries[i].bytes);
    }
    return largest.words();
  }

  void fitDrawn(const std::vector<bool>& drawn, std::vector<NpyArray>* inputs) const override {
    fitInputs(schedule_, drawn, inputs);
  }

  std::unique_ptr<LoadedProgram> load(const std::string& backend, const std::string& device,
                                      const std::vector<NpyArray>& inputs) const override {
    FL_USER_CHECK(!throughMlir(backend, device),
                  "FL_EMITTER=mlir: runs graphs, no schedule or "
                  "kernel");
    checkBoxes(schedule_, inputs);
    return std::make_unique<LoadedLaunches>(schedule_, device, inputs);
  }

 private:
  const ir::Schedule schedule_;
};

}  // namespace

std::vector<dtype> dtypesOf(const ir::Graph& graph) {
  std::vector<dtype> all;
  for (ir::ValueId id = 0; id < graph.valueCount(); ++id) all.push_back(graph.type(id).type);
  return all;
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
