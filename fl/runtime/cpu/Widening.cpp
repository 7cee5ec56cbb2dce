#include "fl/runtime/cpu/Widening.h"

#include <algorithm>

namespace fl::runtime::cpu {

namespace {

constexpr int kFloat = static_cast<int>(dtype::f32);

}  // namespace

Widening::Widening(dtype type)
    : widen_(tile::tileOps(tile::bestTileVariant()).cast[static_cast<int>(type)][kFloat]),
      narrow_(tile::tileOps(tile::bestTileVariant()).cast[kFloat][static_cast<int>(type)]) {}

// Tile functions work on whole groups: the rest goes through a group of its own.
void Widening::widen(float* to, const void* from, int64_t count) const {
  const auto* source = static_cast<const uint16_t*>(from);
  const int64_t whole = count & -tile::kTileGroup;
  widen_(to, source, nullptr, nullptr, whole);
  if (whole < count) {
    uint16_t narrow[tile::kTileGroup] = {};
    float wide[tile::kTileGroup];
    std::copy_n(source + whole, count - whole, narrow);
    widen_(wide, narrow, nullptr, nullptr, tile::kTileGroup);
    std::copy_n(wide, count - whole, to + whole);
  }
}

void Widening::narrow(void* to, const float* from, int64_t count) const {
  auto* target = static_cast<uint16_t*>(to);
  const int64_t whole = count & -tile::kTileGroup;
  narrow_(target, from, nullptr, nullptr, whole);
  if (whole < count) {
    float wide[tile::kTileGroup] = {};
    uint16_t narrow[tile::kTileGroup];
    std::copy_n(from + whole, count - whole, wide);
    narrow_(narrow, wide, nullptr, nullptr, tile::kTileGroup);
    std::copy_n(narrow, count - whole, target + whole);
  }
}

void Widening::widenRuns(float* to, const void* from, int64_t runs, int64_t length,
                         int64_t stride) const {
  if (length == stride) {
    return widen(to, from, runs * length);
  }
  for (int64_t i = 0; i < runs; ++i) {
    widen(to + i * length, static_cast<const uint16_t*>(from) + i * stride, length);
  }
}

void Widening::narrowRuns(void* to, const float* from, int64_t runs, int64_t length,
                          int64_t stride) const {
  if (length == stride) {
    return narrow(to, from, runs * length);
  }
  for (int64_t i = 0; i < runs; ++i) {
    narrow(static_cast<uint16_t*>(to) + i * stride, from + i * length, length);
  }
}

}  // namespace fl::runtime::cpu
