#include "fl/runtime/cuda/Convolution.h"

#include <algorithm>
#include <mutex>
#include <utility>

#include "fl/base/Log.h"
#include "fl/ir/Inference.h"
#include "fl/ir/Text.h"
#include "fl/runtime/cuda/Candidates.h"

namespace fl::runtime::cuda {
namespace {

using ir::Op;
using library::cuda::Cudnn;
using library::cuda::cudnn;
using library::cuda::CudnnDescriptor;
using library::cuda::CudnnGraph;
using library::cuda::CudnnPlan;
using library::cuda::CudnnRefusal;
using library::cuda::cudnnType;

// The library's context on the GPU. Calls of it take turns.
struct Handle {
  cudnnHandle_t value = nullptr;
  std::mutex mutex;
};

Handle& handleOf(Context& context) {
  static Handle& made = *[&] {
    auto* handle = new Handle();
    const Cudnn& library = cudnn().table();
    context.use();
    cudnnStatus_t status = library.cudnnCreate(&handle->value);
    if (status == CUDNN_STATUS_SUCCESS) {
      status =
          library.cudnnSetStream(handle->value, reinterpret_cast<cudaStream_t>(context.stream()));
    }
    if (status != CUDNN_STATUS_SUCCESS) {
      throw CudnnRefusal(detail::concat("cuDNN: starting: ", library.cudnnGetErrorString(status)));
    }
    return handle;
  }();
  return made;
}

constexpr int64_t kResult = -1;

// What an operation of cuDNN calls its operands, and which they are of the call's.
struct Operands {
  cudnnBackendDescriptorType_t operation;
  cudnnBackendAttributeName_t input, filter, output, convolution, alpha, beta;
  int64_t inputNumber, filterNumber, outputNumber;
};

#define FL_OPERANDS(direction, prefix, input, filter, output, ...)    \
  Operands {                                                          \
    CUDNN_BACKEND_OPERATION_CONVOLUTION_##direction##_DESCRIPTOR,     \
        CUDNN_ATTR_OPERATION_CONVOLUTION_##prefix##_##input,          \
        CUDNN_ATTR_OPERATION_CONVOLUTION_##prefix##_##filter,         \
        CUDNN_ATTR_OPERATION_CONVOLUTION_##prefix##_##output,         \
        CUDNN_ATTR_OPERATION_CONVOLUTION_##prefix##_CONV_DESC,        \
        CUDNN_ATTR_OPERATION_CONVOLUTION_##prefix##_ALPHA,            \
        CUDNN_ATTR_OPERATION_CONVOLUTION_##prefix##_BETA, __VA_ARGS__ \
  }
Operands operandsOf(Op op) {
  return op == Op::Conv2d ? FL_OPERANDS(FORWARD, FORWARD, X, W, Y, 0, 1, kResult)
         : op == Op::Conv2dBackwardData
             ? FL_OPERANDS(BACKWARD_DATA, BWD_DATA, DX, W, DY, kResult, 1, 0)
             : FL_OPERANDS(BACKWARD_FILTER, BWD_FILTER, X, DW, DY, 1, kResult, 0);
}
#undef FL_OPERANDS

// A tensor of the call; cuDNN orders images, channels, rows, columns. A virtual one has not been
// rounded.
const CudnnDescriptor& addTensor(CudnnGraph& graph, const ConvolutionCall& call, int64_t number,
                                 bool isVirtual = false) {
  const bool isResult = number == kResult;
  const Shape& shape = isResult ? call.result.shape : call.operands[number].shape;
  // Filters (KW,KH,C,O) and biases lie as plain images do.
  const bool isImage = isResult ? resultIsImage(call.op) : ir::isImage(call.op, number);
  const ir::ImageAxes axes = isImage ? ir::imageAxes(call.attrs) : ir::ImageAxes{0, 1, 2};
  std::vector<int64_t> sizes, strides;
  for (const int axis : {ir::ImageAxes::image, axes.channel, axes.y, axes.x}) {
    int64_t stride = 1;
    for (int before = 0; before < std::min(axis, shape.ndim()); ++before) stride *= shape[before];
    sizes.push_back(axis < shape.ndim() ? shape[axis] : 1);
    strides.push_back(stride);
  }
  const dtype type = call.result.type;
  const auto count = std::ssize(call.operands);
  return graph.addTensor(isVirtual  ? count + 1
                         : isResult ? count
                                    : number,
                         isVirtual ? computeType(type) : type, sizes, strides, isVirtual);
}

void addBias(CudnnGraph& graph, const CudnnDescriptor& product, const CudnnDescriptor& bias,
             const CudnnDescriptor& result, dtype type) {
  auto& addition =
      graph.add(CUDNN_BACKEND_POINTWISE_DESCRIPTOR)
          .set(CUDNN_ATTR_POINTWISE_MODE, CUDNN_TYPE_POINTWISE_MODE, CUDNN_POINTWISE_ADD)
          .set(CUDNN_ATTR_POINTWISE_MATH_PREC, CUDNN_TYPE_DATA_TYPE, cudnnType(computeType(type)))
          .finish();
  graph.addOperation(graph.add(CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR)
                         .set(CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, addition)
                         .set(CUDNN_ATTR_OPERATION_POINTWISE_XDESC, product)
                         .set(CUDNN_ATTR_OPERATION_POINTWISE_BDESC, bias)
                         .set(CUDNN_ATTR_OPERATION_POINTWISE_YDESC, result)
                         .finish());
}

const CudnnDescriptor& describeWindows(CudnnGraph& graph, const ir::Attrs& attrs, dtype type) {
  // Of rows, then columns.
  const auto both = [&](int x) { return std::vector<int64_t>{attrs[x + 1], attrs[x]}; };
  const std::vector<int64_t> strides = both(0), padding = both(2), dilation = both(4);
  return graph.add(CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR)
      .set(CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, int64_t{2})
      .set(CUDNN_ATTR_CONVOLUTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, cudnnType(computeType(type)))
      .set(CUDNN_ATTR_CONVOLUTION_CONV_MODE, CUDNN_TYPE_CONVOLUTION_MODE, CUDNN_CROSS_CORRELATION)
      .set(CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, strides)
      .set(CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, padding)
      .set(CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, padding)
      .set(CUDNN_ATTR_CONVOLUTION_DILATIONS, dilation)
      .finish();
}

// One floating dtype, and nothing empty.
bool fits(const ConvolutionCall& call) {
  const auto fits = [&](const ir::ValueType& value) {
    return value.type == call.result.type && value.shape.elements() > 0;
  };
  const bool is = call.op == Op::Conv2d || call.op == Op::Conv2dBackwardData ||
                  call.op == Op::Conv2dBackwardFilter;
  return is && isFloating(call.result.type) && fits(call.result) &&
         std::ranges::all_of(call.operands, fits);
}

}  // namespace

void describe(CudnnGraph& graph, const ConvolutionCall& call) {
  const dtype type = call.result.type;
  const bool isBiased = call.op == Op::Conv2d && call.operands.size() == 3;
  const Operands operands = operandsOf(call.op);
  const CudnnDescriptor& output = addTensor(graph, call, operands.outputNumber, isBiased);
  CudnnDescriptor& operation =
      graph.add(operands.operation)
          .set(operands.input, addTensor(graph, call, operands.inputNumber))
          .set(operands.filter, addTensor(graph, call, operands.filterNumber))
          .set(operands.output, output)
          .set(operands.convolution, describeWindows(graph, call.attrs, type));
  const auto scale = [&](cudnnBackendAttributeType_t as, auto one) {
    operation.set(operands.alpha, as, one).set(operands.beta, as, one - one);
  };
  type == dtype::f64 ? scale(CUDNN_TYPE_DOUBLE, 1.0) : scale(CUDNN_TYPE_FLOAT, 1.0f);
  graph.addOperation(operation.finish());
  if (isBiased) {
    addBias(graph, output, addTensor(graph, call, 2), addTensor(graph, call, kResult), type);
  }
}

namespace {

class Convolution final : public Candidate {
 public:
  Convolution(std::shared_ptr<const CudnnGraph> graph, CudnnPlan plan, size_t operands)
      : graph_(std::move(graph)), plan_(std::move(plan)), operands_(operands) {}
  std::string name() const override { return plan_.name(); }
  bool prepare(Context& context) override try {
    Handle& handle = handleOf(context);
    const std::lock_guard<std::mutex> turn(handle.mutex);
    context.use();
    isPrepared_ = isPrepared_ || plan_.prepare({handle.value});
    return isPrepared_;
  } catch (const CudnnRefusal&) {
    return false;
  }
  size_t workspaceBytes() const override { return static_cast<size_t>(plan_.workspaceBytes()); }
  void run(Context& context, void* const* operands, void* result, void* workspace) const override {
    std::vector<void*> buffers(operands, operands + operands_);
    buffers.push_back(result);
    Handle& handle = handleOf(context);
    const std::lock_guard<std::mutex> turn(handle.mutex);
    context.use();
    cudnn().table().cudnnSetStream(handle.value, reinterpret_cast<cudaStream_t>(context.stream()));
    plan_.run(handle.value, buffers, workspace);
  }

