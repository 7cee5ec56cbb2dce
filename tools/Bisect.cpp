#include "tools/Bisect.h"

#include <algorithm>
#include <iostream>
#include <numeric>
#include <optional>
#include <ranges>
#include <set>
#include <string>
#include <vector>

#include "absl/flags/declare.h"
#include "absl/flags/flag.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "fl/base/Error.h"
#include "fl/base/Flags.h"
#include "fl/codegen/Compilation.h"
#include "fl/ir/Rewrite.h"
#include "fl/ir/Rounding.h"
#include "tools/Arguments.h"
#include "tools/Files.h"
#include "tools/GraphEdit.h"
#include "tools/Program.h"
#include "tools/Run.h"
#include "tools/Values.h"

ABSL_DECLARE_FLAG(uint64_t, budget);

namespace fl::tools {
namespace {

// How far a graph is compiled; what results is run by the references, by the device cpu with its
// libraries and its interpreter of kernels, or as machine code.
struct Stage {
  std::string name;
  bool isGraph = false;
  bool isRun = false;  // of the whole plan, by the device cpu without machine code
  bool isCode = false;
  bool keepsKernels = false;  // of the stage before it
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
  for (Stage& stage : schedules | std::views::drop(1)) stage.keepsKernels = true;
  all.insert(all.end(), schedules.begin() + 1, schedules.end());
  all.push_back({.name = "run", .isRun = true, .options = {}});
  all.push_back({.name = "emit", .isCode = true, .options = {}});
  return all;
}

std::string textAfter(const Stage& stage, const codegen::Compilation& compilation) {
  return stage.isGraph ? printGraph(compilation.graph, "g")
                       : printSchedule(compilation.schedule, "s");
}

// In words that are the same where the order is.
std::set<std::string> sumsOf(const ir::Graph& graph) {
  std::set<std::string> sums;
  for (const ir::Node& node : graph.nodes()) {
    if (!ir::addsUp(node)) continue;
    std::string sum = ir::opName(node.op) + (" " + absl::StrJoin(node.attrs.values(), ","));
    for (ir::ValueId id : node.operands) sum += " " + graph.type(id).toString();
    sums.insert(std::move(sum));
  }
  return sums;
}

// By result, whether schedules may give other bits: where anything is added up on the way, and of
// f64, in which kernels have mathematical functions of their own.
std::vector<bool> mayRound(const ir::Graph& graph) {
  std::vector<bool> rounded(graph.valueCount(), false), results;
  const auto isRounded = [&](ir::ValueId id) -> bool { return rounded[id]; };
  for (size_t i = 0; i < graph.nodes().size(); ++i) {
    const ir::Node& node = graph.nodes()[i];
    rounded[graph.idOfNode(i)] = ir::addsUp(node) || node.type.type == dtype::f64 ||
                                 std::ranges::any_of(node.operands, isRounded);
  }
  for (ir::ValueId id : graph.results()) results.push_back(rounded[id]);
  return results;
}

// What the roundings of any one operator of the graph may come to, relative to its largest element;
// those of all of them together are what its dtypes lose (isLost).
double roundingOf(const ir::Graph& graph) {
  double most = 0;
  for (const ir::Node& node : graph.nodes()) {
    if (isFloating(node.type.type)) most = std::max(most, ir::boundOf(node, 1, 1));
  }
  return most;
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
  Case(ir::Graph recorded, std::vector<NpyArray> arrays, size_t bytes)
      : graph(std::move(recorded)),
        inputs(std::move(arrays)),
        budget(bytes),
        expected(resultsOf(printGraph(graph, "g"), "ref", inputs)) {}

  const ir::Graph graph;
  const std::vector<NpyArray> inputs;
  const size_t budget;
  const std::vector<NpyArray> expected;
};

codegen::CompileOptions optionsFor(const Stage& stage, const Case& of) {
  codegen::CompileOptions options = stage.options;
  options.budget = of.budget;
  return options;
}

// The graph in f64 throughout, which shows what its own dtypes round away; its values need more
// memory than the budget is meant for.
Case widened(const ir::Graph& graph, std::vector<NpyArray> inputs) {
  const auto wide = [](dtype type) { return isFloating(type) ? dtype::f64 : type; };
  ir::Graph result;
  for (size_t i = 0; i < inputs.size(); ++i) {
    ir::Parameter parameter = graph.parameters()[i];
    parameter.type.type = wide(parameter.type.type);
    inputs[i] = cast(inputs[i], parameter.type.type);
    result.addParameter(std::move(parameter));
  }
  for (const ir::Node& node : graph.nodes()) {
    std::vector<Dim> attrs = node.attrs.values();
    const std::vector<std::string>& names = ir::attrNames(node.op);
    const bool hasType = !names.empty() && names[0] == "dtype";
    if (hasType) attrs[0] = static_cast<Dim>(wide(static_cast<dtype>(attrs[0])));
    result.addNode(node.op, node.operands, ir::Attrs(std::move(attrs)), node.site, node.origin);
  }
  result.setResults(graph.results());
  return Case(std::move(result), std::move(inputs), 0);
}

struct Finding {
  size_t result;
  std::string words;
};

class Bisection {
 public:
  Bisection(ir::Graph graph, std::vector<NpyArray> inputs)
      : whole_(std::move(graph), std::move(inputs), absl::GetFlag(FLAGS_budget)),
        wide_(widened(whole_.graph, whole_.inputs)) {}

