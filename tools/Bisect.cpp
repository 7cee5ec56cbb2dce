#include "tools/Bisect.h"

#include <algorithm>
#include <iostream>
#include <optional>
#include <ranges>
#include <set>
#include <string>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "fl/base/Error.h"
#include "fl/base/Flags.h"
#include "fl/codegen/Compilation.h"
#include "fl/ir/Rewrite.h"
#include "tools/Arguments.h"
#include "tools/Files.h"
#include "tools/GraphEdit.h"
#include "tools/Program.h"
#include "tools/Run.h"
#include "tools/Values.h"

namespace fl::tools {
namespace {

// How far a graph is compiled; what results is run by the references, or as machine code.
struct Stage {
  std::string name;
  bool isGraph = false;
  bool isCode = false;
  codegen::CompileOptions options;
};

// In the order of suspicion: each differs from the one before by its pass alone. What passes before
// `build` decide about fusion is seen in a schedule only, of which there is one without them first.
std::vector<Stage> stages() {
  std::vector<Stage> graphs, decisions, schedules;
  for (const codegen::PassInfo& pass : codegen::passes()) {
    const std::string of = pass.stage;
    Stage stage{.name = pass.name, .isGraph = of == "graph"};
    stage.options.stopAfter = of == "fusion" ? "build" : pass.name;
    (of == "graph" ? graphs : of == "fusion" ? decisions : schedules).push_back(std::move(stage));
  }
  // Of the decisions, those behind each are skipped.
  std::vector<std::string> skipped;
  for (Stage& decision : std::views::reverse(decisions)) {
    decision.options.skip = absl::StrJoin(skipped, ",");
    skipped.push_back(decision.name);
  }
  schedules.front().options.skip = absl::StrJoin(skipped, ",");
  std::vector<Stage> all = std::move(graphs);
  all.push_back(schedules.front());
  all.insert(all.end(), decisions.begin(), decisions.end());
  all.insert(all.end(), schedules.begin() + 1, schedules.end());
  all.push_back({.name = "emit", .isCode = true, .options = {}});
  return all;
}

std::string textAfter(const Stage& stage, const ir::Graph& graph) {
  const codegen::Compilation compilation = codegen::compile(graph, stage.options);
  return stage.isGraph ? printGraph(compilation.graph, "g")
                       : printSchedule(compilation.schedule, "s");
}

std::vector<NpyArray> resultsOf(const std::string& text, const std::string& device,
                                const std::vector<NpyArray>& inputs) {
  const auto program = parseProgram("the stage", text, {});
  const auto loaded = program->load("eager", device, inputs);
  loaded->run();
  return loaded->results();
}

// A graph with inputs, and its results by the device ref.
struct Case {
  Case(ir::Graph recorded, std::vector<NpyArray> arrays)
      : graph(std::move(recorded)),
        inputs(std::move(arrays)),
        expected(resultsOf(printGraph(graph, "g"), "ref", inputs)) {}

  const ir::Graph graph;
  const std::vector<NpyArray> inputs, expected;
};

class Bisection {
 public:
  Bisection(ir::Graph graph, std::vector<NpyArray> inputs)
      : whole_(std::move(graph), std::move(inputs)) {}

  // The exit code.
  int run() const {
    for (const Stage& stage : stages()) {
      const std::optional<std::string> difference = findDifference(stage, whole_);
      std::cerr << "bisect: after " << stage.name << ": " << difference.value_or("as recorded")
                << std::endl;
      if (difference) {
        report(stage, *difference);
        return 2;
      }
    }
    std::cout << "// no pass changes a result\n";
    return 0;
  }

 private:
  // In words, if what is compiled so far gives other results than the graph on the device ref.
  static std::optional<std::string> findDifference(const Stage& stage, const Case& of) {
    try {
      const std::string text = textAfter(stage, of.graph);
      const auto actual = resultsOf(text, stage.isCode ? "cpu" : "ref", of.inputs);
      const auto expected = stage.isCode ? interpreted(text, of.inputs) : of.expected;
      const auto tolerance = stage.isCode ? std::make_optional(0.0) : runTolerance();
      for (size_t i = 0; i < actual.size(); ++i) {
        const Difference found = compare(actual[i], expected[i], dtypesOf(of.graph), tolerance);
        if (!found.accepted) {
          return detail::concat("result ", i, " differs by ", found.value);
        }
      }
      return std::nullopt;
    } catch (const InternalError& error) {
      return detail::concat("fails: ", reasonOf(error));
    }
  }

