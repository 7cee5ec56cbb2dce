#include "fl/runtime/cuda/Convolution.h"

#include <algorithm>
#include <utility>

#include "fl/ir/Inference.h"

namespace fl::runtime::cuda {
namespace {

using ir::Op;
using library::cuda::CudnnDescriptor;
using library::cuda::CudnnGraph;
using library::cuda::cudnnType;

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
const CudnnDescriptor& addTensor(CudnnGraph& graph, const OperatorCall& call, int64_t number,
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
  if (isVirtual) return graph.addVirtual(computeType(type), sizes, strides);
  return graph.addTensor(isResult ? std::ssize(call.operands) : number, type, sizes, strides);
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
bool fits(const OperatorCall& call) {
  const auto fits = [&](const ir::ValueType& value) {
    return value.type == call.result.type && value.shape.elements() > 0;
  };
  const bool is = call.op == Op::Conv2d || call.op == Op::Conv2dBackwardData ||
                  call.op == Op::Conv2dBackwardFilter;
  return is && isFloating(call.result.type) && fits(call.result) &&
         std::ranges::all_of(call.operands, fits);
}

}  // namespace

bool mayUseTensorCores(const OperatorCall& call) {
  return call.result.type != dtype::f32 || ir::allowsTf32(call.op, call.attrs);
}

void describe(CudnnGraph& graph, const OperatorCall& call) {
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
    const CudnnDescriptor& bias = addTensor(graph, call, 2);
    graph.addPointwise(CUDNN_POINTWISE_ADD, computeType(type), output, &bias,
                       addTensor(graph, call, kResult));
  }
}

namespace {

// More scratch memory than any plan is worth.
constexpr size_t kMostWorkspaceBytes = size_t{1} << 28;

std::shared_ptr<const DeviceCall> make(Context& context, const OperatorCall& call) {
  const auto graph = std::make_shared<CudnnGraph>(library::cuda::cudnn().table());
  describe(*graph, call);
  CudnnBuffers buffers;
  for (const ir::ValueType& value : call.operands)
    buffers.bytes.push_back(bytesOf(value.type, value.shape));
  buffers.bytes.push_back(bytesOf(call.result.type, call.result.shape));
  return makeCudnnCall(context, graph, textOf(call), std::move(buffers), mayUseTensorCores(call),
                       kMostWorkspaceBytes);
}

}  // namespace

std::shared_ptr<const DeviceCall> findConvolution(Context& context, const OperatorCall& call) {
  return fits(call) ? findCudnnCall(context, call, make) : nullptr;
}

}  // namespace fl::runtime::cuda
