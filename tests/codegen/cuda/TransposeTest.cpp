// The kernel of fl/kernel/cuda/Transpose.h, run on the CPU, with the blocks and warps in forward
// and in reversed order.
#include <gtest/gtest.h>

#include <numeric>

#include "fl/kernel/cuda/Transpose.h"
#include "tests/codegen/cuda/HostModule.h"

namespace fl::testing {
namespace {

TEST(CudaTranspose, TransposesEveryMatrix) {
  const HostModule module(codegen::cuda::emitTranspose());
  for (const auto& all : {ir::cuda::Transposition{1, 1, 1}, ir::cuda::Transposition{3, 64, 96},
                          ir::cuda::Transposition{2, 33, 70}, ir::cuda::Transposition{5, 7, 1},
                          ir::cuda::Transposition{2, 1, 65}}) {
    const int64_t each = all.rows * all.columns;
    std::vector<uint16_t> from(all.count * each);
    std::iota(from.begin(), from.end(), 1);
    std::vector<uint16_t> expected = from;
    for (int64_t i = 0; i < all.count * each; ++i) {
      const int64_t row = i % each / all.columns, column = i % all.columns;
      expected[i / each * each + column * all.rows + row] = from[i];
    }
    expected.push_back(0x5a5a);  // which nobody writes
    for (const bool reversed : {false, true}) {
      for (const int64_t mostBlocks : {int64_t{1} << 24, int64_t{2}}) {
        std::vector<uint16_t> to(expected.size(), 0x5a5a);
        ir::cuda::Launch launch = launchOf(all);
        EXPECT_EQ(launch.blocks, tilesOf(all));
        launch.blocks = std::min(launch.blocks, mostBlocks);
        module.launch(ir::cuda::kTransposeEntry, launch, packArguments(all, from.data(), to.data()),
                      reversed);
        EXPECT_EQ(to, expected) << all.count << " of " << all.rows << " x " << all.columns;
      }
    }
  }
}

}  // namespace
}  // namespace fl::testing
