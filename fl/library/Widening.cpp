#include "fl/library/Widening.h"

#include <algorithm>
#include <utility>

namespace fl::library {

namespace {

constexpr int kFloat = static_cast<int>(dtype::f32);

// Tile functions work on whole groups: the rest goes through a group of its own.
template <typename To, typename From>
void convert(tile::TileFunction function, To* to, const From* from, int64_t count) {
  const int64_t whole = count & -tile::kTileGroup;
  function(to, from, nullptr, nullptr, whole);
  if (whole < count) {
    From last[tile::kTileGroup] = {};
    To result[tile::kTileGroup];
    std::copy_n(from + whole, count - whole, last);
    function(result, last, nullptr, nullptr, tile::kTileGroup);
    std::copy_n(result, count - whole, to + whole);
  }
}

}  // namespace

Widening::Widening(dtype type)
    : widen_(tile::tileOps(tile::bestTileVariant()).cast[static_cast<int>(type)][kFloat]),
      narrow_(tile::tileOps(tile::bestTileVariant()).cast[kFloat][static_cast<int>(type)]) {}

void Widening::widen(float* to, const void* from, int64_t count) const {
  convert(widen_, to, static_cast<const uint16_t*>(from), count);
}

void Widening::narrow(void* to, const float* from, int64_t count) const {
  convert(narrow_, static_cast<uint16_t*>(to), from, count);
}

void Widening::narrowRuns(void* to, const float* from, int64_t runs, int64_t length,
                          int64_t stride) const {
  if (length == stride) return narrow(to, from, runs * length);
  for (int64_t i = 0; i < runs; ++i)
    narrow(static_cast<uint16_t*>(to) + i * stride, from + i * length, length);
}

void copyRuns(float* to, int64_t leading, const void* from, const std::optional<Widening>& widening,
              int64_t runs, int64_t length, int64_t stride) {
  if (length == stride && length == leading) length *= std::exchange(runs, 1);
  for (int64_t i = 0; i < runs; ++i) {
    if (widening) {
      widening->widen(to + i * leading, static_cast<const uint16_t*>(from) + i * stride, length);
    } else {
      std::copy_n(static_cast<const float*>(from) + i * stride, length, to + i * leading);
    }
  }
}

}  // namespace fl::library