  // The exit code.
  int run() const {
    for (size_t i = 0; i < stages_.size(); ++i) {
      std::optional<Finding> found = findDifference(i, whole_);
      const bool isWide = !found && !stages_[i].isRun && !stages_[i].isCode;
      if (isWide) found = findDifference(i, wide_);
      std::cerr << "bisect: after " << stages_[i].name << ": "
                << (found ? found->words : "as recorded") << std::endl;
      if (found) {
        report(i, found->words + (isWide ? " in f64" : ""), isWide ? wide_ : whole_);
        return 2;
      }
    }
    std::cout << "// no pass changes a result\n";
    return 0;
  }

 private:
  // Of what is compiled so far from the graph on the device ref. Bits have to be the same but where
  // a pass may have things added up in another order, and where the device cpu runs the plan, whose
  // libraries do and whose functions are approximations.
  std::optional<Finding> findDifference(size_t number, const Case& of) const {
    const Stage& stage = stages_[number];
    try {
      const codegen::Compilation compilation = codegen::compile(of.graph, optionsFor(stage, of));
      const std::string text = textAfter(stage, compilation);
      const auto actual = stage.isRun ? interpreted(text, of.inputs)
                                      : resultsOf(text, stage.isCode ? "cpu" : "ref", of.inputs);
      std::vector<bool> rounded(actual.size(), stage.isRun);
      std::vector<NpyArray> expected;
      if (stage.isRun) {
        expected = resultsOf(text, "ref", of.inputs);
      } else if (stage.isCode) {
        expected = interpreted(text, of.inputs);
      } else if (const auto before = compiledBefore(number, of, compilation.graph)) {
        expected = resultsOf(*before, "ref", of.inputs);
      } else {
        expected = of.expected;
        rounded = mayRound(of.graph);
      }
      for (size_t i = 0; i < actual.size(); ++i) {
        std::optional<double> tolerance = runTolerance();
        if (stage.isRun && !tolerance) tolerance = roundingOf(of.graph);
        if (!rounded[i]) tolerance = stage.isCode ? 0.0 : tolerance.value_or(0.0);
        const Difference found = compare(actual[i], expected[i], dtypesOf(of.graph), tolerance);
        if (!found.accepted && !(stage.isRun && isLost(of, i, found.value))) {
          return Finding{i, detail::concat("result ", i, " differs by ", found.value)};
        }
      }
      return std::nullopt;
    } catch (const InternalError& error) {
      return Finding{0, detail::concat("fails: ", reasonOf(error))};
    }
  }

