// FL_LOG=1 writes a line a realize, FL_DUMP every stage of every plan.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>
#include <thread>

#include "fl/base/Flags.h"
#include "fl/base/Text.h"
#include "fl/codegen/Compilation.h"
#include "fl/codegen/Extensions.h"
#include "fl/ir/Text.h"
#include "fl/kernel/Schedule.h"
#include "fl/lazy/LazyBackend.h"
#include "fl/runtime/StepLabel.h"
#include "fl/tensor/tensor.h"
#include "tests/FullDisk.h"

namespace fl::testing {
namespace {

namespace fs = std::filesystem;

std::string logFile() { return ::testing::TempDir() + "/realize.log"; }

// The log opens its file at the first message, so this comes first.
const bool logs = [] {
  flags().log = "1," + logFile();
  flags().jit = "sync";
  return true;
}();

std::vector<std::string> linesOf(const std::string& path) {
  std::ifstream file(path);
  std::vector<std::string> lines;
  for (std::string line; std::getline(file, line);) {
    lines.push_back(line);
  }
  return lines;
}

TEST(Log, ALineARealize) {
  const size_t before = linesOf(logFile()).size();
  int line = 0;
  for (int i = 0; i < 2; ++i) {
    const Tensor x = rand({40, 8});
    const Tensor y = matmul(exp(x), full({8, 8}, 1.0)) + 1.0;
    y.toHostVector<float>(), line = __LINE__;
  }
  const auto lines = linesOf(logFile());
  ASSERT_EQ(lines.size(), before + 2);
  const std::string words =
      "realize: 5 ops -> 3 kernels \\+ 1 calls, compiled=@, arena [0-9]+ B \\(bound [0-9]+ B, "
      "ratio 1\\.[0-9]+, recorded [0-9]+ B, unplanned [0-9]+ B\\), "
      "plan #, at tests/lazy/LogTest.cpp:" +
      std::to_string(line);
  auto expected = [&](const char* compiled, const char* plan) {
    std::string text = words;
    text.replace(text.find('@'), 1, compiled);
    return text.replace(text.find('#'), 1, plan);
  };
  EXPECT_THAT(lines[before], ::testing::MatchesRegex(expected("3", "built")));
  EXPECT_THAT(lines[before + 1], ::testing::MatchesRegex(expected("0", "reused")));
}

// Other passes are told at a higher level.
TEST(Log, APassThatTakesOverASecond) {
  const auto sleep = [](codegen::Compilation&) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1001));
  };
  codegen::addPass({.name = "slow", .after = "cse", .run = sleep});
  const size_t before = linesOf(logFile()).size();
  EXPECT_EQ((full({5, 3}, 1.0) + 2.0).toHostVector<float>(), std::vector<float>(15, 3));
  codegen::addedPasses().remove("slow");
  const auto lines = linesOf(logFile());
  ASSERT_GT(lines.size(), before);
  EXPECT_THAT(lines[before], ::testing::MatchesRegex("pass slow [0-9.]+ ms"));
}

// ---- FL_DUMP ----

using Tree = std::map<std::string, std::string>;

Tree readTree(const std::string& folder) {
  Tree tree;
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    if (entry.is_regular_file()) {
      std::ostringstream text;
      text << std::ifstream(entry.path()).rdbuf();
      tree[fs::relative(entry.path(), folder).string()] = text.str();
    }
  }
  return tree;
}

// Runs a program of several plans on a backend of its own.
Tree dumpProgram(const std::string& name) {
  const std::string folder = ::testing::TempDir() + "/" + name;
  fs::remove_all(folder);
  flags().dump = folder;
  {
    const BackendScope scope(name, "cpu");
    setSeed(1);
    Tensor w = rand({10, 8}) - 0.5;
    for (int step = 0; step < 2; ++step) {
      const Tensor x = rand({8, 6});
      const Tensor y = matmul(w, x);
      const Tensor e = exp(y - amax(y, {0}, true));
      const Tensor p = e / sum(e, {0}, true);
      const Tensor g = matmul(p - 0.1, transpose(x)) * full({}, 0.5);
      w(range(step, 9)) -= g(range(step, 9)).copy();
      const Tensor joined = concatenate({pad(w, {{1, 1}}), w(range(0, 3)).copy()}, 0);
      joined.toHostVector<float>();
    }
  }
  flags().dump.clear();
  return readTree(folder);
}

