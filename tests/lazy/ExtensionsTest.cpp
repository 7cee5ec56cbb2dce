// What is added to the compiler from outside takes part in plans, is verified, and is part of the
// keys of what is kept on disk.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <functional>
#include <numeric>
#include <stdexcept>

#include "fl/base/Flags.h"
#include "fl/research.h"
#include "fl/tensor/tensor.h"
#include "tests/ErrorOf.h"
#include "tests/lazy/Counts.h"
#include "tests/lazy/FreshEngine.h"

namespace fl::testing {
namespace {

using test::errorOf;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

class Extensions : public ::testing::Test {
 protected:
  Extensions() {
    flags().jit = "sync";
    flags().cache = "off";
  }
  ~Extensions() override {
    flags().cache = "on";
    codegen::addedPasses().remove("theirs");
    codegen::addedPasses().remove("ours");
    codegen::fusionRules().remove("ours");
    codegen::costModels().remove("ours");
    planner::packers().remove("ours");
    planner::orders().remove("ours");
    codegen::cpu::emitters().remove("ours");
  }

  // Some kernels with temporaries between them.
  static std::vector<float> compute() {
    const Tensor x = arange(0, 4096, 1, dtype::f32), y = sort(cos(x), 0);
    return concatenate(std::vector<Tensor>{sort(y * x, 0), sort(y - x, 0), cumsum(y, 0)}, 0)
        .toHostVector<float>();
  }
  // Computed as without any extension, with so many fallbacks.
  void expectSame(uint64_t fallbacks) {
    const FreshEngine engine;
    const Counts counts;
    EXPECT_EQ(compute(), want_);
    EXPECT_EQ(counts.fallbacks(), fallbacks);
  }

