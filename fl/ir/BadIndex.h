// An index out of range, which only the data shows: found by what computes, told to the user by the
// backend that recorded the operator. Relies on std only.
#pragma once

#include <cstdint>
#include <exception>

namespace fl::ir {

// What NaN is among indices; no other float becomes this number.
constexpr int64_t kNanIndex = INT64_MIN + 1;

struct BadIndex {
  int64_t index;
  int64_t bound;
};

// Thrown where one is found; backends turn it into the user's error.
struct IndexOutOfRange : std::exception {
  IndexOutOfRange(BadIndex bad, int origin = -1) : bad(bad), origin(origin) {}
  BadIndex bad;
  int origin;  // Node::origin of the operator
};

// Throws for the first of some indices that is out of range.
inline void checkIndices(const int64_t* indices, int64_t count, int64_t bound, int origin = -1) {
  for (int64_t i = 0; i < count; ++i) {
    if (static_cast<uint64_t>(indices[i]) < static_cast<uint64_t>(bound)) continue;
    throw IndexOutOfRange({indices[i], bound}, origin);
  }
}

}  // namespace fl::ir