// A plan is dumped when it is built, so each dump needs a backend that has built none.
const BackendRegistration first("first", makeLazyBackend);
const BackendRegistration second("second", makeLazyBackend);
const BackendRegistration third("third", makeLazyBackend);
const BackendRegistration fourth("fourth", makeLazyBackend);
const BackendRegistration fifth("fifth", makeLazyBackend);

const Tree& firstDump() {
  static const Tree& tree = *new Tree(dumpProgram("first"));
  return tree;
}

std::string withoutComments(const std::string& text) {
  std::string result;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    const std::string code = line.substr(0, line.find("//"));
    const size_t end = code.find_last_not_of(' ');
    result += end == std::string::npos ? "" : code.substr(0, end + 1) + "\n";
  }
  return result;
}

// The file of the last stage of a plan.
std::string packedOf(const std::string& plan) {
  const auto passes = codegen::passes();
  return plan + "/" + std::to_string(passes.size()) + "_" + passes.back().name + ".flir";
}

TEST(Dump, EveryStageParsesBack) {
  const Tree& tree = firstDump();
  size_t graphs = 0, schedules = 0;
  for (const auto& [path, text] : tree) {
    SCOPED_TRACE(path);
    if (!path.ends_with(".flir")) continue;
    if (Lexer(text).peek() == "graph") {
      EXPECT_EQ(printGraph(ir::parseGraph(text), "g"), withoutComments(text));
      ++graphs;
    } else {
      EXPECT_EQ(printSchedule(ir::parseSchedule(text), "s"), withoutComments(text));
      ++schedules;
    }
  }
  const size_t plans = 2;  // the second step reads other memory and writes at another place
  EXPECT_EQ(graphs + schedules, plans * (codegen::passes().size() + 1));
  EXPECT_EQ(schedules,
            plans * std::ranges::count(codegen::passes(), "schedule", &codegen::PassInfo::stage));
  ASSERT_TRUE(tree.count("plan0000/00_recorded.flir"));
  const std::string& recorded = tree.at("plan0000/00_recorded.flir");
  EXPECT_THAT(recorded, ::testing::HasSubstr("matmul"));
  EXPECT_THAT(recorded, ::testing::HasSubstr("// tests/lazy/LogTest.cpp:"));
  ASSERT_TRUE(tree.count(packedOf("plan0000")));
  EXPECT_THAT(tree.at(packedOf("plan0000")),
              ::testing::HasSubstr("numbers=[]  // tests/lazy/LogTest.cpp:"));
}

TEST(Dump, KernelsHaveTheirCode) {
  const Tree& tree = firstDump();
  const std::string schedule = tree.at(packedOf("plan0000"));
  for (int i = 0; i < 3; ++i) {
    const std::string name = "k" + std::to_string(i);
    ASSERT_NE(schedule.find("kernel @" + name), std::string::npos);
    const std::string& code = tree.at("plan0000/" + name + ".ll");
    std::string entry = runtime::kernelLabel(ir::parseSchedule(schedule).kernels[i]);
    std::ranges::replace_if(entry, [](char c) { return c == ' ' || c == '+'; }, '_');
    EXPECT_THAT(code, ::testing::HasSubstr("define i64 @" + entry + "("));
    EXPECT_THAT(tree.at("plan0000/" + name + ".s"), ::testing::HasSubstr("\n" + entry + ":"));
  }
}

// Of the variant that runs: maps of more than caches hold write around them.
TEST(Dump, CodeIsThatOfTheVariantThatRuns) {
  const std::string folder = ::testing::TempDir() + "/variants";
  fs::remove_all(folder);
  flags().dump = folder;
  const BackendScope scope("fifth", "cpu");
  for (const Dim count : {Dim{1} << 8, Dim{1} << 24}) {
    Tensor x = full({count}, 0.5f) * 0.25f + 3.0f;
    eval(x);
    sync();
  }
  flags().dump.clear();
  const Tree tree = readTree(folder);
  EXPECT_THAT(tree.at("plan0000/k0.ll"), ::testing::Not(::testing::HasSubstr("nontemporal")));
  EXPECT_THAT(tree.at("plan0001/k0.ll"), ::testing::HasSubstr("nontemporal"));
  EXPECT_THAT(tree.at("plan0001/k0.s"), ::testing::HasSubstr("vmovnt"));
}

