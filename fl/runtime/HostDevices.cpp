// The devices `ref` and `null`, which compile nothing, and the list of all devices.
#include <cstring>

#include "fl/base/Error.h"
#include "fl/runtime/Counters.h"
#include "fl/runtime/ScheduleRunner.h"
#include "fl/runtime/cpu/CpuDevice.h"
#include "fl/runtime/ref/KernelReference.h"

namespace fl::runtime {
namespace {

class InterpretedSchedule : public ScheduleRunner {
 public:
  InterpretedSchedule(ir::Schedule schedule, bool runs)
      : ScheduleRunner(std::move(schedule)), runs_(runs) {
    verify(schedule_);
  }

 protected:
  void runSteps(const Frame& frame) const override {
    for (size_t i = 0; !runs_ && i < frame.outputs.size(); ++i) {
      const ir::ValueType& type = schedule_.outputs[i].type;
      if (frame.outputs[i]) {
        std::memset(frame.outputs[i], 0, bytesOf(type.type, type.shape));
      }
    }
    for (const ir::Step& step : schedule_.steps) {
      const auto* launch = std::get_if<ir::LaunchStep>(&step);
      (launch ? counters().kernelLaunches : counters().libraryCalls)++;
      counters().bytesMoved += stepBytes(schedule_, step);
      if (runs_ && launch) {
        interpretLaunch(*launch, frame);
      } else if (runs_) {
        interpretCall(std::get<ir::LibraryStep>(step), frame);
      }
    }
  }

 private:
  void interpretLaunch(const ir::LaunchStep& launch, const Frame& frame) const {
    const ir::Kernel& kernel = schedule_.kernels[launch.kernel];
    const LaunchData where = launchData(launch, frame);
    const std::vector<int64_t> extents(launch.extents.begin(), launch.extents.end());
    std::vector<int64_t> strides;
    for (const ir::LaunchOperand& operand : launch.operands) {
      strides.insert(strides.end(), operand.strides.begin(), operand.strides.end());
    }
    ir::BadIndex bad;
    const ir::KernelArgs args{where.data.data(), extents.data(), strides.data(),
                              where.scalars.data(), &bad};
    const int64_t gather = ref::runKernel(kernel, args, 0, kernelDomain(kernel, extents.data()));
    if (gather >= 0) {
      throw ir::IndexOutOfRange(bad, launch.gathers[gather]);
    }
  }

  bool runs_;
};

// Interprets every op, or only checks it; values on `null` are zero.
class InterpretingDevice : public Device {
 public:
  InterpretingDevice(std::string name, bool runs) : name_(std::move(name)), runs_(runs) {}
  std::string name() const override { return name_; }
  ir::Lowering lowering() const override { return ir::Lowering::Calls; }
  ir::Target target() const override { return {}; }
  bool supportsLibrary(ir::Op, const std::vector<ir::ValueType>&, const ir::Attrs&,
                       const ir::ValueType&) const override {
    return false;
  }
  std::unique_ptr<LoadedSchedule> load(ir::Schedule schedule, KernelCache*) override {
    return std::make_unique<InterpretedSchedule>(std::move(schedule), runs_);
  }

 private:
  std::string name_;
  bool runs_;
};

}  // namespace

std::unique_ptr<Device> makeDevice(const std::string& name) {
  if (name == "cpu") {
    return cpu::makeCpuDevice();
  }
  if (name == "ref" || name == "null") {
    return std::make_unique<InterpretingDevice>(name, name == "ref");
  }
  throwUser("device \"", name, "\" does not exist; there are: cpu, null, ref");
}

}  // namespace fl::runtime
