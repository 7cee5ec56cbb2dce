#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fl/runtime/StepLabel.h"

namespace fl::runtime {
namespace {

std::string labelOf(const std::string& text) { return kernelLabel(ir::parseKernel(text)); }

// Without the id.
std::string wordsOf(const std::string& text) {
  const std::string label = labelOf(text);
  EXPECT_THAT(label, ::testing::ContainsRegex(" [0-9a-f]{8}$"));
  return label.substr(0, label.rfind(' '));
}

TEST(StepLabelTest, MapsNameTheirOperatorsButCasts) {
  EXPECT_EQ(wordsOf("kernel @k rank=1 reduced=[] {\n"
                    "  operand input f16 [1]\n"
                    "  operand output f32 [1]\n"
                    "  %0 = load 0 : f16\n"
                    "  %1 = astype %0 : f32\n"
                    "  %2 = exp %1 : f32\n"
                    "  %3 = add %2, %1 : f32\n"
                    "  stage { store 1 %3 }\n"
                    "}\n"),
            "map exp+add");
}

TEST(StepLabelTest, CopiesAreNamedSo) {
  EXPECT_EQ(wordsOf("kernel @k rank=1 reduced=[] {\n"
                    "  operand input f32 [1]\n"
                    "  operand output f32 [1]\n"
                    "  %0 = load 0 : f32\n"
                    "  stage { store 1 %0 }\n"
                    "}\n"),
            "map copy");
}

TEST(StepLabelTest, ReductionsSayTheirKind) {
  const std::string body =
      "  operand input f32 [1,*]\n"
      "  operand output f32 [0,1]\n"
      "  %0 = load 0 : f32\n"
      "  %1 = exp %0 : f32\n"
      "  %2 = total 0 : f32\n"
      "  sweep { reduce sum %1 }\n"
      "  stage { store 1 %2 }\n"
      "}\n";
  EXPECT_EQ(wordsOf("kernel @k rank=2 reduced=[0] {\n" + body), "rows exp+sum");
}

TEST(StepLabelTest, LongKernelsSayHowManyMore) {
  std::string text =
      "kernel @k rank=1 reduced=[] {\n  operand input f32 [1]\n  operand output f32 [1]\n"
      "  %0 = load 0 : f32\n";
  for (int i = 1; i <= 10; ++i) {
    text += "  %" + std::to_string(i) + " = exp %" + std::to_string(i - 1) + " : f32\n";
  }
  EXPECT_EQ(wordsOf(text + "  stage { store 1 %10 }\n}\n"),
            "map exp+exp+exp+exp+exp+exp+exp+exp+2 more");
}

// Of the kernel's text alone, so that it is the same in every process.
TEST(StepLabelTest, KernelsOfTheSameOperatorsDifferByTheirIds) {
  const auto text = [](const std::string& name, const std::string& strides) {
    return "kernel @" + name + " rank=1 reduced=[] {\n  operand input f32 [" + strides +
           "]\n  operand output f32 [1]\n  %0 = load 0 : f32\n  %1 = exp %0 : f32\n"
           "  stage { store 1 %1 }\n}\n";
  };
  EXPECT_EQ(labelOf(text("k", "1")), "map exp c6cdf2e7");
  EXPECT_EQ(labelOf(text("other", "1")), labelOf(text("k", "1")));
  EXPECT_EQ(wordsOf(text("k", "*")), "map exp");
  EXPECT_NE(labelOf(text("k", "*")), labelOf(text("k", "1")));
}

}  // namespace
}  // namespace fl::runtime
