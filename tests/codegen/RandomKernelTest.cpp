// Random kernels: generated code against the reference and against the tile interpreter, for every
// target, bit for bit.
#include "fl/tile/TileInterpreter.h"
#include "tests/codegen/EmitterHarness.h"
#include "tests/codegen/RandomKernel.h"

namespace fl::testing {
namespace {

using tile::TileProgram;
using tile::TileVariant;

struct Drawn {
  ir::Kernel kernel;
  std::unique_ptr<KernelLaunch> launch;
};

Drawn draw(uint64_t seed, RandomKernelOptions kernelOptions) {
  std::mt19937_64 random(seed);
  Drawn drawn{drawKernel(random, kernelOptions), nullptr};
  const LaunchOptions options{.special = random() % 2 == 0, .guardAfter = random() % 2 == 0};
  drawn.launch = std::make_unique<KernelLaunch>(drawn.kernel, drawExtents(drawn.kernel, random),
                                                random, options);
  return drawn;
}

// Rows are kept by every second kernel that has any; of the others, short ones are taken together.
ir::Stores storesOf(const Drawn& drawn, int number) {
  const ir::Kernel& kernel = drawn.kernel;
  if (kernel.reduced != 1) return ir::Stores::Cached;
  if (number % 2 == 0) return ir::Stores::Keeping;
  return kernel.rank > 1 && drawn.launch->extents()[0] <= ir::kLanes ? ir::Stores::Across
                                                                     : ir::Stores::Cached;
}

std::string describe(const Drawn& drawn, int number, const ir::Target& target) {
  return "kernel " + std::to_string(number) + ", " + std::to_string(target.vectorBits) +
         " bits, extents " + ::testing::PrintToString(drawn.launch->extents());
}

TEST(RandomKernel, CodeAgreesWithReference) {
  std::mt19937_64 seeds(testSeed(41));
  const auto all = targets();
  for (int i = 0; i < 80 && !::testing::Test::HasFailure(); ++i) {
    const Drawn drawn = draw(seeds(), {.exact = true});
    for (const ir::Target& target : all) {
      const KernelLaunch actual(*drawn.launch), expected(*drawn.launch);
      runReference(expected);
      run(*compile(drawn.kernel, target, storesOf(drawn, i)), actual);
      EXPECT_EQ(actual.difference(expected), "") << describe(drawn, i, target);
    }
  }
}

TEST(RandomKernel, CodeAgreesWithTiles) {
  std::mt19937_64 seeds(testSeed(42));
  const auto all = targets();
  for (int i = 0; i < 150 && !::testing::Test::HasFailure(); ++i) {
    const Drawn drawn = draw(seeds(), {.exact = false});
    const KernelLaunch expected(*drawn.launch);
    const ir::KernelArgs args = expected.args();
    EXPECT_EQ(TileProgram(drawn.kernel, TileVariant::V3).run(args, 0, expected.domain()), -1);
    for (const ir::Target& target : all) {
      const KernelLaunch actual(*drawn.launch);
      run(*compile(drawn.kernel, target, storesOf(drawn, i)), actual);
      EXPECT_EQ(actual.difference(expected), "") << describe(drawn, i, target);
    }
  }
}

// Every op in every position of a long row, the functions of the vector math among them.
TEST(RandomKernel, EveryOpAgreesWithTiles) {
  const auto all = targets();
  for (int i = 0; i < ir::kOpCount; ++i) {
    const ir::OpInfo& info = ir::opInfo(static_cast<ir::Op>(i));
    if (!ir::isElementwise(info.op) || info.kind == ir::Kind::Cast) continue;
    for (dtype type : {dtype::f32, dtype::f64}) {
      if (info.types == ir::Types::Integer) continue;
      KernelMaker maker(1);
      std::vector<int> args;
      for (int a = 0; a < info.arity; ++a) {
        const bool condition = info.kind == ir::Kind::Select && a == 0;
        args.push_back(maker.input(condition ? dtype::b8 : type, {kOne}));
      }
      maker.beginStage(false);
      maker.store(maker.apply(info.op, args), {kOne});
      std::mt19937_64 random(i);
      const LaunchOptions options{.special = true, .low = 2 * info.lo, .high = 2 * info.hi};
      const KernelLaunch expected(maker.kernel(), {20001}, random, options);
      TileProgram(maker.kernel(), TileVariant::V3).run(expected.args(), 0, expected.domain());
      for (const ir::Target& target : all) {
        const KernelLaunch actual(expected);
        run(*compile(maker.kernel(), target), actual);
        EXPECT_EQ(actual.difference(expected), "") << target.vectorBits;
      }
    }
  }
}

}  // namespace
}  // namespace fl::testing
