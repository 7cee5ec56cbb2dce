#include <gtest/gtest.h>

#include <vector>

#include "fl/ir/Graph.h"

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

Graph doubled(const Shape& shape) {
  Graph graph;
  const ValueId x = graph.addParameter({{dtype::f32, shape}, false});
  const ValueId two = graph.addParameter({{dtype::f32, Shape()}, true});
  const ValueId product = graph.addNode(Op::Mul, {x, two}, {});
  graph.setResults({graph.addNode(Op::Sum, {product}, {1, 0})});
  return graph;
}

TEST(Graph, WordsAreEqualOfTheSameStructureAlone) {
  const Graph graph = doubled({3});
  EXPECT_EQ(wordsOf(graph), wordsOf(doubled({3})));
  EXPECT_NE(wordsOf(graph), wordsOf(doubled({4})));
  EXPECT_NE(wordsOf(graph), wordsOf(doubled({3, 1})));
  Graph other = graph;
  other.setResults({graph.idOfNode(0)});
  EXPECT_NE(wordsOf(graph), wordsOf(other)) << "results";
  other = graph;
  other.addNode(Op::Exp, {graph.idOfNode(0)}, {});
  EXPECT_NE(wordsOf(graph), wordsOf(other)) << "a node";
  const auto ofOne = [](Op op, Attrs attrs, bool ofNumber, dtype type) {
    Graph graph;
    const ValueId x = graph.addParameter({{type, Shape({2, 3})}, false});
    const ValueId y = graph.addParameter({{type, ofNumber ? Shape() : Shape({1, 1})}, ofNumber});
    const ValueId read =
        op == Op::Sum ? graph.addNode(op, {x}, std::move(attrs)) : graph.addNode(op, {x, y}, {});
    graph.setResults({read});
    return wordsOf(graph);
  };
  EXPECT_NE(ofOne(Op::Add, {}, false, dtype::f32), ofOne(Op::Mul, {}, false, dtype::f32));
  EXPECT_NE(ofOne(Op::Add, {}, false, dtype::f32), ofOne(Op::Add, {}, true, dtype::f32));
  EXPECT_NE(ofOne(Op::Add, {}, false, dtype::f32), ofOne(Op::Add, {}, false, dtype::f64));
  EXPECT_NE(ofOne(Op::Sum, {1, 0}, false, dtype::f32), ofOne(Op::Sum, {1, 1}, false, dtype::f32));
}

TEST(Graph, CallAddsTheNodesOfAnother) {
  Graph graph;
  const ValueId two = graph.addParameter({{dtype::f32, Shape()}, true});
  const ValueId x = graph.addParameter({{dtype::f32, Shape({3})}, false});
  const ValueId power = graph.addNode(Op::Exp, {x}, {});
  const Graph called = doubled({3});
  const ValueId shift = addCall(&graph, called, {power, two}, {});
  verify(graph);
  ASSERT_EQ(graph.nodes().size(), 3u);
  const Node &product = graph.nodes()[1], &total = graph.nodes()[2];
  EXPECT_EQ(product.op, Op::Mul);
  EXPECT_EQ(product.operands, (std::vector<ValueId>{power, two}));
  EXPECT_EQ(product.origin, 1);
  EXPECT_EQ(total.origin, 2);
  EXPECT_EQ(total.operands, std::vector<ValueId>{graph.idOfNode(1)});
  EXPECT_EQ(called.results()[0] + shift, graph.idOfNode(2));
}

TEST(Graph, WithoutDeadNodesKeepsOriginsAndParameters) {
  Graph graph;
  const ValueId x = graph.addParameter({{dtype::f32, Shape({3})}, false});
  graph.addParameter({{dtype::f32, Shape({3})}, false});
  const ValueId dead = graph.addNode(Op::Exp, {x}, {}, {}, 0);
  graph.addNode(Op::Negative, {dead}, {}, {}, 1);
  graph.setResults({graph.addNode(Op::Sin, {x}, {}, {}, 2)});
  removeDeadNodes(&graph);
  verify(graph);
  EXPECT_EQ(graph.parameters().size(), 2u);
  ASSERT_EQ(graph.nodes().size(), 1u);
  EXPECT_EQ(graph.nodes()[0].op, Op::Sin);
  EXPECT_EQ(graph.nodes()[0].origin, 2);
  EXPECT_EQ(graph.results(), std::vector<ValueId>{graph.idOfNode(0)});
}

}  // namespace
}  // namespace fl::ir
