// Times one case at one size: its kernels alone, lazy, eager and a copy of the same bytes, in
// turns, so that whatever else the machine does falls on all of them. Plans and kernels are made
// before.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "benchmarks/OpCases.h"
#include "benchmarks/Peer.h"
#include "benchmarks/Report.h"

namespace fl::bench {

// Medians, in microseconds a call.
struct OpTimes {
  std::string name;
  dtype type;
  bool memoryBound;
  Dim elements;
  std::optional<double> kernel;     // none if the case reads elements while it records
  std::optional<double> unchecked;  // of a case that looks up: its kernel for indices as they are
  double lazy;
  double eager;
  double limit;       // a CopyLimit of the bytes of inputs and results
  uint64_t compiled;  // kernels and plans made in the timed part: 0, or the times are wrong
  std::map<std::string, double> peers = {};  // of those that have the function and dtype
  std::optional<double> single = {};         // lazy time of the case on f32, if timed in turns
};

// `rounds` blocks of each, a block at least as long as a call and about 1 ms. From kOutOfCache
// elements on all find cold caches.
OpTimes timeOp(const OpCase& opCase, Dim elements, int rounds, const Peers& peers = {});
// The same in turns with `single`, the case on f32.
OpTimes timeBeside(const OpCase& single, const OpCase& opCase, Dim elements, int rounds,
                   const Peers& peers);
// Whether `single` is `other` on f32.
bool isSingleOf(const OpCase& single, const OpCase& other);

// The row of the schema in Report.h, and "kernel".
Json toRow(const OpTimes& times);

// What each of the times breaks of: nothing is compiled in the timed part; lazy's kernels alone
// take at most 1.05 of eager, and from kRecordingIsSmall elements on lazy with its recording does;
// lookups take at most 1.05 of what they do without checking indices; from kOutOfCache elements on
// memory-bound cases take at most 1.18 of the copy, and f16 at most f32's time, below it 1.2 of
// that; bf16 takes at most f32's time at every size. Beside f32 3 % are allowed for noise, 10 %
// where the cells were not measured in turns.
std::vector<std::string> brokenBounds(const OpTimes& times, const std::vector<OpTimes>& all);

inline constexpr Dim kRecordingIsSmall = Dim{1} << 16;
inline constexpr Dim kOutOfCache = Dim{1} << 24;

}  // namespace fl::bench
