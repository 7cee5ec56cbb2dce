#include "tools/Opt.h"

#include <algorithm>
#include <iostream>

#include "absl/flags/flag.h"
#include "fl/base/Error.h"
#include "fl/codegen/Compilation.h"
#include "fl/codegen/cpu/Emitter.h"
#include "fl/codegen/cuda/Emitter.h"
#include "fl/ir/Text.h"
#include "fl/tile/HostTarget.h"
#include "tools/Arguments.h"
#include "tools/Files.h"
#include "tools/mlir/GraphJit.h"

ABSL_FLAG(bool, list, false, "print every pass with its reason and exit");
ABSL_FLAG(bool, verify, false, "only say whether the file, of any form, may run");
ABSL_FLAG(std::string, pass, "",
          "run this pass alone: of graphs, or of schedules, which may be\n"
          "temporaries alone: intervals that --pass=pack places");
ABSL_FLAG(uint64_t, budget, 0, "bytes that the temporaries may take; 0: any");
ABSL_FLAG(double, bytes_a_move, 0,
          "how many bytes the device moves in its memory while it moves one to\n"
          "the host; 0: values stay on the device");
ABSL_FLAG(std::string, stop_after, "", "stop the pipeline after this pass");
ABSL_FLAG(std::string, skip, "",
          "leave these passes out, apart by commas; without fuse every node has a step of its own");
ABSL_FLAG(std::string, emit, "",
          "with the whole pipeline: llvm or asm of every kernel, cuda, one\n"
          "module of all, or mlir, of the graph as its passes leave it");

