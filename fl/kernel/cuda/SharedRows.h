// Values of a row kernel that wait in a block's shared memory for the sweeps that need them again,
// so that global memory is read once. Relies on the kernel form alone.
//
// Each row has a place for every swept element. The thread that computes an element's value leaves
// it in its own place; loads of neighbours are fetched by the warp that reads them, before.
#pragma once

#include <vector>

#include "fl/kernel/KeptRows.h"

namespace fl::ir::cuda {

struct SharedRow {
  int value;
  int writer;  // the sweep before which it is fetched, or that computes it
  bool isFetched;
  int offset;  // of its places from the first row's, in bytes for each element
};

struct SharedRows {
  std::vector<std::vector<int>> needed;  // as StageValues has them
  std::vector<SharedRow> rows;
  int bytesEach = 0;  // of all rows, for an element; 0: nothing is kept
};

SharedRows sharedRows(const Kernel& kernel);

// Rows have places for whole multiples, so that all begin where the widest access may.
inline constexpr int64_t kRowPlaces = 16;

}  // namespace fl::ir::cuda
