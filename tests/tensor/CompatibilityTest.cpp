// What programs written for Flashlight rely on, beside values: header names, types that functions
// return, corner cases of its conventions.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <sstream>

#include "fl/device/runtime.h"
#include "fl/tensor/Compute.h"
#include "fl/tensor/DefaultTensorType.h"
#include "fl/tensor/ForwardingBackend.h"
#include "fl/tensor/Index.h"
#include "fl/tensor/Init.h"
#include "fl/tensor/Profile.h"
#include "fl/tensor/Random.h"
#include "fl/tensor/Shape.h"
#include "fl/tensor/TensorAdapter.h"
#include "fl/tensor/TensorBackend.h"
#include "fl/tensor/TensorBase.h"
#include "fl/tensor/Types.h"
#include "tests/ErrorOf.h"

namespace fl {
namespace {

using test::errorOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(Numbers, ACharKeepsItsValue) {
  const Tensor x = Tensor::fromVector<float>({1, 2, 3});
  EXPECT_THAT((x * char{2}).toHostVector<float>(), ElementsAre(2, 4, 6));
  EXPECT_THAT((char{5} - x).toHostVector<float>(), ElementsAre(4, 3, 2));
  EXPECT_THAT((x == char{3}).toHostVector<char>(), ElementsAre(0, 0, 1));
  const Tensor u = x.astype(dtype::u8);
  EXPECT_THAT((u % char{2}).toHostVector<unsigned char>(), ElementsAre(1, 0, 1));
  EXPECT_THAT(full({2}, char{42}, dtype::s16).toHostVector<short>(), ElementsAre(42, 42));
  Tensor y = x;
  y += char{2};
  EXPECT_THAT(y.toHostVector<float>(), ElementsAre(3, 4, 5));
}

TEST(Numbers, MeetArraysOfTheirOwnDtypeInIt) {
  const Tensor u = Tensor::fromVector<unsigned char>({100, 200});
  const unsigned char three = 3;
  EXPECT_THAT((u * three).toHostVector<unsigned char>(), ElementsAre(44, 88));
  EXPECT_THAT((three + u).toHostVector<unsigned char>(), ElementsAre(103, 203));
  EXPECT_EQ((u.astype(dtype::s16) * three).type(), dtype::u32);
  const Tensor s = Tensor::fromVector<long long>({1});
  EXPECT_THAT((s + 5'000'000'000L).toHostVector<long long>(), ElementsAre(5'000'000'001));
  // Elsewhere a `long` is an s32, as in full(): it wraps.
  EXPECT_THAT((s.astype(dtype::s32) * 5'000'000'000L).toHostVector<int>(), ElementsAre(705032704));
}

TEST(Numbers, NanIsAnExtreme) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const Tensor x = Tensor::fromVector<float>({5, 0, nan, -1, nan});
  EXPECT_TRUE(std::isnan(amin(x).scalar<float>()) && std::isnan(amax(x).scalar<float>()));
  EXPECT_EQ(argmin(x, 0).scalar<unsigned>(), 2u);
  EXPECT_EQ(argmax(x, 0).scalar<unsigned>(), 2u);
  Tensor values, indices;
  max(values, indices, x, 0);
  EXPECT_TRUE(std::isnan(values.scalar<float>()));
  EXPECT_EQ(indices.scalar<unsigned>(), 2u);
}

TEST(Numbers, RintTiesToEven) {
  EXPECT_THAT(rint(Tensor::fromVector<float>({0.5, 1.5, 2.5, -0.5})).toHostVector<float>(),
              ElementsAre(0, 2, 2, 0));
}

TEST(Scalars, AreLinesOfOneElement) {
  const Tensor x = fromScalar(10u);
  for (const Tensor& index : {argmin(x, 0), argmax(x, 0), argmin(x, 0, true), argsort(x, 0)}) {
    EXPECT_EQ(index.shape(), Shape());
    EXPECT_EQ(index.scalar<unsigned>(), 0u);
  }
  for (const Tensor& same : {sort(x, 0), flip(x, 0), roll(x, 3, 0), cumsum(x, 0)}) {
    EXPECT_EQ(same.shape(), Shape());
    EXPECT_EQ(same.type(), dtype::u32);
    EXPECT_EQ(same.scalar<unsigned>(), 10u);
  }
  for (const auto extreme : {&fl::min, &fl::max}) {
    Tensor values, indices;
    extreme(values, indices, x, 0, false);
    EXPECT_EQ(values.scalar<unsigned>(), 10u);
    EXPECT_EQ(indices.scalar<unsigned>(), 0u);
  }
  for (const SortMode mode : {SortMode::Ascending, SortMode::Descending}) {
    Tensor values, indices;
    topk(values, indices, x, 1, 0, mode);
    EXPECT_EQ(values.shape(), Shape());
    EXPECT_EQ(values.scalar<unsigned>(), 10u);
    EXPECT_EQ(indices.shape(), Shape());
    EXPECT_EQ(indices.scalar<unsigned>(), 0u);
    EXPECT_THAT(errorOf([&] { topk(values, indices, x, 2, 0, mode); }),
                HasSubstr("topk: u32[]: k must be from 1 to the 1 of axis 0, not 2"));
    EXPECT_THAT(errorOf([&] { topk(values, indices, x, 1, 1, mode); }),
                HasSubstr("topk: u32[]: axis 1 is out of range"));
  }
  EXPECT_THAT(errorOf([&] { argmin(x, 1); }), HasSubstr("argmin: u32[]: axis 1 is out of range"));
  EXPECT_THAT(errorOf([&] { roll(x, 1, 1); }), HasSubstr("roll: u32[]: axis 1 is out of range"));
}

TEST(Matmul, ABatchOfOneIsNone) {
  const Tensor x = arange({2, 3, 1}, 1), y = arange({3, 2, 5}, 2);
  const Tensor product = matmul(x, y);
  EXPECT_EQ(product.shape(), Shape({2, 2, 5}));
  EXPECT_TRUE(all(product == matmul(reshape(x, {2, 3}), y)).scalar<char>());
  EXPECT_EQ(matmul(y, arange({2, 4, 1, 1}, 0)).shape(), Shape({3, 4, 5}));
  EXPECT_EQ(matmul(x, arange({3, 2, 1}, 0)).shape(), Shape({2, 2, 1}));
}

TEST(Scalars, AreReducedOverAnyAxes) {
  const Tensor x = fromScalar(3.0);
  using Reduction = Tensor (*)(const Tensor&, const std::vector<int>&, const bool);
  for (const Reduction reduction :
       {Reduction(sum), Reduction(amin), Reduction(amax), Reduction(mean), Reduction(median)}) {
    EXPECT_EQ(reduction(x, {0}, false).shape(), Shape());
    EXPECT_EQ(reduction(x, {0, 1}, true).scalar<float>(), 3);
  }
  EXPECT_EQ(var(x, {0}).scalar<float>(), 0);
  EXPECT_EQ(fl::std(x, {0}).scalar<float>(), 0);
  EXPECT_EQ(norm(x, {0}).scalar<float>(), 3);
  EXPECT_EQ(any(x, {0}).scalar<char>(), 1);
  EXPECT_EQ(all(x, {0}).scalar<char>(), 1);
  EXPECT_EQ(countNonzero(x, {0}).scalar<unsigned>(), 1u);
}

TEST(Reductions, KeepEveryDimension) {
  const Tensor x = arange({2, 3, 4}, 1);
  for (const std::vector<int>& axes : {std::vector<int>{}, std::vector<int>{0, 1, 2}}) {
    EXPECT_EQ(sum(x, axes, /*keepDims=*/true).shape(), Shape({1, 1, 1}));
    EXPECT_EQ(amax(x, axes, /*keepDims=*/true).shape(), Shape({1, 1, 1}));
    EXPECT_EQ(mean(x, axes, /*keepDims=*/true).shape(), Shape({1, 1, 1}));
    EXPECT_EQ(median(x, axes, /*keepDims=*/true).shape(), Shape({1, 1, 1}));
  }
}

TEST(Norms, OfNothingAreZero) {
  for (const double p : {0.0, 1.0, 2.0, 3.0, static_cast<double>(INFINITY)}) {
    EXPECT_EQ(norm(Tensor(), {}, p).scalar<float>(), 0) << p;
    EXPECT_THAT(norm(Tensor({2, 0}, dtype::f32), {1}, p).toHostVector<float>(), ElementsAre(0, 0));
    EXPECT_EQ(norm(Tensor({2, 0}, dtype::s32), {0}, p).shape(), Shape({0}));
  }
}

TEST(Where, ANumberTakesTheTensorsDtype) {
  const Tensor condition = Tensor::fromVector<char>({1, 0});
  const Tensor x = Tensor::fromVector<int>({7, 8});
  EXPECT_THAT(where(condition, x, 1.9).toHostVector<int>(), ElementsAre(7, 1));
  EXPECT_THAT(where(condition, -2.0, x).toHostVector<int>(), ElementsAre(-2, 8));
}

TEST(Concatenate, LeavesOutEmptyTensors) {
  const Tensor x = full({5, 5}, 1.0);
  EXPECT_EQ(concatenate(1, x, Tensor()).shape(), Shape({5, 5}));
  EXPECT_EQ(concatenate(0, Tensor(), x, x).shape(), Shape({10, 5}));
  EXPECT_EQ(concatenate(0, Tensor(), Tensor()).shape(), Shape({0}));
  EXPECT_EQ(concatenate(2, Tensor(), Tensor()).shape(), Shape({0, 1, 1}));
  EXPECT_EQ(concatenate(1, Tensor(Shape({0, 3})), Tensor(Shape({0, 4}))).shape(), Shape({0, 7}));
}

TEST(TensorIndex, OfFloats) {
  const Tensor x = iota({4});
  EXPECT_THAT(x(Tensor::fromVector<float>({3.9, 1})).toHostVector<float>(), ElementsAre(3, 1));
  const Tensor bad = Tensor::fromVector<float>({1, std::nanf("")});
  EXPECT_THAT(errorOf([&] { x(bad).toHostVector<float>(); }), HasSubstr("is out of range"));
  const auto write = [&] {
    Tensor y = x;
    y(bad) = 1.0;
    y.toHostVector<float>();
  };
  EXPECT_THAT(errorOf(write), HasSubstr("is out of range"));
}

// A tensor has as many dimensions of 1 behind its last one as it is indexed with.
TEST(Index, BehindTheLastDimension) {
  Tensor x = iota({3, 4});
  const std::vector<float> all = x.toHostVector<float>();
  const std::vector<std::vector<Index>> wholes = {{span, span, span},
                                                  {span, span, 0},
                                                  {span, span, -1, span, 0},
                                                  {span, span, range(0, 1)},
                                                  {span, span, range(0, end)}};
  for (const std::vector<Index>& indices : wholes) {
    EXPECT_EQ(x(indices).shape(), Shape({3, 4}));
    EXPECT_EQ(x(indices).toHostVector<float>(), all);
  }
  EXPECT_EQ(x(1, 2, 0).shape(), Shape({1}));
  EXPECT_EQ(x(1, 2, 0).scalar<float>(), x(1, 2).scalar<float>());
  EXPECT_EQ(fromScalar(2.0)(0).scalar<float>(), 2);
  const Tensor twice = x(2, span, Tensor::fromVector(std::vector<int>{0, 0}));
  EXPECT_EQ(twice.shape(), Shape({4, 2}));
  EXPECT_EQ(twice.toHostVector<float>(), (std::vector<float>{2, 5, 8, 11, 2, 5, 8, 11}));
  x(2, span, 0) += 1.0;
  x(span, range(0, 1), span, 0) = -1.0;
  EXPECT_EQ(x.toHostVector<float>(), (std::vector<float>{-1, -1, -1, 3, 4, 6, 6, 7, 9, 9, 10, 12}));
}

// Writes through one bad index, or one among several, in every way that a write is put together.
TEST(TensorIndex, AWriteOutOfRangeDoesNotHappen) {
  const Tensor bad = Tensor::fromVector<int>({0, 9}), good = Tensor::fromVector<int>({2, 1});
  const std::function<void(Tensor&)> writes[] = {
      [&](Tensor& x) { x(bad) = full({2, 3}, 7.0); },
      [&](Tensor& x) { x(bad) += full({2, 3}, 7.0); },
      [&](Tensor& x) { x(bad) *= full({2, 3}, 7.0); },
      [&](Tensor& x) { x(range(1, 3), bad) = 7.0; },
      [&](Tensor& x) { x(bad, good) = 7.0; },
      [&](Tensor& x) { x(good, bad) -= full({2, 2}, 7.0); },
      [&](Tensor& x) { x(bad)(0) = 7.0; },
      [&](Tensor& x) { x.flat(bad + 9) = 7.0; },
      [&](Tensor& x) { x(0) = x(bad)(1) + 7.0; },
  };
  int number = 0;
  for (const auto& write : writes) {
    SCOPED_TRACE(number++);
    Tensor x = iota({4, 3});
    const Tensor other = x * 2.0;
    // Eagerly the write throws, lazily the first read that needs it: then it alone has not
    // happened.
    Tensor y;
    float added = 0;
    const std::string error = errorOf([&] {
      write(x);
      x += 1.0;
      added = 1;
      y = x * 2.0;
      x.toHostVector<float>();
    });
    EXPECT_THAT(error, ::testing::ContainsRegex("^(index|[-+*]=): (f32|s64)\\["));
    EXPECT_THAT(error, HasSubstr(" is out of range for "));
    EXPECT_EQ(x.toHostVector<float>(), (iota({4, 3}) + added).toHostVector<float>());
    if (added > 0) {
      EXPECT_EQ((y / 2.0).toHostVector<float>(), x.toHostVector<float>());
    }
    EXPECT_EQ((other / 2.0).toHostVector<float>(), iota({4, 3}).toHostVector<float>());
  }
}

TEST(Metadata, DimSaysWhatIsAskedOfWhat) {
  EXPECT_THAT(errorOf([] { full({3, 4}, 1.0).dim(9); }),
              HasSubstr("dim: f32[3,4] has no dimension 9, at "));
  const Tensor x = full({2, 3}, 1.0);
  EXPECT_EQ(fromScalar(x.elements()).type(), dtype::u32);  // of a size_t
}

TEST(Construction, BracesAreAShape) {
  EXPECT_EQ(Tensor({0, 3}).shape(), Shape({0, 3}));
  EXPECT_EQ(Tensor({1, 2, 3}).shape(), Shape({1, 2, 3}));
  const std::array<unsigned, 4> values = {1, 2, 3, 4};
  EXPECT_EQ(Tensor::fromArray({2, 2}, values).shape(), Shape({2, 2}));
  EXPECT_EQ(Tensor::fromArray({2, 2}, values, dtype::f64).type(), dtype::f64);
}

TEST(Host, IntegersOfOneSizeReadEachOther) {
  const Tensor x = Tensor::fromVector<unsigned>({1, 2});
  EXPECT_THAT(x.toHostVector<int>(), ElementsAre(1, 2));
  EXPECT_THAT(errorOf([&] { x.toHostVector<float>(); }),
              HasSubstr("toHostVector: u32[2] is not read as f32, at tests/tensor/"));
  EXPECT_THAT(errorOf([&] { x.toHostVector<long long>(); }),
              HasSubstr("toHostVector: u32[2] is not read as s64"));
  EXPECT_THAT(errorOf([&] { x(std::vector<Index>()); }),
              HasSubstr("index: u32[2]: needs an index"));
}

TEST(Host, AsScalarCasts) {
  EXPECT_TRUE(fromScalar(0.5).asScalar<bool>());
  EXPECT_FALSE(fromScalar(0).asScalar<bool>());
  EXPECT_EQ(fromScalar(2.9).asScalar<int>(), 2);
  EXPECT_EQ(fromScalar(42.f).asScalar<char>(), 42);
  EXPECT_EQ(full({1}, 3, dtype::f16).asScalar<double>(), 3);
}

TEST(Ranges, Members) {
  EXPECT_EQ(range().end(), std::nullopt);
  EXPECT_EQ(iota({3})(range()).shape(), Shape({3}));
  const range r(1, fl::end, 2);
  const std::optional<Dim>& end = r.end();
  EXPECT_FALSE(end);
  EXPECT_THAT(errorOf<std::runtime_error>([&] { r.endVal(); }),
              HasSubstr("range::endVal: the range ends at fl::end, at tests/tensor/"));
  Index index(r);
  EXPECT_TRUE(std::holds_alternative<range>(index.getVariant()));
  index.get<range>() = range(2);
  EXPECT_EQ(index.get<range>().endVal(), 2);
  EXPECT_EQ(std::get<Tensor>(Index(iota({3})).getVariant()).shape(), Shape({3}));
}

TEST(Printing, AlignsColumnsAndNamesMatrices) {
  const Tensor x = Tensor::fromVector<int>({2, 2, 2}, {1, -20, 3, 4, 5, 6, 700, 8});
  const std::string text = "s32[2,2,2]\n(:, :, 0)\n  1   3\n-20   4\n(:, :, 1)\n  5 700\n  6   8\n";
  EXPECT_EQ(x.toString(), text);
  std::ostringstream os;
  os << x;
  x.operator<<(os);
  EXPECT_EQ(os.str(), text + text);
  EXPECT_EQ(fromScalar(0.25).toString(), "f32[]\n0.25\n");
  EXPECT_EQ(Tensor().toString(), "f32[0]\n");
  EXPECT_EQ(Tensor(Shape({0, 3, 2})).toString(), "f32[0,3,2]\n");
}

TEST(Adapters, ByType) {
  const Tensor x = iota({4});
  const Tensor y = toTensorType<EagerTensor>(Tensor(x + 1.0));
  EXPECT_EQ(y.backendType(), EagerTensor::tensorBackendType);
  EXPECT_EQ(&y.backend(), &getBackend("eager"));
  const Tensor z = to<LazyTensor>(Tensor(y));
  EXPECT_EQ(z.backendType(), LazyTensor::tensorBackendType);
  EXPECT_THAT(z.toHostVector<float>(), ElementsAre(1, 2, 3, 4));
  EXPECT_TRUE(detail::areBackendsEqual(y, y, y));
  EXPECT_FALSE(detail::areBackendsEqual(y, y, z));
  const LazyTensor& adapter = z.getAdapter<LazyTensor>();
  EXPECT_EQ(adapter.shape(), Shape({4}));
  EXPECT_EQ(&adapter.backend(), &LazyTensor::tensorBackend());

  Tensor made;
  withTensorType<EagerTensor>([&] { made = full({2}, 1.0); });
  EXPECT_EQ(made.backendType(), TensorBackendType::Eager);

  DefaultTensorBackend_t& before = defaultTensorBackend();
  setDefaultTensorType<EagerTensor>();
  EXPECT_EQ(full({2}, 1.0).backendType(), TensorBackendType::Eager);
  setDefaultTensorBackend(before);
}

ForwardingBackend& borrowing() {
  static auto& backend = *new ForwardingBackend(getBackend("eager"));
  return backend;
}

// A value in memory that a program holds.
class BorrowedTensor : public TensorAdapterBase {
 public:
  BorrowedTensor(const Shape& shape, float* elements)
      : TensorAdapterBase(borrowing(), {dtype::f32, shape}),
        elements_(std::make_shared<Memory>(elements, bytes())) {}
  MemoryBlockPtr data() override { return elements_; }

 private:
  struct Memory : MemoryBlock {
    Memory(void* data, size_t bytes) : MemoryBlock(data, bytes) {}
  };
  MemoryBlockPtr elements_;
};

TEST(Adapters, OfAProgramsOwn) {
  float memory[] = {1, 2, 3};
  const Tensor x = toTensor<BorrowedTensor>(Shape({3}), memory);
  EXPECT_EQ(&x.getAdapter<BorrowedTensor>().backend(), &borrowing());
  EXPECT_THAT((x * 2.0).toHostVector<float>(), ElementsAre(2, 4, 6));
}

TEST(Adapters, AreReleased) {
  Tensor x = iota({3});
  EXPECT_TRUE(x.hasAdapter());
  const TensorValue value = detail::releaseAdapter(std::move(x));
  EXPECT_FALSE(x.hasAdapter());
  EXPECT_THAT(Tensor(value).toHostVector<float>(), ElementsAre(0, 1, 2));
  Tensor view = Tensor(value)(range(1, 3));
  EXPECT_EQ(detail::releaseAdapterUnsafe(view)->shape(), Shape({2}));
  EXPECT_FALSE(view.hasAdapter());
}

[[gnu::noinline]] void checkedCall(const Tensor& a, const Tensor& b) {
  FL_TENSOR_DTYPES_MATCH_CHECK(a, b, a);
}

TEST(Adapters, DtypesMatch) {
  const Tensor x = iota({3}), y = x.astype(dtype::f64);
  EXPECT_NO_THROW(checkedCall(x, x));
  EXPECT_THAT(errorOf([&] { checkedCall(x, y); }),
              HasSubstr("checkedCall: f32[3] x f64[3] x f32[3]: dtypes differ, at "
                        "tests/tensor/CompatibilityTest.cpp:"));
}

// A stream of a type that no device of ours has.
struct CudaStream : StreamTrait<CudaStream> {
  static constexpr StreamType type = StreamType::CUDA;
  using StreamTrait::relativeSync;
  const Device& device() const override {
    return DeviceManager::getInstance().getActiveDevice(DeviceType::x64);
  }
  Device& device() override {
    return DeviceManager::getInstance().getActiveDevice(DeviceType::x64);
  }
  void sync() const override {}
  void relativeSync(const CudaStream&) const override {}
};

TEST(Streams, OfOtherTypes) {
  const CudaStream stream;
  const Tensor x = iota({3});
  EXPECT_THAT(errorOf([&] { stream.impl<SynchronousStream>(); }),
              HasSubstr("Stream::impl: the stream has another type, at tests/tensor/"));
  EXPECT_THAT(errorOf<std::runtime_error>([&] { stream.relativeSync(x.stream()); }),
              HasSubstr("Stream::relativeSync: streams of different types, at tests/tensor/"));
}

TEST(Streams, OfAProgramsOwn) {
  struct Counting : SynchronousStream {
    void sync() const override { ++synced; }
    mutable int synced = 0;
  };
  const auto stream = std::make_shared<Counting>();
  EXPECT_EQ(&stream->device(), &DeviceManager::getInstance().getActiveDevice(DeviceType::x64));
  X64Device device;
  EXPECT_THAT(errorOf<std::runtime_error>([&] { device.addStream(stream); }),
              HasSubstr("Device::addStream: the stream is another device's, at tests/tensor/"));
  EXPECT_THAT(errorOf([&] { deviceImplTypeCheck(DeviceType::CUDA, DeviceType::x64); }),
              HasSubstr("Device::impl: a device of x64 is no CUDA, at tests/tensor/"));
  EXPECT_EQ(FL_BACKEND_CUDA, DeviceManager::getInstance().isDeviceTypeAvailable(DeviceType::CUDA));
}

TEST(MemoryLog, NamesEachBlock) {
  std::ostringstream log;
  detail::setMemMgrLogStream(&log);
  detail::setMemMgrFlushInterval(1000);
  detail::setMemMgrLoggingEnabled(true);
  {
    const Tensor x = Tensor::fromVector(std::vector<float>(1000, 1.0F));
  }
  EXPECT_EQ(log.str(), "");
  detail::setMemMgrLoggingEnabled(false);
  EXPECT_THAT(log.str(),
              ::testing::ContainsRegex("alloc 4000 0 [0-9]+ \n(.*\n)*unlock [0-9]+ 0 4000 \n"));
  const std::string before = log.str();
  const Tensor x = Tensor::fromVector(std::vector<float>(1000, 1.0F));
  EXPECT_EQ(log.str(), before);

  detail::setMemMgrFlushInterval(1);
  detail::setMemMgrLoggingEnabled(true);
  const Tensor y = Tensor::fromVector(std::vector<float>(100, 1.0F));
  EXPECT_THAT(log.str(), HasSubstr("alloc 400 0 "));
  detail::setMemMgrLoggingEnabled(false);
  detail::setMemMgrLogStream(nullptr);
  EXPECT_THAT(errorOf([&] { detail::setMemMgrFlushInterval(0); }),
              HasSubstr("setMemMgrFlushInterval: the interval must not be 0"));
}

}  // namespace
}  // namespace fl
