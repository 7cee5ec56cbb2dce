// Whether the graphs of a program repeat: a plan takes as long as tens of runs of its operators one
// by one, so that of a graph that comes once never pays.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <utility>

#include "fl/base/Hash.h"
#include "fl/base/WordCache.h"

namespace fl::lazy {

// Of structures by their hashes: two that share one count as one that came twice. Not thread-safe.
class Sightings {
 public:
  // The structure's number, which is not 0, and whether it came for the first time.
  std::pair<uint64_t, bool> note(std::span<const int64_t> structure) {
    const Hash128 hash = hashBytes(structure.data(), structure.size_bytes());
    const int64_t words[] = {static_cast<int64_t>(hash.low), static_cast<int64_t>(hash.high)};
    if (const uint64_t* known = numbers_.find(words)) return {*known, false};
    again_ -= std::exchange(cameAgain_[++last_ % kLast], false);
    numbers_.insert(words, last_);
    return {last_, true};
  }
  void noteAgain(uint64_t number) {
    if (number > 0 && last_ - number < kLast)
      again_ += !std::exchange(cameAgain_[number % kLast], true);
  }
  // So many operators ran one by one, and so many of them had no plan either: where those are many,
  // as in a program whose shapes are new each time, graphs are planned again for a while, and twice
  // as long the next time.
  void noteOneByOne(size_t operators, size_t planned) {
    operators_ += operators;
    planned_ += planned;
    if (operators_ < kLooked) return;
    const bool areNew = 8 * planned_ > operators_;
    if (areNew) unlikeFrom_ = last_ + pause_;
    pause_ = areNew ? 2 * pause_ : kLooked;
    operators_ = planned_ = 0;
  }
  // Whether few of the last structures have come again.
  bool areUnlike() const { return last_ > unlikeFrom_ && again_ < kLast / 4; }

 private:
  static constexpr size_t kLast = 64, kMost = 16384, kLooked = 256;

  WordCache<uint64_t> numbers_{kMost};
  uint64_t last_ = 0, unlikeFrom_ = kLast, pause_ = kLooked;
  std::array<bool, kLast> cameAgain_ = {};  // by number, of the last ones
  size_t again_ = 0;                        // how many of those
  size_t operators_ = 0, planned_ = 0;      // one by one, of those looked at
};

}  // namespace fl::lazy
