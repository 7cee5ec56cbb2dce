// .flir text of graphs: printGraph(parseGraph(t)) is a fixpoint, and parsing verifies types.
//
//   graph @f(%p0: f32[4,8], %p1: number f32) {
//     %0 = mul %p0, %p1 : f32[4,8]
//     %1 = sum %0 {axes=[0]} : f32[8]
//     return %1
//   }
//
// Attributes stand in any order, and some may be left out, which means 0 (Op.h); all are printed.
#pragma once

#include <string>

#include "fl/ir/Graph.h"

namespace fl {
class Lexer;
}

namespace fl::ir {

struct PrintOptions {
  bool callSites = false;  // of nodes or steps, as trailing comments; costs milliseconds a new line
};

std::string printGraph(const Graph& graph, const std::string& name,
                       const PrintOptions& options = {});
// Throws ParseError with line, column and a caret, or for a type that is not the inferred one.
Graph parseGraph(const std::string& text);

// " {axes=[0]}", or "" for an op without attributes.
std::string printAttrs(Op op, const Attrs& attrs);
Attrs parseAttrs(Lexer& lexer, Op op);

}  // namespace fl::ir