  // What machine code has to compute to the bit: the same kernels, interpreted in their types.
  static std::vector<NpyArray> interpreted(const std::string& text,
                                           const std::vector<NpyArray>& inputs) {
    flags().jit = "off";
    std::vector<NpyArray> results = resultsOf(text, "cpu", inputs);
    flags().jit = "sync";
    return results;
  }

  void report(const Stage& stage, const std::string& difference) const {
    std::cout << "// pass " << stage.name << ": " << difference << "\n";
    const ir::Graph& graph = whole_.graph;
    for (size_t i = 0; i < graph.nodes().size(); ++i) {
      const std::optional<Case> cut = cutAt(graph.idOfNode(i));
      if (cut && findDifference(stage, *cut)) {
        std::cout << "// first wrong value: %" << i << ", " << ir::opName(graph.nodes()[i].op)
                  << ", which this graph computes alone\n"
                  << regionOf(stage, static_cast<int>(i)) << printGraph(cut->graph, "g");
        return;
      }
    }
    std::cout << "// only all results together show it\n" << printGraph(graph, "g");
  }

  // Of that value alone, with the inputs that it needs.
  std::optional<Case> cutAt(ir::ValueId id) const {
    GraphEdit edit;
    edit.results = {id};
    std::optional<ir::Graph> graph = applyEdit(whole_.graph, edit);
    if (!graph) return std::nullopt;
    const std::vector<bool> needed = neededValues(whole_.graph, edit);
    std::vector<NpyArray> inputs;
    for (size_t i = 0; i < whole_.inputs.size(); ++i) {
      if (needed[i]) inputs.push_back(whole_.inputs[i]);
    }
    return std::make_optional<Case>(std::move(*graph), std::move(inputs));
  }

  // As comments, what of the plan that fails computes the value of a node: the operators that share
  // its kernel, as they were recorded, and the kernel; empty where there is none.
  std::string regionOf(const Stage& stage, int wrong) const {
    if (stage.isGraph) return "";
    try {
      const codegen::Compilation plan = codegen::compile(whole_.graph, stage.options);
      const auto originOf = [&](ir::ValueId id) {
        return id < 0 ? -1 : plan.graph.node(id).origin;
      };
      for (const ir::Step& step : plan.schedule.steps) {
        const auto* launch = std::get_if<ir::LaunchStep>(&step);
        std::set<int> origins;
        for (ir::ValueId id : launch ? launch->nodes : std::vector<ir::ValueId>()) {
          origins.insert(originOf(id));
        }
        if (origins.contains(wrong)) {
          return regionText(origins, plan.schedule.kernels[launch->kernel]);
        }
      }
      return "";
    } catch (const InternalError&) {
      return "";  // the pass fails, as was said
    }
  }

  std::string regionText(const std::set<int>& origins, const ir::Kernel& kernel) const {
    std::string text = "// in the plan, one kernel computes together:\n";
    const std::vector<std::string> lines =
        absl::StrSplit(printGraph(whole_.graph, "g", {.callSites = true}), '\n');
    for (const std::string& line : lines) {
      for (int origin : origins) {
        if (line.starts_with(detail::concat("  %", origin, " = "))) text += "// " + line + "\n";
      }
    }
    std::string body = printKernel(kernel, "k");
    body.pop_back();  // the newline
    return text + "// " + absl::StrReplaceAll(body, {{"\n", "\n// "}}) + "\n";
  }

  const Case whole_;
};

}  // namespace

int runBisect(int argc, char** argv) {
  const std::vector<char*> arguments = parseArguments(
      "fl bisect [flags] GRAPH.flir\n\nFinds the first pass after which the graph's results are "
      "not those of the device ref, or emit,\nthe making of machine code, and the first value "
      "that is wrong then.",
      __FILE__, {"inputs", "seed", "tolerance"}, argc, argv);
  FL_USER_CHECK(arguments.size() == 2, "bisect: expected one file");
  const std::string path = arguments[1], text = readInput(path);
  const std::string form = parseInput(path, text, formOf);
  FL_USER_CHECK(form == "graph", path, ": is a ", form, "; passes start from a graph");
  flags().jit = "sync";
  std::vector<NpyArray> inputs = makeInputs(*parseProgram(path, text, {}), std::cerr).arrays;
  ir::Graph graph = parseInput(path, text, ir::parseGraph);
  int origin = 0;
  rewriteGraph(&graph, [&](ir::Graph& made, ir::Node node) {
    node.origin = origin++;
    return made.addNode(std::move(node));
  });
  return Bisection(std::move(graph), std::move(inputs)).run();
}

}  // namespace fl::tools
