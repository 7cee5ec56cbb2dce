#include "fl/ir/Graph.h"

#include <gtest/gtest.h>

namespace fl::ir {
namespace {

// Rules read nodes while they add others.
TEST(Graph, NodesStayWhereTheyAre) {
  Graph graph;
  const ValueId x = graph.addParameter({{dtype::f32, Shape({3})}, false});
  ValueId last = graph.addNode(Op::Exp, {x}, {});
  const ValueId first = last;
  const Node* node = &graph.node(first);
  for (int i = 0; i < 1000; ++i) {
    last = graph.addNode(Op::Exp, {last}, {});
  }
  EXPECT_EQ(&graph.node(first), node);
}

}  // namespace
}  // namespace fl::ir
