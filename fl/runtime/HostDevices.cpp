// The devices `ref` and `null`, which run no kernels, and the list of all devices.
#include <cstring>

#include "fl/base/Error.h"
#include "fl/base/Flags.h"
#include "fl/profile/Profile.h"
#include "fl/runtime/Counters.h"
#include "fl/runtime/ScheduleRunner.h"
#include "fl/runtime/cpu/CpuDevice.h"
#ifdef FL_HAS_CUDA
#include "fl/runtime/cuda/CudaDevice.h"
#endif

namespace fl::runtime {
namespace {

class InterpretedSchedule : public ScheduleRunner {
 public:
  InterpretedSchedule(ir::Schedule schedule, bool runs)
      : ScheduleRunner(std::move(schedule)), runs_(runs) {
    verify(schedule_);
    for (const ir::Step& step : schedule_.steps)
      FL_INTERNAL_CHECK(std::holds_alternative<ir::LibraryStep>(step), "a kernel on this device");
  }

 protected:
  void runSteps(const Frame& frame) const override {
    for (size_t i = 0; !runs_ && i < frame.outputs.size(); ++i) {
      const ir::ValueType& type = schedule_.outputs[i].type;
      if (frame.outputs[i]) std::memset(frame.outputs[i], 0, bytesOf(type.type, type.shape));
    }
    for (size_t i = 0; i < schedule_.steps.size(); ++i) {
      counters().libraryCalls++;
      counters().bytesMoved += stepBytes(schedule_, schedule_.steps[i]);
      if (!runs_) continue;
      interpretCall(std::get<ir::LibraryStep>(schedule_.steps[i]), frame);
      afterSteps(frame, i, i + 1);
    }
  }

 private:
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
  profile::startIfAsked();
  if (name == "cpu") return cpu::makeCpuDevice();
  if (name == "ref" || name == "null")
    return std::make_unique<InterpretingDevice>(name, name == "ref");
#ifdef FL_HAS_CUDA
  if (name == "cuda" || name.starts_with("cuda:")) return cuda::makeCudaDevice(name);
  const char* all = "cpu, cuda, null, ref";
#else
  FL_USER_CHECK(name != "cuda" && !name.starts_with("cuda:"),
                "device \"cuda\": fl was built without CUDA, whose headers were not there");
  const char* all = "cpu, null, ref";
#endif
  const char* from = name == flags().device ? "FL_DEVICE: " : "";
  throwUser(from, "device \"", name, "\" does not exist; there are: ", all);
}

}  // namespace fl::runtime
