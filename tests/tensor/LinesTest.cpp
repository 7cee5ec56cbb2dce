// Operators that go along an axis one element after the other, for line counts and lengths around
// the sizes in which the CPU's routines work: against loops over float.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "fl/tensor/tensor.h"
#include "tests/ErrorOf.h"

namespace fl {
namespace {

// Whole numbers from -8 to 7, which all dtypes hold; their sums round in 16-bit floats.
std::vector<float> values(Dim count) {
  std::vector<float> values(count);
  for (Dim i = 0; i < count; ++i) {
    values[i] = static_cast<float>((i * 7919 / 13) % 16 - 8 + (i % 3));
  }
  return values;
}

std::vector<float> rounded(const std::vector<float>& x, const Shape& shape, dtype type) {
  return Tensor::fromVector(shape, x).astype(type).astype(dtype::f32).toHostVector<float>();
}

std::vector<float> read(const Tensor& x) { return x.astype(dtype::f32).toHostVector<float>(); }

// Shapes [inner, length, outer].
const Shape kShapes[] = {{1, 1, 1},   {1, 700, 3},  {1, 1030, 2}, {5, 40, 2},
                         {64, 33, 1}, {300, 20, 2}, {1100, 9, 1}};

TEST(LinesTest, CumsumAddsInOrder) {
  for (const dtype type : {dtype::f32, dtype::f16, dtype::bf16}) {
    for (const Shape& shape : kShapes) {
      const std::vector<float> x = rounded(values(shape.elements()), shape, type);
      std::vector<float> want(x.size());
      for (Dim o = 0; o < shape[2]; ++o) {
        for (Dim k = 0; k < shape[0]; ++k) {
          float total = 0;
          for (Dim i = 0; i < shape[1]; ++i) {
            const Dim at = k + shape[0] * (i + shape[1] * o);
            want[at] = total += x[at];
          }
        }
      }
      EXPECT_EQ(read(cumsum(Tensor::fromVector(shape, x, type), 1)), rounded(want, shape, type))
          << dtypeToString(type) << shape;
    }
  }
}

// Places repeat, so that a line is added to what another left.
TEST(LinesTest, EqualIndicesAddInOrder) {
  constexpr Dim kPlaces = 7;
  for (const dtype type : {dtype::f32, dtype::f16, dtype::bf16}) {
    for (const Shape& shape : kShapes) {
      const Shape into({shape[0], kPlaces, shape[2]});
      std::vector<long long> places(shape[1]);
      for (Dim i = 0; i < shape[1]; ++i) {
        places[i] = i * 5 % kPlaces;
      }
      // -1, 0 or 1: the sums stay below 2^8, which no dtype rounds.
      std::vector<float> x = values(shape.elements());
      for (float& each : x) {
        each = std::fmod(each, 2.f);
      }
      std::vector<float> want = values(into.elements());
      Tensor got = Tensor::fromVector(into, want, type);
      got(span, Tensor::fromVector(places), span) += Tensor::fromVector(shape, x, type);
      for (Dim o = 0; o < shape[2]; ++o) {
        for (Dim i = 0; i < shape[1]; ++i) {
          for (Dim k = 0; k < shape[0]; ++k) {
            float& target = want[k + shape[0] * (places[i] + kPlaces * o)];
            target += x[k + shape[0] * (i + shape[1] * o)];
          }
        }
      }
      EXPECT_EQ(read(got), want) << dtypeToString(type) << shape;
    }
  }
}

TEST(LinesTest, ABadIndexIsNamed) {
  Tensor x = full({300, 4}, 0.0, dtype::bf16);
  const Tensor places = Tensor::fromVector(std::vector<long long>{1, 4});
  const auto addAndRead = [&] {
    x(span, places) += full({300, 2}, 1.0, dtype::bf16);
    read(x);
  };
  EXPECT_THAT(test::errorOf(addAndRead), testing::HasSubstr("4 is out of range"));
}

}  // namespace
}  // namespace fl
