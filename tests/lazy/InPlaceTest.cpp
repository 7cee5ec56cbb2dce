// Writes to a part of a tensor: in place if no other tensor has its elements, and with the same
// values either way.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <numeric>
#include <thread>

#include "fl/lazy/Compile.h"
#include "fl/tensor/tensor.h"
#include "tests/ErrorOf.h"
#include "tests/lazy/BufferLog.h"
#include "tests/lazy/Counts.h"

namespace fl::testing {
namespace {

using Values = std::vector<float>;

constexpr Dim kSide = 1000;
constexpr size_t kLarge = kSide * kSide * sizeof(float);

// How many buffers of the tensor below, or larger ones, `work` makes.
int largeBuffers(const std::function<void()>& work) {
  return static_cast<int>(
      std::ranges::count_if(buffersMade(work), [](size_t bytes) { return bytes >= kLarge; }));
}

// In memory, and nobody else's.
Tensor largeTensor() {
  Tensor x = iota({kSide, kSide});
  x.scalar<float>();
  return x;
}

float at(const Tensor& x, Dim i, Dim j) { return x(i, j).scalar<float>(); }

class InPlace : public ::testing::TestWithParam<const char*> {
 private:
  const BackendScope scope_{GetParam()};
};

INSTANTIATE_TEST_SUITE_P(Backends, InPlace, ::testing::Values("lazy", "eager"),
                         [](const auto& test) { return std::string(test.param); });

TEST_P(InPlace, WritesWhereTheElementsAre) {
  Tensor x = largeTensor();
  const Tensor row = full({kSide}, 7.0);
  EXPECT_EQ(largeBuffers([&] {
              x.flat(3) = -1.0;
              EXPECT_EQ(at(x, 3, 0), -1);
              x(5, 1) = row(0);
              EXPECT_EQ(at(x, 5, 1), 7);
              x(span, 2) = row;
              x(range(0, 10), range(3, 9, 2)) += 0.5;
              x(span, 4)(range(2, 4)) = 9.0;
              EXPECT_EQ(at(x, 999, 2), 7);
              EXPECT_EQ(at(x, 9, 5), 5009.5);
              EXPECT_EQ(at(x, 3, 4), 9);
            }),
            0);
  EXPECT_EQ(at(x, 4, 0), 4);
  EXPECT_EQ(at(x, 4, 4), 4004);
}

Tensor indices(const std::vector<int>& places, dtype type) {
  Tensor made = Tensor::fromVector(places).astype(type);
  made.flat(0).astype(dtype::s32).scalar<int>();
  return made;
}

// Indices are looked at before anything is written, those that the plan makes of others, too.
TEST_P(InPlace, WritesAtIndicesWhereTheElementsAre) {
  for (const dtype type : {dtype::s64, dtype::s32}) {
    Tensor x = largeTensor();
    const Tensor rows = full({kSide, 3}, 7.0), columns = transpose(rows), four = full({4}, 4.0);
    const Tensor places = indices({5, 999, 5}, type), flat = indices({3, 1001, 2, 7}, type);
    for (const Tensor& each : {rows, columns, four}) each.flat(0).scalar<float>();
    const float* const before = x.device<float>();
    x.unlock();
    const uint64_t moved = runtime::counters().bytesMoved;
    EXPECT_EQ(largeBuffers([&] {
                x(span, places) = rows;
                EXPECT_EQ(at(x, 3, 999), 7);
                x(span, places) += rows;
                EXPECT_EQ(at(x, 999, 5), 21);
                x(places, span) = columns;
                EXPECT_EQ(at(x, 999, 0), 7);
                x.flat(flat) += four;
                EXPECT_EQ(at(x, 3, 0), 7);
              }),
              0);
    // Rows are read and written, when added to also read; with them indices and what is read here.
    EXPECT_LT(runtime::counters().bytesMoved - moved, 7 * 3 * kSide * sizeof(float) + 1000);
    EXPECT_EQ(x.device<float>(), before);
    x.unlock();
    EXPECT_EQ(at(x, 999, 5), 7);
    EXPECT_EQ(at(x, 998, 5), 21);
    EXPECT_EQ(at(x, 1, 1), 1005);
    EXPECT_EQ(at(x, 998, 998), 998998);
  }
}

TEST_P(InPlace, OfASharedValueIndicesWriteACopy) {
  Tensor x = largeTensor();
  const Tensor copy = x, places = indices({5, 4}, dtype::s64), rows = full({kSide, 2}, 7.0);
  rows.flat(0).scalar<float>();
  EXPECT_EQ(largeBuffers([&] {
              x(span, places) = rows;
              EXPECT_EQ(at(x, 3, 5), 7);
              x(span, places) += rows;
              EXPECT_EQ(at(x, 3, 5), 14);
            }),
            1);
  EXPECT_EQ(at(copy, 3, 5), 5003);
  // What is written may be of the tensor itself.
  x(span, places) = x(span, range(5, 7));
  x(span, places) = x(span, range(4, 6));
  EXPECT_EQ(at(x, 3, 4), 14);
  EXPECT_EQ(at(x, 3, 5), 6003);
  x(indices({0, 1}, dtype::s64), span) = x(range(1, 3), span);
  EXPECT_EQ(at(x, 0, 9), 9001);
  EXPECT_EQ(at(x, 1, 9), 9002);
}

TEST_P(InPlace, ASharedValueIsCopiedOnce) {
  Tensor x = largeTensor();
  Tensor copy = x;
  EXPECT_EQ(largeBuffers([&] {
              x.flat(3) = -1.0;
              EXPECT_EQ(at(x, 3, 0), -1);
              x.flat(4) = -1.0;
              EXPECT_EQ(at(x, 4, 0), -1);
            }),
            1);
  EXPECT_EQ(at(copy, 3, 0), 3);
  EXPECT_EQ(at(copy, 4, 0), 4);
  const Tensor flat = copy.flatten();
  flat.scalar<float>();
  copy.flat(3) = -2.0;
  EXPECT_EQ(at(copy, 3, 0), -2);
  EXPECT_EQ(flat(3).scalar<float>(), 3);
}

// A box with a step of 1 or more in each dimension.
struct Box {
  Dim begin[3], end[3], step[3];
};

TEST_P(InPlace, OfASharedValueOnlyWhatStaysIsCopied) {
  constexpr Dim kShape[] = {1200, 40, 7};
  constexpr Dim kElements = 1200 * 40 * 7;
  const Tensor old = iota({1200, 40, 7});
  old.scalar<float>();
  const Box boxes[] = {{{0, 0, 3}, {1200, 40, 4}, {1, 1, 1}},   // one run
                       {{0, 10, 0}, {1200, 30, 7}, {1, 1, 1}},  // runs of lines
                       {{0, 1, 2}, {1200, 40, 5}, {1, 1, 1}},   // in some planes
                       {{100, 3, 1}, {1199, 9, 6}, {1, 1, 1}},  // parts of lines
                       {{0, 0, 0}, {1200, 40, 7}, {1, 3, 2}},   // lines apart
                       {{5, 0, 0}, {9, 40, 7}, {1, 1, 1}},      // short runs
                       {{1, 0, 0}, {1200, 40, 7}, {2, 1, 1}}};  // single elements
  for (const Box& box : boxes) {
    Values expected = old.toHostVector<float>();
    Dim written = 1;
    for (int axis = 0; axis < 3; ++axis) {
      written *= (box.end[axis] - box.begin[axis] + box.step[axis] - 1) / box.step[axis];
    }
    for (Dim k = box.begin[2]; k < box.end[2]; k += box.step[2]) {
      for (Dim j = box.begin[1]; j < box.end[1]; j += box.step[1]) {
        for (Dim i = box.begin[0]; i < box.end[0]; i += box.step[0]) {
          expected[i + kShape[0] * (j + kShape[1] * k)] = -1;
        }
      }
    }
    Tensor x = old;
    const uint64_t moved = runtime::counters().bytesMoved;
    x(range(box.begin[0], box.end[0], box.step[0]), range(box.begin[1], box.end[1], box.step[1]),
      range(box.begin[2], box.end[2], box.step[2])) = -1.0;
    EXPECT_EQ(x.toHostVector<float>(), expected);
    const bool isLong = box.step[0] == 1 && box.end[0] - box.begin[0] > 1024;
    const Dim copied = isLong ? kElements - written : kElements;
    // In eager mode the number is first spread over a tensor of the box.
    const Dim moves = GetParam() == std::string("eager") ? 3 : 1;
    EXPECT_EQ(runtime::counters().bytesMoved - moved,
              sizeof(float) * (2 * copied + moves * written));
  }
  EXPECT_EQ(old.flat(kElements - 1).scalar<float>(), static_cast<float>(kElements - 1));
}

TEST_P(InPlace, BothOfTwoThatShareAreWritten) {
  Tensor x = largeTensor(), y = x;
  x.flat(3) = -1.0;
  y.flat(4) = -2.0;
  EXPECT_EQ(at(x, 3, 0), -1);
  EXPECT_EQ(at(x, 4, 0), 4);
  EXPECT_EQ(at(y, 3, 0), 3);
  EXPECT_EQ(at(y, 4, 0), -2);
}

TEST_P(InPlace, ALoopOverABatchFillsOneBuffer) {
  constexpr int kImages = 8;
  const Tensor image = largeTensor();
  Tensor batch;
  EXPECT_LE(largeBuffers([&] {
              batch = full({kSide, kSide, kImages}, 0.0);
              for (int i = 0; i < kImages; ++i) {
                batch(span, span, i) = image + static_cast<double>(i);
              }
              batch.scalar<float>();
            }),
            // the batch and, one after the other, what is written
            1 + kImages);
  for (int i = 0; i < kImages; ++i) {
    EXPECT_EQ(batch(7, 1, i).scalar<float>(), 1007.0f + static_cast<float>(i));
  }
}

TEST_P(InPlace, EarlierReadsDoNotSeeTheWrite) {
  Tensor x = largeTensor();
  const Tensor before = x(span, 0) * 2.0, sumBefore = sum(x(range(0, 3), 0));
  x.flat(1) = 100.0;
  const Tensor after = x(span, 0) * 2.0;
  EXPECT_EQ(after(1).scalar<float>(), 200);
  EXPECT_EQ(before(1).scalar<float>(), 2);
  EXPECT_EQ(sumBefore.scalar<float>(), 3);
  Tensor y = iota({4}) + 1.0;
  const Tensor old = y.copy();
  y(0) = 5.0;
  const Tensor both = old + y;
  EXPECT_EQ(both.toHostVector<float>(), (Values{6, 4, 6, 8}));
}

TEST_P(InPlace, AViewSeesTheWrite) {
  Tensor x = largeTensor();
  const auto column = x(span, 1);
  x(2, 1) = -1.0;
  EXPECT_EQ(column(2).scalar<float>(), -1);
}

TEST_P(InPlace, WhatIsWrittenMayBeOfTheSameTensor) {
  for (const bool ready : {true, false}) {
    const auto make = [&] {
      Tensor x = iota({4, 4});
      if (ready) {
        x.scalar<float>();
      }
      return x;
    };
    Tensor x = make().flatten();
    x(range(1, 5)) = x(range(0, 4));
    EXPECT_EQ(x(range(0, 6)).toHostVector<float>(), (Values{0, 0, 1, 2, 3, 5}));
    x = make().flatten();
    x(range(0, 4)) = x(range(1, 5)) + x(range(0, 4));
    EXPECT_EQ(x(range(0, 6)).toHostVector<float>(), (Values{1, 3, 5, 7, 4, 5}));
    x = make();
    x(range(0, 3), span) = transpose(x)(range(0, 3), span);
    EXPECT_EQ(x.toHostVector<float>(),
              (Values{0, 4, 8, 3, 1, 5, 9, 7, 2, 6, 10, 11, 3, 7, 11, 15}));
    x = make();
    x(span) = transpose(x);
    EXPECT_EQ(x(span, 0).toHostVector<float>(), (Values{0, 4, 8, 12}));
    x = make();
    for (int i = 0; i < 4; ++i) {
      x(i, 0) = x(3 - i, 0) * 2.0;
    }
    EXPECT_EQ(x(span, 0).toHostVector<float>(), (Values{6, 4, 8, 12}));
  }
}

// What a failing plan wrote before would be lost, or counted twice when it is tried again.
TEST_P(InPlace, ABadIndexLeavesTheElements) {
  Tensor x = iota({4});
  x.scalar<float>();
  const Tensor bad = Tensor::fromVector(std::vector<int>{1, 4});
  EXPECT_THROW((x(bad) = full({2}, 9.0), x.scalar<float>()), std::invalid_argument);
  EXPECT_EQ(x.toHostVector<float>(), (Values{0, 1, 2, 3}));
  x(0) += 1.0;
  EXPECT_THROW(x(bad).scalar<float>(), std::invalid_argument);
  EXPECT_THROW((x(bad) += full({2}, 9.0), x.scalar<float>()), std::invalid_argument);
  EXPECT_EQ(x.toHostVector<float>(), (Values{1, 1, 2, 3}));
  const Tensor y = x * 1.0;
  EXPECT_THROW((x(2) = y(bad)(0), x.scalar<float>()), std::invalid_argument);
  EXPECT_EQ(x.toHostVector<float>(), (Values{1, 1, 2, 3}));
}

TEST_P(InPlace, APointerNeedsNoCopyButOfWhatIsShared) {
  Tensor x = largeTensor();
  EXPECT_EQ(largeBuffers([&] { x.device<float>()[3] = -1; }), 0);
  x.unlock();
  EXPECT_EQ(at(x, 3, 0), -1);
  const Tensor copy = x, pending = x + 1.0;
  EXPECT_GE(largeBuffers([&] { x.device<float>()[3] = -2; }), 1);
  const Tensor whileLocked = x;
  x(4, 0) = -3.0;
  x.unlock();
  x(4, 0) = -4.0;
  EXPECT_EQ(at(x, 3, 0), -2);
  EXPECT_EQ(at(x, 4, 0), -4);
  EXPECT_EQ(at(whileLocked, 4, 0), 4);
  EXPECT_EQ(at(copy, 3, 0), -1);
  EXPECT_EQ(at(pending, 3, 0), 0);
}

TEST_P(InPlace, MemoryOfTheHostIsNotWritten) {
  Values values = {1, 2, 3};
  Tensor x = Tensor::fromBuffer(Shape({3}), values.data(), MemoryLocation::Host);
  x(0) = 9.0;
  EXPECT_EQ(x.toHostVector<float>(), (Values{9, 2, 3}));
  EXPECT_EQ(values, (Values{1, 2, 3}));
}

// A value of one backend is overwritten by the other.
TEST_P(InPlace, AcrossBackends) {
  for (const char* other : {"lazy", "eager"}) {
    Tensor x = largeTensor();
    const BackendScope scope(other);
    EXPECT_EQ(largeBuffers([&] {
                x.flat(3) = -1.0;
                EXPECT_EQ(at(x, 3, 0), -1);
              }),
              0);
    const Tensor copy = x;
    x.flat(3) = -2.0;
    EXPECT_EQ(at(x, 3, 0), -2);
    EXPECT_EQ(at(copy, 3, 0), -1);
  }
}

// What another thread has read of a copy is read before the copy goes and the write comes.
TEST_P(InPlace, CopiesOnOtherThreadsKeepTheirElements) {
  Tensor x = full({1000}, 0.0);
  x.scalar<float>();
  for (int i = 1; i <= 50; ++i) {
    std::thread reader([copy = x, i, backend = GetParam()]() mutable {
      const BackendScope scope(backend);
      const Values values = copy.toHostVector<float>();
      copy = Tensor();
      EXPECT_EQ(std::accumulate(values.begin(), values.end(), 0.0f), static_cast<float>(i - 1));
    });
    x.flat(i) = 1.0;
    EXPECT_EQ(x.flat(i).scalar<float>(), 1);
    reader.join();
  }
}

// What only reads it before holds it no longer.
TEST(InPlaceLazy, WritesBehindEval) {
  const BackendScope scope("lazy");
  Tensor x = largeTensor();
  EXPECT_EQ(largeBuffers([&] {
              Tensor total = sum(x);
              eval(total);
              x.flat(3) = -1.0;
              EXPECT_EQ(at(x, 3, 0), -1);
            }),
            0);
}

// Their indices cannot be bad, so that nothing that follows the write may fail.
TEST(InPlaceLazy, WritesBeforeTheLibraryLooksUp) {
  const BackendScope scope("lazy");
  const std::function<Tensor(const Tensor&)> functions[] = {
      [](const Tensor& x) { return sort(x, 0); },
      [](const Tensor& x) { return argsort(x, 0).astype(dtype::f32); },
      [](const Tensor& x) { return roll(x, 3, 0); },
      [](const Tensor& x) {
        Tensor values, indices;
        topk(values, indices, x, 4, 0, SortMode::Ascending);
        return values + indices;
      },
  };
  Tensor x = largeTensor();
  for (const auto& function : functions) {
    Values first;
    EXPECT_EQ(largeBuffers([&] {
                x.flat(3) = -1.0;
                first = function(x(range(0, 5), 0)).toHostVector<float>();
              }),
              0);
    EXPECT_EQ(first, function(Tensor::fromVector(Values{0, 1, 2, -1, 4})).toHostVector<float>());
  }
}

TEST(InPlaceLazy, AMapTakesTheBufferOfWhatItReplaces) {
  const BackendScope scope("lazy");
  Tensor x = largeTensor();
  const Tensor y = largeTensor();
  EXPECT_EQ(largeBuffers([&] {
              for (int i = 0; i < 3; ++i) {
                x = (x + y) * 0.5;
                EXPECT_EQ(at(x, 7, 1), 1007);
              }
            }),
            0);
  EXPECT_EQ(at(y, 7, 1), 1007);
}

TEST(InPlaceLazy, OnlyWhatNobodyNeedsIsTaken) {
  const BackendScope scope("lazy");
  const auto buffersOf = [](auto&& work) { return largeBuffers(work); };
  Tensor x = largeTensor();
  const Tensor copy = x;
  EXPECT_EQ(buffersOf([&] { EXPECT_EQ(at(x = x + 1.0, 3, 0), 4); }), 1) << "a copy has it";
  EXPECT_EQ(at(copy, 3, 0), 3);
  EXPECT_EQ(buffersOf([&] { EXPECT_EQ(at(x = transpose(x), 3, 0), 3001); }), 1)
      << "its elements are read after others are written";
  EXPECT_EQ(buffersOf([&] { EXPECT_EQ(at(x = x + x(span, 0), 3, 0), 6002); }), 1)
      << "one column is read by all";
  EXPECT_EQ(buffersOf([&] { EXPECT_EQ((x = x.astype(dtype::f64))(3, 0).scalar<double>(), 6002); }),
            1)
      << "the elements are larger";
  Tensor z = largeTensor() * 0.0 + 1.0, later;
  z.scalar<float>();
  EXPECT_EQ(buffersOf([&] {
              later = matmul(z, full({kSide, 1}, 1.0));
              z = z + 1.0;
              EXPECT_EQ(at(z, 3, 0), 2);
            }),
            0)
      << "what reads it comes before";
  EXPECT_EQ(at(later, 0, 0), 1000);
}

// A write would have to copy what the map took, and the map takes a buffer of its own instead.
TEST(InPlaceLazy, AWriteGoesBeforeAMap) {
  const BackendScope scope("lazy");
  Tensor x = largeTensor();
  const Tensor column = full({kSide}, 7.0);
  column.scalar<float>();
  const uint64_t moved = runtime::counters().bytesMoved;
  const Tensor y = x * 2.0;
  x(span, 3) = column;
  EXPECT_EQ(at(y, 5, 3), 6010);
  EXPECT_EQ(at(x, 5, 3), 7);
  EXPECT_EQ(at(x, 5, 4), 4005);
  EXPECT_LE(runtime::counters().bytesMoved - moved, 2 * kLarge + 4 * kSide * sizeof(float));
}

// Several results of one kernel are in the memory of what it reads; of sizes that leave parts of
// vectors and tiles, on one thread and on several.
TEST(InPlaceLazy, SeveralResultsOfAKernelTakeBuffers) {
  for (const dtype type : {dtype::f32, dtype::bf16, dtype::f64}) {
    for (const Dim size : {1, 31, 64, 65, 1000, 70001}) {
      const auto run = [&](const char* backend) {
        const BackendScope scope(backend);
        std::vector<Tensor> state;
        for (int i = 1; i <= 4; ++i) {
          state.push_back(((iota({size}) + 1.0) / static_cast<double>(i)).astype(type));
          fl::eval(state.back());
        }
        fl::sync();
        for (int step = 0; step < 2; ++step) {
          state[1] = state[1] * 0.5 + state[0];
          state[2] = state[2] * 0.25 + state[0] * state[0];
          state[3] = state[3] - state[1] / (sqrt(state[2]) + 1.0);
          fl::eval(state[3]);
          fl::sync();
        }
        Values values;
        for (const Tensor& tensor : state) {
          const Values all = tensor.astype(dtype::f32).toHostVector<float>();
          values.insert(values.end(), all.begin(), all.end());
        }
        return values;
      };
      EXPECT_EQ(run("lazy"), run("eager")) << dtypeToString(type) << " " << size;
    }
  }
}

// Each of two kernels reads both, so that the first must leave both and the second takes one.
TEST(InPlaceLazy, WhatALaterKernelReadsStays) {
  const BackendScope scope("lazy");
  Tensor x = largeTensor(), y = largeTensor() * 2.0;
  y.scalar<float>();
  EXPECT_EQ(largeBuffers([&] {
              for (int i = 0; i < 4; ++i) {
                const Tensor sum = x + y;
                y = x - y;
                x = sum;
                x.scalar<float>();
              }
            }),
            4);
  // (x + y, x - y) twice is (2 x, 2 y).
  EXPECT_EQ(at(x, 5, 2), 4 * 2005);
  EXPECT_EQ(at(y, 5, 2), 8 * 2005);
}

TEST(InPlaceLazy, AFailedPlanTakesNothing) {
  const BackendScope scope("lazy");
  Tensor x = largeTensor();
  const Tensor bad = Tensor::fromVector(std::vector<int>{kSide});
  x = x + 1.0;
  const Tensor looked = x(bad, span);
  for (int i = 0; i < 2; ++i) {
    EXPECT_THROW(looked.scalar<float>(), std::invalid_argument);
  }
  EXPECT_EQ(at(x, 3, 0), 4);
}

// A chain of updates in one plan writes each box once, and nothing else.
TEST(InPlaceLazy, AChainRunsAKernelForEachBox) {
  Tensor x = largeTensor();
  const Counts counts;
  const uint64_t moved = runtime::counters().bytesMoved;
  for (int i = 0; i < 10; ++i) {
    x.flat(i) = static_cast<double>(i);
  }
  x.scalar<float>();
  EXPECT_LE(counts.launches(), 11u);
  EXPECT_LE(runtime::counters().bytesMoved - moved, 1000u);
}

// As a transformer writes to the caches of all of its layers, and a table is trained: indices that
// are parameters, or made before the first write, are checked there.
TEST(InPlaceLazy, WritesAtIndicesOfOnePlanTakeNoBuffers) {
  const BackendScope scope("lazy");
  for (const dtype type : {dtype::s64, dtype::s32}) {
    Tensor caches[] = {largeTensor(), largeTensor(), largeTensor()}, table = largeTensor();
    const Tensor place = indices({5}, type), words = indices({3, 999, 3}, type);
    const uint64_t moved = runtime::counters().bytesMoved;
    EXPECT_EQ(largeBuffers([&] {
                Tensor row = sum(table(span, words), {1}, /*keepDims=*/true);
                for (Tensor& cache : caches) {
                  cache(span, place) = row;
                  row = row + cache(span, range(4, 5));
                  cache(span, place) += row;
                }
                table(span, words) += row * full({1, 3}, 0.5);
                row.flat(0).scalar<float>();
              }),
              0);
    EXPECT_LT(runtime::counters().bytesMoved - moved, kLarge / 4);
    // Of column 0, the table's rows are 3000 twice and 999000, and those of the caches 4000.
    EXPECT_EQ(at(caches[0], 0, 5), 2 * 1005000 + 4000);
    EXPECT_EQ(at(caches[2], 0, 5), 2 * (1005000 + 8000) + 4000);
    EXPECT_EQ(at(caches[2], 7, 6), 6007);
    EXPECT_EQ(at(table, 0, 999), 999000 + 0.5 * (1005000 + 12000));
    EXPECT_EQ(at(table, 0, 3), 3000 + 1005000 + 12000);
  }
}

// All of a plan's indices are looked at before it writes over the first tensor.
TEST(InPlaceLazy, ABadIndexOfOneWriteLeavesAll) {
  const BackendScope scope("lazy");
  for (const dtype type : {dtype::s64, dtype::s32}) {
    Tensor x = largeTensor(), y = largeTensor();
    const Tensor good = indices({5}, type), bad = indices({4, 1000, -1}, type);
    const Tensor rows = full({kSide, 3}, 7.0);
    rows.flat(0).scalar<float>();
    const float* const before = x.device<float>();
    x.unlock();
    x(span, good) = rows(span, range(0, 1));
    const std::string line = std::to_string(__LINE__ + 1);
    y(span, bad) = rows;
    EXPECT_EQ(test::errorOf([&] { (y + x).scalar<float>(); }),
              "index: f32[1000,1000]: 1000 is out of range for dimension 1 of 1000 elements, at "
              "tests/lazy/InPlaceTest.cpp:" +
                  line);
    EXPECT_EQ(at(y, 3, 4), 4003);
    EXPECT_EQ(at(x, 3, 5), 7);
    EXPECT_EQ(at(x, 3, 6), 6003);
    EXPECT_EQ(x.device<float>(), before);
    x.unlock();
  }
}

// The product of 16-bit floats works on f32 copies, for which there is room where the sines
// were.
TEST(ScratchMemory, LiesWhereTemporariesWere) {
  const BackendScope lazy("lazy");
  const Tensor x = largeTensor(), y = full({kSide}, 1.0);
  y.scalar<float>();
  const size_t peak = peakGrowth([&] {
    const Tensor sums = matmul(sin(x), y)(range(0, 500)).astype(dtype::f16);
    const Tensor product = matmul(reshape(sums, {500, 1}), reshape(sums, {1, 500}));
    sum(product.astype(dtype::f32)).scalar<float>();
  });
  EXPECT_GE(peak, kLarge);
  EXPECT_LT(peak, kLarge + kLarge / 2)
      << "the copies, a quarter of kLarge, are not beside the sines";
}

}  // namespace
}  // namespace fl::testing
