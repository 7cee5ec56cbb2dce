#include <gtest/gtest.h>

#include <chrono>
#include <cmath>
#include <limits>
#include <list>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "fl/meter/meters.h"
#include "tests/ErrorOf.h"
#include "tests/CountingBackend.h"

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

TEST(MSEMeter, AveragesOverSamples) {
  MSEMeter meter;
  EXPECT_EQ(meter.value(), 0);
  const Tensor output = Tensor::fromVector(Shape({2, 2}), std::vector<float>{1, 2, 3, 4});
  meter.add(output, output);
  meter.add(output, output + 2);
  EXPECT_DOUBLE_EQ(meter.value(), 8);
  meter.add(Tensor::fromVector(std::vector<int>{5}), Tensor::fromVector(std::vector<unsigned>{7}));
  EXPECT_DOUBLE_EQ(meter.value(), 20 / 3.0);
  meter.reset();
  EXPECT_EQ(meter.value(), 0);
  EXPECT_EQ(errorOf([&] {
              meter.add(output, full(Shape({4}), 1.0));
            }).find("MSEMeter: output (2, 2) and target (4) must be of one shape"),
            0u);
}

TEST(TopKMeter, CountsTargetsAmongTheFirst) {
  // Scores of four classes, for three samples.
  const Tensor output = Tensor::fromVector(
      Shape({4, 3}), std::vector<float>{0.1, 0.4, 0.3, 0.2, 9, 8, 7, 6, -4, -3, -2, -1});
  const Tensor target = Tensor::fromVector(std::vector<int>{2, 3, 3});
  const std::vector<int> correct = {1, 2, 2, 3};
  for (int k = 1; k <= 4; ++k) {
    TopKMeter meter(k);
    EXPECT_TRUE(std::isnan(meter.value()));
    meter.add(output, target);
    EXPECT_DOUBLE_EQ(meter.value(), 100 * correct[k - 1] / 3.0) << k;
    meter.add(output, Tensor::fromVector(std::vector<int>{1, 0, 3}));
    EXPECT_EQ(meter.getStats(), std::make_pair(correct[k - 1] + 3, 6)) << k;
    meter.set(3, 4);
    EXPECT_DOUBLE_EQ(meter.value(), 75);
    meter.reset();
    EXPECT_EQ(meter.getStats(), std::make_pair(0, 0));
  }
}

TEST(TopKMeter, Misuse) {
  EXPECT_EQ(errorOf([] { TopKMeter(0); }).find("TopKMeter: k must be greater than 0, not 0"), 0u);
  TopKMeter meter(3);
  const Tensor scores = full(Shape({4, 2}), 1.0);
  for (const auto& [output, target] :
       {std::pair(scores, full(Shape({3}), 1)), std::pair(scores, full(Shape({2, 1}), 1)),
        std::pair(full(Shape({2}), 1.0), full(Shape({2}), 1)),
        std::pair(full(Shape({2, 2}), 1.0), full(Shape({2}), 1))}) {
    EXPECT_NE(errorOf([&] {
                meter.add(output, target);
              }).find("must be (classes, batch) and (batch), with at least 3 classes"),
              std::string::npos);
  }
  EXPECT_EQ(errorOf([&] {
              meter.add(scores, full(Shape({3}), 1));
            }).find("TopKMeter: output (4, 2) and target (3) must be"),
            0u);
}

std::vector<int64_t> distance(const std::string& output, const std::string& target) {
  EditDistanceMeter meter;
  meter.add(output.begin(), target.begin(), output.size(), target.size());
  return meter.value();
}

