#include "fl/runtime/cuda/DeviceCall.h"

#include "fl/runtime/cuda/Attention.h"
#include "fl/runtime/cuda/Convolution.h"
#include "fl/runtime/cuda/Matmul.h"
#include "fl/runtime/cuda/Scatter.h"

namespace fl::runtime::cuda {

void HostMove::run(Context& context, void* const* operands, void* result, void*) const {
  const Driver& driver = context.use();
  const auto from = reinterpret_cast<CUdeviceptr>(operands[0]);
  const auto to = reinterpret_cast<CUdeviceptr>(result);
  context.check(toHost_ ? driver.cuMemcpyDtoHAsync(result, from, bytes_, context.stream())
                        : driver.cuMemcpyHtoDAsync(to, operands[0], bytes_, context.stream()),
                "a move of ", bytes_, toHost_ ? " bytes to the host" : " bytes from the host");
}

std::shared_ptr<const DeviceCall> findCall(Context& context, ir::Op op,
                                           const std::vector<ir::ValueType>& operands,
                                           const ir::Attrs& attrs, const ir::ValueType& result) {
  if (op == ir::Op::Scatter || op == ir::Op::ScatterAdd) {
    const auto shape = ir::cuda::scatterShape(operands, attrs, result);
    return shape ? findScatter(context, op, result.type, *shape) : nullptr;
  }
  if (op != ir::Op::Matmul) {
    const OperatorCall call{op, operands, attrs, result};
    auto attention = findAttention(context, call);
    return attention ? attention : findConvolution(context, call);
  }
  const std::optional<MatmulShape> shape = matmulShape(operands, attrs, result);
  return shape ? Matmul::find(context, *shape) : nullptr;
}

}  // namespace fl::runtime::cuda
