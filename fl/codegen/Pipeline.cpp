#include <algorithm>
#include <optional>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "fl/base/Error.h"
#include "fl/base/Fault.h"
#include "fl/base/Log.h"
#include "fl/codegen/Extensions.h"
#include "fl/codegen/Passes.h"
#include "fl/ir/Text.h"
#include "fl/planner/Extensions.h"
#include "fl/planner/Planner.h"
#include "fl/profile/Profile.h"

namespace fl::codegen {
namespace {

struct PassRow {
  PassInfo info;
  std::function<void(Compilation&)> run;
  int place;  // rows of the table are three apart, with those added behind and ahead between them
  bool isAdded = false;
  std::string after = {}, before = {};  // of one that was added
};
using Rows = std::vector<PassRow>;

std::function<void(Compilation&)> runOf(void (*pass)(Compilation&)) { return pass; }
std::function<void(Compilation&)> runOf(void (*pass)(ir::Schedule*)) {
  return [=](Compilation& compilation) { pass(&compilation.schedule); };
}

Rows::const_iterator find(const Rows& rows, const std::string& pass) {
  return std::ranges::find_if(rows, [&](const PassRow& row) { return row.info.name == pass; });
}

void append(const PassExtension& pass, Rows* rows) {
  const auto& [name, version, after, before, why, run] = pass;
  FL_USER_CHECK(find(*rows, name) == rows->end(), "addPass: there is a pass \"", name,
                "\" already");
  const auto anchor = find(*rows, after.empty() ? before : after);
  const bool isThere = anchor != rows->end();
  FL_USER_CHECK(isThere && (before.empty() || find(*rows, before) != rows->end()),
                "addPass: ", name, ": there is no pass \"",
                !isThere && !after.empty() ? after : before, "\"");
  const int place = anchor->place + (anchor->isAdded ? 0 : after.empty() ? -1 : 1);
  rows->push_back({{anchor->info.stage, name, why}, run, place, true, after, before});
}

bool mustLead(const PassRow& one, const PassRow& other) {
  return one.place < other.place || one.info.name == other.after || other.info.name == one.before;
}

// By place, of equal ones as they were added but where one must lead another.
Rows ordered(Rows rows) {
  std::ranges::stable_sort(rows, {}, &PassRow::place);
  Rows order;
  std::vector<std::string> waiting;  // each for the next one
  const std::function<void(const PassRow&)> put = [&](const PassRow& row) {
    if (find(order, row.info.name) != order.end()) return;
    waiting.push_back(row.info.name);
    FL_USER_CHECK(
        std::ranges::count(waiting, row.info.name) == 1,
        "addPass: each of these has to stand behind the next one: ", absl::StrJoin(waiting, ", "));
    for (const PassRow& other : rows)
      if (mustLead(other, row)) put(other);
    waiting.pop_back();
    order.push_back(row);
  };
  std::ranges::for_each(rows, put);
  return order;
}

// Ours, and those added where they belong.
Rows pipeline(const std::vector<PassExtension>& added = *addedPasses().all()) {
  int place = 0;
  Rows rows = {
#define FL_PASS(stage, name, function, why) {{#stage, #name, why}, runOf(function), place += 3},
#include "fl/codegen/Pipeline.def"
#undef FL_PASS
  };
  for (const PassExtension& pass : added) append(pass, &rows);
  return added.empty() ? rows : ordered(std::move(rows));
}

std::string currentText(const Compilation& compilation, const PassInfo& pass) {
  if (pass.stage == "graph") return printGraph(compilation.graph, "g", {.callSites = true});
  return pass.stage == "fusion" ? printFusion(compilation.graph, compilation.fusion)
                                : printSchedule(compilation.schedule, "s", {.callSites = true});
}

void verifyStage(const Compilation& compilation, const PassInfo& pass) {
  if (pass.stage == "schedule") return verifySteps(compilation.schedule);
  verify(compilation.graph);
  const FusionPlan& plan = compilation.fusion;  // none before the pass `fuse`
  if (pass.stage == "fusion" && !plan.values.empty()) verify(compilation.graph, plan);
}

// What a plan takes and gives, in order, of which an added pass may change nothing.
struct Interface {
  std::vector<ir::ValueType> types;
  std::vector<int> origins;  // of results: the recorded operators that they stand for

  explicit Interface(const Compilation& of) : types(ir::interfaceOf(of.graph)) {
    for (const ir::Parameter& each : of.schedule.parameters) types.push_back(each.type);
    for (const ir::ScheduleOutput& each : of.schedule.outputs) types.push_back(each.type);
    for (const ir::ValueId id : of.graph.results())
      origins.push_back(of.graph.isParameter(id) ? -2 - id : of.graph.node(id).origin);
  }