 private:
  const std::shared_ptr<const CudnnGraph> graph_;  // of the plan
  CudnnPlan plan_;
  const size_t operands_;
  bool isPrepared_ = false;
};

// What cuDNN thinks best by the heuristics, each once.
Candidates candidatesOf(Context& context, const std::shared_ptr<CudnnGraph>& graph,
                        const std::vector<cudnnBackendHeurMode_t>& heuristics,
                        const ConvolutionCall& call) {
  Handle& handle = handleOf(context);
  const std::lock_guard<std::mutex> turn(handle.mutex);
  context.use();
  Candidates candidates;
  for (const auto heuristic : heuristics) {
    for (CudnnPlan& plan : graph->plans(heuristic, {handle.value}, call.result.type)) {
      if (candidates.size() == kMostCandidates) break;
      const auto isIt = [name = plan.name()](const auto& each) { return each->name() == name; };
      if (std::ranges::any_of(candidates, isIt)) continue;
      candidates.push_back(
          std::make_shared<Convolution>(graph, std::move(plan), call.operands.size()));
    }
  }
  return candidates;
}

std::shared_ptr<const DeviceCall> make(Context& context, const ConvolutionCall& call) {
  const auto graph = std::make_shared<CudnnGraph>(cudnn().table());
  describe(*graph, call);
  std::string text = detail::concat("cuDNN ", cudnn().table().cudnnGetVersion(), " ",
                                    ir::opName(call.op), ir::printAttrs(call.op, call.attrs));
  std::vector<size_t> bytes;
  const auto add = [&](const ir::ValueType& value) {
    text += " " + value.toString();
    bytes.push_back(bytesOf(value.type, value.shape));
  };
  std::ranges::for_each(call.operands, add);
  add(call.result);
  // B thinks longer than A, and often better.
  for (const auto& heuristics :
       {std::vector{CUDNN_HEUR_MODE_B, CUDNN_HEUR_MODE_A}, std::vector{CUDNN_HEUR_MODE_FALLBACK}}) {
    Candidates candidates = candidatesOf(context, graph, heuristics, call);
    while (!candidates.empty() && !candidates[0]->prepare(context))
      candidates.erase(candidates.begin());
    if (!candidates.empty())
      return std::make_shared<MeasuredCall>(context, text, bytes, std::move(candidates));
  }
  return nullptr;
}

}  // namespace

std::shared_ptr<const DeviceCall> findConvolution(Context& context, const ConvolutionCall& call) {
  if (!fits(call) || !cudnn().isThere()) return nullptr;
  static std::mutex mutex;
  static auto& known =
      *new std::vector<std::pair<ConvolutionCall, std::shared_ptr<const DeviceCall>>>();
  const std::lock_guard<std::mutex> lock(mutex);
  const auto found = std::ranges::find(
      known, call, &std::pair<ConvolutionCall, std::shared_ptr<const DeviceCall>>::first);
  if (found != known.end()) return found->second;
  std::shared_ptr<const DeviceCall> result;
  try {
    result = make(context, call);
  } catch (const CudnnRefusal& refusal) {
    logWarning(std::string(refusal.what()) + "; a convolution is made of kernels");
  }
  return known.emplace_back(call, std::move(result)).second;
}

}  // namespace fl::runtime::cuda
