// Matrices of 16-bit elements transposed by a kernel that is written by hand
// (fl/codegen/cuda/Transpose.cpp), for fl/runtime/cuda: to libraries that want other strides than
// values have, and from them.
#pragma once

#include <algorithm>

#include "fl/kernel/cuda/Launch.h"

namespace fl::ir::cuda {

// So many matrices one behind the other, each of rows of contiguous elements.
struct Transposition {
  int64_t count, rows, columns;
};

inline constexpr char kTransposeEntry[] = "transpose";
inline constexpr int kTransposeTile = 32;  // in elements along both axes

inline int64_t tilesOf(int64_t extent) { return (extent + kTransposeTile - 1) / kTransposeTile; }
inline int64_t tilesOf(const Transposition& all) {
  return all.count * tilesOf(all.rows) * tilesOf(all.columns);
}
// A block takes several tiles where there are more than a grid has blocks.
inline Launch launchOf(const Transposition& all) {
  return {std::min(tilesOf(all), int64_t{1} << 24), {kBlockThreads, 1, 1}};
}
inline std::vector<uint64_t> packArguments(const Transposition& all, const void* from, void* to) {
  return {reinterpret_cast<uint64_t>(from), reinterpret_cast<uint64_t>(to),
          static_cast<uint64_t>(all.rows), static_cast<uint64_t>(all.columns),
          static_cast<uint64_t>(tilesOf(all))};
}

}  // namespace fl::ir::cuda
