// Misuse of indices, of assignment and of elements on the host.
#include <gtest/gtest.h>

#include <limits>
#include <sstream>

#include "fl/base/CallSite.h"
#include "fl/device/DeviceManager.h"
#include "fl/host/ThreadPool.h"
#include "fl/tensor/tensor.h"
#include "tests/ErrorOf.h"
#include "tests/tensor/Misuse.h"

namespace fl::testing {
namespace {

using test::errorOf;

// The last statement of a function is a call, too, and no jump (.bazelrc).
[[gnu::noinline]] void addAtTheEnd(Tensor& x, const Tensor& y) { x += y; }
constexpr int kLineOfAddition = __LINE__ - 1;

TEST_F(Misuse, AtTheEndOfAFunction) {
  Tensor x = f34;
  EXPECT_EQ(errorOf([&] { addAtTheEnd(x, f45); }),
            std::string("+=: f32[3,4] x f32[4,5]: shapes do not broadcast, at ") + __FILE__ + ":" +
                std::to_string(kLineOfAddition));
}

TEST_F(Misuse, OfIndices) {
  EXPECT_MISUSE(BadIndex, f34(3),
                "index: f32[3,4]: 3 is out of range for dimension 0 of 3 elements");
  EXPECT_MISUSE(BadIndex, s34(0, 4),
                "index: s32[3,4]: 4 is out of range for dimension 1 of 4 elements");
  EXPECT_MISUSE(BadIndex, s34(span, range(1, 3))(0, 2),
                "index: s32[3,2]: 2 is out of range for dimension 1 of 2 elements");
  EXPECT_MISUSE(BadIndex, f34.flat(range(0, 13)),
                "flat: f32[3,4]: range [0, 13) with stride 1 is empty or out of range for its 12 "
                "elements");
  EXPECT_MISUSE(BadIndex, fromScalar(1.0)(1),
                "index: f32[]: 1 is out of range for dimension 0 of 1 elements");
  EXPECT_MISUSE(BadIndex, f34(-4),
                "index: f32[3,4]: -4 is out of range for dimension 0 of 3 elements");
  EXPECT_MISUSE(AxisAbove, f34(0, 0, 1),
                "index: f32[3,4]: 1 is out of range for dimension 2 of 1 elements");
  EXPECT_MISUSE(
      AxisAbove, f34(span, span, range(0, 2)),
      "index: f32[3,4]: range [0, 2) with stride 1 is empty or out of range for dimension "
      "2 of 1 elements");
  EXPECT_MISUSE(
      BadIndex, f34(range(2, 2)),
      "index: f32[3,4]: range [2, 2) with stride 1 is empty or out of range for dimension 0 of 3 "
      "elements");
  EXPECT_MISUSE(
      BadIndex, f34(range(1, 9)),
      "index: f32[3,4]: range [1, 9) with stride 1 is empty or out of range for dimension 0 of 3 "
      "elements");
  EXPECT_MISUSE(BadIndex, f34(range(0, 3, 0)),
                "index: f32[3,4]: range [0, 3) with stride 0: must be positive, flip() reverses, "
                "for dimension 0 of 3 elements");
  EXPECT_MISUSE(BadIndex, f34.flat(12), "flat: f32[3,4]: 12 is out of range for its 12 elements");
  EXPECT_MISUSE(BadIndex, f34(std::vector<fl::Index>()), "index: f32[3,4]: needs an index");
  constexpr Dim kMost = std::numeric_limits<Dim>::max();
  EXPECT_MISUSE(BadIndex, f34(-kMost - 1),
                "index: f32[3,4]: -9223372036854775808 is out of range for dimension 0 of 3 "
                "elements");
  EXPECT_MISUSE(BadIndex, f34(range(0, kMost)),
                "index: f32[3,4]: range [0, 9223372036854775807) with stride 1 is empty or out of "
                "range for dimension 0 of 3 elements");
  EXPECT_EQ(f34(range(1, 3, kMost)).shape(), Shape({1, 4}));
  EXPECT_MISUSE(BadIndex, f34(f7 > 0.0),
                "index: f32[3,4]: a mask of 7 elements for dimension 0 of 3 elements");
  EXPECT_MISUSE(BadIndex, full({0, 4}, 1.0)(full({2}, 0)),
                "index: f32[0,4]: 2 indices for dimension 0 of 0 elements");
  EXPECT_MISUSE(IndexInData, f34(range(1, 3), f7 + 3.0).toHostVector<float>(),
                "index: f32[3,4]: 4 is out of range for dimension 1 of 4 elements");
  EXPECT_MISUSE(IndexInData, f34(f7 + 3.0).toHostVector<float>(),
                "index: f32[3,4]: 4 is out of range for dimension 0 of 3 elements");
}

// What data holds is checked when it is read; the line is that of the call.
TEST_F(Misuse, OfIndicesInData) {
  const Tensor index = Tensor::fromVector(std::vector<int>{0, 3});
  Tensor x = f34.copy();
  EXPECT_MISUSE(IndexInData, (x(index) = full({2, 4}, 1.0), x.toHostVector<float>()),
                "index: f32[3,4]: 3 is out of range for dimension 0 of 3 elements");
  x = f34.copy();
  EXPECT_MISUSE(IndexInData, (x(index) += full({2, 4}, 1.0), x.toHostVector<float>()),
                "+=: f32[3,4]: 3 is out of range for dimension 0 of 3 elements");
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const Tensor nans = Tensor::fromVector(std::vector<float>{0, nan, 1});
  EXPECT_MISUSE(IndexInData, s34(span, nans).toHostVector<int>(),
                "index: s32[3,4]: NaN is out of range for dimension 1 of 4 elements");
  EXPECT_MISUSE(IndexInData, f34.flat(nans).toHostVector<float>(),
                "flat: f32[3,4]: NaN is out of range for its 12 elements");
  const Tensor twelve = Tensor::fromVector(std::vector<int>{12});
  EXPECT_MISUSE(IndexInData, f34.flat(twelve).toHostVector<float>(),
                "flat: f32[3,4]: 12 is out of range for its 12 elements");
  x = f34.copy();
  EXPECT_MISUSE(IndexInData, (x.flat(twelve) = 1.0, x.toHostVector<float>()),
                "index: f32[3,4]: 12 is out of range for its 12 elements");
  x = f34.copy();
  EXPECT_MISUSE(IndexInData, (x.flat(twelve) += 1.0, x.toHostVector<float>()),
                "+=: f32[3,4]: 12 is out of range for its 12 elements");
  EXPECT_MISUSE(IndexInData, f34(range(0, 2)).flat(twelve).toHostVector<float>(),
                "flat: f32[2,4]: 12 is out of range for its 8 elements");
  const Tensor line = f34.flatten();
  EXPECT_MISUSE(IndexInData, line(twelve).toHostVector<float>(),
                "index: f32[12]: 12 is out of range for dimension 0 of 12 elements");
  const Tensor largest = Tensor::fromVector(std::vector<unsigned long long>{~0ULL});
  EXPECT_MISUSE(IndexInData, s34(largest).toHostVector<int>(),
                "index: s32[3,4]: 9223372036854775807 or more is out of range for dimension 0 of 3 "
                "elements");
}

// Whatever else the call chooses, an error shows the tensor that it indexed.
TEST_F(Misuse, OfIndicesInDataBesideOthers) {
  const Tensor good = Tensor::fromVector(std::vector<int>{0, 1});
  const Tensor bad = Tensor::fromVector(std::vector<int>{9});
  for (const char* backend : {"lazy", "eager"}) {
    for (const char* device : {"cpu", "ref"}) {
      const BackendScope scope(backend, device);
      const Tensor x = full({4, 3, 2}, 1.0);
      EXPECT_MISUSE(IndexInData, x(bad, 0, 0).toHostVector<float>(),
                    "index: f32[4,3,2]: 9 is out of range for dimension 0 of 4 elements");
      EXPECT_MISUSE(IndexInData, x(good, bad, 1).toHostVector<float>(),
                    "index: f32[4,3,2]: 9 is out of range for dimension 1 of 3 elements");
      EXPECT_MISUSE(IndexInData, x(good, 0, bad).toHostVector<float>(),
                    "index: f32[4,3,2]: 9 is out of range for dimension 2 of 2 elements");
      EXPECT_MISUSE(IndexInData, x(0, 0, 0, bad).toHostVector<float>(),
                    "index: f32[4,3,2]: 9 is out of range for dimension 3 of 1 elements");
      const Tensor part = x(range(1, 3));
      EXPECT_MISUSE(IndexInData, part(bad, 0, 0).toHostVector<float>(),
                    "index: f32[2,3,2]: 9 is out of range for dimension 0 of 2 elements");
      EXPECT_MISUSE(IndexInData, x.flat(bad + 15)(0).toHostVector<float>(),
                    "flat: f32[4,3,2]: 24 is out of range for its 24 elements");
      EXPECT_MISUSE(IndexInData, x(good, 0)(span, bad).toHostVector<float>(),
                    "index: f32[2,2]: 9 is out of range for dimension 1 of 2 elements");
      Tensor y = x.copy();
      EXPECT_MISUSE(IndexInData, (y(bad, 0, 0) = 2.0, y.toHostVector<float>()),
                    "index: f32[4,3,2]: 9 is out of range for dimension 0 of 4 elements");
      y = x.copy();
      EXPECT_MISUSE(IndexInData, (y(1, bad, 0) += 2.0, y.toHostVector<float>()),
                    "+=: f32[4,3,2]: 9 is out of range for dimension 1 of 3 elements");
      y = x.copy();
      EXPECT_MISUSE(IndexInData, (y(bad, 0)(0) -= 2.0, y.toHostVector<float>()),
                    "-=: f32[4,3,2]: 9 is out of range for dimension 0 of 4 elements");
    }
  }
}

// Whoever reads a view, the line is that of the index, and never one of ours.
TEST_F(Misuse, OfIndicesThatOthersRead) {
  const Tensor bad = Tensor::fromVector(std::vector<int>{0, 9});
  std::ostringstream os;
  EXPECT_MISUSE(IndexInData, os << f34(bad),
                "index: f32[3,4]: 9 is out of range for dimension 0 of 3 elements");
  EXPECT_MISUSE(IndexInData, f34(bad).toString(),
                "index: f32[3,4]: 9 is out of range for dimension 0 of 3 elements");
  Tensor y;
  EXPECT_MISUSE(IndexInData, (y = f34(bad), y.toHostVector<float>()),
                "index: f32[3,4]: 9 is out of range for dimension 0 of 3 elements");
}

// Whoever reads a sparse matrix, the line is that of its construction.
TEST_F(Misuse, OfIndicesOfSparseMatrices) {
  const Tensor two = full({2}, 1.0), good = Tensor::fromVector(std::vector<int>{0, 1});
  const Tensor bad = Tensor::fromVector(std::vector<int>{1, 9});
  const std::string row =
      "Tensor: row of a sparse matrix: s64[2]: 9 is out of range for dimension 0 of 2 "
      "elements";
  const std::string column =
      "Tensor: column of a sparse matrix: s64[3]: 9 is out of range for dimension 0 of 3 "
      "elements";
  const Tensor image = full({3, 2}, 1.0), offsets = Tensor::fromVector(std::vector<int>{0, 1, 2});
  EXPECT_MISUSE(IndexInData, Tensor(2, 3, two, bad, good, StorageType::COO).toHostVector<float>(),
                row);
  EXPECT_MISUSE(IndexInData,
                Tensor(2, 3, two, good, bad, StorageType::COO).astype(dtype::f64).scalar<double>(),
                column);
  EXPECT_MISUSE(IndexInData,
                Tensor(2, 3, two, offsets, bad, StorageType::CSR).toHostVector<float>(), column);
  EXPECT_MISUSE(IndexInData,
                matmul(Tensor(2, 3, two, bad, good, StorageType::COO), image).toHostVector<float>(),
                row);
}

TEST_F(Misuse, OfAssignment) {
  Tensor x = f34.copy();
  EXPECT_MISUSE(Shapes, x(0) = f7, "assignment: f32[4] = f32[7]: shapes differ");
  EXPECT_MISUSE(Shapes, x(0) = full({2, 4}, 1.0), "assignment: f32[4] = f32[2,4]: shapes differ");
  EXPECT_MISUSE(Shapes, x(0) += f7, "+=: f32[4] x f32[7]: shapes differ");
  EXPECT_MISUSE(Shapes, x -= full({3, 4, 2}, 1.0),
                "-=: f32[3,4] x f32[3,4,2]: the shape would change");
  EXPECT_MISUSE(Shapes, x *= full({3, 4, 2}, 1.0),
                "*=: f32[3,4] x f32[3,4,2]: the shape would change");
  EXPECT_MISUSE(Shapes, x /= full({3, 4, 2}, 1.0),
                "/=: f32[3,4] x f32[3,4,2]: the shape would change");
  EXPECT_MISUSE(Shapes, x += f7, "+=: f32[3,4] x f32[7]: shapes do not broadcast");
  EXPECT_MISUSE(Shapes, x -= f7, "-=: f32[3,4] x f32[7]: shapes do not broadcast");
  EXPECT_MISUSE(Shapes, x *= f7, "*=: f32[3,4] x f32[7]: shapes do not broadcast");
  EXPECT_MISUSE(Shapes, x /= f7, "/=: f32[3,4] x f32[7]: shapes do not broadcast");
  Tensor whole = s34;
  EXPECT_MISUSE(Shapes, whole += f7, "+=: s32[3,4] x f32[7]: shapes do not broadcast");
  const Tensor rows = Tensor::fromVector(std::vector<int>{0, 2});
  EXPECT_MISUSE(Shapes, x(0) -= f7, "-=: f32[4] x f32[7]: shapes differ");
  EXPECT_MISUSE(Shapes, x(0) *= f7, "*=: f32[4] x f32[7]: shapes differ");
  EXPECT_MISUSE(Shapes, x(0) /= f7, "/=: f32[4] x f32[7]: shapes differ");
  EXPECT_MISUSE(Shapes, x(rows) += f7, "+=: f32[2,4] x f32[7]: shapes differ");
  EXPECT_MISUSE(Shapes, x(rows) /= f7, "/=: f32[2,4] x f32[7]: shapes differ");
  EXPECT_MISUSE(Shapes, x.flat(rows) /= f7, "/=: f32[2] x f32[7]: shapes differ");
  EXPECT_MISUSE(Shapes, x += full({3, 4, 2}, 1.0),
                "+=: f32[3,4] x f32[3,4,2]: the shape would change");
  EXPECT_EQ(sum(x).scalar<float>(), 12) << "a failed assignment changes nothing";
}

TEST_F(Misuse, OfHostMemory) {
  EXPECT_MISUSE(Dtype, f34.scalar<int>(), "scalar: f32[3,4] is not read as s32");
  EXPECT_MISUSE(Dtype, f34.toHostVector<double>(), "toHostVector: f32[3,4] is not read as f64");
  float element;
  EXPECT_MISUSE(Dtype, f7(0).host<int>(), "host: f32[1] is not read as s32");
  EXPECT_MISUSE(Dtype, s34.host(&element), "host: s32[3,4] is not read as f32");
  EXPECT_MISUSE(Null, f34.host(static_cast<float*>(nullptr)), "host: f32[3,4]: a null pointer");
  EXPECT_MISUSE(Dtype, f34.device<int>(), "device: f32[3,4] is not read as s32");
  EXPECT_MISUSE(Empty, Tensor().scalar<float>(), "scalar: f32[0]: the tensor is empty");
  EXPECT_MISUSE(Empty, Tensor().asScalar<int>(), "asScalar: f32[0]: the tensor is empty");
}

TEST_F(Misuse, OfSettings) {
  EXPECT_MISUSE_OF("BackendScope", Value, BackendScope("zzz"),
                   "backend \"zzz\" does not exist; there are: eager, lazy");
  EXPECT_EQ(errorOf([] {
              BackendScope("lazy", "tpu");
            }).rfind("device \"tpu\" does not exist; there are: cpu, ", 0),
            0u);
  EXPECT_MISUSE_OF("setNumThreads", Value, host::setNumThreads(0),
                   "the number of threads must be from 1 to 4096, not 0");
  EXPECT_MISUSE_OF("range", Value, range(1, end).endVal(),
                   "range::endVal: the range ends at fl::end");
  EXPECT_MISUSE_OF("DeviceManager", Value,
                   DeviceManager::getInstance().getDevice(DeviceType::x64, 7),
                   "DeviceManager: no device 7 of type x64, which has 1");
  EXPECT_MISUSE_OF("DeviceManager", Value,
                   DeviceManager::getInstance().getActiveDevice(DeviceType::CUDA),
                   "DeviceManager: no device of type CUDA");
}

// What was recorded before a failure is whole, and so is what follows.
TEST(Failures, LoseNothing) {
  const Tensor x = arange(Shape({4}), 0);
  const Tensor y = exp(x * 0.0) + x;
  EXPECT_THROW(matmul(y, full({3, 2}, 1.0)), std::invalid_argument);
  Tensor z = y * 2.0;
  EXPECT_THROW(z += full({3}, 1.0), std::invalid_argument);
  EXPECT_THROW(z(9) = 1.0, std::invalid_argument);
  const Tensor sums = sum(z) + sum(y);
  EXPECT_THROW(sums.scalar<int>(), std::invalid_argument);
  EXPECT_EQ(y.toHostVector<float>(), (std::vector<float>{1, 2, 3, 4}));
  EXPECT_EQ(z.toHostVector<float>(), (std::vector<float>{2, 4, 6, 8}));
  EXPECT_EQ(sums.scalar<float>(), 30);
}

}  // namespace
}  // namespace fl::testing
