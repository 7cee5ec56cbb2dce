// The kernel of fl/kernel/cuda/Transpose.h.
#include "fl/kernel/cuda/Transpose.h"

#include "fl/codegen/cuda/Emitter.h"
#include "fl/codegen/cuda/Prelude.h"

namespace fl::codegen::cuda {

// Both sides of a tile are read and written along contiguous elements.
std::string emitTranspose() {
  return kPrelude + ("constexpr int side = " + std::to_string(ir::cuda::kTransposeTile)) + R"cuda(;
struct transpose_arguments {
  const u16* from;
  u16* to;
  s64 rows, columns, items;
};

extern "C" __global__ void __launch_bounds__(256) transpose(const transpose_arguments a) {
  __shared__ u16 tile[side][side + 1];
  const int x = int(threadIdx.x) % side, first = int(threadIdx.x) / side;
#pragma unroll 1
  for (s64 item = blockIdx.x; item < a.items; item += gridDim.x) {
    s64 rest = item;
    const s64 column = side * takeIndex(rest, (a.columns + side - 1) / side);
    const s64 row = side * takeIndex(rest, (a.rows + side - 1) / side);
    const s64 matrix = rest * a.rows * a.columns;
    const u16* const from = a.from + matrix + row * a.columns + column;
    u16* const to = a.to + matrix + column * a.rows + row;
    for (int y = first; y < side; y += blockDim.x / side) {
      if (row + y < a.rows && column + x < a.columns) tile[y][x] = from[y * a.columns + x];
    }
    __syncthreads();
    for (int y = first; y < side; y += blockDim.x / side) {
      if (column + y < a.columns && row + x < a.rows) to[y * a.rows + x] = tile[x][y];
    }
    __syncthreads();
  }
}
)cuda";
}

}  // namespace fl::codegen::cuda
