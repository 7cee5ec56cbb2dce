#include "tools/StepTimes.h"

#include <vector>

#include "fl/base/Error.h"
#include "tools/Program.h"
#include "tools/Values.h"

namespace fl::tools {

std::shared_ptr<view::StepTimes> timeSteps(const std::string& name, const ir::Schedule& schedule,
                                           int runs) {
  const auto program = parseProgram(name, printSchedule(schedule, "s"), {});
  return withMemory(name, *program, [&] {
    std::vector<NpyArray> inputs = drawInputs(program->parameters(), /*seed=*/0);
    program->fitDrawn(std::vector<bool>(inputs.size(), true), &inputs);
    const auto loaded = program->load("lazy", "cpu", inputs);
    try {
      loaded->run();
    } catch (const std::invalid_argument& error) {
      throwUser("--time: ", name, " does not run on drawn inputs: ", error.what());
    }
    auto times = std::make_shared<view::StepTimes>(runs);
    for (int i = 0; i < runs; ++i) {
      const view::StepClock clock(*times);
      loaded->run();
    }
    return times;
  });
}

}  // namespace fl::tools