namespace fl::tools {
namespace {

// Those that say what to print, of which there is one at most.
std::vector<std::string> flagsGiven() {
  std::vector<std::string> flags;
  const auto add = [&](const char* flag, bool given) {
    if (given) {
      flags.push_back(flag);
    }
  };
  add("--list", absl::GetFlag(FLAGS_list));
  add("--verify", absl::GetFlag(FLAGS_verify));
  add("--pass", !absl::GetFlag(FLAGS_pass).empty());
  add("--stop_after", !absl::GetFlag(FLAGS_stop_after).empty());
  add("--emit", !absl::GetFlag(FLAGS_emit).empty());
  return flags;
}

void checkFlags(size_t files) {
  const std::vector<std::string> flags = flagsGiven();
  FL_USER_CHECK(flags.size() < 2, "opt: ", flags[0], " and ", flags[1], " do not go together");
  const bool compiles = flags.empty() || flags[0] == "--stop_after" || flags[0] == "--emit";
  FL_USER_CHECK(compiles || absl::GetFlag(FLAGS_skip).empty(), "opt: ", flags[0],
                " and --skip do not go together");
  const bool lists = absl::GetFlag(FLAGS_list);
  FL_USER_CHECK(files == (lists ? 0 : 1), "opt: ", lists ? "--list takes no" : "expected one",
                " file");
}

std::string listPasses() {
  std::string text;
  for (const codegen::PassInfo& pass : codegen::passes()) {
    text += std::string(pass.stage) + " " + pass.name + ": " + pass.why + "\n";
  }
  return text;
}

std::string emitModule(const ir::Schedule& schedule) {
  std::vector<codegen::cuda::NamedKernel> kernels;
  for (const ir::Kernel& kernel : schedule.kernels) {
    kernels.push_back({"k" + std::to_string(kernels.size()), &kernel});
  }
  return codegen::cuda::emitCuda(kernels);
}

std::string emitCode(const codegen::Compilation& compilation, const std::string& form) {
  FL_USER_CHECK(form == "llvm" || form == "asm" || form == "cuda" || form == "mlir", "--emit: \"",
                form, "\" is not llvm, asm, cuda or mlir");
  const ir::Schedule& schedule = compilation.schedule;
  if (form == "cuda") return emitModule(schedule);
  if (form == "mlir") return printMlir({compilation.graph});
  const ir::Target target = tile::hostTarget();
  std::string text;
  for (size_t i = 0; i < schedule.kernels.size(); ++i) {
    const std::string name = "k" + std::to_string(i);
    text += form == "llvm" ? codegen::cpu::emitLlvmText(schedule.kernels[i], target, name)
                           : codegen::cpu::emitAssemblyText(schedule.kernels[i], target, name);
  }
  return text;
}

std::string printStage(const codegen::Compilation& compilation, const std::string& last) {
  for (const codegen::PassInfo& pass : codegen::passes()) {
    if (last == pass.name) {
      const std::string stage = pass.stage;
      return stage == "graph"    ? printGraph(compilation.graph, "g")
             : stage == "fusion" ? printFusion(compilation.graph, compilation.fusion)
                                 : printSchedule(compilation.schedule, "s");
    }
  }
  return printSchedule(compilation.schedule, "s");
}

// What `fl opt --verify` says of a text that holds.
std::string verifyText(const std::string& path) {
  const std::string text = readInput(path);
  const std::string form = parseInput(path, text, formOf);
  if (form == "graph") {
    parseInput(path, text, ir::parseGraph);
  } else if (form == "schedule") {
    parseInput(path, text, parsePackedSchedule);
  } else {
    parseInput<ir::Kernel>(path, text, ir::parseKernel);
  }
  return path + ": ok, a " + form + "\n";
}

std::string optimizeSchedule(ir::Schedule schedule) {
  codegen::Compilation compilation;
  compilation.schedule = std::move(schedule);
  compilation.schedule.budget = absl::GetFlag(FLAGS_budget);
  const std::string pass = absl::GetFlag(FLAGS_pass);
  if (!pass.empty()) {
    FL_USER_CHECK(pass != "build", "opt: build makes a schedule of a graph");
    const auto& all = compilation.schedule.temporaries;
    const bool shares = std::ranges::any_of(all, [](const auto& t) { return t.shares >= 0; });
    FL_USER_CHECK(!shares || pass == "pack", "opt: the pass ", pass,
                  " would lose which temporaries share memory; pack alone takes them");
    const auto isEpilogue = [](const ir::Step& step) {
      const auto* launch = std::get_if<ir::LaunchStep>(&step);
      return launch && launch->epilogue;
    };
    const bool reorders = pass == "order" || pass == "budget" || pass == "join";
    FL_USER_CHECK(!reorders || std::ranges::none_of(compilation.schedule.steps, isEpilogue),
                  "opt: the pass ", pass,
                  " moves steps, which would part epilogues from the calls that they belong to");
    const bool moves = std::ranges::any_of(all, [](const auto& t) { return t.onHost; });
    FL_USER_CHECK(!moves || pass != "budget",
                  "opt: temporaries that are on the host are what the pass budget has made");
    // Of temporaries alone no step says when they live: there is nothing to do but to pack them.
    const bool areIntervals =
        compilation.schedule.steps.empty() && compilation.schedule.outputs.empty();
    const std::string given = areIntervals ? printSchedule(compilation.schedule, "s") : "";
    runPassAlone(pass, "schedule", compilation);
    verifySteps(compilation.schedule);
    if (areIntervals && pass != "pack") return given;
  }
  return printSchedule(compilation.schedule, "s");
}

std::string optimize(const std::string& path) {
  const std::string text = readInput(path);
  const std::string form = parseInput(path, text, formOf);
  const std::vector<std::string> flags = flagsGiven();
  const bool isPass = !flags.empty() && flags[0] == "--pass";
  if (form != "graph" && !(form == "schedule" && isPass)) {
    FL_USER_CHECK(flags.empty() && absl::GetFlag(FLAGS_skip).empty(), path, ": is a ", form, "; ",
                  flags.empty() ? "--skip" : flags[0], " is for a graph");
  }
  if (form == "schedule") {
    return optimizeSchedule(parseInput(path, text, ir::parseSchedule));
  }
  if (form == "kernel") {
    return printKernel(parseInput<ir::Kernel>(path, text, ir::parseKernel), "k");
  }
  ir::Graph graph = parseInput(path, text, ir::parseGraph);
  if (isPass) {
    codegen::Compilation compilation;
    compilation.graph = std::move(graph);
    runPassAlone(absl::GetFlag(FLAGS_pass), "graph", compilation);
    verify(compilation.graph);
    return printGraph(compilation.graph, "g");
  }
  codegen::CompileOptions options;
  options.stopAfter = absl::GetFlag(FLAGS_stop_after);
  options.skip = absl::GetFlag(FLAGS_skip);
  options.budget = absl::GetFlag(FLAGS_budget);
  options.device.bytesAMove = absl::GetFlag(FLAGS_bytes_a_move);
  options.verify = true;
  const codegen::Compilation compilation = codegen::compile(std::move(graph), options);
  const std::string emit = absl::GetFlag(FLAGS_emit);
  return emit.empty() ? printStage(compilation, options.stopAfter) : emitCode(compilation, emit);
}

}  // namespace

int runOpt(int argc, char** argv) {
  const std::vector<char*> arguments = parseArguments(
      "fl opt [flags] FILE.flir   (- reads standard input)\n\nTakes one flag, or "
      "--skip with --stop_after or --emit, and --budget with any but --list and --verify. Those\n"
      "are for all forms, --pass is for graphs and schedules, the others for graphs.",
      __FILE__, {}, argc, argv);
  checkFlags(arguments.size() - 1);
  if (absl::GetFlag(FLAGS_list)) {
    std::cout << listPasses();
    return 0;
  }
  std::cout << (absl::GetFlag(FLAGS_verify) ? verifyText(arguments[1]) : optimize(arguments[1]));
  return 0;
}

}  // namespace fl::tools
