// Lines that are written or added at places in any order, against loops.
#include <gtest/gtest.h>

#include <random>
#include <vector>

#include "tests/library/LibraryHarness.h"

namespace fl::library {
namespace {

struct ScatterCase {
  Dim inner, places, lines, outer;
};

LibraryCall callOf(Op op, const ScatterCase& c) {
  const auto type = [](Dim inner, Dim length, Dim outer) {
    return ir::ValueType{dtype::s64, Shape({inner, length, outer})};
  };
  const ir::ValueType to = type(c.inner, c.places, c.outer);
  return {op, {1}, {to, type(1, c.lines, 1), type(c.inner, c.lines, c.outer)}, to};
}

Floats numbers(Dim count, int below, unsigned seed) {
  std::mt19937 random(seed);
  Floats values(count);
  for (float& value : values) value = static_cast<float>(random() % below);
  return values;
}

// Half of the places get no line, others several. Of many places each thread lists its own.
TEST(Scatter, LinesGoToTheirPlacesInOrder) {
  for (const ScatterCase& c : {ScatterCase{8, 7000, 9000, 1}, ScatterCase{9, 5000, 100, 2},
                               ScatterCase{16, 10, 4000, 3}, ScatterCase{3, 5000, 2000, 1}}) {
    const Floats x = numbers(c.inner * c.places * c.outer, 1000, 1);
    const Floats y = numbers(c.inner * c.lines * c.outer, 1000, 2);
    const Floats index = numbers(c.lines, static_cast<int>(c.places / 2), 3);
    for (Op op : {Op::Scatter, Op::ScatterAdd}) {
      Floats want = x;
      for (Dim o = 0; o < c.outer; ++o) {
        for (Dim i = 0; i < c.lines; ++i) {
          for (Dim k = 0; k < c.inner; ++k) {
            const Dim place = static_cast<Dim>(index[i]) + c.places * o;
            float& at = want[k + c.inner * place];
            const float from = y[k + c.inner * (i + c.lines * o)];
            at = op == Op::ScatterAdd ? at + from : from;
          }
        }
      }
      EXPECT_EQ(run(callOf(op, c), {x, index, y}), want) << ir::opName(op) << c.inner;
    }
  }
}

TEST(Scatter, TellsOfTheFirstIndexOutOfRange) {
  const ScatterCase c{8, 20, 30, 1};
  Floats index = numbers(c.lines, 20, 3);
  index[7] = 20;
  index[9] = -1;
  for (Op op : {Op::Scatter, Op::ScatterAdd}) {
    try {
      run(callOf(op, c), {numbers(8 * 20, 9, 1), index, numbers(8 * 30, 9, 2)});
      ADD_FAILURE() << "no error of " << ir::opName(op);
    } catch (const ir::IndexOutOfRange& error) {
      EXPECT_EQ(error.bad.index, 20);
      EXPECT_EQ(error.bad.bound, 20);
    }
  }
}

}  // namespace
}  // namespace fl::library