// What a dump holds can be run through the compiler again, with the same outcome.
TEST(Dump, TheRecordedGraphMakesTheSameSchedule) {
  const Tree& tree = firstDump();
  for (const auto& [path, text] : tree) {
    if (path.find("00_recorded") != std::string::npos) {
      const auto schedule = codegen::compile(ir::parseGraph(text), {.verify = true}).schedule;
      EXPECT_EQ(printSchedule(schedule, "s"),
                withoutComments(tree.at(packedOf(path.substr(0, 8)))));
    }
  }
}

TEST(Dump, TwoRunsAreIdentical) {
  EXPECT_FALSE(firstDump().empty());
  EXPECT_EQ(firstDump(), dumpProgram("second"));
}

// Realizes a chain of `length` operators that no other test has built a plan for.
void buildPlan(int length) {
  Tensor x = rand({3, 7, 5}) + 0.25;
  for (int i = 1; i < length; ++i) {
    x = x + 0.25;
  }
  EXPECT_EQ(x.toHostVector<float>().size(), 105u);
}

// An engine has no plans at first; it and engines before it, of this process or another, share the
// folder.
TEST(Dump, PlansTakeTheNextFreeNumber) {
  const std::string folder = ::testing::TempDir() + "/shared";
  fs::remove_all(folder);
  fs::create_directories(folder + "/plan0001");
  std::ofstream(folder + "/plan0001/06_fuse.flir") << "of an earlier process";
  flags().dump = folder;
  for (const char* engine : {"third", "fourth"}) {
    const BackendScope scope(engine, "cpu");
    buildPlan(1);
  }
  flags().dump.clear();
  const Tree tree = readTree(folder);
  const auto isText = [](const auto& file) { return file.first.ends_with(".flir"); };
  EXPECT_EQ(std::ranges::count_if(tree, isText), 1 + 2 * (codegen::passes().size() + 1));
  EXPECT_EQ(tree.at("plan0001/06_fuse.flir"), "of an earlier process");
  // Of two places in the stream of random numbers.
  const std::string &early = tree.at(packedOf("plan0000")), &late = tree.at(packedOf("plan0002"));
  EXPECT_EQ(withoutComments(early), withoutComments(late));
  for (const std::string& text : {early, late}) {
    EXPECT_THAT(text,
                ::testing::ContainsRegex("^// numbers: p0=[0-9]+ p1=[0-9]+ p2=0.25\nschedule"));
  }
  EXPECT_NE(early, late);
}

// Builds two plans while FL_DUMP names `folder`; what standard error received meanwhile.
std::string warningsOf(const std::string& folder, int length) {
  flags().dump = folder;
  ::testing::internal::CaptureStderr();
  buildPlan(length);
  buildPlan(length + 1);
  flags().dump.clear();
  return ::testing::internal::GetCapturedStderr();
}

TEST(Dump, WarnsOnceOfAFolderThatItCannotMake) {
  const std::string file = ::testing::TempDir() + "/file";
  std::ofstream(file) << "no folder";
  const std::string words = warningsOf(file, 400);
  EXPECT_THAT(words, ::testing::StartsWith("fl: FL_DUMP: "));
  EXPECT_THAT(words, ::testing::HasSubstr(file));
  EXPECT_THAT(words, ::testing::EndsWith("; nothing more is dumped\n"));
  EXPECT_EQ(std::count(words.begin(), words.end(), '\n'), 1) << words;
}

TEST(Dump, WarnsOnceOfAFileThatItCannotWrite) {
  const std::string folder = ::testing::TempDir() + "/small";
  fs::remove_all(folder);
  const std::string words = [&] {
    const FullDisk disk(4096);  // a plan takes more
    return warningsOf(folder, 500);
  }();
  EXPECT_EQ(words, "fl: FL_DUMP: " + folder +
                       "/plan0000/00_recorded.flir: cannot be written: File too large; nothing "
                       "more is dumped\n");
  EXPECT_TRUE(readTree(folder).empty()) << "no part of a file is left";
}

}  // namespace
}  // namespace fl::testing
