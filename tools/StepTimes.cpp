#include "tools/StepTimes.h"

#include <algorithm>
#include <chrono>
#include <map>

#include "fl/base/Error.h"
#include "fl/runtime/Device.h"
#include "tools/Program.h"
#include "tools/Values.h"

namespace fl::tools {
namespace {

class StepClock : public runtime::StepObserver {
 public:
  using Clock = std::chrono::steady_clock;

  void start() { last_ = Clock::now(); }

  void afterSteps(size_t begin, size_t end, const runtime::StepMemory&) override {
    const Clock::time_point now = Clock::now();
    const std::chrono::duration<double, std::micro> elapsed = now - last_;
    times_[{begin, end}].push_back(elapsed.count());
    last_ = Clock::now();
  }

  std::vector<view::StepTime> medians() {
    std::vector<view::StepTime> medians;
    for (auto& [steps, times] : times_) {
      const auto middle = times.begin() + static_cast<ptrdiff_t>(times.size() / 2);
      std::nth_element(times.begin(), middle, times.end());
      medians.push_back({steps.first, steps.second, *middle});
    }
    return medians;
  }

 private:
  std::map<std::pair<size_t, size_t>, std::vector<double>> times_;  // by steps [begin, end)
  Clock::time_point last_;
};

}  // namespace

std::vector<view::StepTime> timeSteps(const std::string& name, const ir::Schedule& schedule,
                                      int runs) {
  const auto program = parseProgram(name, printSchedule(schedule, "s"), {});
  std::vector<NpyArray> inputs = drawInputs(program->parameters(), /*seed=*/0);
  program->fitDrawn(std::vector<bool>(inputs.size(), true), &inputs);
  const auto loaded = program->load("lazy", "cpu", inputs);
  try {
    loaded->run();
  } catch (const std::invalid_argument& error) {
    throwUser("--time: ", name, " does not run on drawn inputs: ", error.what());
  }
  StepClock clock;
  runtime::stepObserver() = &clock;
  for (int i = 0; i < runs; ++i) {
    clock.start();
    loaded->run();
  }
  runtime::stepObserver() = nullptr;
  return clock.medians();
}

}  // namespace fl::tools
