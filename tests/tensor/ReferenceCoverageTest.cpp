// Which functions are held against NumPy for which dtypes. All backends share one definition of a
// Composite, so that no comparison of backends shows a wrong one.
#include <gtest/gtest.h>

#include <iomanip>
#include <iostream>
#include <set>

#include "tests/reference/References.h"

namespace fl::test {
namespace {

// Beside the Composite rows of Functions.def: functions that are put together in fl/tensor, too.
const std::set<std::string> kComposed = {"cumsum", "concatenate", "isInvalidArray",
                                         "matmul", "maximum",     "minimum",
                                         "pad",    "power",       "where"};

// argmax and argmin are compared in the cases of max and min; no function of operands is randn.
const std::set<std::string> kElsewhere = {"argmax", "argmin", "randn"};

TEST(Reference, EveryCompositeHasCasesOfEveryDtype) {
  ReferenceCounts counts = countReferences({"order", "reductions", "shapes", "matmul"});
  std::set<std::string> functions = kComposed;
#define FL_FUNCTION(Kind, Result, name, parameters, arguments) \
  if (std::string(#Kind) == "Composite") {                     \
    functions.insert(#name);                                   \
  }
#include "fl/tensor/Functions.def"
  std::erase_if(functions, [](const std::string& name) { return kElsewhere.contains(name); });
  int total = 0;
  for (const std::string& function : functions) {
    std::cout << std::setw(16) << function;
    for (int i = 0; i < kDtypeCount; ++i) {
      const dtype type = static_cast<dtype>(i);
      const int count = counts[function][type];
      EXPECT_GT(count, 0) << function << " has no case of " << type;
      std::cout << " " << type << " " << count;
      total += count;
    }
    std::cout << "\n";
  }
  std::cout << functions.size() << " functions, " << total << " cases\n";
}

}  // namespace
}  // namespace fl::test
