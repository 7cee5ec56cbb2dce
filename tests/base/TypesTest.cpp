// Shapes and dtypes at the edge of what they hold.
#include <gtest/gtest.h>

#include <locale>
#include <string>

#include "fl/base/Error.h"
#include "fl/base/Shape.h"
#include "fl/base/Types.h"
#include "tests/ErrorOf.h"

namespace fl {
namespace {

using test::errorOf;

TEST(Shape, CountsElements) {
  const Dim large = 1LL << 40;
  EXPECT_EQ(Shape({}).elements(), 1);
  EXPECT_EQ(Shape({large, large, 0}).elements(), 0);
  EXPECT_EQ(Shape({0, large, large}).elements(), 0);
  EXPECT_EQ(errorOf([&] { Shape({large, large}).elements(); }),
            "Shape: (1099511627776, 1099511627776) has too many elements");
  EXPECT_EQ(bytesOf(dtype::f64, {large, large, 0}), 0u);
  EXPECT_EQ(errorOf([] { bytesOf(dtype::f32, {1LL << 62}); }),
            "f32[4611686018427387904] has more bytes than can be counted");
}

TEST(Types, OthersAreErrors) {
  for (const int number : {-1, kDtypeCount, 99}) {
    const auto type = static_cast<dtype>(number);
    const std::string message = std::to_string(number) + " is no dtype";
    const std::string at = ", at tests/base/TypesTest.cpp:" + std::to_string(__LINE__ + 1);
    EXPECT_EQ(errorOf([&] { getTypeSize(type); }), "getTypeSize: " + message + at);
    EXPECT_EQ(errorOf([&] { Number::fromSigned(1, type); }), message);
  }
}

TEST(Error, WordsAreTheSameInEveryLocale) {
  struct Grouping : std::numpunct<char> {
    char do_thousands_sep() const override { return '.'; }
    std::string do_grouping() const override { return "\3"; }
  };
  const std::locale before = std::locale::global({std::locale::classic(), new Grouping});
  EXPECT_EQ(detail::concat(6144, " elements"), "6144 elements");
  std::locale::global(before);
}

}  // namespace
}  // namespace fl
