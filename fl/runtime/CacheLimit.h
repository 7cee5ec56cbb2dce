// How much freed memory a cache may keep: what the program was seen to take again, within a quarter
// of the most that was live.
//
// A quarter of what is live may always be kept. What the program takes again is seen even where it
// was given back to the system: what a cache without a limit would hold is counted along, and how
// far that falls is what a cache is good for, and a quarter more, as blocks seldom fit exactly. So
// a training step keeps its memory from the second or third step on, whereas blocks that only ever
// grow, of which none is taken again, go back at once. Both are forgotten after two windows,
// stretches in which the program allocates many times what it had live at most: an early peak is
// not kept for good. What was taken again is forgotten at once where less than half is live of what
// the program had at the least between its steps, as when a model and its data are dropped; and
// after some thousand allocations, or four times as many as there were between steps, that needed
// less than half of it.
//
// What is kept beyond what is taken again is idle: never more than a quarter of the most that was
// live, or kFloor.
#pragma once

#include <algorithm>
#include <cstddef>
#include <limits>
#include <utility>

namespace fl::runtime {

// Of one device. Pure numbers, not thread-safe.
class CacheLimit {
 public:
  static constexpr size_t kFloor = size_t{16} << 20;  // so much may be kept by any program
  static constexpr size_t kWindow = 16;               // times the most that was live

  // Bytes that may be kept while so many are live: kept and live are never more than 1.25 times the
  // most that was live in this window and the one before, or kFloor more than it.
  size_t mostCached(size_t live) const {
    const size_t peak = std::max(live, peakLive());
    const size_t seen = std::max({kFloor, live / 4, takenAgain() / 4 * 5});
    return std::min(seen, peak + std::max(kFloor, peak / 4) - live);
  }

  // Bytes of the cache that the program was seen to need, in this window or the one before.
  size_t takenAgain() const { return std::max(now_.drawn, before_.drawn); }

  // So many were allocated, from the cache or not, after which so many are live and cached.
  void allocated(size_t bytes, size_t live, size_t cached) {
    now_.peak = std::max(now_.peak, live);
    now_.drawn = std::max(now_.drawn, drawn(cached));
    ++unused_;
    if (takenAgain() > kFloor) noteUse(live, cached);
    window_ += bytes;
    if (window_ > kWindow * std::max(kFloor, peakLive())) beginWindow(live, cached);
  }
  // So many are live and cached after a block was freed, before any is given back.
  void freed(size_t live, size_t cached) {
    top_ = std::max(top_, cached + givenBack_);
    low_ = std::min(low_, live);
    isUsing_ = isUsing_ && drawn(cached) >= takenAgain() / 2;
    const size_t least = std::min(now_.low, before_.low);
    if (takenAgain() > kFloor && least != kNone && live < least / 2) forget(cached);
  }
  // A block was given back to the system, as it may not be kept.
  void gaveBack(size_t bytes) {
    givenBack_ += bytes;
    largestGivenBack_ = std::max(largestGivenBack_, bytes);
  }
  // A block was taken from the system: had all been kept, one of them would have served.
  void took(size_t bytes) {
    if (bytes <= largestGivenBack_) givenBack_ -= std::min(givenBack_, bytes);
  }

 private:
  static constexpr size_t kNone = std::numeric_limits<size_t>::max();
  static constexpr size_t kUnused = 1000;  // allocations

  struct Window {
    size_t peak = 0;
    size_t drawn = 0;    // how far what a cache without a limit would hold fell from top_
    size_t low = kNone;  // the least that was live between two uses of the cache
    size_t pause = 0;    // the most allocations between two of them
  };

  size_t peakLive() const { return std::max(now_.peak, before_.peak); }

  size_t drawn(size_t cached) const { return top_ - std::min(top_, cached + givenBack_); }

  // A program uses the cache while it has taken half of what it took at most, or more.
  void noteUse(size_t live, size_t cached) {
    if (drawn(cached) < takenAgain() / 2) {
      if (unused_ > std::max(kUnused, 4 * std::max(now_.pause, before_.pause))) forget(cached);
      return;
    }
    if (isUsed_ && !isUsing_) now_.low = std::min(now_.low, low_);
    now_.pause = std::max(now_.pause, std::exchange(unused_, 0));
    low_ = live;
    isUsed_ = isUsing_ = true;
  }

  void forget(size_t cached) {
    givenBack_ = largestGivenBack_ = 0;
    now_.drawn = before_.drawn = 0;
    isUsing_ = false;
    top_ = cached;
  }

  void beginWindow(size_t live, size_t cached) {
    window_ = givenBack_ = largestGivenBack_ = 0;
    before_ = std::exchange(now_, {.peak = live});
    top_ = cached;
  }

  size_t window_ = 0;  // bytes allocated in it
  Window now_, before_;
  size_t givenBack_ = 0, largestGivenBack_ = 0;
  size_t top_ = 0;  // the most that a cache without a limit held
  bool isUsed_ = false, isUsing_ = false;
  size_t low_ = kNone;  // the least that was live since it was used last
  size_t unused_ = 0;   // allocations since
};

}  // namespace fl::runtime