TEST(EditDistanceMeter, CountsDeletionsInsertionsAndSubstitutions) {
  // {errors, length, deletions, insertions, substitutions}
  using Counts = std::vector<int64_t>;
  EXPECT_EQ(distance("kitten", "kitten"), (Counts{0, 6, 0, 0, 0}));
  EXPECT_EQ(distance("kitten", "sitting"), (Counts{3, 7, 1, 0, 2}));
  EXPECT_EQ(distance("", "abc"), (Counts{3, 3, 3, 0, 0}));
  EXPECT_EQ(distance("abc", ""), (Counts{3, 0, 0, 3, 0}));
  EXPECT_EQ(distance("xabc", "abc"), (Counts{1, 3, 0, 1, 0}));
  EXPECT_EQ(distance("ac", "abc"), (Counts{1, 3, 1, 0, 0}));
  EXPECT_EQ(distance("intention", "execution"), (Counts{5, 9, 1, 1, 3}));
}

TEST(EditDistanceMeter, TakesSequencesTensorsAndCounts) {
  const std::vector<int> output = {1, 2, 3, 5}, target = {1, 3, 4, 5, 6};
  const int targetArray[] = {1, 3, 4, 5, 6};
  EditDistanceMeter one, meter;
  one.add(output, target);
  const std::vector<int64_t> errors = one.value();
  meter.add(Tensor::fromVector(output), Tensor::fromVector(target).astype(dtype::u8));
  meter.add(std::list<int>(output.begin(), output.end()).begin(), targetArray, 0, 5);
  EXPECT_EQ(meter.value(),
            (std::vector<int64_t>{errors[0] + 5, 10, errors[2] + 5, errors[3], errors[4]}));
  meter.reset();
  meter.add(10, 1, 2, 3);
  EditDistanceMeter::ErrorState more;
  more.nsub = 4;
  EXPECT_EQ(more.sum(), 4);
  meter.add(more, 30);
  EXPECT_EQ(meter.value(), (std::vector<int64_t>{10, 40, 1, 2, 7}));
  EXPECT_EQ(meter.errorRate(), (std::vector<double>{25, 40, 2.5, 5, 17.5}));
}

TEST(EditDistanceMeter, RatesOfNothing) {
  EditDistanceMeter meter;
  EXPECT_EQ(meter.errorRate(), (std::vector<double>(5, 0)));
  meter.add(0, 0, 2, 0);
  const double infinity = std::numeric_limits<double>::infinity();
  EXPECT_EQ(meter.errorRate(), (std::vector<double>{infinity, 0, 0, infinity, 0}));
}

TEST(EditDistanceMeter, Misuse) {
  EditDistanceMeter meter;
  const Tensor line = full(Shape({4}), 1);
  EXPECT_EQ(errorOf([&] { meter.add(full(Shape({2, 2}), 1), line); })
                .find("EditDistanceMeter: output s32[2,2] and target s32[4] must be 1-D and of "
                      "integers"),
            0u);
  EXPECT_THROW(meter.add(line, full(Shape({2, 2}), 1)), std::invalid_argument);
  EXPECT_THROW(meter.add(line, full(Shape({4}), 1.0)), std::invalid_argument);
}

TEST(Meters, NothingIsReadBeforeTheValue) {
  testing::CountingBackend backend(defaultTensorBackend());
  const BackendScope scope(backend);
  AverageValueMeter average;
  FrameErrorMeter frames;
  EditDistanceMeter distances;
  MSEMeter squares;
  TopKMeter top(2);
  for (int step = 0; step < 3; ++step) {
    const Tensor scores = exp(full(Shape({4, 5}), 1.0)), classes = argmax(scores, 0);
    average.add(scores);
    frames.add(classes, classes);
    distances.add(classes, classes);
    squares.add(scores, scores);
    top.add(scores, classes);
  }
  EXPECT_EQ(backend.reads, 0);
  EXPECT_NEAR(average.value()[0], std::exp(1), 1e-6);
  EXPECT_EQ(frames.value(), 0);
  EXPECT_EQ(distances.value(), (std::vector<int64_t>{0, 15, 0, 0, 0}));
  EXPECT_EQ(squares.value(), 0);
  EXPECT_EQ(top.value(), 100);
  EXPECT_GT(backend.reads, 0);
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
