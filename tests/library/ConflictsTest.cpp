// What products copy with AVX2, whose code takes twice as long to cross columns that lie half a
// page apart or a multiple of it: seen by the scratch memory. Values are library_avx2_test's.
#include "tests/library/LibraryHarness.h"

namespace fl::library {
namespace {

size_t scratchOfMatmul(int64_t m, int64_t n, int64_t k, bool transposed) {
  const LibraryCall call{Op::Matmul,
                         {0, transposed, 0},
                         {f32({m, k}), transposed ? f32({n, k}) : f32({k, n})},
                         f32({m, n})};
  return prepareLibrary(call)->scratchBytes();
}

// The operand that all pieces share has a gap of 16; pieces of the other are copied one by one,
// here eight of 128.
TEST(Conflicts, OfAMatrixAreCopied) {
  EXPECT_EQ(scratchOfMatmul(1024, 1024, 320, false), 4u * 320 * (1024 + 16));
  EXPECT_EQ(scratchOfMatmul(1024, 128, 320, false), 8 * (4u * 320 * 128));
  EXPECT_EQ(scratchOfMatmul(1000, 1024, 320, true), 8 * (4u * 320 * 128));
  // Pieces for the cache, as many for each of eight threads.
  EXPECT_EQ(scratchOfMatmul(1024, 512, 640, false), 8 * (4u * 640 * 128));
  EXPECT_EQ(scratchOfMatmul(8192, 64, 512, false), 16 * (4u * 512 * 128));
}

// Columns at other distances, those that no sum crosses, and what few results use stay.
TEST(Conflicts, OthersAreReadWhereTheyAre) {
  EXPECT_EQ(scratchOfMatmul(1000, 1000, 320, false), 0u);
  EXPECT_EQ(scratchOfMatmul(256, 1024, 512, false), 0u);
  EXPECT_EQ(scratchOfMatmul(1024, 63, 320, false), 0u);
}

// Queries and keys of a head, beside its scores. No sum crosses rows of values.
TEST(Conflicts, OfAHeadAreCopied) {
  const auto scratch = [](int64_t time) {
    const ir::ValueType head = f32({time, 64, 1, 1});
    return prepareLibrary({Op::Attention, {0}, {head, head, head}, head})->scratchBytes();
  };
  constexpr size_t kBlocks = 4, kBlock = 128;
  EXPECT_EQ(scratch(512), kBlocks * 4 * (512 * kBlock + 64 * kBlock + 64 * (512 + 16)));
  EXPECT_EQ(scratch(496), kBlocks * 4 * 496 * kBlock);
}

}  // namespace
}  // namespace fl::library
