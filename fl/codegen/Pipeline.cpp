#include <algorithm>
#include <iterator>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "fl/base/Error.h"
#include "fl/base/Fault.h"
#include "fl/base/Log.h"
#include "fl/codegen/Passes.h"
#include "fl/ir/Text.h"
#include "fl/planner/Planner.h"
#include "fl/profile/Profile.h"

namespace fl::codegen {
namespace {

struct PassRow {
  PassInfo info;
  void (*run)(Compilation&);
};

template <void (*pass)(Compilation&)>
void run(Compilation& compilation) {
  pass(compilation);
}
template <void (*pass)(ir::Schedule*)>
void run(Compilation& compilation) {
  pass(&compilation.schedule);
}

const std::vector<PassRow>& rows() {
  static const auto& table = *new std::vector<PassRow>{
#define FL_PASS(stage, name, function, why) {{#stage, #name, why}, run<function>},
#include "fl/codegen/Pipeline.def"
#undef FL_PASS
  };
  return table;
}

bool isStage(const PassInfo& pass, const char* stage) { return std::string(pass.stage) == stage; }

std::string currentText(const Compilation& compilation, const PassInfo& pass) {
  if (isStage(pass, "graph")) {
    return printGraph(compilation.graph, "g", {.callSites = true});
  }
  return isStage(pass, "fusion") ? printFusion(compilation.graph, compilation.fusion)
                                 : printSchedule(compilation.schedule, "s", {.callSites = true});
}

void verifyStage(const Compilation& compilation, const PassInfo& pass) {
  if (isStage(pass, "graph")) {
    verify(compilation.graph);
  } else if (isStage(pass, "schedule")) {
    verifySteps(compilation.schedule);
  }
}

void runPass(const PassRow& row, Compilation& compilation, const CompileOptions& options) {
  const int64_t begin = profile::now();
  injectFault(row.info.name);
  row.run(compilation);
  const int64_t end = profile::now();
  if (profile::isActive()) {
    profile::add(profile::label(profile::Lane::Planning, profile::Extent::Part, row.info.name),
                 begin, end);
  }
  constexpr int64_t kSlow = 1'000'000'000;  // told wherever a line a realize is
  const double elapsed = static_cast<double>(end - begin) / 1e6;
  logLine(end - begin > kSlow ? 1 : 3, absl::StrCat("pass ", row.info.name, " ", elapsed, " ms"));
  if (options.verify) verifyStage(compilation, row.info);
}

bool isPass(const std::string& name) {
  return std::ranges::any_of(rows(), [&](const PassRow& row) { return name == row.info.name; });
}

std::set<std::string> parseSkipped(const std::string& list) {
  const std::set<std::string> skipped = absl::StrSplit(list, ',', absl::SkipEmpty());
  for (const std::string& name : skipped) {
    FL_USER_CHECK(isPass(name), "skip: \"", name, "\" is no pass");
    FL_USER_CHECK(name != "build" && name != "pack", "skip: nothing runs without ", name);
  }
  return skipped;
}

}  // namespace

const std::vector<PassInfo>& passes() {
  static const auto& infos = *[] {
    auto* list = new std::vector<PassInfo>();
    std::ranges::transform(rows(), std::back_inserter(*list), &PassRow::info);
    return list;
  }();
  return infos;
}

Compilation compile(ir::Graph graph, const CompileOptions& options) {
  FL_USER_CHECK(options.stopAfter.empty() || isPass(options.stopAfter), "\"", options.stopAfter,
                "\" is no pass");
  std::set<std::string> skipped = parseSkipped(options.skip);
  Compilation compilation;
  compilation.lowering = options.lowering;
  // The pass still makes the plan: of nodes alone.
  compilation.fusion.enabled =
      skipped.erase("fuse") == 0 && options.lowering == ir::Lowering::Kernels;
  compilation.schedule.budget = options.budget;
  compilation.graph = std::move(graph);
  int number = 0;
  auto observe = [&](const std::string& pass, const std::string& text) {
    if (options.observe) options.observe(number, pass, text);
    logLine(5, "after " + pass + ":\n" + text);
  };
  const bool observed = options.observe || logEnabled(5);
  if (observed) {
    observe("recorded", printGraph(compilation.graph, "g", {.callSites = true}));
  }
  for (const PassRow& row : rows()) {
    ++number;
    if (!skipped.contains(row.info.name)) {
      runPass(row, compilation, options);
    }
    if (observed) observe(row.info.name, currentText(compilation, row.info));
    if (options.stopAfter == row.info.name) {
      return compilation;
    }
  }
  if (options.verify) verify(compilation.schedule);
  return compilation;
}

void runPassAlone(const std::string& pass, const char* stage, Compilation& compilation) {
  for (const PassRow& row : rows()) {
    if (pass == row.info.name && isStage(row.info, stage)) {
      row.run(compilation);
      return verifyStage(compilation, row.info);
    }
  }
  throwUser("\"", pass, "\" is no ", stage, " pass");
}

}  // namespace fl::codegen
