// FL_CHECK=ref and FL_CHECK=nan: a plan beside which, or in place of which, its graph runs operator
// by operator, to find the first operator that is wrong. With nan it takes as long as eager mode and
// a look at every value, with ref two to a hundred times as long.
#pragma once

#include <memory>
#include <string>

#include "fl/ir/Graph.h"
#include "fl/runtime/Device.h"

namespace fl::check {

// Whether FL_CHECK asks for it.
bool isWanted(const std::string& flag);

// `plan` is of `graph`, and `flag` ref, nan or nan-log. Its run() throws std::runtime_error, which names the
// operator, the line that recorded it and the element,
// - with ref, if an operator alone is further from the reference interpreter than its row's ulp
//   allows (4 units more for 16-bit floats, 64 for sums, in units of the sum of magnitudes; calls
//   of libraries are left out), or the plan gives other bits than its operators one by one (with
//   calls of libraries: values not near);
// - with nan, if an operator makes a NaN of operands without one, or an infinity of finite ones; the
//   message has the ranges of the operands. nan-log warns, once a line, and goes on.
std::unique_ptr<runtime::LoadedSchedule> makeCheckedPlan(
    const ir::Graph& graph, std::unique_ptr<runtime::LoadedSchedule> plan, const std::string& flag,
    runtime::Device& device, runtime::KernelCache* kernels);

}  // namespace fl::check
