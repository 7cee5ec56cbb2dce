// Reductions to one element that are cut at the chunks of their tree: interpreted and compiled, the
// bits are those of the whole kernel on one thread.
#include <gtest/gtest.h>

#include <cstring>

#include "fl/codegen/cpu/Emitter.h"
#include "fl/kernel/Lower.h"
#include "fl/runtime/cpu/RowChunks.h"
#include "fl/runtime/Device.h"
#include "fl/runtime/MemoryManager.h"
#include "fl/tile/TileInterpreter.h"

namespace fl::runtime {
namespace {

using ir::Op;

ir::Graph graphOf(Op op, dtype type, Dim length) {
  ir::Graph graph;
  const ir::ValueId x = graph.addParameter({{type, Shape({length})}, false});
  graph.setResults({graph.addNode(op, {x}, {0, 0})});
  return graph;
}

// Numbers of both signs whose sum depends on the order, a NaN among floats if asked for.
MemoryBlockPtr makeInput(dtype type, Dim length, bool hasNan) {
  const MemoryBlockPtr block = makeBlock(nullptr, length * getTypeSize(type));
  for (Dim i = 0; i < length; ++i) {
    const auto drawn = static_cast<uint32_t>(i) * 2654435761u >> 8;
    if (type == dtype::f32) {
      const float value = static_cast<float>(drawn) * 1e-3f - 8000.0f;
      static_cast<float*>(block->data())[i] =
          hasNan && i == length - 3 ? std::numeric_limits<float>::quiet_NaN() : value;
    } else {
      static_cast<uint8_t*>(block->data())[i] = static_cast<uint8_t>(drawn);
    }
  }
  return block;
}

void expectBitsOfWhole(Op op, dtype type, Dim length, bool hasNan = false) {
  const ir::Graph graph = graphOf(op, type, length);
  const std::unique_ptr<Device> device = makeDevice("cpu");
  const ir::Schedule schedule = ir::scheduleSingleNode(graph, device->lowering());
  ASSERT_TRUE(cpu::cutIntoChunks(schedule.kernels.at(0)));
  const MemoryBlockPtr input = makeInput(type, length, hasNan);

  uint64_t expected = 0;
  void* const data[] = {input->data(), &expected};
  const int64_t extents[] = {length}, strides[] = {1, 0};
  tile::TileProgram(schedule.kernels[0]).run({data, extents, strides, nullptr}, 0, 1);

  KernelCache kernels;
  const auto plan = device->load(schedule, &kernels);
  ASSERT_EQ(plan->kernels().size(), 1u);
  DeviceKernel& kernel = *plan->kernels()[0];
  EXPECT_EQ(kernel.kernel().rank, 2);
  const std::vector<Number> numbers(1);
  const MemoryBlockPtr interpreted = plan->run({{input}}, numbers)[0];
  kernel.setArtifact(codegen::cpu::emitKernel(kernel.kernel(), device->target(), "kernel"));
  const MemoryBlockPtr compiled = plan->run({{input}}, numbers)[0];
  const size_t bytes = interpreted->bytes();
  EXPECT_EQ(std::memcmp(interpreted->data(), &expected, bytes), 0) << ir::opName(op);
  EXPECT_EQ(std::memcmp(compiled->data(), &expected, bytes), 0) << ir::opName(op);
}

TEST(RowChunks, BitsAreThoseOfTheWhole) {
  for (const Dim length : {Dim{1} << 18, (Dim{1} << 18) + 5 * ir::kRowChunk + 1234, Dim{300001}}) {
    expectBitsOfWhole(Op::Sum, dtype::f32, length);
    expectBitsOfWhole(Op::Amax, dtype::f32, length);
    expectBitsOfWhole(Op::Amin, dtype::f32, length, true);
    expectBitsOfWhole(Op::Amax, dtype::u8, length);
  }
}

TEST(RowChunks, OtherKernelsStayWhole) {
  const auto cut = [](Op op, const Shape& shape, const ir::Attrs& attrs) {
    ir::Graph graph;
    const ir::ValueId x = graph.addParameter({{dtype::f32, shape}, false});
    graph.setResults({graph.addNode(op, {x}, attrs)});
    const auto schedule = ir::scheduleSingleNode(graph, ir::Lowering::Kernels);
    return cpu::cutIntoChunks(schedule.kernels.at(0)).has_value();
  };
  EXPECT_TRUE(cut(Op::Sum, {1 << 20}, {0, 0}));
  EXPECT_FALSE(cut(Op::Sum, {1 << 20, 2}, {0, 0}));
  EXPECT_FALSE(cut(Op::Sum, {2, 1 << 20}, {0, 1}));
  EXPECT_FALSE(cut(Op::Exp, {1 << 20}, {}));
}

}  // namespace
}  // namespace fl::runtime
