// The random numbers of Random, uniform and normal, as straight-line code over the builder that
// Meaning.h describes: the same bits on every executor.
#pragma once

#include <array>
#include <cstdint>
#include <numbers>

#include "fl/base/Types.h"
#include "fl/ir/VectorMath.h"

namespace fl::ir::vm {

// The words of one Philox4x32-10 block; each stands in the low half of a u64, as do the counter's
// and the key's (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC 2011).
template <class U>
struct PhiloxWords {
  U word[4];
};

// Counter and key in the low halves; what stands in the high halves does not matter.
template <class B, class U>
PhiloxWords<U> philox(B& b, const PhiloxWords<U>& counter, U key0, U key1) {
  const auto constant = [&](int64_t value) { return b.integer(key0, value); };
  const auto low = [&](U x) { return b.bitAnd(x, constant(0xffffffff)); };
  const auto high = [&](U x) { return b.lshr(x, constant(32)); };
  const auto [c0, c1, c2, c3] = counter.word;
  using State = std::array<U, 6>;
  const State end = b.template repeat<10>(State{c0, c1, c2, c3, key0, key1}, [&](const State& now) {
    const auto& [w0, w1, w2, w3, k0, k1] = now;
    // Factors are cut to 32 bits where they are multiplied: that is one instruction on x86.
    const U product0 = b.mul(low(w0), constant(0xd2511f53));
    const U product1 = b.mul(low(w2), constant(0xcd9e8d57));
    return State{b.bitXor(b.bitXor(high(product1), w1), k0),
                 product1,
                 b.bitXor(b.bitXor(high(product0), w3), k1),
                 product0,
                 b.add(k0, constant(0x9e3779b9)),
                 b.add(k1, constant(0xbb67ae85))};
  });
  return {{low(end[0]), low(end[1]), low(end[2]), low(end[3])}};
}

// Block `block` of the numbers of Random: it and the offset are the counter, the seed is the
// key. All are u64.
template <class B, class U>
PhiloxWords<U> philoxBlock(B& b, U seed, U offset, U block) {
  const auto high = [&](U x) { return b.lshr(x, b.integer(x, 32)); };
  return philox(b, PhiloxWords<U>{{block, high(block), offset, high(offset)}}, seed, high(seed));
}

// A number of `type` from a word, for f64 from two, the first of which is the upper half: u32 is
// the word, f32 takes 24 bits of it, f64 53 bits of both, to (0, 1].
template <dtype type, class B, class U>
auto philoxNumberOf(B& b, U words) {
  const auto unit = [&]<dtype whole>(auto bits, double step) {
    const auto number = b.template castTo<whole>(b.add(bits, b.integer(bits, 1)));
    const auto value = b.template castTo<type>(number);
    return b.mul(value, b.real(value, step));
  };
  if constexpr (type == dtype::f64) {
    return unit.template operator()<dtype::s64>(b.lshr(words, b.integer(words, 11)), 0x1p-53);
  } else if constexpr (type == dtype::f32) {
    return unit.template operator()<dtype::s32>(b.lshr(words, b.integer(words, 8)), 0x1p-24);
  } else {
    return b.template castTo<dtype::u32>(words);
  }
}

// The uniform value of Random: seed and offset are u64, the index is s64. Element i is word i % 4
// of block i / 4; f64 has words 2 * (i % 2) and the next of block i / 2.
template <dtype type, class B, class U, class I>
auto philoxNumber(B& b, U seed, U offset, I index) {
  constexpr bool kDouble = type == dtype::f64;
  const U i = b.template castTo<dtype::u64>(index);
  const auto constant = [&](int64_t value) { return b.integer(i, value); };
  const auto [w0, w1, w2, w3] =
      philoxBlock(b, seed, offset, b.lshr(i, constant(kDouble ? 1 : 2))).word;
  const auto odd = b.ne(b.bitAnd(i, constant(1)), constant(0));
  const U first = b.select(odd, kDouble ? w2 : w1, w0),
          second = b.select(odd, w3, kDouble ? w1 : w2);
  if constexpr (kDouble) {
    return philoxNumberOf<type>(b, b.bitOr(b.shl(first, constant(32)), second));
  } else {
    const auto upper = b.ne(b.bitAnd(i, constant(2)), constant(0));
    return philoxNumberOf<type>(b, b.select(upper, second, first));
  }
}

// A normal number of two uniform ones in (0, 1] (G. Box and M. Muller, "A note on the generation of
// random normal deviates", 1958).
template <class B, class V>
V normalNumber(B& b, V first, V second) {
  const V radius = b.sqrt(b.mul(b.real(first, -2), log(b, first)));
  return b.mul(radius, cos(b, b.mul(b.real(second, 2 * std::numbers::pi), second)));
}

}  // namespace fl::ir::vm
