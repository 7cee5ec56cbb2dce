// What tells two graphs apart, in words for whoever wonders why a plan is new.
#pragma once

#include <string>

#include "fl/ir/Graph.h"

namespace fl::plans {

// What of `now` `before` does not have, with the lines that recorded both; empty if they are equal.
std::string firstDifference(const ir::Graph& now, const ir::Graph& before);
// "%1 = exp %0 : f32[3]  // A.cpp:3": the first operator that reads a parameter.
std::string userOf(const ir::Graph& graph, ir::ValueId parameter);
// How many operators are equal in equal places, counted from the front or from the back.
size_t equalNodes(const ir::Graph& x, const ir::Graph& y);

}  // namespace fl::plans