  // Whether a result's own dtypes round away about as much, whoever computes it: as where numbers
  // that are nearly the same are subtracted.
  static bool isLost(const Case& of, size_t result, double difference) {
    constexpr double kAlike = 16;
    const Case wide = widened(of.graph, of.inputs);
    return difference <= kAlike * compare(of.expected[result], wide.expected[result], {}, {}).value;
  }

  // What a stage has to give the bits of: the one before it, if everything is added up as there.
  std::optional<std::string> compiledBefore(size_t number, const Case& of,
                                            const ir::Graph& now) const {
    const Stage& stage = stages_[number];
    if (!stage.isGraph && !stage.keepsKernels) return std::nullopt;
    codegen::Compilation before;
    before.graph = of.graph;
    if (number > 0) before = codegen::compile(of.graph, optionsFor(stages_[number - 1], of));
    const bool isAlike = !stage.isGraph || std::ranges::includes(sumsOf(before.graph), sumsOf(now));
    return isAlike ? std::make_optional(textAfter(stage, before)) : std::nullopt;
  }

  // What machine code has to compute to the bit: the same kernels, interpreted in their types.
  static std::vector<NpyArray> interpreted(const std::string& text,
                                           const std::vector<NpyArray>& inputs) {
    flags().jit = "off";
    std::vector<NpyArray> results = resultsOf(text, "cpu", inputs);
    flags().jit = "sync";
    return results;
  }

  // Tries first the value that is wrong where all are results, and those that are in the plan.
  void report(size_t stage, const std::string& difference, const Case& whole) const {
    std::cout << (stages_[stage].isRun ? "// no pass, but what the device cpu runs"
                                       : "// pass " + stages_[stage].name)
              << ": " << difference << "\n";
    const ir::Graph& graph = whole.graph;
    std::vector<size_t> suspects(graph.nodes().size());
    std::iota(suspects.begin(), suspects.end(), 0);
    ir::Graph open = graph;
    std::vector<ir::ValueId> all;
    for (size_t i : suspects) all.push_back(graph.idOfNode(i));
    open.setResults(std::move(all));
    const auto first = findDifference(stage, Case(std::move(open), whole.inputs, whole.budget));
    if (first) suspects.insert(suspects.begin(), first->result);
    const std::vector<Region> regions = regionsOf(stages_[stage], whole);
    const auto regionOf = [&](size_t node) {
      const auto holds = [&](const Region& each) { return each.nodes.contains(node); };
      return std::ranges::find_if(regions, holds);
    };
    std::ranges::stable_partition(suspects, [&](size_t i) { return regionOf(i) != regions.end(); });
    const auto tell = [&](size_t i, const char* words, const ir::Graph& shown) {
      std::cout << "// first wrong value: %" << i << ", " << ir::opName(graph.nodes()[i].op)
                << ", which " << words << "\n";
      const auto region = regionOf(i);
      if (region != regions.end()) std::cout << regionText(*region, graph);
      std::cout << printGraph(shown, "g");
    };
    for (size_t i : suspects) {
      const std::optional<Case> cut = cutAt(whole, graph.idOfNode(i));
      if (cut && findDifference(stage, *cut)) {
        return tell(i, "this graph computes alone", cut->graph);
      }
    }
    if (first) return tell(first->result, "is right alone", graph);
    std::cout << "// only all results together show it\n" << printGraph(graph, "g");
  }

