// Graphs for tests of planning, and what their plans compute.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include "fl/kernel/Schedule.h"
#include "fl/planner/Planner.h"
#include "fl/runtime/Device.h"

namespace fl::testing {

// A random program of matrix products, up to as many as tries, which neither fuse nor simplify.
inline ir::Graph randomProducts(std::mt19937_64& random, int tries = 60) {
  ir::Graph graph;
  static const Dim kSizes[] = {4, 16, 40, 100};
  std::vector<ir::ValueId> values;
  for (int i = 0; i < 4; ++i) {
    const Shape shape = {kSizes[random() % 4], kSizes[random() % 4]};
    values.push_back(graph.addParameter({{dtype::f32, shape}}));
  }
  for (int tried = 0; tried < tries; ++tried) {
    const ir::ValueId x = values[random() % values.size()], y = values[random() % values.size()];
    const Dim transposeX = static_cast<Dim>(random() % 2),
              transposeY = static_cast<Dim>(random() % 2);
    const Shape a = graph.type(x).shape, b = graph.type(y).shape;
    if (a[transposeX ? 0 : 1] == b[transposeY ? 1 : 0]) {
      values.push_back(graph.addNode(ir::Op::Matmul, {x, y}, {transposeX, transposeY, 0}));
    }
  }
  graph.setResults({values.back(), values[values.size() / 2]});
  return graph;
}

// Products of a chain, each of which is read again on the way back, or in the order of the chain,
// in 2 * `depth` steps; or their sines, in 4 * `depth`.
inline ir::Graph deepGraph(int depth, Dim width, bool isForward = false, bool isOfSines = false) {
  ir::Graph graph;
  const ir::ValueId w = graph.addParameter({{dtype::f32, Shape({width, width})}});
  std::vector<ir::ValueId> values = {graph.addParameter({{dtype::f32, Shape({width, width})}})};
  const auto multiply = [&](ir::ValueId x, ir::ValueId y) {
    const ir::ValueId product = graph.addNode(ir::Op::Matmul, {x, y}, {0, 0, 0});
    return isOfSines ? graph.addNode(ir::Op::Sin, {product}, {}) : product;
  };
  for (int i = 0; i < depth; ++i) values.push_back(multiply(w, values.back()));
  ir::ValueId back = values.back();
  if (isForward) std::ranges::reverse(values);
  for (int i = depth; i-- > 0;) back = multiply(back, values[i]);
  graph.setResults({back});
  return graph;
}

// Products of 40 columns of 20, each of the one before it in its column and the one beside it in
// the column before, as the layers of a recurrent network at each step, that are read on the way
// back.
inline ir::Graph gridGraph() {
  ir::Graph graph;
  const ir::ValueType type = {dtype::f32, Shape({16, 16})};
  const ir::ValueId w = graph.addParameter({type}), x = graph.addParameter({type});
  const auto multiply = [&](ir::ValueId a, ir::ValueId b) {
    return graph.addNode(ir::Op::Matmul, {a, b}, {0, 0, 0});
  };
  std::vector<ir::ValueId> column(20, w), values;
  for (int i = 0; i < 40; ++i) {
    ir::ValueId below = x;
    for (ir::ValueId& value : column) values.push_back(below = value = multiply(value, below));
  }
  ir::ValueId back = values.back();
  for (size_t i = values.size(); i-- > 0;) back = multiply(back, values[i]);
  graph.setResults({back});
  return graph;
}

using Results = std::vector<std::vector<uint32_t>>;  // bits

// Of the program on matrices of small integers.
inline Results run(const ir::Schedule& schedule) {
  const auto device = runtime::makeDevice("cpu");
  runtime::KernelCache kernels;
  const auto plan = device->load(schedule, &kernels);
  std::vector<MemoryBlockPtr> buffers;
  for (const ir::Parameter& parameter : schedule.parameters) {
    if (parameter.number) {
      buffers.push_back(nullptr);  // 0
      continue;
    }
    std::vector<float> elements(parameter.type.shape.elements());
    for (size_t i = 0; i < elements.size(); ++i) {
      elements[i] = static_cast<float>(i * 7 % 5) - 2;
    }
    buffers.push_back(runtime::makeBlock(elements.data(), elements.size() * sizeof(float)));
  }
  Results results;
  for (const MemoryBlockPtr& output :
       plan->run(buffers, std::vector<Number>(buffers.size(), Number::of(0, dtype::s64)))) {
    const auto* elements = static_cast<const uint32_t*>(output->data());
    results.emplace_back(elements, elements + output->bytes() / sizeof(uint32_t));
  }
  return results;
}

// The budget that a refusal says is met.
inline size_t metAsToldBy(const planner::OverBudget& refusal) {
  const std::string text = refusal.what(), before = "; a budget of ";
  const size_t at = text.find(before);
  EXPECT_NE(at, std::string::npos) << text;
  EXPECT_NE(text.find(" is met by this plan (others may need more); the largest of them:"),
            std::string::npos)
      << text;
  return std::stoul(text.substr(at + before.size()));
}

// The least arena that one says was found; 0 if it is refused for another reason.
inline size_t leastAsToldBy(const planner::OverBudget& refusal) {
  const std::string text = refusal.what(), before = " bytes: packed they take ";
  const size_t at = text.find(before);
  if (at == std::string::npos) return 0;
  EXPECT_NE(text.find(" at least; a budget of "), std::string::npos) << text;
  return std::stoul(text.substr(at + before.size()));
}

}  // namespace fl::testing
