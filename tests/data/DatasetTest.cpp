#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

#include "fl/data/data.h"
#include "tests/ErrorOf.h"
#include "tests/Values.h"

namespace fl::test {
namespace {

// 0, 1, 2, ... in column-major order.
Tensor counting(const Shape& shape, dtype type = dtype::f32) {
  std::vector<float> values(shape.elements());
  for (size_t i = 0; i < values.size(); ++i) {
    values[i] = static_cast<float>(i);
  }
  return Tensor::fromVector(shape, values, type);
}

std::shared_ptr<TensorDataset> tensorsOf(std::vector<Tensor> tensors) {
  return std::make_shared<TensorDataset>(tensors);
}

TEST(TensorDataset, SamplesLieAlongTheLastDimension) {
  const TensorDataset dataset({counting({2, 3, 4}), counting({4}, dtype::s32), counting({5, 2})});
  EXPECT_EQ(dataset.size(), 4);
  std::vector<Tensor> sample = dataset.get(1);
  ASSERT_EQ(sample.size(), 3u);
  EXPECT_EQ(sample[0].shape(), Shape({2, 3}));
  EXPECT_EQ(valuesOf(sample[0]), (std::vector<float>{6, 7, 8, 9, 10, 11}));
  EXPECT_EQ(sample[1].shape(), Shape({1}));
  EXPECT_EQ(sample[1].type(), dtype::s32);
  EXPECT_EQ(valuesOf(sample[1]), (std::vector<float>{1}));
  EXPECT_EQ(valuesOf(sample[2]), (std::vector<float>{5, 6, 7, 8, 9}));
  EXPECT_TRUE(dataset.get(3)[2].isEmpty());
}

TEST(TensorDataset, SamplesAreValues) {
  Tensor source = counting({2, 3});
  const TensorDataset dataset({source});
  Tensor sample = dataset.get(0)[0];
  sample += 100;
  source += 1000;
  EXPECT_EQ(valuesOf(dataset.get(0)[0]), (std::vector<float>{0, 1}));
  EXPECT_EQ(valuesOf(sample), (std::vector<float>{100, 101}));
}

TEST(TensorDataset, Misuse) {
  const auto dataset = tensorsOf({counting({2, 3})});
  EXPECT_NE(
      errorOf<std::out_of_range>([&] { dataset->get(3); }).find("Dataset: no sample 3 among 3"),
      std::string::npos);
  EXPECT_THROW(dataset->get(-1), std::out_of_range);
  EXPECT_NE(errorOf([] { TensorDataset({}); }).find("TensorDataset: needs at least one tensor"),
            std::string::npos);
  EXPECT_NE(errorOf([] { TensorDataset({full(Shape(), 1.0)}); }).find("without dimensions"),
            std::string::npos);
}

TEST(MakeBatch, AddsALastDimension) {
  const Tensor batch = makeBatch({counting({2, 3}), counting({2, 3}) + 10, counting({2, 3})});
  EXPECT_EQ(batch.shape(), Shape({2, 3, 3}));
  EXPECT_EQ(valuesOf(batch)[6], 10);
  EXPECT_EQ(makeBatch({counting({1}), counting({1})}).shape(), Shape({2}));
  EXPECT_EQ(makeBatch({counting({1, 1}), counting({1, 1})}).shape(), Shape({2, 1}));
  EXPECT_EQ(makeBatch({counting({2, 1}), counting({2, 1})}).shape(), Shape({2, 1, 2}));
  EXPECT_EQ(makeBatch({counting({2}), counting({2}, dtype::s32)}).type(), dtype::f32);
  EXPECT_TRUE(makeBatch({}).isEmpty());
  const auto add = [](const std::vector<Tensor>& data) { return data[0] + data[1]; };
  EXPECT_EQ(valuesOf(makeBatch({counting({2}), counting({2})}, add)), (std::vector<float>{0, 2}));
  EXPECT_NE(errorOf([] {
              makeBatch({counting({2}), counting({3})});
            }).find("makeBatch: samples of shapes (2) and (3) do not batch"),
            std::string::npos);
}

TEST(BatchDataset, Policies) {
  const auto dataset = tensorsOf({counting({2, 10})});
  const BatchDataset all(dataset, 4);
  EXPECT_EQ(all.size(), 3);
  EXPECT_EQ(all.get(0)[0].shape(), Shape({2, 4}));
  EXPECT_EQ(all.get(2)[0].shape(), Shape({2, 2}));
  EXPECT_EQ(valuesOf(all.get(2)[0]), (std::vector<float>{16, 17, 18, 19}));
  EXPECT_EQ(BatchDataset(dataset, 4, BatchDatasetPolicy::SKIP_LAST).size(), 2);
  EXPECT_EQ(BatchDataset(dataset, 5, BatchDatasetPolicy::DIVISIBLE_ONLY).size(), 2);
  EXPECT_EQ(BatchDataset(dataset, 5, BatchDatasetPolicy::SKIP_LAST).size(), 2);
  EXPECT_NE(errorOf([&] {
              BatchDataset(dataset, 4, BatchDatasetPolicy::DIVISIBLE_ONLY);
            }).find("BatchDataset: 10 samples are not divisible into batches of 4"),
            std::string::npos);
  EXPECT_NE(
      errorOf([&] { BatchDataset(dataset, 0); }).find("the batch size must be positive, not 0"),
      std::string::npos);
  EXPECT_THROW(BatchDataset(nullptr, 4), std::invalid_argument);
  EXPECT_THROW(all.get(3), std::out_of_range);
}

TEST(BatchDataset, GivenSizes) {
  const BatchDataset batches(tensorsOf({counting({10})}), std::vector<int64_t>{5, 2, 6});
  EXPECT_EQ(batches.size(), 3);
  EXPECT_EQ(valuesOf(batches.get(1)[0]), (std::vector<float>{5, 6}));
  EXPECT_EQ(valuesOf(batches.get(2)[0]), (std::vector<float>{7, 8, 9}));  // what is left
}

TEST(BatchDataset, FunctionsByField) {
  const auto sumOf = [](const std::vector<Tensor>& data) {
    Tensor total = data[0];
    for (size_t i = 1; i < data.size(); ++i) {
      total = total + data[i];
    }
    return total;
  };
  const BatchDataset batches(tensorsOf({counting({2, 4}), counting({4})}), 2,
                             BatchDatasetPolicy::INCLUDE_LAST, {nullptr, sumOf});
  EXPECT_EQ(valuesOf(batches.get(1)[0]), (std::vector<float>{4, 5, 6, 7}));
  EXPECT_EQ(valuesOf(batches.get(1)[1]), (std::vector<float>{5}));
}

// Slices of tensors must be what batching sample by sample gives: the same dataset behind a
// TransformDataset that changes nothing takes the slow way.
TEST(BatchDataset, SlicesEqualBatchedSamples) {
  const std::vector<Tensor> tensors = {counting({3, 2, 7}), counting({7}, dtype::s32),
                                       counting({1, 1, 7}), counting({1, 3, 7}),
                                       counting({2, 2, 2, 1, 7})};
  const auto fast = tensorsOf(tensors);
  const auto slow =
      std::make_shared<TransformDataset>(fast, std::vector<Dataset::TransformFunction>());
  for (int64_t size : {1, 2, 3, 7, 10}) {
    const BatchDataset quick(fast, size);
    const BatchDataset careful(slow, size);
    ASSERT_EQ(quick.size(), careful.size());
    for (int64_t i = 0; i < quick.size(); ++i) {
      const std::vector<Tensor> a = quick.get(i);
      const std::vector<Tensor> b = careful.get(i);
      for (size_t f = 0; f < tensors.size(); ++f) {
        SCOPED_TRACE(::testing::Message() << "size " << size << " batch " << i << " field " << f);
        EXPECT_EQ(a[f].shape(), b[f].shape());
        EXPECT_EQ(a[f].type(), b[f].type());
        EXPECT_EQ(valuesOf(a[f]), valuesOf(b[f]));
      }
    }
  }
}

TEST(Iteration, VisitsEverySampleOnce) {
  BatchDataset batches(tensorsOf({counting({10})}), 4);
  std::vector<float> seen;
  int count = 0;
  for (auto& batch : batches) {
    for (float value : valuesOf(batch[0])) {
      seen.push_back(value);
    }
    ++count;
  }
  EXPECT_EQ(count, 3);
  EXPECT_EQ(seen, valuesOf(counting({10})));
  const BatchDataset none(tensorsOf({counting({2})}), 4, BatchDatasetPolicy::SKIP_LAST);
  EXPECT_TRUE(none.begin() == none.end());
}

TEST(Iteration, ErrorsNameTheLoop) {
  const BatchDataset batches(
      tensorsOf({counting({4})}), 2, BatchDatasetPolicy::INCLUDE_LAST,
      {[](const std::vector<Tensor>&) { return concatenate(0, full({1}, 1.f), full({1}, 1)); }});
  int line = 0;
  const std::string message = errorOf([&] {
    line = __LINE__ + 1;
    for (auto& batch : batches) {
      batch.clear();
    }
  });
  EXPECT_NE(message.find("tests/data/DatasetTest.cpp:" + std::to_string(line)), std::string::npos)
      << message;
}

TEST(ResampleDataset, Remaps) {
  const auto dataset = tensorsOf({counting({5})});
  ResampleDataset reversed(dataset, [](int64_t i) { return 4 - i; });
  EXPECT_EQ(reversed.size(), 5);
  EXPECT_EQ(valuesOf(reversed.get(0)[0])[0], 4);
  reversed.resample({2, 2});
  EXPECT_EQ(reversed.size(), 2);
  EXPECT_EQ(valuesOf(reversed.get(1)[0])[0], 2);
  EXPECT_THROW(reversed.get(2), std::out_of_range);
  EXPECT_EQ(ResampleDataset(dataset, [](int64_t i) { return i % 2; }, 9).size(), 9);
  EXPECT_EQ(valuesOf(ResampleDataset(dataset).get(3)[0])[0], 3);
}

std::vector<float> orderOf(const Dataset& dataset) {
  std::vector<float> order;
  for (int64_t i = 0; i < dataset.size(); ++i) {
    order.push_back(valuesOf(dataset.get(i)[0])[0]);
  }
  return order;
}

TEST(ShuffleDataset, PermutesByItsSeed) {
  const auto dataset = tensorsOf({counting({20})});
  ShuffleDataset shuffled(dataset, 5);
  const std::vector<float> first = orderOf(shuffled);
  EXPECT_EQ(std::set<float>(first.begin(), first.end()).size(), 20u);
  EXPECT_NE(first, valuesOf(counting({20})));
  EXPECT_EQ(orderOf(ShuffleDataset(dataset, 5)), first);
  EXPECT_NE(orderOf(ShuffleDataset(dataset, 6)), first);
  shuffled.resample();
  EXPECT_NE(orderOf(shuffled), first);
  shuffled.setSeed(5);
  shuffled.resample();
  EXPECT_EQ(orderOf(shuffled), first);
}

// On every machine: mt19937_64 and the exchange are both fixed.
TEST(ShuffleDataset, OrderIsPinned) {
  EXPECT_EQ(orderOf(ShuffleDataset(tensorsOf({counting({6})}), 1)),
            (std::vector<float>{1, 3, 0, 4, 5, 2}));
}

// Each of the 6 orders of three samples comes up about as often as the others.
TEST(ShuffleDataset, IsFair) {
  ShuffleDataset shuffled(tensorsOf({counting({3})}), 0);
  std::map<std::vector<float>, int> counts;
  for (int i = 0; i < 600; ++i) {
    shuffled.resample();
    ++counts[orderOf(shuffled)];
  }
  ASSERT_EQ(counts.size(), 6u);
  for (const auto& [order, count] : counts) {
    EXPECT_NEAR(count, 100, 50);  // five deviations are 46
  }
}

TEST(SpanDataset, IsAPart) {
  const auto dataset = tensorsOf({counting({10})});
  EXPECT_EQ(orderOf(SpanDataset(dataset, 7)), (std::vector<float>{7, 8, 9}));
  EXPECT_EQ(orderOf(SpanDataset(dataset, 2, 3)), (std::vector<float>{2, 3, 4}));
  EXPECT_THROW(SpanDataset(dataset, 2, 3).get(3), std::out_of_range);
  EXPECT_NE(errorOf([&] { SpanDataset(dataset, 8, 3); }).find("SpanDataset: samples [8, 11) of 10"),
            std::string::npos);
}

TEST(TransformDataset, AppliesFunctionsByField) {
  const auto dataset = tensorsOf({counting({4}), counting({4})});
  const TransformDataset negated(dataset, {nullptr, [](const Tensor& t) { return -t; }});
  EXPECT_EQ(negated.size(), 4);
  EXPECT_EQ(valuesOf(negated.get(3)[0])[0], 3);
  EXPECT_EQ(valuesOf(negated.get(3)[1])[0], -3);
}

}  // namespace
}  // namespace fl::test
