// What row kernels keep in shared memory, where it lies, and what launches ask for.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fl/codegen/cuda/Emitter.h"
#include "fl/kernel/cuda/Launch.h"
#include "fl/kernel/cuda/SharedRows.h"
#include "tests/codegen/cuda/RowKernels.h"

namespace fl::testing {
namespace {

using ir::cuda::Launch;
using ir::cuda::launchOf;
using ir::cuda::sharedRows;
using ir::cuda::SharedRows;
using ::testing::ElementsAre;
using ::testing::FieldsAre;
using ::testing::IsEmpty;

// Rows are FieldsAre(value, writer, isFetched, offset).

// What it has read it needs no more when the exponentials are there.
TEST(SharedRows, SoftmaxsExponentialsTakeThePlacesOfWhatTheyAreMadeOf) {
  const SharedRows rows = sharedRows(softmaxKernel(dtype::f32));
  EXPECT_THAT(rows.rows, ElementsAre(FieldsAre(0, 0, true, 0), FieldsAre(3, 1, false, 0)));
  EXPECT_EQ(rows.bytesEach, 4);
}

// Other sizes would lie in the places of other elements. Casts are made again.
TEST(SharedRows, ShortElementsWaitAsTheyAreRead) {
  const SharedRows rows = sharedRows(softmaxKernel(dtype::bf16));
  EXPECT_THAT(rows.rows, ElementsAre(FieldsAre(0, 0, true, 0), FieldsAre(4, 1, false, 2)));
  EXPECT_EQ(rows.bytesEach, 6);
}

TEST(SharedRows, WhatHasNoNeighboursIsReadByItsThread) {
  const SharedRows rows = sharedRows(softmaxKernel(dtype::f32, {kAny, kAny}));
  EXPECT_THAT(rows.rows, ElementsAre(FieldsAre(0, 0, false, 0), FieldsAre(3, 1, false, 0)));
}

// Of a product that is needed twice, one factor waits and the other is to be read.
TEST(SharedRows, WhatIsReadLaterHasPlacesOfItsOwn) {
  const SharedRows rows = sharedRows(softmaxGradientKernel());
  EXPECT_THAT(rows.rows, ElementsAre(FieldsAre(0, 0, true, 0), FieldsAre(3, 1, false, 0),
                                     FieldsAre(6, 2, true, 4)));
  EXPECT_EQ(rows.bytesEach, 8);
}

TEST(SharedRows, DropoutKeepsItsSumAndMask) {
  const SharedRows rows = sharedRows(dropoutNormKernel());
  EXPECT_THAT(rows.rows, ElementsAre(FieldsAre(9, 0, false, 0), FieldsAre(6, 0, false, 4)));
  EXPECT_EQ(rows.bytesEach, 5);
}

// What is the same for all rows is in the caches.
TEST(SharedRows, FactorsOfAllRowsAreReadAgain) {
  const SharedRows rows = sharedRows(normGradientKernel());
  EXPECT_THAT(rows.rows, ElementsAre(FieldsAre(0, 0, true, 0), FieldsAre(1, 0, true, 4)));
  EXPECT_EQ(rows.bytesEach, 8);
}

TEST(SharedRows, OneSweepAndColumnsKeepNothing) {
  KernelMaker maker(2, 1);
  maker.beginStage(true);
  maker.reduce(ir::Op::Sum, maker.apply(ir::Op::Exp, {maker.input(dtype::f32, kRow)}));
  EXPECT_THAT(sharedRows(maker.kernel()).rows, IsEmpty());
  EXPECT_EQ(sharedRows(softmaxKernel(dtype::f32, kRow, 2)).bytesEach, 0);
}

TEST(SharedRows, LaunchesAskForTheirTeamsRows) {
  const auto launch = [](const ir::Kernel& kernel, int64_t length) {
    const int64_t extents[] = {length, 1000};
    const Launch launch = launchOf(kernel, extents);
    return std::vector<int64_t>{launch.blocks, launch.threads[1], launch.threads[2],
                                launch.sharedBytes};
  };
  const ir::Kernel softmax = softmaxKernel(dtype::f32);
  EXPECT_THAT(launch(softmax, 0), ElementsAre(125, 1, 8, 0));
  EXPECT_THAT(launch(softmax, 1), ElementsAre(125, 1, 8, 8 * 64));
  EXPECT_THAT(launch(softmax, 512), ElementsAre(125, 1, 8, 8 * 2048));
  EXPECT_THAT(launch(softmax, 1024), ElementsAre(125, 1, 8, 8 * 4096));
  EXPECT_THAT(launch(softmax, 1025), ElementsAre(250, 1, 4, 4 * 4160));
  EXPECT_THAT(launch(softmax, 4096), ElementsAre(500, 1, 2, 2 * 16384));
  EXPECT_THAT(launch(softmax, 8192), ElementsAre(1000, 2, 1, 32768));
  EXPECT_THAT(launch(softmax, 24576), ElementsAre(1000, 8, 1, 98304));
  EXPECT_THAT(launch(softmax, 24577), ElementsAre(1000, 8, 1, 0));
  EXPECT_THAT(launch(softmax, int64_t{1} << 40), ElementsAre(1000, 8, 1, 0));
  EXPECT_THAT(launch(softmaxGradientKernel(), 8192), ElementsAre(1000, 2, 1, 65536));
  EXPECT_THAT(launch(softmaxKernel(dtype::f64), 4096), ElementsAre(1000, 1, 1, 32768));
  EXPECT_THAT(launch(softmaxKernel(dtype::bf16), 4096), ElementsAre(1000, 1, 1, 24576));
}

// How many sweeps of the text mention it; what is fetched is, before the first.
size_t sweepsWith(const std::string& text, const std::string& words) {
  const std::string kSweep = "const auto visit";
  size_t with = 0;
  for (size_t begin = 0, end = 0; begin != std::string::npos; begin = end) {
    end = text.find(kSweep, begin + 1);
    with += text.substr(begin, end - begin).find(words) != std::string::npos;
  }
  return with;
}

// Each operand is fetched or loaded by one sweep of what keeps rows, and by several of what does
// not.
TEST(SharedRows, OperandsAreReadOnce) {
  for (const ir::Kernel& kernel : rowKernels()) {
    const std::string text = codegen::cuda::emitCuda({{"k", &kernel}});
    const size_t first = text.find(" k(const k_arguments a)"), second = text.find(" k_shared(");
    const size_t end = text.find(" k_short(");
    ASSERT_TRUE(first < second && second < end && end < text.size());
    const std::string plain = text.substr(first, second - first);
    const std::string keeping = text.substr(second, end - second);
    size_t again = 0;
    for (size_t i = 0; i < kernel.operands.size(); ++i) {
      const ir::KernelOperand& operand = kernel.operands[i];
      if (operand.role != ir::KernelOperand::Role::Input) continue;
      const std::string load = "a.data" + std::to_string(i) + "[";
      const std::string fetch = ", a.data" + std::to_string(i) + " ";
      EXPECT_TRUE(sweepsWith(keeping, load) + sweepsWith(keeping, fetch) == 1 ||
                  operand.strides[1] == kZero)
          << load << "\n"
          << keeping;
      again += sweepsWith(plain, load) > 1;
    }
    EXPECT_GT(again, 0u);
  }
}

}  // namespace
}  // namespace fl::testing
