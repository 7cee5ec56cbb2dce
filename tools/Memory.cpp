#include "tools/Memory.h"

#include <iostream>
#include <vector>

#include "fl/base/Error.h"
#include "fl/codegen/Compilation.h"
#include "fl/ir/Text.h"
#include "fl/runtime/Device.h"
#include "fl/view/Timeline.h"
#include "nlohmann/json.hpp"
#include "tools/Arguments.h"
#include "tools/Files.h"

namespace fl::tools {
namespace {

ir::Schedule readPlan(const std::string& path) {
  const std::string text = readInput(path);
  const std::string form = parseInput(path, text, formOf);
  FL_USER_CHECK(form != "kernel", path, ": is a kernel, which has no temporaries");
  if (form == "schedule") {
    return parseInput(path, text, parsePackedSchedule);
  }
  const ir::DeviceTraits traits = runtime::makeDevice("cpu")->traits();
  return codegen::compile(parseInput(path, text, ir::parseGraph),
                          {.device = traits, .verify = true})
      .schedule;
}

}  // namespace

int runMemory(int argc, char** argv) {
  const std::vector<char*> arguments = parseArguments(
      "fl memory FILE.flir   (- reads standard input)\n\nPrints what a schedule, or that of "
      "a graph, on the CPU has in its arena at each step,\nas JSON, which tools/memory_timeline.py "
      "draws.",
      __FILE__, {}, argc, argv);
  FL_USER_CHECK(arguments.size() == 2, "memory: expected one file");
  std::cout << view::timelineOf(readPlan(arguments[1])).dump(1) << "\n";
  return 0;
}

}  // namespace fl::tools
