// FL_CHECK=ref and FL_CHECK=nan: plans that find the first operator that is wrong. With nan the
// plan itself runs, of code that looks at every value; with ref its graph runs beside it operator
// by operator, as each pass left it, two to a hundred times as long.
#pragma once

#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "fl/ir/Interpreter.h"
#include "fl/runtime/Device.h"

namespace fl::check {

// What FL_CHECK finds: it is in the plan, whichever of its values is read.
struct Finding : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// Whether FL_CHECK asks for it.
bool isWanted(const std::string& flag);

// What plans are to be compiled with: what a step reads must be there when it has run.
void prepareOptions(std::string* skip, size_t* budget);

// A graph as a pass over graphs leaves it.
struct PassedGraph {
  std::string pass;
  ir::Graph graph;
};

// Computes an op of any kind (fl/definitions/Trace.h).
using Interpret = decltype(&ir::interpret);

// `passed` is what the passes made of `recorded`, the last one what `plan` is of, which suffices
// but for ref; `flag` is ref, nan or nan-log. The plan's
// run() throws a Finding, which names the operator, the line that recorded it and the element,
// - with ref, if an operator or a call of a library alone is further from what
//   `interpret` says than boundOf() (fl/ir/Rounding.h) allows; if what a kernel or call stores has
//   other bits than its operators one by one; or if a pass over graphs, which it names, changes a
//   result: products and sums that it has added in another order by more than twice that, all else
//   in a bit;
// - with nan, if an element is NaN and the operator's operands there are not, or infinite and they
//   are finite (of sums and calls of libraries: all of their operands); the message has the ranges
//   of the operands. nan-log warns, once a line, and goes on.
std::unique_ptr<runtime::LoadedSchedule> makeCheckedPlan(
    const ir::Graph& recorded, std::vector<PassedGraph> passed,
    std::unique_ptr<runtime::LoadedSchedule> plan, const std::string& flag, runtime::Device& device,
    runtime::KernelCache* kernels, Interpret interpret);

}  // namespace fl::check
