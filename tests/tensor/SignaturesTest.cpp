// The test is that it compiles; what is left for a run are the values of constants and of arguments
// that a call leaves out.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "tests/tensor/Signatures.h"

namespace fl {
namespace {

using ::testing::ElementsAre;

// Flashlight's, which programs cast from and to integers.
#define FL_VALUE(name, value) static_assert(static_cast<int>(name) == value)
FL_VALUE(TensorBackendType::Stub, 0);
FL_VALUE(TensorBackendType::Tracer, 1);
FL_VALUE(TensorBackendType::ArrayFire, 2);
FL_VALUE(TensorBackendType::OneDnn, 3);
FL_VALUE(TensorBackendType::Jit, 4);
FL_VALUE(Location::Host, 0);
FL_VALUE(MemoryLocation::Device, 1);
FL_VALUE(StorageType::Dense, 0);
FL_VALUE(StorageType::CSR, 1);
FL_VALUE(StorageType::CSC, 2);
FL_VALUE(StorageType::COO, 3);
FL_VALUE(PadType::Constant, 0);
FL_VALUE(PadType::Edge, 1);
FL_VALUE(PadType::Symmetric, 2);
FL_VALUE(SortMode::Descending, 0);
FL_VALUE(SortMode::Ascending, 1);
FL_VALUE(MatrixProperty::None, 0);
FL_VALUE(MatrixProperty::Transpose, 1);
FL_VALUE(detail::IndexType::Tensor, 0);
FL_VALUE(detail::IndexType::Range, 1);
FL_VALUE(detail::IndexType::Literal, 2);
FL_VALUE(detail::IndexType::Span, 3);
FL_VALUE(dtype::f16, 0);
FL_VALUE(dtype::f32, 1);
FL_VALUE(dtype::f64, 2);
FL_VALUE(dtype::b8, 3);
FL_VALUE(dtype::s16, 4);
FL_VALUE(dtype::s32, 5);
FL_VALUE(dtype::s64, 6);
FL_VALUE(dtype::u8, 7);
FL_VALUE(dtype::u16, 8);
FL_VALUE(dtype::u32, 9);
FL_VALUE(dtype::u64, 10);
FL_VALUE(TensorExtensionType::Generic, 0);
FL_VALUE(TensorExtensionType::Autograd, 1);
FL_VALUE(TensorExtensionType::Vision, 2);
FL_VALUE(TensorExtensionType::JitOptimizer, 3);
FL_VALUE(ReduceMode::NONE, 0);
FL_VALUE(ReduceMode::MEAN, 1);
FL_VALUE(ReduceMode::SUM, 2);
FL_VALUE(PoolingMode::MAX, 0);
FL_VALUE(PoolingMode::AVG_INCLUDE_PADDING, 1);
FL_VALUE(PoolingMode::AVG_EXCLUDE_PADDING, 2);
FL_VALUE(RnnMode::RELU, 0);
FL_VALUE(RnnMode::TANH, 1);
FL_VALUE(RnnMode::LSTM, 2);
FL_VALUE(RnnMode::GRU, 3);
FL_VALUE(PaddingMode::SAME, -1);
FL_VALUE(DeviceType::x64, 0);
FL_VALUE(DeviceType::CUDA, 1);
FL_VALUE(StreamType::CUDA, 0);
FL_VALUE(StreamType::Synchronous, 1);
#undef FL_VALUE

TEST(Signatures, OfTypes) {
  EXPECT_STREQ(dtype_traits<unsigned>::getName(), "unsigned int");
  EXPECT_STREQ(dtype_traits<long>::getName(), "long int");
  EXPECT_EQ(dtype_traits<bool>::fl_type, dtype::u8);
  EXPECT_EQ(dtype_traits<char>::fl_type, dtype::b8);
  EXPECT_EQ(dtype_traits<long>::ctype, dtype::s32);
  EXPECT_EQ(dtype_traits<unsigned long>::ctype, dtype::u32);
  EXPECT_EQ(dtype_traits<double>::ctype, dtype::f32);
}

TEST(Signatures, DefaultsOfCreation) {
  EXPECT_EQ(fromScalar(1.0).type(), dtype::f32);
  EXPECT_EQ(full({1}, 1L).type(), dtype::s32);
  EXPECT_THAT(arange(0, 2).toHostVector<int>(), ElementsAre(0, 1));
  EXPECT_THAT(arange({2, 2}).toHostVector<float>(), ElementsAre(0, 1, 0, 1));
  EXPECT_THAT(iota({3}).toHostVector<float>(), ElementsAre(0, 1, 2));
  EXPECT_THAT(identity(2).toHostVector<float>(), ElementsAre(1, 0, 0, 1));
  EXPECT_EQ(rand({1}).type(), dtype::f32);
  EXPECT_EQ(randn({1}).type(), dtype::f32);
}

TEST(Signatures, DefaultsOfFunctions) {
  const Tensor x = Tensor::fromVector({2, 2}, std::vector<float>{3, 1, 2, 5});
  EXPECT_THAT(transpose(x).toHostVector<float>(), ElementsAre(3, 2, 1, 5));
  EXPECT_EQ(concatenate({x, x}).shape(), Shape({4, 2}));
  EXPECT_THAT(pad(x, {{1, 0}}).toHostVector<float>(), ElementsAre(0, 3, 1, 0, 2, 5));
  EXPECT_THAT(matmul(x, x).toHostVector<float>(), ElementsAre(11, 8, 16, 27));
  EXPECT_TRUE(allClose(x, x + 9e-6));
  EXPECT_FALSE(allClose(x, x + 2e-5));
  Tensor values, indices;
  topk(values, indices, x, 1, 0);
  EXPECT_THAT(values.toHostVector<float>(), ElementsAre(3, 5));
  sort(values, indices, x, 0);
  EXPECT_THAT(values.toHostVector<float>(), ElementsAre(1, 3, 2, 5));
  EXPECT_THAT(sort(x, 0).toHostVector<float>(), ElementsAre(1, 3, 2, 5));
  EXPECT_THAT(argsort(x, 0).toHostVector<unsigned>(), ElementsAre(1, 0, 0, 1));
}

TEST(Signatures, DefaultsOfReductions) {
  const Tensor x = Tensor::fromVector({2, 2}, std::vector<float>{3, 1, 2, 5});
  EXPECT_EQ(sum(x).shape(), Shape());
  EXPECT_EQ(sum(x).scalar<float>(), 11);
  EXPECT_EQ(sum(x, {0}).shape(), Shape({2}));
  EXPECT_EQ(argmax(x, 0).shape(), Shape({2}));
  EXPECT_EQ(var(x).scalar<float>(), 2.1875);
  EXPECT_FLOAT_EQ(norm(x).scalar<float>(), std::sqrt(39.f));
}

}  // namespace
}  // namespace fl