  const FreshEngine engine_;
  const std::vector<float> want_ = compute();
};

std::vector<std::string> passNames() {
  std::vector<std::string> names;
  std::ranges::transform(codegen::passes(), std::back_inserter(names), &codegen::PassInfo::name);
  return names;
}

TEST_F(Extensions, PassesStandWhereTheySay) {
  const auto nothing = [](codegen::Compilation&) {};
  codegen::addPass({.name = "ours", .after = "cse", .before = "dce", .run = nothing});
  codegen::addPass({.name = "theirs", .after = "cse", .run = nothing});
  const std::vector<std::string> names = passNames();
  const auto first = std::ranges::find(names, "cse");
  EXPECT_EQ(std::vector<std::string>(first, first + 4),
            (std::vector<std::string>{"cse", "ours", "theirs", "library"}));
  codegen::addedPasses().remove("theirs");
  codegen::addPass({.name = "theirs", .before = "canonicalize", .run = nothing});
  EXPECT_EQ(passNames().front(), "theirs");
  EXPECT_EQ(codegen::passes().front().stage, "graph");
  expectSame(0);
}

TEST_F(Extensions, PassesHaveAPlace) {
  const auto add = [](const std::string& name, const std::string& after,
                      const std::string& before) {
    return errorOf([&] {
      codegen::addPass({.name = name, .after = after, .before = before, .run = [](auto&) {}});
    });
  };
  EXPECT_THAT(add("ours", "nowhere", ""), HasSubstr("addPass: ours: there is no pass \"nowhere\""));
  EXPECT_THAT(add("ours", "cse", "nowhere"),
              HasSubstr("addPass: ours: there is no pass \"nowhere\""));
  EXPECT_THAT(add("ours", "", ""), HasSubstr("addPass: ours: there is no pass \"\""));
  EXPECT_THAT(add("ours", "dce", "cse"),
              HasSubstr("addPass: each of these has to stand behind the next one: cse, ours, cse"));
  EXPECT_THAT(add("fuse", "dce", ""), HasSubstr("addPass: there is a pass \"fuse\" already"));
  EXPECT_TRUE(codegen::addedPasses().all()->empty());
  EXPECT_THAT(errorOf([] { planner::packers().add({}); }),
              HasSubstr("an extension of the compiler needs a name"));
  planner::orders().add({.name = "ours", .order = [](const ir::Schedule& schedule) {
                           std::vector<int> order(schedule.steps.size());
                           std::iota(order.begin(), order.end(), 0);
                           return order;
                         }});
  EXPECT_THAT(errorOf([] { planner::orders().add({.name = "ours"}); }),
              HasSubstr("an extension named \"ours\" is there already"));
}

// Whatever the order of adding, in which they are else.
TEST_F(Extensions, PassesStandAheadOfEachOther) {
  const auto add = [](const std::string& name, const std::string& after,
                      const std::string& before) {
    codegen::addPass({.name = name, .after = after, .before = before, .run = [](auto&) {}});
  };
  add("a", "cse", "");
  add("b", "cse", "a");
  add("c", "", "a");
  add("d", "a", "");
  add("e", "cse", "");
  add("f", "cse", "a");
  add("g", "", "library");
  add("h", "", "g");
  const auto behindCse = [] {
    const std::vector<std::string> names = passNames();
    const auto first = std::ranges::find(names, "cse") + 1;
    return std::vector<std::string>(first, std::find(first, names.end(), "library"));
  };
  EXPECT_THAT(behindCse(), ElementsAre("b", "c", "f", "a", "d", "e", "h", "g"));
  EXPECT_THAT(errorOf([&] { add("ours", "d", "b"); }),
              HasSubstr("addPass: each of these has to stand behind the next one: a, b, ours, d, "
                        "a"));
  EXPECT_THAT(errorOf([&] { add("ours", "theirs", ""); }), HasSubstr("no pass \"theirs\""));
  EXPECT_THAT(errorOf([&] { add("ours", "", "ours"); }), HasSubstr("no pass \"ours\""));
  EXPECT_EQ(behindCse().size(), 8u);
  expectSame(0);
  for (const char* name : {"h", "g", "f", "e", "d", "c", "b", "a"})
    codegen::addedPasses().remove(name);
  EXPECT_TRUE(behindCse().empty());
}

// Or no plan could be made any more.
TEST_F(Extensions, PassesKeepTheirPlace) {
  const auto nothing = [](codegen::Compilation&) {};
  EXPECT_THAT(errorOf([&] {
                codegen::addedPasses().add({.name = "ours", .after = "nowhere", .run = nothing});
              }),
              HasSubstr("addPass: ours: there is no pass \"nowhere\""));
  EXPECT_TRUE(codegen::addedPasses().all()->empty());
  codegen::addPass({.name = "ours", .after = "cse", .run = nothing});
  for (const bool isBehind : {true, false}) {
    codegen::addPass({.name = "theirs",
                      .after = isBehind ? "ours" : "",
                      .before = isBehind ? "" : "ours",
                      .run = nothing});
    EXPECT_THAT(errorOf([] { codegen::addedPasses().remove("ours"); }),
                HasSubstr("the pass ours stays: theirs stands beside it"));
    expectSame(0);
    codegen::addedPasses().remove("theirs");
  }
  codegen::addPass({.name = "theirs", .after = "cse", .run = nothing});
  codegen::addedPasses().remove("cse");  // is none of the added
  codegen::addedPasses().remove("ours");
  EXPECT_EQ(std::ranges::count(passNames(), "theirs"), 1);
}

TEST_F(Extensions, PassesAreVerified) {
  codegen::addPass({.name = "ours", .after = "build", .run = [](codegen::Compilation& compilation) {
                      compilation.schedule.steps.clear();
                    }});
  expectSame(1);
}

TEST_F(Extensions, PassesMayThrowAnything) {
  codegen::addPass({.name = "ours", .after = "cse", .run = [](codegen::Compilation&) { throw 3; }});
  expectSame(1);
}

TEST_F(Extensions, PassesMayThrowAnythingInEagerMode) {
  const BackendScope scope("eager", "cpu");
  const Tensor x = arange(0, 64, 1, dtype::f32);
  const std::vector<float> want = sigmoid(x).toHostVector<float>();
  const std::function<void(codegen::Compilation&)> throwing[] = {
      [](codegen::Compilation&) { throw std::runtime_error("their own words"); },
      [](codegen::Compilation&) { throw 3; }};
  std::string words;
  const Counts counts;
  for (const auto& run : throwing) {
    codegen::addPass({.name = "ours", .after = "cse", .run = run});
    ::testing::internal::CaptureStderr();
    EXPECT_EQ(sigmoid(x).toHostVector<float>(), want);
    words += ::testing::internal::GetCapturedStderr();
    codegen::addedPasses().remove("ours");
  }
  EXPECT_EQ(counts.fallbacks(), 2u);
  EXPECT_THAT(words, HasSubstr("fl: sigmoid runs operator by operator, at tests/lazy/Ext"));
  EXPECT_THAT(words,
              HasSubstr(": pass ours: their own words; what was compiled, with extensions of the "
                        "compiler: "));
  EXPECT_EQ(std::ranges::count(words, '\n'), 1) << "once a line";
}

// Named "ours": every operator is a kernel of its own.
void addRuleOfOwnKernels() {
  codegen::fusionRules().add({.name = "ours", .allows = [](const ir::Graph&, const auto& nodes) {
                                return nodes.size() < 2;
                              }});
}

// Of composites that were planned before, too.
TEST_F(Extensions, TakePartInEagerMode) {
  const BackendScope scope("eager", "cpu");
  const Tensor x = arange(0, 64, 1, dtype::f32);
  const auto launches = [&] {
    const Counts counts;
    fl::std(x, {0});
    return counts.launches();
  };
  EXPECT_EQ(launches(), 1u);
  addRuleOfOwnKernels();
  EXPECT_GT(launches(), 1u);
  codegen::fusionRules().remove("ours");
  EXPECT_EQ(launches(), 1u);
}

TEST_F(Extensions, EmittersMayThrowAnything) {
  codegen::cpu::emitters().add(
      {.name = "ours", .emit = [](const auto&...) -> std::optional<ir::Artifact> { throw "no"; }});
  const FreshEngine engine;
  const Counts counts;
  EXPECT_EQ(compute(), want_);
  EXPECT_GT(counts.fallbacks(), 0u);
}

TEST_F(Extensions, PassesKeepWhatGraphsGive) {
  codegen::addPass({.name = "ours", .after = "cse", .run = [](codegen::Compilation& compilation) {
                      const auto results = compilation.graph.results();
                      compilation.graph.setResults({results.begin(), results.end() - 1});
                    }});
  expectSame(1);
}

// Values of one type that change places: seen by the operators that they were recorded as, and by
// the types of outputs.
TEST_F(Extensions, PassesKeepWhichResultIsWhich) {
  const auto messageOf = [](const std::string& after,
                            std::function<void(codegen::Compilation&)> run) {
    codegen::addPass({.name = "ours", .after = after, .run = std::move(run)});
    ir::Graph graph = ir::parseGraph(R"(graph @f(%x: f32[4]) {
      %0 = exp %x : f32[4]
      %1 = sin %x : f32[4]
      %2 = sum %1 {axes=[]} : f32[]
      return %0, %1, %2
    })");
    int origin = 0;
    ir::rewriteGraph(&graph, [&](ir::Graph& made, ir::Node node) {
      node.origin = origin++;
      return made.addNode(std::move(node));
    });
    const std::string error =
        errorOf<InternalError>([&] { codegen::compile(std::move(graph), {}); });
    codegen::addedPasses().remove("ours");
    return error;
  };
  EXPECT_THAT(messageOf("cse",
                        [](codegen::Compilation& of) {
                          const auto& r = of.graph.results();
                          of.graph.setResults({r[1], r[0], r[2]});
                        }),
              AllOf(StartsWith("pass ours: fl/codegen/Pipeline.cpp:"),
                    EndsWith("it gives the results in another order")));
  EXPECT_THAT(
      messageOf("order",
                [](codegen::Compilation& of) { of.schedule.outputs[0].type.shape = {2, 2}; }),
      AllOf(StartsWith("pass ours: "), EndsWith("it changes what the graph takes or gives")));
  // One value for two results may be right.
  EXPECT_EQ(messageOf("cse",
                      [](codegen::Compilation& of) {
                        const auto& r = of.graph.results();
                        of.graph.setResults({r[0], r[0], r[2]});
                      }),
            "");
}

TEST_F(Extensions, SchedulesAreVerifiedAfterAll) {
  codegen::addPass({.name = "ours", .after = "pack", .run = [](codegen::Compilation& compilation) {
                      compilation.schedule.arenaBytes = 0;
                    }});
  expectSame(1);
}

TEST_F(Extensions, PassesMayStandAheadOfFusion) {
  codegen::addPass({.name = "ours", .before = "fuse", .run = [](codegen::Compilation&) {}});
  expectSame(0);
}

TEST_F(Extensions, PackersStayInMemory) {
  planner::packers().add({.name = "ours", .pack = [](const std::vector<planner::Interval>& all) {
                            return std::vector<size_t>(all.size(), ~size_t{63});
                          }});
  expectSame(1);
}

TEST_F(Extensions, FusionPlansAreVerified) {
  std::vector<std::string> errors;
  codegen::addPass(
      {.name = "ours", .after = "fuse", .run = [&](codegen::Compilation& compilation) {
         const auto breakPlan = [&](auto change) {
           codegen::FusionPlan plan = compilation.fusion;
           change(plan, plan.groups[0]);
           errors.push_back(errorOf<InternalError>([&] { verify(compilation.graph, plan); }));
         };
         breakPlan([](auto& plan, auto&) { plan.groupOf.pop_back(); });
         breakPlan([](auto&, auto& group) { group.levels.pop_back(); });
         breakPlan([](auto&, auto& group) { group.reduced.push_back(false); });
         breakPlan([](auto&, auto& group) { std::swap(group.nodes[0], group.nodes[1]); });
         breakPlan([](auto& plan, auto& group) { plan.groupOf[group.nodes[0]] = 7; });
         breakPlan([](auto&, auto& group) { group.space = {3}; });
         breakPlan([](auto&, auto& group) {
           group.nodes.pop_back();
           group.levels.pop_back();
           group.sweeps.pop_back();
         });
         compilation.fusion.groupOf.pop_back();
       }});
  const Counts counts;
  EXPECT_EQ(sum(full({5}, 1, dtype::s32) * arange({5}, 0, dtype::s32)).scalar<int>(), 10);
  EXPECT_EQ(counts.fallbacks(), 1u);
  EXPECT_THAT(errors, ElementsAre(HasSubstr("the fusion plan is of another graph"),
                                  HasSubstr("group 0 needs a level and sweeps for each node"),
                                  HasSubstr("group 0 needs to say of each axis"),
                                  HasSubstr("stands ahead of what it reads in group 0"),
                                  HasSubstr("is in group 0 and in group 7"),
                                  HasSubstr("has no element for each point of group 0"),
                                  HasSubstr("a value's group does not have it")));
}

TEST_F(Extensions, PassesMayBeSkipped) {
  int runs = 0;
  codegen::addPass({.name = "ours", .after = "order", .run = [&](auto&) { ++runs; }});
  expectSame(0);
  EXPECT_GT(runs, 0);
  flags().skip = "ours";
  runs = 0;
  expectSame(0);
  flags().skip = "";
  EXPECT_EQ(runs, 0);
}

TEST_F(Extensions, SkippedPassesExist) {
  flags().skip = "nopass";
  EXPECT_THAT(errorOf([] { const FreshEngine engine; }),
              HasSubstr("FL_SKIP: \"nopass\" is no pass"));
  flags().skip = "";
}

TEST_F(Extensions, RulesAndModelsDecideAboutFusion) {
  const Tensor x = arange(0, 4096, 1, dtype::f32);
  const auto launches = [&] {
    const Counts counts;
    EXPECT_GT(sum(exp(x * -1) + 2).scalar<float>(), 0);
    return counts.launches();
  };
  EXPECT_EQ(launches(), 1u);
  // A plan that was made before is made anew.
  addRuleOfOwnKernels();
  EXPECT_EQ(launches(), 4u);
  codegen::fusionRules().remove("ours");
  EXPECT_EQ(launches(), 1u);
  codegen::costModels().add(
      {.name = "ours", .milliseconds = [](const ir::Graph&, const auto& nodes, size_t) {
         return nodes.size() > 2 ? 1000.0 : 0.0;
       }});
  EXPECT_EQ(launches(), 2u);
}

TEST_F(Extensions, PackersAndOrdersAreVerified) {
  size_t most = 0;
  planner::packers().add({.name = "ours", .pack = [&](const std::vector<planner::Interval>& all) {
                            most = std::max(most, all.size());
                            return planner::packByLevel(all);
                          }});
  expectSame(0);
  EXPECT_GT(most, 1u);
  planner::packers().remove("ours");
  planner::packers().add({.name = "ours", .pack = [](const std::vector<planner::Interval>& all) {
                            return std::vector<size_t>(all.size(), 0);
                          }});
  expectSame(1);
  planner::packers().remove("ours");
  planner::orders().add({.name = "ours", .order = [](const ir::Schedule& schedule) {
                           std::vector<int> order(schedule.steps.size());
                           std::iota(order.rbegin(), order.rend(), 0);
                           return order;
                         }});
  expectSame(1);
}

TEST_F(Extensions, EmittersAreAskedFirst) {
  std::atomic<int> asked = 0;
  codegen::cpu::emitters().add({.name = "ours", .emit = [&](const auto&...) {
                                  ++asked;
                                  return std::optional<ir::Artifact>();
                                }});
  expectSame(0);
  EXPECT_GT(asked, 0);
  codegen::cpu::emitters().remove("ours");
  codegen::cpu::emitters().add({.name = "ours", .emit = [](const auto&...) {
                                  return std::optional(ir::Artifact{"kernel", "no object"});
                                }});
  const FreshEngine engine;
  const Counts counts;
  EXPECT_EQ(compute(), want_);
  EXPECT_GT(counts.fallbacks(), 0u);
  EXPECT_EQ(counts.kernelsCompiled(), 0u);
}

// What a program is told that is planned anew: of a line of its own for every case.
template <int kCase>
std::string warningOf() {
  const FreshEngine engine;
  ::testing::internal::CaptureStderr();
  const Tensor x = full({64, 64}, 0.5f);
  const Tensor y = matmul(tanh(x), x + kCase), z = matmul(exp(y), x) + sum(matmul(x, y), {0}, true);
  EXPECT_GT((sum(exp(z * 1e-9) * 2)).scalar<float>(), 0);
  return ::testing::internal::GetCapturedStderr();
}

// It names the slot and the extension, and asks nobody for a report of what is not ours.
void expectBlame(const std::string& words, const std::string& whom, const std::string& what) {
  EXPECT_THAT(words, HasSubstr(", at tests/lazy/ExtensionsTest.cpp:"));
  EXPECT_THAT(words, HasSubstr(": " + whom + ": "));
  EXPECT_THAT(words, HasSubstr(what));
  EXPECT_THAT(words, HasSubstr("; what was compiled, with extensions of the compiler: "));
  for (const char* ours : {"Please report", "internal error", "to repeat it"})
    EXPECT_THAT(words, Not(HasSubstr(ours)));
}

TEST_F(Extensions, WarningsNameThePass) {
  const auto warning = [](const char* after, auto run, auto warn) {
    codegen::addPass({.name = "ours", .after = after, .run = run});
    const std::string words = warn();
    codegen::addedPasses().remove("ours");
    return words;
  };
  using codegen::Compilation;
  const auto throwBoom = [](Compilation&) { throw std::runtime_error("boom"); };
  const std::string boom = warning("cse", throwBoom, warningOf<0>);
  expectBlame(boom, "pass ours", "operators runs unfused, at");
  EXPECT_THAT(boom, HasSubstr(": pass ours: boom; what was"));
  expectBlame(warning(
                  "build", [](Compilation& c) { c.schedule.steps.clear(); }, warningOf<1>),
              "pass ours", " does not hold");
  expectBlame(warning(
                  "fuse", [](Compilation& c) { c.fusion.groups.clear(); }, warningOf<2>),
              "pass ours", " does not hold");
  codegen::addPass({.name = "theirs", .after = "cse", .run = [](Compilation&) {}});
  expectBlame(warning(
                  "pack", [](Compilation& c) { c.schedule.arenaBytes = 0; }, warningOf<3>),
              "pass theirs or ours", " does not hold");
}

TEST_F(Extensions, WarningsNameWhateverIsAdded) {
  planner::packers().add({.name = "ours", .pack = [](const std::vector<planner::Interval>& all) {
                            return std::vector<size_t>(all.size(), 0);
                          }});
  expectBlame(warningOf<4>(), "packer ours", " overlap; ");
  planner::packers().remove("ours");
  planner::orders().add(
      {.name = "ours", .order = [](const ir::Schedule&) { return std::vector<int>(); }});
  expectBlame(warningOf<5>(), "order ours", ": 0 steps of ");
  planner::orders().remove("ours");
  codegen::fusionRules().add({.name = "ours", .allows = [](const auto&...) -> bool { throw 3; }});
  expectBlame(warningOf<6>(), "fusion rule ours", "what was thrown is no std::exception");
  codegen::fusionRules().remove("ours");
  codegen::costModels().add({.name = "ours", .milliseconds = [](const auto&...) -> double {
                               throw std::runtime_error("boom");
                             }});
  expectBlame(warningOf<7>(), "cost model ours", ": boom; ");
  codegen::costModels().remove("ours");
  const auto addEmitter = [](auto emit) {
    codegen::cpu::emitters().add({.name = "ours", .emit = emit});
  };
  addEmitter([](const auto&...) { return std::optional(ir::Artifact{"kernel", "no object"}); });
  expectBlame(warningOf<8>(), "emitter ours", "fl: a kernel stays interpreted, at");
  codegen::cpu::emitters().remove("ours");
  addEmitter([](const auto&...) -> std::optional<ir::Artifact> { throw std::range_error("boom"); });
  expectBlame(warningOf<9>(), "emitter ours", ": boom; ");
}

TEST_F(Extensions, AreCheckedWhenTheyAreAdded) {
  const std::pair<std::string, std::function<void()>> adding[] = {
      {"pass", [] { codegen::addPass({.name = "ours", .after = "cse"}); }},
      {"fusion rule", [] { codegen::fusionRules().add({.name = "ours"}); }},
      {"cost model", [] { codegen::costModels().add({.name = "ours"}); }},
      {"packer", [] { planner::packers().add({.name = "ours"}); }},
      {"order", [] { planner::orders().add({.name = "ours"}); }},
      {"emitter", [] { codegen::cpu::emitters().add({.name = "ours"}); }}};
  for (const auto& [slot, add] : adding)
    EXPECT_EQ(errorOf(add), "the " + slot + " ours has no function");
  const auto addPacker = [](const std::string& name) {
    planner::packers().add({.name = name, .pack = planner::packByLevel});
  };
  for (const std::string name : {"mine/v2", "x 1\ny", "a,b", "a b", "\xc3\xa4"})
    EXPECT_THAT(errorOf([&] { addPacker(name); }),
                HasSubstr("needs a name of letters, digits, _, - and .; \"" + name + "\" is none"));
  EXPECT_TRUE(planner::packers().all()->empty());
  addPacker("Our-v2.1_b");
  EXPECT_EQ(planner::packers().all()->size(), 1u);
  planner::packers().remove("Our-v2.1_b");
}

// Something of one slot that changes nothing, in a version.
using Adding = void (*)(int version);
const Adding kVersions[] = {
    [](int version) {
      codegen::addedPasses().remove("ours");
      codegen::addPass({.name = "ours", .version = version, .after = "cse", .run = [](auto&) {}});
    },
    [](int version) {
      codegen::fusionRules().remove("ours");
      codegen::fusionRules().add(
          {.name = "ours", .version = version, .allows = [](const auto&...) { return true; }});
    },
    [](int version) {
      codegen::costModels().remove("ours");
      codegen::costModels().add(
          {.name = "ours", .version = version, .milliseconds = [](const auto&...) { return 0.0; }});
    },
    [](int version) {
      planner::packers().remove("ours");
      planner::packers().add({.name = "ours", .version = version, .pack = planner::packByLevel});
    },
    [](int version) {
      planner::orders().remove("ours");
      planner::orders().add(
          {.name = "ours", .version = version, .order = [](const ir::Schedule& schedule) {
             std::vector<int> order(schedule.steps.size());
             std::iota(order.begin(), order.end(), 0);
             return order;
           }});
    }};
const Adding kEmitter = [](int version) {
  codegen::cpu::emitters().remove("ours");
  codegen::cpu::emitters().add({.name = "ours", .version = version, .emit = [](const auto&...) {
                                  return std::optional<ir::Artifact>();
                                }});
};

class Versions : public Extensions {
 protected:
  Versions() {
    const auto folder = std::filesystem::path(::testing::TempDir()) / "versions";
    std::filesystem::remove_all(folder);
    flags().cacheFolder = folder;
    flags().cache = "on";
  }
  ~Versions() override { flags().cacheFolder = ""; }

