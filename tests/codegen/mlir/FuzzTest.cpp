// Random programs through MLIR against the reference device, within the bounds that the programs
// measure.
#include <gtest/gtest.h>

#include "tests/codegen/mlir/MlirBackend.h"
#include "tests/fuzz/Differential.h"

namespace fl::testing {
namespace {

TEST(MlirFuzz, TameProgramsAgreeWithTheReference) {
  registerMlirBackend();
  int compared = 0, wild = 0;
  for (uint64_t seed = 1; seed <= 60; ++seed) {
    const std::optional<std::string> wrong = compareWithReference(seed, "mlir");
    ++(wrong ? compared : wild);
    EXPECT_EQ(wrong.value_or(""), "") << "program " << seed << ", as //tests/fuzz counts them";
  }
  std::cout << compared << " programs compared, " << wild << " are not tame; "
            << mlirCounts().graphs << " graphs of " << mlirCounts().nodes << " operators\n";
  EXPECT_EQ(compared, 45);
}

}  // namespace
}  // namespace fl::testing
