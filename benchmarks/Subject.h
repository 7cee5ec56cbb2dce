// What benchmarks time, in turns with others, so that whatever else the machine does falls on all
// of them.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

namespace fl::bench {

// What a timed call finds in the caches: what the call before it left there, or nothing of use,
// lest a cache that is large enough gives some of what is to come from memory.
enum class Caches { Warm, Cold };

class Subject {
 public:
  // Calls `call` a few times, to learn how long it takes: what it compiles is compiled then. All of
  // it must be done when it returns.
  explicit Subject(std::function<void()> call, Caches caches = Caches::Warm);

  // Times calls for about 1 ms, one at least, after some that are not timed, for about 5: those
  // find the caches and the threads as another subject left them.
  void block();
  // The median of the blocks, of a call.
  double microseconds() const;
  // Of the blocks.
  double spread() const;

 private:
  double timed(int calls) const;

  std::function<void()> call_;
  Caches caches_;
  int calls_ = 1;
  int warmup_ = 0;
  std::vector<double> times_;
};

// What no implementation can beat that reads and writes so many bytes: a copy of as many bytes, by
// the faster of plain and non-temporal stores, with the same threads. Where there is more to read
// than to write it copies what is written and reads the rest: memory is read slower than it is
// copied, byte for byte.
class CopyLimit {
 public:
  CopyLimit(int64_t bytesRead, int64_t bytesWritten, Caches caches = Caches::Warm);
  void block();
  double microseconds() const;

 private:
  Subject plain_, stream_;
};

// Kernels and plans: where their number grows while something is timed, the time is wrong.
uint64_t madeSoFar();

}  // namespace fl::bench
