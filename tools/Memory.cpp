#include "tools/Memory.h"

#include <iostream>
#include <vector>

#include "fl/base/CommandLine.h"
#include "fl/base/Error.h"
#include "fl/codegen/Compilation.h"
#include "fl/ir/Text.h"
#include "fl/planner/Memory.h"
#include "nlohmann/json.hpp"
#include "tools/Files.h"

namespace fl::tools {
namespace {

using Json = nlohmann::ordered_json;

ir::Schedule readPlan(const std::string& path) {
  const std::string text = readInput(path);
  const std::string form = parseInput(path, text, formOf);
  FL_USER_CHECK(form != "kernel", path, ": is a kernel, which has no temporaries");
  if (form == "schedule") {
    return parseInput(path, text, parsePackedSchedule);
  }
  return codegen::compile(parseInput(path, text, ir::parseGraph), {.verify = true}).schedule;
}

Json describe(const ir::Schedule& plan) {
  Json steps = Json::array(), buffers = Json::array();
  const std::vector<int64_t> alive = planner::bytesAlive(plan);
  std::vector<const char*> makers(plan.temporaries.size(), "");
  // A schedule may be nothing but temporaries, whose steps have no names.
  for (size_t i = 0; i + 2 < alive.size(); ++i) {
    const char* name = i < plan.steps.size() ? stepName(plan, plan.steps[i]) : "";
    steps.push_back({{"name", name}, {"alive", alive[i]}});
  }
  for (size_t i = 0; i < plan.steps.size(); ++i) {
    for (const ir::BufferRef& ref : stepBuffers(plan, plan.steps[i]).writes) {
      if (ref.space == ir::BufferRef::Space::Temporary &&
          plan.temporaries[ref.index].first == static_cast<int>(i)) {
        makers[ref.index] = stepName(plan, plan.steps[i]);
      }
    }
  }
  for (size_t i = 0; i < plan.temporaries.size(); ++i) {
    const ir::Temporary& buffer = plan.temporaries[i];
    buffers.push_back({{"name", makers[i]},
                       {"bytes", buffer.bytes},
                       {"first", buffer.first},
                       {"last", buffer.last},
                       {"offset", buffer.offset}});
  }
  return {{"arena", plan.arenaBytes},
          {"bound", plan.arenaBound},
          {"recorded", plan.recordedBound},
          {"unplanned", plan.unplannedBytes},
          {"steps", steps},
          {"buffers", buffers}};
}

}  // namespace

int runMemory(int argc, char** argv) {
  const std::vector<char*> arguments = parseCommandLine(
      "fl memory FILE.flir   (- reads standard input)\n\nPrints what a schedule, or that of "
      "a graph, has in its arena at each step, as JSON,\nwhich tools/memory_timeline.py draws.",
      __FILE__, argc, argv);
  FL_USER_CHECK(arguments.size() == 2, "memory: expected one file");
  std::cout << describe(readPlan(arguments[1])).dump(1) << "\n";
  return 0;
}

}  // namespace fl::tools
