// Plans on disk whose steps want other scratch memory than when they were kept.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <locale>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "fl/base/Flags.h"
#include "fl/codegen/Compilation.h"
#include "fl/ir/Text.h"
#include "fl/planner/Planner.h"
#include "fl/plans/PlanStore.h"
#include "fl/runtime/Device.h"
#include "tests/ErrorOf.h"
#include "tests/lazy/Counts.h"

namespace fl::testing {
namespace {

namespace fs = std::filesystem;

// Operators enough for a plan to be kept: sorts, each with a map behind it.
ir::Graph sorts(int operators = 30) {
  std::string text = "graph @f(%x: f32[1000]) {\n";
  std::string last = "%x";
  for (int i = 0; i < operators; i += 3) {
    absl::StrAppend(&text, "  %", i, " = argsort ", last, " {axis=0, count=1000} : s64[1000]\n  %",
                    i + 1, " = astype %", i, " {dtype=f32} : f32[1000]\n  %", i + 2, " = tanh %",
                    i + 1, " : f32[1000]\n");
    last = absl::StrCat("%", i + 2);
  }
  return ir::parseGraph(text + "  return " + last + "\n}");
}

ir::ScratchBytes ofEachCall(size_t bytes) {
  return [bytes](const ir::Schedule& schedule, int step) {
    return std::holds_alternative<ir::LibraryStep>(schedule.steps[step]) ? bytes : 0;
  };
}

class PlanStore : public ::testing::Test {
 protected:
  PlanStore() {
    const fs::path folder = fs::path(::testing::TempDir()) /
                            ::testing::UnitTest::GetInstance()->current_test_info()->name();
    fs::remove_all(folder);
    flags().cacheFolder = folder;
  }
  ~PlanStore() override { flags().cacheFolder = ""; }

  // As another process has it, and whether it was kept.
  struct Found {
    ir::Schedule schedule;
    bool isKept;
  };
  Found compile(const codegen::CompileOptions& options) const {
    const Counts counts;
    ir::Schedule schedule = plans::PlanStore().compile(graph_, options).schedule;
    return {std::move(schedule), counts.plansLoaded() == 1};
  }

  ir::Graph graph_ = sorts();
};

TEST_F(PlanStore, MakesPlansAnewThatHaveTooLittleScratchMemory) {
  const auto textOf = [](const ir::Schedule& schedule) { return printSchedule(schedule, "s"); };
  const auto madeWith = [&](size_t bytes) {
    return textOf(codegen::compile(graph_, {.device = {ofEachCall(bytes)}}).schedule);
  };
  const struct {
    size_t asked, had;
    bool isKept;
  } processes[] = {{1000, 1000, false}, {1000, 1000, true}, {5000, 5000, false},
                   {5000, 5000, true},  {1000, 5000, true}, {0, 5000, true},
                   {5056, 5000, true},  {5057, 5057, false}};
  for (const auto& [asked, had, isKept] : processes) {
    const Found found = compile({.device = {ofEachCall(asked)}});
    EXPECT_EQ(found.isKept, isKept) << asked;
    EXPECT_EQ(textOf(found.schedule), madeWith(had)) << asked;
    int calls = 0;
    for (const ir::Step& step : found.schedule.steps) {
      if (!std::holds_alternative<ir::LibraryStep>(step)) continue;
      ++calls;
      EXPECT_GE(found.schedule.temporaries.at(ir::scratchOf(step)).bytes, asked);
    }
    EXPECT_EQ(calls, 10);
  }
}

// It is not found within the budget only because it once was.
TEST_F(PlanStore, RefusesWhatNoLongerFitsABudget) {
  const size_t budget = compile({.device = {ofEachCall(1000)}}).schedule.arenaBytes;
  EXPECT_FALSE(compile({.budget = budget, .device = {ofEachCall(1000)}}).isKept);
  EXPECT_TRUE(compile({.budget = budget, .device = {ofEachCall(1000)}}).isKept);
  const std::string error = test::errorOf<planner::OverBudget>(
      [&] { compile({.budget = budget, .device = {ofEachCall(budget)}}); });
  EXPECT_THAT(error, ::testing::HasSubstr(absl::StrCat("do not fit the budget of ", budget)));
  EXPECT_TRUE(compile({.budget = budget, .device = {ofEachCall(1000)}}).isKept);
}

struct Grouping : std::numpunct<char> {
  char do_thousands_sep() const override { return '.'; }
  std::string do_grouping() const override { return "\3"; }
};

// A program's locale writes 1000 as 1.000.
TEST_F(PlanStore, HasTheSameEntriesInEveryLocale) {
  const ir::Graph called = sorts(1200);
  graph_ = ir::Graph();
  const ir::ValueId x = graph_.addParameter(called.parameters()[0]);
  ir::addCall(&graph_, called, {x}, {});  // with origins
  graph_.setResults(called.results());
  const auto originsOf = [](const ir::Schedule& schedule) {
    std::vector<int> origins;
    for (const ir::Step& step : schedule.steps) {
      const auto* call = std::get_if<ir::LibraryStep>(&step);
      if (call) origins.push_back(call->origin);
    }
    return origins;
  };
  const auto compileIn = [&](const std::locale& locale) {
    const std::locale before = std::locale::global(locale);
    Found found = compile({.device = {ofEachCall(64)}});
    std::locale::global(before);
    return found;
  };
  const std::locale grouping(std::locale(), new Grouping);
  const auto& classic = std::locale::classic();
  for (const auto& [writes, reads] : {std::pair(grouping, classic), std::pair(classic, grouping)}) {
    fs::remove_all(flags().cacheFolder);
    const Found first = compileIn(writes), second = compileIn(reads);
    EXPECT_FALSE(first.isKept);
    EXPECT_TRUE(second.isKept);
    EXPECT_EQ(originsOf(first.schedule).size(), 400u);
    EXPECT_GT(originsOf(first.schedule).back(), 1000);
    EXPECT_EQ(originsOf(second.schedule), originsOf(first.schedule));
  }
}

// So that loading adds nothing, and the plan that runs is the one that was planned.
TEST_F(PlanStore, HasWhatTheCpuAsksFor) {
  const auto device = runtime::makeDevice("cpu");
  compile({.device = {ofEachCall(64)}});
  for (const bool isKept : {false, true}) {
    const Found found = compile({.device = device->traits()});
    EXPECT_EQ(found.isKept, isKept);
    EXPECT_GE(found.schedule.arenaBytes, 8000u) << "a key and an index an element";
    runtime::KernelCache kernels;
    const auto plan = device->load(found.schedule, &kernels);
    EXPECT_EQ(printSchedule(plan->schedule(), "s"), printSchedule(found.schedule, "s"));
  }
}

}  // namespace
}  // namespace fl::testing
