// Kernels whose results exceed the caches write around them, and row kernels keep short rows: which
// launches do, and that the bits are those of the tile interpreter.
#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <numeric>

#include "fl/base/Error.h"
#include "fl/codegen/Compilation.h"
#include "fl/codegen/cpu/Emitter.h"
#include "fl/runtime/Device.h"
#include "fl/runtime/MemoryManager.h"

namespace fl::runtime {
namespace {

using ir::Op;
using ir::Stores;
using ir::ValueType;

class StreamingTest : public ::testing::Test {
 protected:
  // Softmax along rows, by its definition.
  std::unique_ptr<LoadedSchedule> loadSoftmax(Dim length, Dim rows) {
    ir::Graph graph;
    const Shape shape({length, rows});
    const ir::ValueId x = graph.addParameter({{dtype::f32, shape}, false});
    const ir::ValueId largest = graph.addNode(Op::Amax, {x}, {1, 0});
    const ir::ValueId difference = graph.addNode(Op::Sub, {x, largest}, {});
    const ir::ValueId power = graph.addNode(Op::Exp, {difference}, {});
    const ir::ValueId sum = graph.addNode(Op::Sum, {power}, {1, 0});
    graph.setResults({graph.addNode(Op::Div, {power, sum}, {})});
    return device_->load(codegen::compile(graph, {}).schedule, &kernels_);
  }
  // -x^T, or -(x^T + y), rounded to f16.
  std::unique_ptr<LoadedSchedule> loadTransposed(const ValueType& x, bool adds) {
    ir::Graph graph;
    const ir::ValueId input = graph.addParameter({x, false});
    const Shape shape({x.shape[1], x.shape[0]});
    const ir::ValueId other = adds ? graph.addParameter({{x.type, shape}, false}) : -1;
    ir::ValueId value = graph.addNode(Op::Transpose, {input}, {1, 0});
    if (adds) value = graph.addNode(Op::Add, {value, other}, {});
    value = graph.addNode(Op::Negative, {value}, {});
    graph.setResults({graph.addNode(Op::Cast, {value}, {static_cast<Dim>(dtype::f16)})});
    return device_->load(codegen::compile(graph, {}).schedule, &kernels_);
  }
  std::unique_ptr<LoadedSchedule> load(Op op, const std::vector<ValueType>& operands,
                                       const ir::Attrs& attrs = {}) {
    ir::Graph graph;
    std::vector<ir::ValueId> ids;
    for (const ValueType& operand : operands) {
      ids.push_back(graph.addParameter({operand, false}));
    }
    graph.setResults({graph.addNode(op, ids, attrs)});
    return device_->load(ir::scheduleSingleNode(graph, device_->lowering()), &kernels_);
  }
  Stores storesOf(Op op, const std::vector<ValueType>& operands, const ir::Attrs& attrs = {}) {
    return load(op, operands, attrs)->kernels().at(0)->stores();
  }

  // Compiled and interpreted give the same bytes.
  void expectSameBits(Op op, const std::vector<ValueType>& operands, const ir::Attrs& attrs = {},
                      Stores stores = Stores::Streaming) {
    const auto plan = load(op, operands, attrs);
    ASSERT_EQ(plan->kernels().at(0)->stores(), stores) << ir::opName(op);
    expectSameBits(*plan, operands);
  }
  void expectSameBits(const LoadedSchedule& plan, const std::vector<ValueType>& operands) {
    std::vector<MemoryBlockPtr> buffers;
    for (const ValueType& operand : operands) {
      buffers.push_back(makeBlock(nullptr, bytesOf(operand.type, operand.shape)));
      auto* bytes = static_cast<unsigned char*>(buffers.back()->data());
      for (size_t i = 0; i < buffers.back()->bytes(); ++i) {
        bytes[i] = static_cast<unsigned char>((i * 2654435761u) >> 13 & 0x3f);
      }
    }
    const std::vector<Number> numbers(operands.size());
    const MemoryBlockPtr interpreted = plan.run(buffers, numbers)[0];
    DeviceKernel& kernel = *plan.kernels()[0];
    kernel.setArtifact(
        codegen::cpu::emitKernel(kernel.kernel(), device_->target(), "kernel", kernel.stores()));
    const MemoryBlockPtr compiled = plan.run(buffers, numbers)[0];
    ASSERT_EQ(compiled->bytes(), interpreted->bytes());
    EXPECT_EQ(std::memcmp(compiled->data(), interpreted->data(), compiled->bytes()), 0)
        << printKernel(kernel.kernel(), "k");
  }

