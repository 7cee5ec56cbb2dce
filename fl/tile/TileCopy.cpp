#include "fl/tile/TileCopy.h"

#include <algorithm>
#include <cstring>

namespace fl::tile {
namespace {

// Calls f with a null pointer to the integer type of `width` bytes.
template <class F>
void withWidth(int width, F&& f) {
  switch (width) {
    case 1:
      return f(static_cast<uint8_t*>(nullptr));
    case 2:
      return f(static_cast<uint16_t*>(nullptr));
    case 4:
      return f(static_cast<uint32_t*>(nullptr));
    default:
      return f(static_cast<uint64_t*>(nullptr));
  }
}

// Calls f(offset, done, length) for each run along the walk's first axis: `length` elements at
// `offset`, after `done` others.
template <class F>
void forEachRun(const TileRegion& region, F&& f) {
  const TileWalk& walk = *region.walk;
  int64_t offset = region.offset();
  if (walk.rank == 0) {
    return f(offset, int64_t{0}, region.count);
  }
  int64_t index[ir::kMaxRank];
  std::copy_n(region.index, walk.rank, index);
  int64_t done = 0;
  while (true) {
    const int64_t length = std::min(walk.extents[0] - index[0], region.count - done);
    f(offset, done, length);
    done += length;
    if (done == region.count) return;
    offset -= index[0] * region.strides[0];
    index[0] = 0;
    int axis = 1;
    for (; index[axis] == walk.extents[axis] - 1; ++axis) {
      offset -= index[axis] * region.strides[axis];
      index[axis] = 0;
    }
    ++index[axis];
    offset += region.strides[axis];
  }
}

// If a region is whole runs of the walk's first axis, which crosses memory while the second lies
// along it: calls f(offset, done) for each element in the order of the memory, which lies at
// `offset` there and after `done` others in the tile, and returns true.
template <class F>
bool forEachCrossing(const TileRegion& region, F&& f) {
  const TileWalk& walk = *region.walk;
  if (walk.rank < 2 || region.strides[0] == 0 || region.strides[1] != 1 || region.index[0] != 0 ||
      region.count % walk.extents[0] != 0 ||
      region.count / walk.extents[0] > walk.extents[1] - region.index[1]) {
    return false;
  }
  // f writes memory that may be the region's for all that the compiler knows.
  const int64_t first = region.offset(), stride = region.strides[0];
  const int64_t length = walk.extents[0], runs = region.count / length;
  for (int64_t i = 0; i < length; ++i) {
    for (int64_t run = 0; run < runs; ++run) f(first + i * stride + run, run * length + i);
  }
  return true;
}

// Calls f(i) where 0 <= indices[i] < bounds[i]; the first pair for which that does not hold, or a
// bound of 0.
template <class F>
ir::BadIndex forEachFound(const int64_t* indices, const int64_t* bounds, int64_t count, F&& f) {
  ir::BadIndex bad{0, 0};
  for (int64_t i = 0; i < count; ++i) {
    if (static_cast<uint64_t>(indices[i]) < static_cast<uint64_t>(bounds[i])) {
      f(i);
    } else if (bad.bound == 0) {
      bad = {indices[i], bounds[i]};
    }
  }
  return bad;
}

// By vectors that every tile variant has.
template <class T>
__attribute__((target("avx2"))) void fill(T* out, T value, int64_t count) {
  for (int64_t i = 0; i < count; ++i) out[i] = value;
}

// Short runs are common (few channels, small windows) and not worth a call of memcpy.
template <class T>
void copy(T* out, const T* in, int64_t count) {
  if (count >= 16) {
    std::memcpy(out, in, count * sizeof(T));
  } else {
    for (int64_t i = 0; i < count; ++i) out[i] = in[i];
  }
}

}  // namespace

void TileWalk::add(int axis, int64_t extent) {
  if (extent != 1) {
    axes[rank] = axis;
    extents[rank++] = extent;
  }
}

int64_t TileWalk::size() const {
  int64_t size = 1;
  for (int i = 0; i < rank; ++i) size *= extents[i];
  return size;
}

void TileWalk::locate(int64_t position, int64_t* index) const {
  for (int i = 0; i + 1 < rank; ++i) {
    index[i] = position % extents[i];
    position /= extents[i];
  }
  if (rank > 0) index[rank - 1] = position;
}

int64_t TileRegion::offset() const {
  int64_t offset = 0;
  for (int i = 0; i < walk->rank; ++i) offset += index[i] * strides[i];
  return offset;
}

void gatherTile(void* tile, const void* base, const TileRegion& region, int width) {
  withWidth(width, [&]<class T>(T*) {
    T* const out = static_cast<T*>(tile);
    const T* const in = static_cast<const T*>(base);
    const int64_t stride = region.walk->rank > 0 ? region.strides[0] : 0;
    if (stride != 1 &&
        forEachCrossing(region, [=](int64_t offset, int64_t done) { out[done] = in[offset]; })) {
      return;
    }
    forEachRun(region, [&](int64_t offset, int64_t done, int64_t length) {
      if (stride == 1) {
        copy(out + done, in + offset, length);
      } else if (stride == 0) {
        fill(out + done, in[offset], length);
      } else {
        for (int64_t i = 0; i < length; ++i) out[done + i] = in[offset + i * stride];
      }
    });
  });
}

void scatterTile(void* base, const void* tile, const TileRegion& region, int width) {
  withWidth(width, [&]<class T>(T*) {
    T* const out = static_cast<T*>(base);
    const T* const in = static_cast<const T*>(tile);
    const int64_t stride = region.walk->rank > 0 ? region.strides[0] : 0;
    if (stride != 1 &&
        forEachCrossing(region, [=](int64_t offset, int64_t done) { out[offset] = in[done]; })) {
      return;
    }
    forEachRun(region, [&](int64_t offset, int64_t done, int64_t length) {
      if (stride == 1) {
        copy(out + offset, in + done, length);
      } else {
        for (int64_t i = 0; i < length; ++i) out[offset + i * stride] = in[done + i];
      }
    });
  });
}

void indexTile(int64_t* tile, int64_t base, const TileRegion& region) {
  const int64_t stride = region.walk->rank > 0 ? region.strides[0] : 0;
  forEachRun(region, [&](int64_t offset, int64_t done, int64_t length) {
    for (int64_t i = 0; i < length; ++i) tile[done + i] = base + offset + i * stride;
  });
}

ir::BadIndex lookUpTile(void* tile, const void* base, const int64_t* elements,
                        const int64_t* indices, const int64_t* bounds, int64_t count, int width) {
  ir::BadIndex bad{0, 0};
  withWidth(width, [&]<class T>(T*) {
    bad = forEachFound(indices, bounds, count, [=](int64_t i) {
      static_cast<T*>(tile)[i] = static_cast<const T*>(base)[elements[i]];
    });
  });
  return bad;
}

ir::BadIndex lookUpRuns(void* to, const int64_t* targets, const void* base, const int64_t* elements,
                        const int64_t* indices, const int64_t* bounds, int64_t count, int width,
                        int64_t bytes) {
  return forEachFound(indices, bounds, count, [=](int64_t i) {
    std::memcpy(static_cast<char*>(to) + targets[i] * width,
                static_cast<const char*>(base) + elements[i] * width, bytes);
  });
}

void fillTile(void* tile, const void* element, int64_t count, int width) {
  withWidth(width, [&]<class T>(T*) {
    T value;
    std::memcpy(&value, element, sizeof(T));
    fill(static_cast<T*>(tile), value, count);
  });
}

void repeatEach(void* tile, const void* elements, int64_t count, int64_t times, int width) {
  withWidth(width, [&]<class T>(T*) {
    T* const out = static_cast<T*>(tile);
    for (int64_t i = 0; i < count; ++i) {
      fill(out + i * times, static_cast<const T*>(elements)[i], times);
    }
  });
}

void repeatAll(void* tile, const void* elements, int64_t count, int64_t times, int width) {
  withWidth(width, [&]<class T>(T*) {
    T* const out = static_cast<T*>(tile);
    for (int64_t i = 0; i < times; ++i) {
      copy(out + i * count, static_cast<const T*>(elements), count);
    }
  });
}

}  // namespace fl::tile
