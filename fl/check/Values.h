// Elements on the host, and what is said of them.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "fl/base/CallSite.h"
#include "fl/ir/Graph.h"
#include "fl/ir/Interpreter.h"

namespace fl::check {

Number elementAt(dtype type, const void* data, Dim i);

// The first element of a floating dtype that is NaN, or, if there is none, infinite.
std::optional<Dim> firstNotFinite(const ir::ValueType& type, const void* data);
bool holdsNan(const ir::HostOperand& operand);

// "; f32[8] from -3 to 4 with 2 NaN or infinite, s32[2] from 0 to 1": of operands of the types
// `shown`, whose elements may be repeated.
std::string rangesOf(const std::vector<ir::HostOperand>& operands,
                     const std::vector<ir::ValueType>& shown);

// By value, whether its elements lie with the channels of images in front of all else, as the pass
// `layout` has them, which makes views from and to that order.
std::vector<bool> movedValues(const ir::Graph& graph);

// The element of the recorded value that lies at `element` of a moved one.
Dim recordedElement(Dim element, const Shape& recorded, const Shape& moved);

// "FL_CHECK=nan: exp f32[8] at main.cpp:3: what".
std::string finding(const std::string& flag, ir::Op op, const ir::ValueType& type,
                    const CallSite& site, const std::string& what);

}  // namespace fl::check