  std::unique_ptr<Device> device_ = makeDevice("cpu");
  KernelCache kernels_;
};

constexpr Dim kLarge = Dim{1} << 23;

TEST_F(StreamingTest, LargeMapsAlongMemoryStream) {
  EXPECT_EQ(storesOf(Op::Exp, {{dtype::f32, {kLarge}}}), Stores::Streaming);
  // Waits for arithmetic.
  EXPECT_EQ(storesOf(Op::Tanh, {{dtype::f32, {kLarge}}}), Stores::Fetching);
  EXPECT_EQ(storesOf(Op::Tanh, {{dtype::f32, {1024}}}), Stores::Cached);
  // What no cache of level 2 holds.
  EXPECT_EQ(storesOf(Op::Tanh, {{dtype::f32, {kLarge / 8}}}), Stores::Fetching);
  EXPECT_EQ(storesOf(Op::Negative, {{dtype::f32, {kLarge / 8 - 1}}}), Stores::Cached);
  EXPECT_EQ(storesOf(Op::Exp, {{dtype::bf16, {2 * kLarge}}}), Stores::Fetching);
  EXPECT_EQ(storesOf(Op::Exp, {{dtype::f32, {1024}}}), Stores::Cached);
  EXPECT_EQ(storesOf(Op::Add, {{dtype::f32, {64, kLarge / 64}}, {dtype::f32, {64}}}),
            Stores::Streaming);
  EXPECT_EQ(storesOf(Op::Transpose, {{dtype::f32, {1024, 1024}}}, {1, 0}), Stores::Streaming);
  EXPECT_EQ(storesOf(Op::Transpose, {{dtype::f32, {1024, 512}}}, {1, 0}), Stores::Cached);
}

// A map moves whole cache lines, those of every second element too, and what it looks up.
TEST_F(StreamingTest, WhatIsSkippedOrLookedUpCounts) {
  const auto storesOfEverySecond = [&](Dim elements) {
    return storesOf(Op::Slice, {{dtype::f16, {elements}}}, {1, elements / 2, 2, 0});
  };
  EXPECT_EQ(storesOfEverySecond(2 * kLarge), Stores::Streaming);
  EXPECT_EQ(storesOfEverySecond(kLarge), Stores::Fetching);
  EXPECT_EQ(storesOfEverySecond(kLarge / 8), Stores::Cached);
  constexpr Dim kWidth = 64, kLines = 2 * kLarge / kWidth;
  const auto storesOfLookup = [&](Dim lines) {
    return storesOf(Op::Gather, {{dtype::f16, {kWidth, lines}}, {dtype::s64, {1, kLines}}}, {1, 1});
  };
  EXPECT_EQ(storesOfLookup(kLines), Stores::Streaming);
  EXPECT_EQ(storesOfLookup(kLines / 4), Stores::Cached);  // from a table that is read again
}

// What is read again at each index of the last axis is taken in pieces, which end anywhere.
TEST_F(StreamingTest, WhatIsReadAgainComesInTurns) {
  constexpr Dim kLine = (Dim{1} << 20) + 5, kTimes = 3;
  const auto plan = load(Op::Add, {{dtype::f32, {kLine, kTimes}}, {dtype::f32, {kLine}}});
  std::vector<MemoryBlockPtr> buffers;
  for (const Dim elements : {kLine * kTimes, kLine}) {
    buffers.push_back(makeBlock(nullptr, elements * sizeof(float)));
    auto* values = static_cast<float*>(buffers.back()->data());
    std::iota(values, values + elements, 0.0f);
  }
  const MemoryBlockPtr sums = plan->run(buffers, std::vector<Number>(2))[0];
  const auto* sum = static_cast<const float*>(sums->data());
  for (Dim i = 0; i < kLine * kTimes; ++i) {
    ASSERT_EQ(sum[i], static_cast<float>(i + i % kLine)) << i;
  }
}

TEST_F(StreamingTest, ShortRowsAreKept) {
  const auto storesOfSoftmax = [&](Dim length, Dim rows) {
    const auto plan = loadSoftmax(length, rows);
    EXPECT_EQ(plan->kernels().size(), 1);
    return plan->kernels()[0]->stores();
  };
  EXPECT_EQ(storesOfSoftmax(1000, 64), Stores::Keeping);
  EXPECT_EQ(storesOfSoftmax(ir::kMaxKeptRow, 2), Stores::Keeping);
  EXPECT_EQ(storesOfSoftmax(ir::kMaxKeptRow + 1, 2), Stores::Cached);
  EXPECT_EQ(storesOfSoftmax(4096, 2048), Stores::Streaming);
  EXPECT_EQ(storesOfSoftmax(4097, 2048), Stores::Keeping);
  for (const auto& [length, rows] : {std::pair<Dim, Dim>{1000, 64}, {4096, 2048}}) {
    const std::vector<ValueType> operands = {{dtype::f32, {length, rows}}};
    expectSameBits(*loadSoftmax(length, rows), operands);
  }
}

TEST_F(StreamingTest, ShorterRowsAreTakenSideBySide) {
  const auto storesOfSum = [&](Dim length, Dim rows) {
    return storesOf(Op::Sum, {{dtype::f32, {length, rows}}}, {0, 0});
  };
  EXPECT_EQ(storesOfSum(2, 1000), Stores::Across);
  EXPECT_EQ(storesOfSum(10, 1000), Stores::Across);
  EXPECT_EQ(storesOfSum(11, 1000), Stores::Cached);
  EXPECT_EQ(storesOfSum(2, 15), Stores::Cached);
  for (Dim length = 1; length <= 70; ++length) {
    const std::vector<ValueType> operands = {{dtype::f32, {length, 300}}};
    const bool isShort = 1 < length && length <= 10;
    for (const Op op : {Op::Sum, Op::Amax}) {
      expectSameBits(op, operands, {0, 0}, isShort ? Stores::Across : Stores::Cached);
    }
    const auto softmax = loadSoftmax(length, 300);
    EXPECT_EQ(softmax->kernels()[0]->stores() == Stores::Across, isShort) << length;
    expectSameBits(*softmax, operands);
  }
}

TEST_F(StreamingTest, OtherLayoutsDoNot) {
  EXPECT_EQ(storesOf(Op::Sum, {{dtype::f32, {64, kLarge / 32}}}, {0, 1}), Stores::Fetching);
  EXPECT_EQ(storesOf(Op::Sum, {{dtype::f32, {64, 1024}}}, {0, 1}), Stores::Cached);
  EXPECT_EQ(storesOf(Op::Transpose, {{dtype::f32, {4095, 4097}}}, {1, 0}), Stores::Fetching);
  // Runs of vectors that are aligned, but not of whole cache lines.
  expectSameBits(Op::Transpose, {{dtype::f16, {2053, 2064}}}, {1, 0}, Stores::Fetching);
  expectSameBits(Op::Transpose, {{dtype::u8, {4099, 3600}}}, {1, 0}, Stores::Fetching);
  // Runs that begin anywhere.
  EXPECT_EQ(storesOf(Op::Add, {{dtype::f32, {63, kLarge / 32}}, {dtype::f32, {63}}}),
            Stores::Fetching);
}

// What asks for lines ahead of time, also behind the end of what there is, computes the same.
TEST_F(StreamingTest, WhatFetchesAheadComputesTheSame) {
  for (const dtype type : {dtype::f32, dtype::bf16}) {
    const ValueType large = {type, {64, kLarge / 16 + 3}};
    expectSameBits(Op::Tanh, {large}, {}, Stores::Fetching);
    expectSameBits(Op::Amax, {large}, {0, 1}, Stores::Fetching);
    expectSameBits(Op::Amax, {large}, {0, 0}, Stores::Fetching);
    for (const Dim stride : {2, -1}) {
      const Dim elements = kLarge / 2 + 5, start = stride < 0 ? elements - 1 : 0;
      expectSameBits(Op::Slice, {{type, {elements}}},
                     {1, elements / std::abs(stride), stride, start}, Stores::Fetching);
    }
  }
}

// Long runs that begin anywhere find where they are aligned; short ones follow one another.
TEST_F(StreamingTest, RunsAreAligned) {
  for (const dtype type : {dtype::f64, dtype::f32, dtype::f16, dtype::u8}) {
    const auto size = static_cast<Dim>(getTypeSize(type));
    const Dim run = 2048 / size + 3;
    expectSameBits(Op::Where, {{dtype::b8, {run}}, {type, {run, 40'000}}, {type, {run}}}, {},
                   Stores::Aligning);
    expectSameBits(Op::Concatenate, {{type, {run, 16'000}}, {type, {run + 1, 16'000}}}, {0},
                   Stores::Aligning);
    expectSameBits(Op::Transpose, {{type, {16, 16, 4, 64 * 1024 / size + 1}}}, {0, 2, 1, 3});
    expectSameBits(Op::Transpose, {{type, {48, 3, 5, 96 * 1024 / size + 1}}}, {0, 2, 1, 3});
  }
}

TEST_F(StreamingTest, BitsAreThoseOfOrdinaryStores) {
  expectSameBits(Op::Add, {{dtype::f32, {kLarge + 17}}, {dtype::f32, {kLarge + 17}}});
  expectSameBits(Op::Add, {{dtype::f32, {192, 50'001}}, {dtype::f32, {192}}});
  expectSameBits(Op::Negative, {{dtype::f64, {kLarge + 1}}});
  expectSameBits(Op::Cast, {{dtype::f32, {3 * kLarge / 2 + 5}}}, {static_cast<Dim>(dtype::f16)});
  expectSameBits(Op::Cast, {{dtype::f32, {3 * kLarge / 2 + 5}}}, {static_cast<Dim>(dtype::u8)});
  expectSameBits(Op::LogicalNot, {{dtype::s32, {3 * kLarge / 2 + 5}}});
  expectSameBits(Op::Transpose, {{dtype::f32, {3101, 2048}}}, {1, 0});
  expectSameBits(Op::Transpose, {{dtype::u8, {4099, 8192}}}, {1, 0});
  expectSameBits(Op::Transpose, {{dtype::f16, {4099, 4128}}}, {1, 0});
}

// Whole squares, which stay in registers, and parts of them; aligned results and others.
TEST_F(StreamingTest, TransposesTakeSquares) {
  for (const dtype type : {dtype::f32, dtype::f16, dtype::bf16, dtype::f64, dtype::b8, dtype::s16,
                           dtype::s32, dtype::s64, dtype::u8, dtype::u16, dtype::u32, dtype::u64}) {
    for (const auto& [x, y] : {std::pair<Dim, Dim>{192, 256}, {200, 136}, {130, 96}, {97, 63}}) {
      expectSameBits(Op::Transpose, {{type, {x, y}}}, {1, 0}, Stores::Cached);
      expectSameBits(Op::Transpose, {{type, {x, y, 3}}}, {1, 0, 2}, Stores::Cached);
    }
    expectSameBits(Op::Transpose, {{type, {1100, 8 * 1152}}}, {1, 0});
    expectSameBits(Op::Transpose, {{type, {1100, 8 * 1024 + 7}}}, {1, 0}, Stores::Fetching);
  }
}

TEST_F(StreamingTest, WhatIsComputedOfTransposesTakesSquares) {
  for (const dtype type : {dtype::f32, dtype::bf16, dtype::f64, dtype::f16}) {
    for (const auto& [x, y] : {std::pair<Dim, Dim>{192, 256}, {200, 136}, {97, 63}, {3000, 1024}}) {
      for (const bool adds : {false, true}) {
        const auto plan = loadTransposed({type, {x, y}}, adds);
        std::vector<ValueType> operands = {{type, {x, y}}};
        if (adds) operands.push_back({type, {y, x}});
        expectSameBits(*plan, operands);
      }
    }
  }
}

// The interpreter's program is made when the kernel runs: too late for a plan to do without it.
TEST_F(StreamingTest, AKernelThatIsNoneIsRefusedWhenItIsLoaded) {
  ir::Graph graph;
  const ir::ValueId x = graph.addParameter({{dtype::f32, Shape({4})}, false});
  graph.setResults({graph.addNode(Op::Negative, {x}, {})});
  ir::Schedule schedule = ir::scheduleSingleNode(graph, device_->lowering());
  schedule.kernels.at(0).values.back().type = dtype::b8;
  EXPECT_THROW(device_->load(std::move(schedule), &kernels_), InternalError);
}

}  // namespace
}  // namespace fl::runtime
