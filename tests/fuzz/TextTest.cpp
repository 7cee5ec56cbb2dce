// Whatever random programs make of graphs, schedules and kernels: the text of each reads back as
// the same, prints as it was, and passes the verifier.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <regex>
#include <sstream>

#include "fl/base/Text.h"
#include "fl/codegen/Compilation.h"
#include "fl/ir/Text.h"
#include "tests/fuzz/Differential.h"

namespace fl::testing {
namespace {

// Without the lines of a fusion plan and the places of calls.
std::string withoutComments(const std::string& text) {
  const std::string whole = std::regex_replace(text, std::regex("(^|\n)//[^\n]*(?=\n)"), "");
  const std::string code = whole.substr(whole.find_first_not_of('\n'));
  return std::regex_replace(code, std::regex(" *//[^\n]*"), "");
}

void expectKernelReadsBack(const ir::Kernel& kernel) {
  const std::string text = printKernel(kernel, "k");
  const ir::Kernel read = ir::parseKernel(text);
  EXPECT_EQ(read, kernel) << text;
  EXPECT_EQ(printKernel(read, "k"), text);
}

void expectScheduleReadsBack(const std::string& text) {
  const ir::Schedule schedule = ir::parseSchedule(text);
  EXPECT_EQ(printSchedule(schedule, "s"), withoutComments(text));
  for (const ir::Kernel& kernel : schedule.kernels) {
    expectKernelReadsBack(kernel);
  }
}

ir::Graph expectGraphReadsBack(const std::string& text) {
  const ir::Graph graph = ir::parseGraph(text);
  const std::string printed = printGraph(graph, "g");
  EXPECT_EQ(printed, withoutComments(text));
  EXPECT_TRUE(ir::parseGraph(printed).sameStructure(graph)) << printed;
  return graph;
}

// The schedules of devices that interpret, and of nodes alone.
void expectOtherSchedulesReadBack(const ir::Graph& graph) {
  for (const ir::Lowering lowering : {ir::Lowering::Calls, ir::Lowering::Kernels}) {
    codegen::CompileOptions options;
    options.lowering = lowering;
    options.skip = "fuse";
    options.verify = true;
    expectScheduleReadsBack(printSchedule(codegen::compile(graph, options).schedule, "s"));
  }
}

struct Counts {
  int graphs = 0;
  int schedules = 0;
};

void expectFileReadsBack(const std::filesystem::path& path, Counts* counts) {
  std::ostringstream content;
  content << std::ifstream(path).rdbuf();
  const std::string text = content.str();
  if (Lexer(text).peek() == "schedule") {
    expectScheduleReadsBack(text);
    ++counts->schedules;
    return;
  }
  const ir::Graph graph = expectGraphReadsBack(text);
  if (path.filename() == "00_recorded.flir") {
    expectOtherSchedulesReadBack(graph);
  }
  ++counts->graphs;
}

TEST(Fuzz, TextReadsBackAsItWas) {
  Counts counts;
  for (uint64_t seed = 1; seed <= 60 && !HasFailure(); ++seed) {
    SCOPED_TRACE("replay with --dump and seed " + std::to_string(seed));
    const std::string folder = ::testing::TempDir() + "/texts" + std::to_string(seed);
    std::filesystem::create_directories(folder);  // a program that computes nothing has no plan
    dumpProgram(seed, {}, folder);
    for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
      if (entry.path().extension() == ".flir") {
        SCOPED_TRACE(entry.path());
        expectFileReadsBack(entry.path(), &counts);
      }
    }
    std::filesystem::remove_all(folder);
  }
  EXPECT_GT(counts.graphs, 60 * 6);
  EXPECT_GT(counts.schedules, 60 * 3);
}

}  // namespace
}  // namespace fl::testing
