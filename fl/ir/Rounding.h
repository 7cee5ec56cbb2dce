// How far what computes an operator may be from what is exact: what FL_CHECK=ref and `fl bisect`
// allow, by the rows of the op table.
#pragma once

#include <algorithm>
#include <cmath>

#include "fl/ir/Inference.h"

namespace fl::ir {

// The distance to the next number of a floating dtype, from |x| on, which is finite.
inline double unitAt(dtype type, double x) {
  struct Format {
    double digits, lowest;
  };
  const auto [digits, lowest] = type == dtype::f64   ? Format{53, -1074}
                                : type == dtype::f32 ? Format{24, -149}
                                : type == dtype::f16 ? Format{11, -24}
                                                     : Format{8, -133};
  return std::exp2(std::max(std::logb(x) + 1 - digits, lowest));
}

// Whether an operator adds floats up, in an order that passes may change: its row has it round,
// though it is no function of single elements.
inline bool addsUp(const Node& node) {
  return isFloating(node.type.type) && opInfo(node.op).ulp > 0 && !isElementwise(node.op) &&
         opKind(node.op) != Kind::Random;
}

// Of an element that is `exact`: its row's ulp, and 1 unit more, 4 of a 16-bit float. What adds up
// is allowed 64 more, in which it is computed, of a `scale` that is the sum of magnitudes: up to
// 128 are added one after the other, each with half a unit at most (fl/kernel/Kernel.h). TF32 has
// both factors of a product cut to 11 digits.
inline double boundOf(const Node& node, double scale, double exact) {
  const dtype type = node.type.type, wide = computeType(type);
  const double ulp = opInfo(node.op).ulp, last = unitAt(type, exact) * (wide != type ? 4 : 1);
  const bool isCut = type == dtype::f32 && allowsTf32(node.op, node.attrs);
  return addsUp(node)
             ? (ulp + 64) * unitAt(wide, scale) + last + (isCut ? std::ldexp(scale, -9) : 0)
             : ulp * unitAt(type, exact) + last;
}

}  // namespace fl::ir
