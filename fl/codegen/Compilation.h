// One compilation: graph in, schedule out, and everything passes decide in between. Passes are
// listed in Pipeline.def, run by Pipeline.cpp.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "fl/codegen/Fusion.h"
#include "fl/kernel/Lower.h"

namespace fl::codegen {

struct Compilation {
  ir::Lowering lowering = ir::Lowering::Kernels;
  bool featuresFirst = true;
  ir::Graph graph;
  FusionPlan fusion;
  ir::Schedule schedule;
};

struct CompileOptions {
  ir::Lowering lowering = ir::Lowering::Kernels;
  // Whether the device has attention of heads with their features first.
  bool featuresFirst = true;
  // Passes that are left out, apart by commas. Without `fuse` every node is in steps of its own.
  std::string skip;
  // Bytes that the temporaries may take together; 0: any. Throws planner::OverBudget beyond.
  size_t budget = 0;
  // Nothing for a plan that asks no device.
  ir::DeviceTraits device;
  // For tests: whether nothing is kept that can be computed again.
  bool trimAll = false;
  // The text after each pass, for dumps; the pass's number counts from 1, 0 is the input.
  std::function<void(int number, const std::string& pass, const std::string& text)> observe;
  // Passes run up to and including this one; empty means all.
  std::string stopAfter;
  bool verify = false;
};

// Runs the pipeline. Throws InternalError if an invariant breaks, std::invalid_argument if
// stopAfter or skip names no pass, or skip one that nothing runs without.
Compilation compile(ir::Graph graph, const CompileOptions& options);

// By result of a graph, the dimension of the channels of an image that is best left with them first
// in memory for the next plan, as this one works on it so; -1 for all other results.
std::vector<int> imagesOfResults(const ir::Graph& graph);

// Throws std::invalid_argument for what FL_SKIP may not be.
void checkSkip(const std::string& skip);

// Runs the one pass `pass` of a stage over what the compilation has of it, as `fl opt --pass=`
// does, and verifies nothing. Throws std::invalid_argument if the stage has no such pass.
void runPassAlone(const std::string& pass, const char* stage, Compilation& compilation);

struct PassInfo {
  std::string stage;  // graph, fusion or schedule: what the pass changes
  std::string name;
  std::string why;
};
// In order, with those that were added (Extensions.h).
std::vector<PassInfo> passes();

}  // namespace fl::codegen
