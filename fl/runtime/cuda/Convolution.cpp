#include "fl/runtime/cuda/Convolution.h"

#include <algorithm>
#include <utility>

#include "fl/base/Log.h"
#include "fl/ir/Inference.h"

namespace fl::runtime::cuda {
namespace {

using ir::Op;

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

bool hasCudnn() {
  static const bool there = [] {
    const std::string& problem = cudnn().problem();
    if (!problem.empty()) logWarning(problem + "; convolutions are made of kernels");
    return problem.empty();
  }();
  return there;
}

// A cuDNN tensor's sizes are in the order of images, channels, rows, columns.
struct Described {
  std::vector<int64_t> sizes, strides;
};

Described imageOf(const Shape& shape, const ir::ImageAxes& axes) {
  Described image;
  for (const int axis : {ir::ImageAxes::image, axes.channel, axes.y, axes.x}) {
    int64_t stride = 1;
    for (int before = 0; before < axis; ++before) stride *= shape[before];
    image.sizes.push_back(shape[axis]);
    image.strides.push_back(stride);
  }
  return image;
}

// What an operation of cuDNN calls its operands.
struct Names {
  cudnnBackendDescriptorType_t operation;
  cudnnBackendAttributeName_t input, filter, output, convolution, alpha, beta;
};

#define FL_NAMES(direction, prefix, input, filter, output)        \
  Names {                                                         \
    CUDNN_BACKEND_OPERATION_CONVOLUTION_##direction##_DESCRIPTOR, \
        CUDNN_ATTR_OPERATION_CONVOLUTION_##prefix##_##input,      \
        CUDNN_ATTR_OPERATION_CONVOLUTION_##prefix##_##filter,     \
        CUDNN_ATTR_OPERATION_CONVOLUTION_##prefix##_##output,     \
        CUDNN_ATTR_OPERATION_CONVOLUTION_##prefix##_CONV_DESC,    \
        CUDNN_ATTR_OPERATION_CONVOLUTION_##prefix##_ALPHA,        \
        CUDNN_ATTR_OPERATION_CONVOLUTION_##prefix##_BETA          \
  }
Names namesOf(Op op) {
  return op == Op::Conv2d               ? FL_NAMES(FORWARD, FORWARD, X, W, Y)
         : op == Op::Conv2dBackwardData ? FL_NAMES(BACKWARD_DATA, BWD_DATA, DX, W, DY)
                                        : FL_NAMES(BACKWARD_FILTER, BWD_FILTER, X, DW, DY);
}
#undef FL_NAMES

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
  const ir::ImageAxes axes = ir::imageAxes(call.attrs);
  const auto count = static_cast<int64_t>(call.operands.size());
  const auto image = [&](int64_t number, const ir::ValueType& value) -> const CudnnDescriptor& {
    const Described image = imageOf(value.shape, axes);
    return graph.addTensor(number, type, image.sizes, image.strides);
  };
  // (KW,KH,C,O), as plain images are (W,H,C,N).
  const auto filter = [&](int64_t number, const ir::ValueType& value) -> const CudnnDescriptor& {
    const Described filter = imageOf(value.shape, {0, 1, 2});
    return graph.addTensor(number, type, filter.sizes, filter.strides);
  };
  const bool biased = call.op == Op::Conv2d && count == 3;
  const Names names = namesOf(call.op);
  CudnnDescriptor& operation = graph.add(names.operation);
  const CudnnDescriptor* output = nullptr;
  if (call.op == Op::Conv2dBackwardData) {
    output = &image(0, call.operands[0]);
    operation.set(names.filter, filter(1, call.operands[1]))
        .set(names.input, image(count, call.result));
  } else if (call.op == Op::Conv2dBackwardFilter) {
    output = &image(0, call.operands[0]);
    operation.set(names.input, image(1, call.operands[1]))
        .set(names.filter, filter(count, call.result));
  } else {
    operation.set(names.input, image(0, call.operands[0]))
        .set(names.filter, filter(1, call.operands[1]));
    const Described made = imageOf(call.result.shape, axes);
    // Before the bias it is in no buffer, and has not been rounded.
    output = &graph.addTensor(biased ? count + 1 : count, biased ? computeType(type) : type,
                              made.sizes, made.strides, biased);
  }
  operation.set(names.output, *output)
      .set(names.convolution, describeWindows(graph, call.attrs, type));
  if (type == dtype::f64) {
    operation.set(names.alpha, CUDNN_TYPE_DOUBLE, 1.0).set(names.beta, CUDNN_TYPE_DOUBLE, 0.0);
  } else {
    operation.set(names.alpha, CUDNN_TYPE_FLOAT, 1.0f).set(names.beta, CUDNN_TYPE_FLOAT, 0.0f);
  }
  graph.addOperation(operation.finish());
  if (biased) {
    const int64_t channels = call.operands[2].shape.elements();
    const CudnnDescriptor& bias =
        graph.addTensor(2, type, {1, channels, 1, 1}, {channels, 1, channels, channels});
    addBias(graph, *output, bias, image(count, call.result), type);
  }
}

Convolution::Convolution(const ConvolutionCall& call)
    : operands_(call.operands.size()), graph_(cudnn().table()) {
  describe(graph_, call);
}

std::shared_ptr<const Convolution> Convolution::find(Context& context,
                                                     const ConvolutionCall& call) {
  if (!fits(call) || !hasCudnn()) return nullptr;
  static std::mutex mutex;
  static auto& known =
      *new std::vector<std::pair<ConvolutionCall, std::shared_ptr<const Convolution>>>();
  const std::lock_guard<std::mutex> lock(mutex);
  const auto found = std::ranges::find(known, call, [](const auto& each) { return each.first; });
  if (found != known.end()) return found->second;
  std::shared_ptr<const Convolution> result;
  try {
    std::shared_ptr<Convolution> made(new Convolution(call));
    Handle& handle = handleOf(context);
    const std::lock_guard<std::mutex> turn(handle.mutex);
    context.use();
    if (made->graph_.plan({handle.value}, call.result.type)) result = std::move(made);
  } catch (const CudnnRefusal& refusal) {
    logWarning(std::string(refusal.what()) + "; a convolution is made of kernels");
  }
  return known.emplace_back(call, std::move(result)).second;
}

void Convolution::run(Context& context, void* const* operands, void* result,
                      void* workspace) const {
  std::vector<void*> buffers(operands, operands + operands_);
  buffers.push_back(result);
  Handle& handle = handleOf(context);
  const std::lock_guard<std::mutex> turn(handle.mutex);
  context.use();
  graph_.run(handle.value, buffers, workspace);
}

}  // namespace fl::runtime::cuda
