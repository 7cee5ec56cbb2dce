// How much freed memory a cache may keep: what the program was seen to take again, within 7/32 of
// the most that was live, which leaves to a quarter what tensors take on the heap.
//
// An eighth of what is live may always be kept. What the program takes again is seen even where it
// was given back to the system: what a cache without a limit would hold is counted along, and how
// far that falls is what a cache is good for, and half as much more, as blocks seldom fit exactly:
// a cache a little too small lets go, at each step, of just what is taken next. So a training step
// keeps its memory from the second or third step on; blocks that only grow go back at once. Both
// are forgotten after two windows, stretches in which the program allocates many times what it had
// live at most: an early peak is not kept for good.
//
// Few blocks fit worse. Of what is taken from the system although as much had been given back, up
// to kSmall may be kept at once, and a quarter of the most that was live and kSmall as windows end
// in which as much was live as in those before; none of it once some of what is kept is unused
// long.
//
// What is taken again is forgotten sooner where less is live than ever between two times that the
// cache was drawn upon as far as that, as when a model is dropped: the next one's steps begin with
// whole blocks. The end of the first step may look like that; the later ones' are known by it.
//
// What nobody takes for a while goes back however often it was taken before, but for kLeast
// (BlockCache::giveBackUnused()).
#pragma once

#include <algorithm>
#include <cstddef>
#include <utility>

namespace fl::runtime {

// Of one device. Pure numbers, not thread-safe.
class CacheLimit {
 public:
  static constexpr size_t kLeast = size_t{2} << 20;  // so much may be kept by any program
  // A window, times the most that was live, or what small programs count as if it were.
  static constexpr size_t kWindow = 16, kSmall = size_t{16} << 20;

  // Bytes that may be kept while so many are live: kept and live are never more than 39/32 of the
  // most that was live in this window and the one before, or kLeast more than it; where blocks fit
  // badly, a quarter and kSmall more.
  size_t mostCached(size_t live) const {
    const size_t peak = std::max(live, peakLive()), again = takenAgain();
    const size_t more = std::max(std::min(misfit_, again), std::min(again / 2, peak / 4));
    const size_t seen = std::max({kLeast, refetched_, misfit_, live / 8, again + more});
    return std::min(seen, peak + std::max({kLeast, refetched_, misfit_, peak / 32 * 7}) - live);
  }

  // Bytes of the cache that the program was seen to need, in this window or the one before.
  size_t takenAgain() const { return std::max(drawn_, drawnBefore_); }

  // So many were allocated, from the cache or not, after which so many are live and cached.
  void allocated(size_t bytes, size_t live, size_t cached) {
    peak_ = std::max(peak_, live);
    const size_t fallen = top_ - std::min(top_, cached + givenBack_);
    drawn_ = std::max(drawn_, fallen);
    if (fallen > std::max(kSmall, takenAgain() / 4 * 3)) {
      base_ = std::min(base_, low_);
      low_ = live;
    }
    dropped_ = false;
    window_ += bytes;
    if (window_ > kWindow * std::max(kSmall, peakLive())) beginWindow(live, cached);
  }
  // A block was freed, after which so many are live and cached, before any is given back.
  void freed(size_t live, size_t cached) {
    const bool isTop = cached + givenBack_ >= top_;
    if (isTop) top_ = cached + givenBack_;
    low_ = isTop ? live : std::min(low_, live);
    const size_t base = std::min(base_, baseBefore_);
    if (base == kNone || live >= base / 4 * 3) return;
    drawn_ = drawnBefore_ = givenBack_ = largestGivenBack_ = missed_ = refetched_ = misfit_ = 0;
    top_ = cached;
    base_ = live;
    baseBefore_ = kNone;
    dropped_ = true;
  }
  // A block was given back to the system, as it may not be kept.
  void gaveBack(size_t bytes) {
    dropped_ ? top_ -= std::min(top_, bytes) : givenBack_ += bytes;
    largestGivenBack_ = std::max(largestGivenBack_, bytes);
  }
  // A block was taken from the system: had all been kept, one of them would have served.
  void took(size_t bytes) {
    const size_t again = bytes <= largestGivenBack_ ? std::min(givenBack_, bytes) : 0;
    givenBack_ -= again;
    missed_ += again;
    refetched_ = std::min(refetched_ + again, kSmall);
  }
  // Some of it, for long.
  void wasUnused() { missed_ = refetched_ = misfit_ = 0; }

 private:
  static constexpr size_t kNone = ~size_t{0};

  size_t peakLive() const { return std::max(peak_, peakBefore_); }

  void beginWindow(size_t live, size_t cached) {
    const size_t change = std::max(peak_, peakBefore_) - std::min(peak_, peakBefore_);
    // What steps of small models were seen to want in eager mode, within the bound of mostCached().
    const size_t most = std::min(std::max(kSmall, peak_ / 4 * 9), kSmall + peak_ / 4);
    misfit_ = change > peak_ / 32 ? 0 : std::min(misfit_ + missed_, most);
    window_ = givenBack_ = largestGivenBack_ = missed_ = 0;
    peakBefore_ = std::exchange(peak_, live);
    drawnBefore_ = std::exchange(drawn_, 0);
    baseBefore_ = std::exchange(base_, kNone);
    top_ = cached;
  }

  // Of the window: the bytes allocated in it, the most live.
  size_t window_ = 0, peak_ = 0, peakBefore_ = 0, givenBack_ = 0, largestGivenBack_ = 0;
  size_t top_ = 0;                      // the most that a cache without a limit held
  size_t drawn_ = 0, drawnBefore_ = 0;  // how far it fell from there
  size_t low_ = 0;                      // the least that was live since it was drawn upon so far
  size_t base_ = kNone, baseBefore_ = kNone;  // the least of all those
  // Bytes taken from the system though as many had been given back: in this window, up to kSmall of
  // all, and those that are kept for more, as windows end that were like those before.
  size_t missed_ = 0, refetched_ = 0, misfit_ = 0;
  bool dropped_ = false;  // since the last allocation: what goes back is not missed
};

}  // namespace fl::runtime