  void verifyKept(const Interface& after) const {
    FL_INTERNAL_CHECK(types == after.types, "it changes what the graph takes or gives");
    // Equal results may become one value: then some operator is none's.
    FL_INTERNAL_CHECK(
        origins == after.origins || !std::ranges::is_permutation(origins, after.origins),
        "it gives the results in another order");
  }
};

void runPass(const PassRow& row, Compilation& compilation, const CompileOptions& options) {
  const auto before = row.isAdded ? std::make_optional<Interface>(compilation) : std::nullopt;
  const int64_t begin = profile::now();
  injectFault(row.info.name.c_str());
  row.run(compilation);
  if (isWrong(row.info.name.c_str())) miscompile(row.info.stage, compilation);
  const int64_t end = profile::now();
  if (profile::isActive())
    profile::add(profile::label(profile::Lane::Planning, profile::Extent::Part, row.info.name),
                 begin, end);
  constexpr int64_t kSlow = 1'000'000'000;  // told wherever a line a realize is
  const double elapsed = static_cast<double>(end - begin) / 1e6;
  logLine(end - begin > kSlow ? 1 : 3, absl::StrCat("pass ", row.info.name, " ", elapsed, " ms"));
  const bool isRuled =
      row.info.stage == "fusion" && !(fusionRules().all()->empty() && costModels().all()->empty());
  const auto check = [&] {
    verifyStage(compilation, row.info);
    if (before) before->verifyKept(Interface(compilation));
  };
  if (row.isAdded) addedPasses().blame(row.info.name, check);
  if (!row.isAdded && (options.verify || isRuled)) check();
}

std::set<std::string> parseSkipped(const Rows& rows, const std::string& list, const char* from) {
  const std::set<std::string> skipped = absl::StrSplit(list, ',', absl::SkipEmpty());
  for (const std::string& name : skipped) {
    FL_USER_CHECK(find(rows, name) != rows.end(), from, ": \"", name, "\" is no pass");
    FL_USER_CHECK(name != "build" && name != "pack", from, ": nothing runs without ", name);
  }
  return skipped;
}

}  // namespace

void verifyList(const std::vector<PassExtension>& passes, const std::string& removed) {
  for (const PassExtension& pass : passes) {
    const bool needs = !removed.empty() && (pass.after == removed || pass.before == removed);
    FL_USER_CHECK(!needs, "the pass ", removed, " stays: ", pass.name, " stands beside it");
  }
  pipeline(passes);
}

std::string extensionsKey() {
  return absl::StrCat(addedPasses().key(), "rules\n", fusionRules().key(), "models\n",
                      costModels().key(), "packers\n", planner::packers().key(), "orders\n",
                      planner::orders().key());
}

std::vector<PassInfo> passes() {
  std::vector<PassInfo> infos;
  for (const PassRow& row : pipeline()) infos.push_back(row.info);
  return infos;
}

void checkSkip(const std::string& skip) { parseSkipped(pipeline(), skip, "FL_SKIP"); }

Compilation compile(ir::Graph graph, const CompileOptions& options) {
  const Rows rows = pipeline();
  FL_USER_CHECK(options.stopAfter.empty() || find(rows, options.stopAfter) != rows.end(), "\"",
                options.stopAfter, "\" is no pass");
  std::set<std::string> skipped = parseSkipped(rows, options.skip, "skip");
  Compilation compilation;
  compilation.lowering = options.lowering;
  compilation.featuresFirst = options.featuresFirst;
  // The pass still makes the plan: of nodes alone.
  compilation.fusion.enabled =
      skipped.erase("fuse") == 0 && options.lowering == ir::Lowering::Kernels;
  compilation.schedule.budget = options.budget;
  compilation.schedule.trimAll = options.trimAll;
  compilation.schedule.device = options.device;
  compilation.graph = std::move(graph);
  int number = 0;
  std::string added;
  auto observe = [&](const std::string& pass, const std::string& text) {
    if (options.observe) options.observe(number, pass, text);
    logLine(5, "after " + pass + ":\n" + text);
  };
  const bool observed = options.observe || logEnabled(5);
  if (observed) observe("recorded", printGraph(compilation.graph, "g", {.callSites = true}));
  for (const PassRow& row : rows) {
    ++number;
    if (!skipped.contains(row.info.name)) runPass(row, compilation, options);
    if (observed) observe(row.info.name, currentText(compilation, row.info));
    if (options.stopAfter == row.info.name) return compilation;
    if (row.isAdded) absl::StrAppend(&added, added.empty() ? "" : " or ", row.info.name);
  }
  const auto verifyAll = [&] { verify(compilation.schedule); };
  if (!added.empty()) addedPasses().blame(added, verifyAll);
  if (added.empty() && options.verify) verifyAll();
  return compilation;
}

void runPassAlone(const std::string& pass, const char* stage, Compilation& compilation) {
  const Rows rows = pipeline();
  const auto row = find(rows, pass);
  const bool isOne = row != rows.end() && row->info.stage == stage;
  FL_USER_CHECK(isOne, "\"", pass, "\" is no ", stage, " pass");
  row->run(compilation);
}

}  // namespace fl::codegen
