// The one thread pool of the process. Our kernels and oneDNN's slices run in it; oneDNN itself runs
// single-threaded inside.
//
// A loop costs about 0.2 us to start while the helpers spin (20000 pauses), 5 to 50 us once they
// sleep, so that work below some 20 us is better left in one range.
#pragma once

#include <cstdint>
#include <memory>

#include "absl/functional/function_ref.h"

namespace fl::host {

class ThreadPool {
 public:
  // `threads` counts the caller: 1 starts no thread. Threads start at the first loop with more than
  // one range. Throws std::invalid_argument below 1 and above 4096.
  explicit ThreadPool(int threads);
  // Must not be called while a loop runs.
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int threads() const;
  // Changes their number: waits until the loop that runs has ended; loops that start while it works
  // run in their callers alone. Throws std::invalid_argument below 1 and above 4096, and from
  // inside a loop's body, where it would wait for itself.
  void setThreads(int threads);

  // Calls body(begin, end) on disjoint ranges that cover [0, count), each of `grain` elements but
  // the last. The caller takes part and returns when all are done; it never waits for a helper that
  // has not claimed a range. A range is one call, so which thread runs it cannot change a result.
  // The first exception is rethrown here, and ranges not yet begun are left out. Calls from inside
  // a body, and calls while another thread's loop runs, run in the caller alone.
  void parallelFor(int64_t count, int64_t grain,
                   absl::FunctionRef<void(int64_t begin, int64_t end)> body);

  // Around fork(): no loop runs meanwhile, and a child starts helpers of its own when it needs
  // them. Inside a loop, which would wait for itself, nothing happens: a child runs its loops
  // alone. The process's pool sees to that itself.
  void beforeFork();
  void afterFork(bool isChild);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// The process's pool, made at first use with FL_NUM_THREADS threads, else one for each processor
// that the affinity mask allows, and no more than the quota of a control group can keep busy.
ThreadPool& threadPool();
// threadPool().setThreads(): may be called while other threads compute.
void setNumThreads(int threads);
int getNumThreads();

}  // namespace fl::host
