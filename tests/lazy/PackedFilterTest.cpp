// Filters and weights that stay the same are packed once for the library; those that change are
// not, and no result is of elements that one had before.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

#include "fl/autograd/tensor/AutogradExtension.h"
#include "fl/autograd/tensor/AutogradOps.h"
#include "fl/tensor/tensor.h"
#include "tests/lazy/BufferLog.h"

namespace fl::testing {
namespace {

using Values = std::vector<float>;

constexpr Dim kIn = 32, kOut = 64;

class PackedFilter : public ::testing::TestWithParam<std::tuple<const char*, dtype>> {
 protected:
  PackedFilter() { setSeed(3); }
  dtype type() const { return std::get<1>(GetParam()); }
  Tensor random(const Shape& shape) const { return computed((rand(shape) - 0.5).astype(type())); }
  static Tensor computed(Tensor x) {
    eval(x);
    sync();
    return x;
  }
  // In f32, but for bf16 where the processor multiplies that faster.
  bool isPackedSize(size_t bytes) const {
    constexpr size_t kElements = size_t{9} * kIn * kOut;
    return bytes == 4 * kElements || (type() == dtype::bf16 && bytes == 2 * kElements);
  }
  static Tensor convolve(const Tensor& x, const Tensor& filter) {
    return conv2d(x, filter, 1, 1, 1, 1, 1, 1, 1);
  }
  static Values valuesOf(const Tensor& x) { return x.astype(dtype::f32).toHostVector<float>(); }
  // Of a filter that was never read before.
  static Values wanted(const Tensor& x, const Tensor& filter) {
    const Tensor fresh = Tensor::fromVector(filter.shape(), valuesOf(filter));
    return valuesOf(convolve(x, fresh.astype(filter.type())));
  }
  // How many filters are packed in `work`.
  int packed(const std::function<void()>& work) const {
    return static_cast<int>(std::ranges::count_if(
        buffersMade(work), [&](size_t bytes) { return isPackedSize(bytes); }));
  }

 private:
  const BackendScope scope_{std::get<0>(GetParam())};
};

INSTANTIATE_TEST_SUITE_P(Backends, PackedFilter,
                         ::testing::Combine(::testing::Values("lazy", "eager"),
                                            ::testing::Values(dtype::f32, dtype::f16, dtype::bf16)),
                         [](const auto& test) {
                           return std::string(std::get<0>(test.param)) +
                                  dtypeToString(std::get<1>(test.param));
                         });

TEST_P(PackedFilter, IsPackedAtItsSecondUseForEveryBatch) {
  const Tensor filter = random({3, 3, kIn, kOut});
  for (const auto& [images, times] : {std::pair{5, 0}, {5, 1}, {5, 0}, {7, 0}, {7, 0}}) {
    const Tensor x = random({15, 13, kIn, images});
    Values got;
    EXPECT_EQ(packed([&] { got = valuesOf(convolve(x, filter)); }), times) << images;
    EXPECT_EQ(got, wanted(x, filter));
  }
}

TEST_P(PackedFilter, FollowsUpdates) {
  const Tensor x = random({15, 13, kIn, 5});
  Tensor filter = random({3, 3, kIn, kOut});
  const auto useThrice = [&] {
    for (int i = 0; i < 3; ++i) {
      EXPECT_EQ(valuesOf(convolve(x, filter)), wanted(x, filter));
    }
  };
  useThrice();
  filter += 0.25;
  useThrice();
  filter(0, span, 3) = 2.0;
  useThrice();
  void* elements = nullptr;
  filter.device(&elements);
  std::memset(elements, 0, filter.bytes() / 2);
  filter.unlock();
  useThrice();
  // Old elements in the memory of new ones.
  filter = computed(filter + 1.0);
  useThrice();
}

// As in training: what changes at each step is packed in scratch memory alone.
TEST_P(PackedFilter, IsNotPackedWhereItChanges) {
  const Tensor x = random({15, 13, kIn, 5});
  Tensor filter = random({3, 3, kIn, kOut});
  std::vector<int> buffers;  // as large as a packed filter, by step
  for (int step = 0; step < 4; ++step) {
    const Values want = wanted(x, filter);
    Tensor y;
    buffers.push_back(packed([&] {
      y = convolve(x, filter);
      filter = filter * 0.5 + mean(y);
      computed(filter);
    }));
    EXPECT_EQ(valuesOf(y), want) << step;
  }
  EXPECT_EQ(buffers, std::vector<int>(4, buffers[0]));
}

// Of a size whose columns lie pages apart, for a few vectors.
class PackedWeight : public ::testing::TestWithParam<const char*> {
 protected:
  static constexpr Dim kRows = 1024, kColumns = 1000;
  static Tensor random(const Shape& shape) {
    Tensor made = rand(shape) - 0.5;
    eval(made);
    return made;
  }
  static Values product(const Tensor& weight, const Tensor& x) {
    return matmul(weight, x).toHostVector<float>();
  }
  static Values wanted(const Tensor& weight, const Tensor& x) {
    return product(Tensor::fromVector(weight.shape(), weight.toHostVector<float>()), x);
  }
  // How many weights are packed in `work`: with the elements between their columns.
  static int packed(const std::function<void()>& work) {
    return static_cast<int>(std::ranges::count(buffersMade(work), 4 * (kRows + 16) * kColumns));
  }

 private:
  const BackendScope scope_{GetParam()};
};

INSTANTIATE_TEST_SUITE_P(Backends, PackedWeight, ::testing::Values("lazy", "eager"));

TEST_P(PackedWeight, IsPackedAtItsSecondUseByAFewVectors) {
  const Tensor weight = random({kRows, kColumns});
  for (const auto& [vectors, times] : {std::pair{4, 0}, {1, 0}, {33, 0}, {2, 1}, {4, 0}, {32, 0}}) {
    const Tensor x = random({kColumns, vectors});
    Values got;
    EXPECT_EQ(packed([&] { got = product(weight, x); }), times) << vectors;
    EXPECT_EQ(got, wanted(weight, x)) << vectors;  // the same bits
  }
}

TEST_P(PackedWeight, FollowsUpdates) {
  const Tensor x = random({kColumns, 8});
  Tensor weight = random({kRows, kColumns});
  for (int update = 0; update < 3; ++update) {
    for (int use = 0; use < 3; ++use) EXPECT_EQ(product(weight, x), wanted(weight, x)) << update;
    weight += 0.25;
  }
}

}  // namespace
}  // namespace fl::testing
