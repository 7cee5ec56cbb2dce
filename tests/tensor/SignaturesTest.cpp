// The test is that it compiles; what is left for a run are the values of constants.
#include <gtest/gtest.h>

#include "tests/tensor/Signatures.h"

namespace fl {
namespace {

TEST(Signatures, OfTypes) {
  EXPECT_STREQ(dtype_traits<unsigned>::getName(), "unsigned int");
  EXPECT_STREQ(dtype_traits<long>::getName(), "long int");
  EXPECT_EQ(dtype_traits<bool>::fl_type, dtype::u8);
  EXPECT_EQ(dtype_traits<char>::fl_type, dtype::b8);
  EXPECT_EQ(dtype_traits<long>::ctype, dtype::s32);
  EXPECT_EQ(dtype_traits<unsigned long>::ctype, dtype::u32);
  EXPECT_EQ(dtype_traits<double>::ctype, dtype::f32);
}

}  // namespace
}  // namespace fl
