// 16-bit floats to f32 and back, for library functions that compute in f32. Relies on the tile
// functions (fl/tile/TileOps.h), so that values are rounded as everywhere. Private to this folder.
#pragma once

#include <cstdint>
#include <optional>

#include "fl/base/Types.h"
#include "fl/tile/TileOps.h"

namespace fl::library {

class Widening {
 public:
  // f16 or bf16.
  explicit Widening(dtype type);

  // `count` elements, any number at any address; nothing else is read or written.
  void widen(float* to, const void* from, int64_t count) const;
  void narrow(void* to, const float* from, int64_t count) const;

  // The same for `runs` of `length` elements. In 16-bit memory each begins `stride` elements after
  // the one before; in f32 they lie one behind the other.
  void narrowRuns(void* to, const float* from, int64_t runs, int64_t length, int64_t stride) const;

 private:
  tile::TileFunction widen_, narrow_;
};

// Copies `runs` of `length` elements that begin `stride` elements apart, of f32 if there is no
// widening, to f32 that begin `leading` apart.
void copyRuns(float* to, int64_t leading, const void* from, const std::optional<Widening>& widening,
              int64_t runs, int64_t length, int64_t stride);

}  // namespace fl::library
