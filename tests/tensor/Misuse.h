// The table of misuse: every public function of the tensor API times what can be wrong about a
// call. A test fills a cell with such a call and the exact words that it must throw: the operator,
// the shapes, the rule, and the caller's own file and line.
//
// Which cells there are follows from the functions' signatures (Signatures.h): one that takes two
// tensors can be given shapes that do not fit, one that takes axes an axis that is none. Misuse.cpp
// lists the cells where a function takes whatever it is given, with the reason; a cell that is
// neither filled nor listed there fails, and so does one that is both.
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "absl/functional/function_ref.h"
#include "fl/tensor/tensor.h"

namespace fl::testing {

#define FL_FOR_EACH_MISUSE(X) \
  X(Shapes)                   \
  X(Rank)                     \
  X(Dtype)                    \
  X(DtypesDiffer)             \
  X(NoDtype)                  \
  X(Empty)                    \
  X(AxisAbove)                \
  X(AxisBelow)                \
  X(AxisTwice)                \
  X(NegativeSize)             \
  X(TooLarge)                 \
  X(BadIndex)                 \
  X(IndexInData)              \
  X(Value)                    \
  X(Null)

enum class MisuseKind {
#define FL_ENUMERATOR(name) name,
  FL_FOR_EACH_MISUSE(FL_ENUMERATOR)
#undef FL_ENUMERATOR
};

// Fills a cell of the function `row`.
void expectMisuse(const std::string& row, MisuseKind kind, absl::FunctionRef<void()> call,
                  const std::string& message, const char* file, int line);
// The function whose name a message begins with.
std::string rowOfMessage(const std::string& message);

#define EXPECT_MISUSE_OF(row, kind, call, message) \
  ::fl::testing::expectMisuse(                     \
      row, ::fl::testing::MisuseKind::kind, [&] { call; }, message, __FILE__, __LINE__)
#define EXPECT_MISUSE(kind, call, message) \
  EXPECT_MISUSE_OF(::fl::testing::rowOfMessage(message), kind, call, message)

class Misuse : public ::testing::Test {
 protected:
  // Prints and checks the table. All tests have run, unless somebody chose among them.
  static void TearDownTestSuite();

  const Tensor f34 = full({3, 4}, 1.0), f45 = full({4, 5}, 1.0), f52 = full({5, 2}, 1.0);
  const Tensor f7 = full({7}, 1.0), s34 = full({3, 4}, 1, dtype::s32);
  const Tensor image = full({8, 8, 4, 2}, 1.0), filter = full({3, 3, 4, 6}, 1.0);
};

}  // namespace fl::testing
