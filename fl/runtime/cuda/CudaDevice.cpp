#include "fl/runtime/cuda/CudaDevice.h"

#include <algorithm>

#include "fl/runtime/cuda/CudaSchedule.h"

namespace fl::runtime::cuda {
namespace {

class CudaDevice final : public Device {
 public:
  explicit CudaDevice(int number) : context_(Context::of(number)), memory_(Memory::of(context_)) {}

  std::string name() const override { return context_.name(); }
  DeviceMemory& memory() override { return memory_; }
  ir::Lowering lowering() const override { return ir::Lowering::Kernels; }
  bool takesFeaturesFirst() const override { return false; }
  ir::Target target() const override { return {ir::cuda::kTriple, context_.architecture(), "", 0}; }
  // For others, definitions in kernels stand in.
  bool supportsLibrary(ir::Op op, const std::vector<ir::ValueType>& operands,
                       const ir::Attrs& attrs, const ir::ValueType& result) const override {
    return findCall(context_, op, operands, attrs, result) != nullptr;
  }
  ir::DeviceTraits traits() const override {
    constexpr double kBytesAMove = 64;  // some terabytes a second, and some tens of gigabytes
    return {CudaSchedule::scratchBytes(context_), kBytesAMove};
  }
  std::unique_ptr<LoadedSchedule> load(ir::Schedule schedule, KernelCache* cache) override {
    return std::make_unique<CudaSchedule>(std::move(schedule), context_, memory_, cache);
  }

 private:
  Context& context_;
  Memory& memory_;
};

}  // namespace

std::unique_ptr<Device> makeCudaDevice(const std::string& name) {
  const std::string number = name == "cuda" ? "0" : name.substr(name.find(':') + 1);
  constexpr size_t kMostDigits = 3;
  FL_USER_CHECK(!number.empty() && number.size() <= kMostDigits &&
                    std::ranges::all_of(number, [](char c) { return c >= '0' && c <= '9'; }),
                "device \"", name, "\": behind cuda: stands the number of a GPU");
  return std::make_unique<CudaDevice>(std::stoi(number));
}

}  // namespace fl::runtime::cuda
