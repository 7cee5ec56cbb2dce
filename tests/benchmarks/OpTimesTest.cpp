// What `ops` measures and the rows it writes; no times.
#include <gtest/gtest.h>

#include <set>

#include "benchmarks/OpTimes.h"
#include "benchmarks/TracedPlan.h"

namespace fl::bench {
namespace {

std::vector<Tensor> inputsOf(const OpCase& opCase) {
  const BackendScope scope("eager");
  return opCase.inputs(1024);
}

const OpCase& findCase(const std::vector<OpCase>& cases, const std::string& name) {
  for (const OpCase& opCase : cases) {
    if (opCase.name == name) {
      return opCase;
    }
  }
  throw std::out_of_range(name);
}

TEST(OpCasesTest, EveryRowOfTheOpTableOccurs) {
  std::set<ir::Op> seen;
  for (const OpCase& opCase : opCases()) {
    try {
      const Trace traced = trace(opCase, inputsOf(opCase));
      for (const ir::Node& node : traced.graph.nodes()) {
        seen.insert(node.op);
      }
    } catch (const ElementsRead&) {
      EXPECT_TRUE(opCase.name.starts_with("nonzero ")) << opCase.name << " reads elements";
    }
  }
  for (int i = 0; i < ir::kOpCount; ++i) {
    EXPECT_TRUE(seen.contains(static_cast<ir::Op>(i)))
        << "no case calls " << ir::opName(static_cast<ir::Op>(i));
  }
}

TEST(OpCasesTest, NamesAreUnique) {
  std::set<std::string> names;
  for (const OpCase& opCase : opCases()) {
    EXPECT_TRUE(names.insert(opCase.name).second) << opCase.name;
  }
}

TEST(OpTimesTest, RowsFollowTheSchema) {
  const std::vector<OpCase> cases = opCases();
  const OpTimes times = timeOp(findCase(cases, "add f32"), 1024, 1);
  EXPECT_EQ(times.compiled, 0u);
  const Json row = toRow(times);
  EXPECT_EQ(row["bench"], "ops");
  EXPECT_EQ(row["case"], "add f32, 1024");
  EXPECT_EQ(row["unit"], "us");
  EXPECT_GE(row["threads"].get<int>(), 1);
  for (const char* time : {"ours", "eager", "limit", "kernel"}) {
    EXPECT_GT(row[time].get<double>(), 0) << time;
  }
  EXPECT_EQ(row["peers"], Json::object());
  EXPECT_EQ(row["single"], nullptr);
  EXPECT_EQ(row["unchecked"], nullptr);
  EXPECT_EQ(row["memory_bound"], true);
  EXPECT_EQ(row.size(), 12u);
}

TEST(OpTimesTest, LookupsAreTimedWithoutChecksToo) {
  const std::vector<OpCase> cases = opCases();
  EXPECT_GT(timeOp(findCase(cases, "gather lines f32"), 1024, 1).unchecked.value_or(0), 0);
  // Its indices are the library's own, which nothing checks.
  EXPECT_EQ(timeOp(findCase(cases, "roll f32"), 1024, 1).unchecked, std::nullopt);
}

TEST(OpTimesTest, SixteenBitsAreTimedInTurnsWithTheSameOnSingle) {
  const std::vector<OpCase> cases = opCases();
  const OpCase &single = findCase(cases, "add f32"), &half = findCase(cases, "add f16");
  EXPECT_TRUE(isSingleOf(single, half));
  EXPECT_FALSE(isSingleOf(single, single));
  EXPECT_FALSE(isSingleOf(findCase(cases, "sub f32"), half));
  const OpTimes times = timeBeside(single, half, 1024, 1, {});
  EXPECT_EQ(times.name, "add f16");
  EXPECT_GT(times.single.value_or(0), 0);
}

TEST(OpTimesTest, WhatReadsWhileItRecordsHasNoKernelTime) {
  const std::vector<OpCase> cases = opCases();
  EXPECT_EQ(toRow(timeOp(findCase(cases, "nonzero f32"), 1024, 1))["kernel"], nullptr);
}

OpTimes times(const std::string& name, dtype type, Dim elements, double lazy) {
  return {.name = name,
          .type = type,
          .memoryBound = true,
          .elements = elements,
          .kernel = {},
          .lazy = lazy,
          .eager = 100,
          .limit = 100,
          .compiled = 0};
}

TEST(OpTimesTest, BrokenBoundsAreNamed) {
  const auto broken = [](const OpTimes& each, const std::vector<OpTimes>& all = {}) {
    return brokenBounds(each, all);
  };
  using Texts = std::vector<std::string>;
  EXPECT_EQ(broken(times("exp f32", dtype::f32, 1024, 105)), Texts());
  EXPECT_EQ(broken(times("exp f32", dtype::f32, 1024, 106)), Texts{"1.06 of eager, at most 1.05"});
  EXPECT_EQ(broken(times("exp f32", dtype::f32, kOutOfCache, 119)),
            (Texts{"1.19 of eager, at most 1.05", "1.19 of eager, recording included, at most 1.05",
                   "1.19 of the copy, at most 1.18"}));
  OpTimes recorded = times("exp f32", dtype::f32, 1024, 110);
  recorded.kernel = 100;
  EXPECT_EQ(broken(recorded), Texts());
  recorded.elements = kRecordingIsSmall;
  EXPECT_EQ(broken(recorded), Texts{"1.10 of eager, recording included, at most 1.05"});
  recorded.elements = 1024;
  recorded.unchecked = 95;
  EXPECT_EQ(broken(recorded), Texts{"1.05 of the kernel without checks, at most 1.05"});
  recorded.unchecked = 96;
  EXPECT_EQ(broken(recorded), Texts());
  OpTimes compiled = times("exp f32", dtype::f32, 1024, 100);
  compiled.compiled = 2;
  EXPECT_EQ(broken(compiled), Texts{"2 plans and kernels made while timed"});

  const std::vector<OpTimes> all = {times("exp f32", dtype::f32, 1024, 50),
                                    times("exp f32", dtype::f32, kOutOfCache, 50),
                                    times("log f32", dtype::f32, 1024, 10)};
  EXPECT_EQ(broken(times("exp f16", dtype::f16, 1024, 65), all), Texts());
  EXPECT_EQ(broken(times("exp f16", dtype::f16, 1024, 70), all),
            Texts{"1.40 of f32, at most 1.32"});
  EXPECT_EQ(broken(times("exp f16", dtype::f16, kOutOfCache, 60), all),
            Texts{"1.20 of f32, at most 1.10"});
  EXPECT_EQ(broken(times("exp bf16", dtype::bf16, 1024, 60), all),
            Texts{"1.20 of f32, at most 1.10"});
  OpTimes inTurns = times("exp bf16", dtype::bf16, 1024, 60);
  inTurns.single = 59;
  EXPECT_EQ(broken(inTurns, all), Texts());
  inTurns.single = 56;
  EXPECT_EQ(broken(inTurns, all), Texts{"1.07 of f32, at most 1.03"});
}

}  // namespace
}  // namespace fl::bench