  // Of that value alone, with the inputs that it needs.
  static std::optional<Case> cutAt(const Case& whole, ir::ValueId id) {
    GraphEdit edit;
    edit.results = {id};
    std::optional<ir::Graph> graph = applyEdit(whole.graph, edit);
    if (!graph) return std::nullopt;
    const std::vector<bool> needed = neededValues(whole.graph, edit);
    std::vector<NpyArray> inputs;
    for (size_t i = 0; i < whole.inputs.size(); ++i) {
      if (needed[i]) inputs.push_back(whole.inputs[i]);
    }
    return std::make_optional<Case>(std::move(*graph), std::move(inputs), whole.budget);
  }

  // What runs together: the recorded operators of a kernel, or one of a call.
  struct Region {
    std::set<size_t> nodes;
    std::optional<ir::Kernel> kernel;
  };

  // Of the plan that fails; none where there is none.
  static std::vector<Region> regionsOf(const Stage& stage, const Case& of) {
    std::vector<Region> regions;
    if (stage.isGraph) return regions;
    try {
      const codegen::Compilation plan = codegen::compile(of.graph, optionsFor(stage, of));
      for (const ir::Step& step : plan.schedule.steps) {
        const auto* launch = std::get_if<ir::LaunchStep>(&step);
        if (!launch) {
          const int origin = std::get<ir::LibraryStep>(step).origin;
          if (origin >= 0) regions.push_back({{static_cast<size_t>(origin)}, std::nullopt});
          continue;
        }
        regions.push_back({{}, plan.schedule.kernels[launch->kernel]});
        for (ir::ValueId id : launch->nodes) {
          const int origin = id < 0 ? -1 : plan.graph.node(id).origin;
          if (origin >= 0) regions.back().nodes.insert(origin);
        }
      }
    } catch (const InternalError&) {
      regions.clear();  // the pass fails, as was said
    }
    return regions;
  }

  // As comments.
  static std::string regionText(const Region& region, const ir::Graph& graph) {
    std::string text = region.kernel ? "// in the plan, one kernel computes together:\n"
                                     : "// in the plan, a call of its own computes:\n";
    const std::vector<std::string> lines =
        absl::StrSplit(printGraph(graph, "g", {.callSites = true}), '\n');
    for (const std::string& line : lines) {
      for (size_t node : region.nodes) {
        if (line.starts_with(detail::concat("  %", node, " = "))) text += "// " + line + "\n";
      }
    }
    if (!region.kernel) return text;
    std::string body = printKernel(*region.kernel, "k");
    body.pop_back();  // the newline
    return text + "// " + absl::StrReplaceAll(body, {{"\n", "\n// "}}) + "\n";
  }

  const Case whole_, wide_;
  const std::vector<Stage> stages_ = stages();
};

}  // namespace

int runBisect(int argc, char** argv) {
  const std::vector<char*> arguments = parseArguments(
      "fl bisect [flags] GRAPH.flir\n\nFinds the first pass after which the graph's results are "
      "not those of the device ref; or, if\nthe passes are right, tells that what the device cpu "
      "runs differs from it, or emit, the making of\nmachine code; and the first value that is "
      "wrong then.",
      __FILE__, {"budget", "inputs", "seed", "tolerance"}, argc, argv);
  FL_USER_CHECK(arguments.size() == 2, "bisect: expected one file");
  const std::string path = arguments[1], text = readInput(path);
  const std::string form = parseInput(path, text, formOf);
  FL_USER_CHECK(form == "graph", path, ": is a ", form, "; passes start from a graph");
  flags().jit = "sync";
  const auto program = parseProgram(path, text, {});
  return withMemory(path, *program, [&] {
    // Numbers of a dump are drawn, too: what `fl reduce` makes of the graph has lost them.
    std::vector<NpyArray> inputs = makeInputs(*program, "", std::cerr).arrays;
    ir::Graph graph = parseInput(path, text, ir::parseGraph);
    int origin = 0;
    rewriteGraph(&graph, [&](ir::Graph& made, ir::Node node) {
      node.origin = origin++;
      return made.addNode(std::move(node));
    });
    return Bisection(std::move(graph), std::move(inputs)).run();
  });
}

}  // namespace fl::tools
