#include "fl/runtime/cuda/Scatter.h"

#include "fl/runtime/cuda/HandWritten.h"

namespace fl::runtime::cuda {
namespace {

class Scatter final : public DeviceCall {
 public:
  Scatter(CUfunction function, ir::Op op, dtype type, const ir::cuda::ScatterShape& shape)
      : function_(function),
        type_(type),
        shape_(shape),
        label_(std::make_shared<const std::string>(ir::opName(op))) {}

  bool isKernel() const override { return true; }
  size_t workspaceBytes() const override { return 0; }
  void run(Context& context, void* const* operands, void* result, void*) const override {
    const auto address = [](void* pointer) { return reinterpret_cast<CUdeviceptr>(pointer); };
    if (const size_t bytes = bytesOfResult(); bytes > 0 && operands[0] != result) {
      context.check(context.use().cuMemcpyDtoDAsync(address(result), address(operands[0]), bytes,
                                                    context.stream()),
                    "a copy on the GPU");
    }
    const ir::cuda::Launch launch = launchOf(shape_);
    if (launch.blocks == 0) return;
    auto* const report = static_cast<ir::cuda::GatherReport*>(operands[3]);
    std::vector<uint64_t> words = packArguments(shape_, result, operands[1], operands[2], report);
    context.launch(function_, launch, words, label_, currentCallSite());
  }

 private:
  size_t bytesOfResult() const {
    const int64_t outer = shape_.indexOuter * shape_.lineOuter;
    return shape_.inner * shape_.bound * outer * getTypeSize(type_);
  }

  const CUfunction function_;
  const dtype type_;
  const ir::cuda::ScatterShape shape_;
  const std::shared_ptr<const std::string> label_;
};

}  // namespace

std::shared_ptr<const DeviceCall> findScatter(Context& context, ir::Op op, dtype type,
                                              const ir::cuda::ScatterShape& shape) {
  const std::string instead = detail::concat(ir::opName(op), " runs on the host");
  CUfunction function = handWritten(context, op, type, instead);
  return function ? std::make_shared<Scatter>(function, op, type, shape) : nullptr;
}

}  // namespace fl::runtime::cuda
