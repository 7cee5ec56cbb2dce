#include <gtest/gtest.h>

#include <chrono>
#include <cmath>
#include <stdexcept>
#include <thread>
#include <vector>

#include "fl/meter/meters.h"

namespace fl::test {
namespace {

TEST(AverageValueMeter, WeightedMoments) {
  AverageValueMeter meter;
  meter.add(1, 1);
  meter.add(4, 2);
  meter.add(10, 3);
  const std::vector<double> value = meter.value();
  ASSERT_EQ(value.size(), 3u);
  const double mean = (1 + 8 + 30) / 6.0;
  const double squares = (1 + 2 * 16 + 3 * 100) / 6.0;
  EXPECT_DOUBLE_EQ(value[0], mean);
  EXPECT_NEAR(value[1], (squares - mean * mean) / (1 - 14 / 36.0), 1e-12);
  EXPECT_DOUBLE_EQ(value[2], 6);
  meter.reset();
  EXPECT_EQ(meter.value()[0], 0);
  EXPECT_EQ(meter.value()[2], 0);
}

// Elements of a tensor count as if added one by one, whatever the order and the dtype.
TEST(AverageValueMeter, Tensors) {
  AverageValueMeter byTensor, byNumber;
  byTensor.add(3.0, 0.5);
  byTensor.add(Tensor::fromVector(Shape({2, 2}), std::vector<float>{1, 2, 3, 4}));
  byTensor.add(Tensor::fromVector(std::vector<int>{7, 8}));
  byTensor.add(5.0);
  byNumber.add(3.0, 0.5);
  for (double value : {1, 2, 3, 4, 7, 8, 5}) {
    byNumber.add(value);
  }
  const std::vector<double> a = byTensor.value();
  const std::vector<double> b = byNumber.value();
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_NEAR(a[i], b[i], 1e-12) << i;
  }
  byTensor.reset();
  byTensor.add(Tensor::fromVector(std::vector<float>{2, 4}));
  EXPECT_DOUBLE_EQ(byTensor.value()[0], 3);
  EXPECT_DOUBLE_EQ(byTensor.value()[1], 2);
}

// A later update in place of what was added does not show.
TEST(AverageValueMeter, TakesTheValueOfTheCall) {
  AverageValueMeter meter;
  Tensor values = full(Shape({4}), 1.0);
  meter.add(values);
  values += 100;
  EXPECT_DOUBLE_EQ(meter.value()[0], 1);
}

TEST(FrameErrorMeter, CountsDifferences) {
  FrameErrorMeter errors;
  FrameErrorMeter accuracy(true);
  EXPECT_EQ(errors.value(), 0);
  const Tensor target = Tensor::fromVector(std::vector<int>{1, 2, 3, 4});
  for (FrameErrorMeter* meter : {&errors, &accuracy}) {
    meter->add(Tensor::fromVector(std::vector<unsigned>{1, 2, 0, 4}), target);
    meter->add(Tensor::fromVector(std::vector<float>{9, 9, 9, 4}), target);
  }
  EXPECT_DOUBLE_EQ(errors.value(), 50);
  EXPECT_DOUBLE_EQ(accuracy.value(), 50);
  accuracy.add(target, target);
  EXPECT_NEAR(accuracy.value(), 100 - 400 / 12.0, 1e-12);
  accuracy.reset();
  accuracy.add(target, target);
  EXPECT_DOUBLE_EQ(accuracy.value(), 100);
  errors.reset();
  EXPECT_EQ(errors.value(), 0);
}

TEST(FrameErrorMeter, Misuse) {
  FrameErrorMeter meter;
  const Tensor four = full(Shape({4}), 1.0);
  try {
    meter.add(four, full(Shape({3}), 1.0));
    FAIL();
  } catch (const std::invalid_argument& error) {
    EXPECT_NE(std::string(error.what())
                  .find("FrameErrorMeter: output (4) and target (3) must be 1-D and of one shape"),
              std::string::npos);
  }
  EXPECT_THROW(meter.add(full(Shape({2, 2}), 1.0), full(Shape({2, 2}), 1.0)),
               std::invalid_argument);
}

TEST(CountMeter, CountsByCategory) {
  CountMeter meter(4);
  meter.add(1, 6);
  meter.add(3, 2);
  meter.add(1, -1);
  EXPECT_EQ(meter.value(), (std::vector<int64_t>{0, 5, 0, 2}));
  EXPECT_THROW(meter.add(4, 1), std::out_of_range);
  EXPECT_THROW(meter.add(-1, 1), std::out_of_range);
  meter.reset();
  EXPECT_EQ(meter.value(), (std::vector<int64_t>{0, 0, 0, 0}));
}

TEST(TimeMeter, AddsUpRunningSpans) {
  TimeMeter meter;
  EXPECT_EQ(meter.value(), 0);
  meter.resume();
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  EXPECT_GE(meter.value(), 0.02);
  meter.stop();
  const double stopped = meter.value();
  std::this_thread::sleep_for(std::chrono::milliseconds(5));
  EXPECT_EQ(meter.value(), stopped);
  meter.resume();
  meter.resume();  // already running: nothing
  std::this_thread::sleep_for(std::chrono::milliseconds(10));
  meter.stop();
  meter.stop();
  EXPECT_GE(meter.value(), stopped + 0.01);
  meter.reset();
  EXPECT_EQ(meter.value(), 0);
}

TEST(TimeMeter, TimeAUnit) {
  TimeMeter meter(true);
  EXPECT_EQ(meter.value(), 0);
  meter.set(6, 3);
  EXPECT_DOUBLE_EQ(meter.value(), 2);
  meter.incUnit(3);
  EXPECT_DOUBLE_EQ(meter.value(), 1);
  meter.resume();
  meter.stopAndIncUnit(2);
  EXPECT_NEAR(meter.value(), 0.75, 0.1);
}

}  // namespace
}  // namespace fl::test
