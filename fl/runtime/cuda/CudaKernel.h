// One kernel on a GPU, with code for one launch or for a group of them.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "fl/runtime/Device.h"
#include "fl/runtime/cuda/Context.h"
#include "fl/tile/TileInterpreter.h"

namespace fl::runtime::cuda {

class CudaKernel final : public DeviceKernel {
 public:
  // `launches` is a power of two; several: mayGroup().
  CudaKernel(Context& context, const ir::Kernel& kernel, int launches);
  ~CudaKernel() override;

  const ir::Kernel& kernel() const override { return kernel_; }
  int launches() const override { return launches_; }
  bool compiled() const override { return compiled_.load(std::memory_order_acquire); }
  // Throws InternalError for code that the driver does not take.
  void setArtifact(const ir::Artifact& artifact) override;

  // Of the kernel, once there is code.
  CUfunction functionFor(const ir::cuda::Launch& launch) const {
    return functions_[static_cast<int>(variantOf(kernel_, launch))];
  }
  // Its operators, for errors.
  const std::shared_ptr<const std::string>& label() const { return label_; }
  // What runs on the host while there is no code, and where it cannot be made.
  const tile::TileProgram& interpreted() const;

 private:
  Context& context_;
  const ir::Kernel kernel_;
  const int launches_;
  const std::shared_ptr<const std::string> label_;
  CUmodule module_ = nullptr;
  CUfunction functions_[ir::cuda::kVariants] = {};
  std::atomic<bool> compiled_ = false;
  mutable std::once_flag once_;
  mutable std::optional<tile::TileProgram> program_;
};

}  // namespace fl::runtime::cuda
