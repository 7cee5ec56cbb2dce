// Signatures.h holds; the test is that it compiles. What is left for a run: methods by their types.
#include <gtest/gtest.h>

#include "tests/tensor/Signatures.h"

namespace fl {
namespace {

template <typename Method>
constexpr bool isMethod(Method) {
  return std::is_member_function_pointer_v<Method>;
}

TEST(Signatures, OfMethods) {
  EXPECT_TRUE(isMethod(static_cast<Tensor (Tensor::*)(const dtype) const>(&Tensor::astype)));
  EXPECT_TRUE(isMethod(static_cast<Dim (Tensor::*)() const>(&Tensor::elements)));
  EXPECT_TRUE(isMethod(static_cast<Dim (Tensor::*)(const size_t) const>(&Tensor::dim)));
  EXPECT_TRUE(isMethod(static_cast<int (Tensor::*)() const>(&Tensor::ndim)));
  EXPECT_TRUE(isMethod(static_cast<const Stream& (Tensor::*)() const>(&Tensor::stream)));
  EXPECT_TRUE(isMethod(static_cast<Tensor (Tensor::*)(const Index&) const>(&Tensor::flat)));
  EXPECT_TRUE(isMethod(static_cast<float* (Tensor::*)() const>(&Tensor::device<float>)));
  EXPECT_TRUE(isMethod(static_cast<void (Tensor::*)(float**) const>(&Tensor::device<float>)));
  EXPECT_TRUE(isMethod(static_cast<float* (Tensor::*)() const>(&Tensor::host<float>)));
  EXPECT_TRUE(isMethod(static_cast<void (Tensor::*)(float*) const>(&Tensor::host<float>)));
  EXPECT_TRUE(isMethod(static_cast<void (Tensor::*)(void*)>(&Tensor::setContext)));
  EXPECT_TRUE(isMethod(static_cast<void* (Tensor::*)() const>(&Tensor::getContext)));
}

}  // namespace
}  // namespace fl