  // Plans and kernels that were found on disk, and kernels that were compiled.
  static std::array<uint64_t, 3> computeMore() {
    const FreshEngine engine;
    const Counts counts;
    Tensor x = arange(0, 100, 1, dtype::f32);
    // Plans of few operators are not kept.
    for (int i = 0; i < 30; ++i) x = cumsum(x * 0.5, 0);
    EXPECT_GT(sum(x).scalar<float>(), 0);
    return {counts.plansLoaded(), counts.kernelsLoaded(), counts.kernelsCompiled()};
  }
};

class PlanVersions : public Versions, public ::testing::WithParamInterface<Adding> {};

TEST_P(PlanVersions, ArePartOfKeys) {
  for (const auto& [version, loaded] : {std::pair{1, 0u}, {1, 1u}, {2, 0u}, {1, 1u}}) {
    GetParam()(version);
    EXPECT_EQ(computeMore()[0], loaded) << version;
  }
}

INSTANTIATE_TEST_SUITE_P(All, PlanVersions, ::testing::ValuesIn(kVersions));

TEST_F(Versions, OfEmittersArePartOfKeys) {
  for (const auto& [version, isKept] : {std::pair{1, false}, {1, true}, {2, false}, {1, true}}) {
    kEmitter(version);
    const auto [plans, loaded, compiled] = computeMore();
    EXPECT_EQ(loaded > 0, isKept) << version;
    EXPECT_EQ(compiled == 0, isKept) << version;
  }
}

}  // namespace
}  // namespace fl::testing
