// Tf32Scope: which operators record that TF32 is allowed, and that the CPU's values are of f32 all
// the same.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "fl/fl.h"
#include "fl/ir/Inference.h"
#include "fl/tensor/ForwardingBackend.h"

namespace fl::test {
namespace {

// Writes down which library operators are recorded, "tf32 matmul" where it is allowed.
class Recording final : public ForwardingBackend {
 public:
  using ForwardingBackend::ForwardingBackend;
  TensorValue apply(ir::Op op, std::vector<TensorValue> operands, const ir::Attrs& attrs,
                    ir::ValueType type) override {
    const std::string name = ir::opName(op);
    if (ir::opKind(op) == ir::Kind::Library)
      recorded.push_back((ir::allowsTf32(op, attrs) ? "tf32 " : "") + name);
    return ForwardingBackend::apply(op, std::move(operands), attrs, std::move(type));
  }

  std::vector<std::string> recorded;
};

using Names = std::vector<std::string>;

Names recordedBy(const std::function<void()>& program) {
  Recording backend(defaultTensorBackend());
  const BackendScope scope(backend);
  program();
  return backend.recorded;
}

TEST(Tf32, IsOfProductsInItsScope) {
  const Tensor x = full({2, 2}, 1.5f);
  EXPECT_EQ(recordedBy([&] {
              matmul(x, x);
              {
                const Tf32Scope tf32;
                matmul(x, x);
                {
                  const Tf32Scope inner;
                }
                matmul(x, x);
                std::thread([&] { EXPECT_FALSE(Tf32Scope::isActive()); }).join();
              }
              matmul(x, x);
            }),
            (Names{"matmul", "tf32 matmul", "tf32 matmul", "matmul"}));
}

TEST(Tf32, IsOfF32Alone) {
  const Tf32Scope tf32;
  EXPECT_EQ(recordedBy([] {
              for (const dtype type : {dtype::f64, dtype::f16, dtype::bf16, dtype::s32}) {
                const Tensor x = full({2, 2}, 1, type);
                matmul(x, x);
              }
            }),
            Names(4, "matmul"));
}

// Gradients are recorded by backward(), in whose scope they are.
TEST(Tf32, IsOfConvolutionsAndGradients) {
  const Variable x(full({4, 4, 1, 1}, 1.5f), true), w(full({3, 3, 1, 1}, 0.5f), true);
  const auto backward = [](Variable y) { y.backward(noGrad(full(y.shape(), 1.0f))); };
  EXPECT_THAT(
      recordedBy([&] {
        Variable y;
        {
          const Tf32Scope tf32;
          y = conv2d(x, w);
        }
        backward(y);
      }),
      ::testing::UnorderedElementsAre("tf32 conv2d", "conv2dBackwardData", "conv2dBackwardFilter"));
  const Tf32Scope tf32;
  EXPECT_THAT(recordedBy([&] { backward(conv2d(x, w)); }),
              ::testing::UnorderedElementsAre("tf32 conv2d", "tf32 conv2dBackwardData",
                                              "tf32 conv2dBackwardFilter"));
}

TEST(Tf32, ChangesNoValueOnTheCpu) {
  const Tensor x = rand({16, 16}), plain = matmul(x, x);
  const std::vector<float> expected = plain.toHostVector<float>();
  const Tf32Scope tf32;
  EXPECT_EQ(matmul(x, x).toHostVector<float>(), expected);
}

}  // namespace
}  // namespace fl::test
