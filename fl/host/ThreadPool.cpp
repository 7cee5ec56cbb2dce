#include "fl/host/ThreadPool.h"

#include <pthread.h>
#include <sched.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <exception>
#include <limits>
#include <mutex>
#include <new>
#include <thread>
#include <utility>
#include <vector>

#include "absl/cleanup/cleanup.h"
#include "fl/base/CallSite.h"
#include "fl/base/Error.h"
#include "fl/base/Flags.h"
#include "fl/base/FloatEnvironment.h"
#include "fl/host/ControlGroups.h"

namespace fl::host {

namespace {

using Body = absl::FunctionRef<void(int64_t, int64_t)>;

// About 0.3 ms on current processors: longer than the gaps between the kernels of one plan.
constexpr int kSpins = 20000;
constexpr int kMaxThreads = 4096;

// True on a helper, and on a caller while its loop runs: loops inside run in the caller alone.
thread_local bool insideLoop = false;

// Spins, then sleeps until `value` differs from `old`. Whoever changes it notifies.
void awaitChange(const std::atomic<uint32_t>& value, uint32_t old) {
  for (int i = 0; i < kSpins; ++i) {
    if (value.load(std::memory_order_acquire) != old) return;
    __builtin_ia32_pause();
  }
  value.wait(old, std::memory_order_acquire);
}

int checkThreads(int threads) {
  FL_USER_CHECK(threads >= 1 && threads <= kMaxThreads, "the number of threads must be from 1 to ",
                kMaxThreads, ", not ", threads);
  return threads;
}

}  // namespace

// A range is claimed by decrementing `unclaimed_`. A loop ends only when every claimed range is
// done, so the fields of the loop may be read after a claim, and a helper that arrives late claims
// either nothing or a range of the next loop: nobody has to wait for it.
struct ThreadPool::State {
  explicit State(int threads) : threads_(threads) {}
  ~State() { stopHelpers(); }

  void run(Body body, int64_t count, int64_t grain, int64_t ranges);
  void stopHelpers();
  // In a child of fork(), which has none of the helpers.
  void forgetHelpers() { new (&helpers_) std::vector<std::thread>(); }

  // Written under `loopMutex_`.
  std::atomic<int> threads_;
  // Held by the thread whose loop runs.
  std::mutex loopMutex_;

 private:
  void startHelpers();
  void helperMain();
  void work(bool isCaller);
  void runClaimed(int64_t index);

  std::vector<std::thread> helpers_;
  std::atomic<bool> stop_{false};
  // Changes when there is something to do.
  std::atomic<uint32_t> generation_{0};

  // The current loop; written before `unclaimed_` is set.
  const Body* body_ = nullptr;
  int64_t count_ = 0, grain_ = 1, ranges_ = 0;
  // The caller takes ranges from the first on, helpers from the last back: so each finds in its
  // caches what it has left there in loops before.
  std::atomic<int64_t> last_{0};
  std::exception_ptr failure_;
  std::atomic<bool> failed_{false};

  std::atomic<int64_t> unclaimed_{0};
  std::atomic<uint32_t> unfinished_{0};
};

void ThreadPool::State::stopHelpers() {
  stop_.store(true, std::memory_order_relaxed);
  generation_.fetch_add(1, std::memory_order_release);
  generation_.notify_all();
  for (std::thread& helper : helpers_) helper.join();
  helpers_.clear();
  stop_.store(false, std::memory_order_relaxed);
}

void ThreadPool::State::startHelpers() {
  const auto wanted = static_cast<size_t>(threads_.load(std::memory_order_relaxed) - 1);
  try {
    while (helpers_.size() < wanted) helpers_.emplace_back([this] { helperMain(); });
  } catch (const std::exception&) {  // the next loop may have more
  }
}

void ThreadPool::State::helperMain() {
  const FloatEnvironment environment;  // a thread begins with that of the one that started it
  insideLoop = true;
  for (uint32_t seen = 0;;) {
    awaitChange(generation_, seen);
    seen = generation_.load(std::memory_order_acquire);
    if (stop_.load(std::memory_order_relaxed)) return;
    work(false);
  }
}

void ThreadPool::State::work(bool isCaller) {
  for (int64_t first = 0; unclaimed_.load(std::memory_order_relaxed) > 0;) {
    const int64_t left = unclaimed_.fetch_sub(1, std::memory_order_acq_rel);
    if (left > 0) runClaimed(isCaller ? first++ : ranges_ - ++last_);
  }
}

void ThreadPool::State::runClaimed(int64_t index) {
  if (!failed_.load(std::memory_order_relaxed)) {
    try {
      const int64_t begin = index * grain_;
      (*body_)(begin, std::min(count_, begin + grain_));
    } catch (...) {
      if (!failed_.exchange(true)) failure_ = std::current_exception();
    }
  }
  if (unfinished_.fetch_sub(1, std::memory_order_acq_rel) == 1) unfinished_.notify_one();
}

void ThreadPool::State::run(Body body, int64_t count, int64_t grain, int64_t ranges) {
  startHelpers();
  body_ = &body;
  count_ = count;
  grain_ = grain;
  ranges_ = ranges;
  last_.store(0, std::memory_order_relaxed);
  failed_.store(false, std::memory_order_relaxed);
  unfinished_.store(static_cast<uint32_t>(ranges), std::memory_order_relaxed);
  unclaimed_.store(ranges, std::memory_order_release);
  generation_.fetch_add(1, std::memory_order_release);
  generation_.notify_all();
  work(true);
  for (uint32_t left; (left = unfinished_.load(std::memory_order_acquire)) != 0;)
    awaitChange(unfinished_, left);
  if (failed_.load(std::memory_order_relaxed))
    std::rethrow_exception(std::exchange(failure_, nullptr));
}

ThreadPool::ThreadPool(int threads) : state_(std::make_unique<State>(checkThreads(threads))) {}

ThreadPool::~ThreadPool() = default;

int ThreadPool::threads() const { return state_->threads_.load(std::memory_order_relaxed); }

void ThreadPool::setThreads(int threads) {
  checkThreads(threads);
  FL_USER_CHECK(!insideLoop, "the number of threads cannot be changed from inside a parallel loop");
  // Loops that start meanwhile find the lock taken and run in their callers.
  std::lock_guard lock(state_->loopMutex_);
  state_->stopHelpers();
  state_->threads_.store(threads, std::memory_order_relaxed);
}

void ThreadPool::beforeFork() {
  if (!insideLoop) state_->loopMutex_.lock();
}

void ThreadPool::afterFork(bool isChild) {
  if (insideLoop) return;
  if (isChild) state_->forgetHelpers();
  state_->loopMutex_.unlock();
}

void ThreadPool::parallelFor(int64_t count, int64_t grain, Body body) {
  if (count <= 0) return;
  FL_INTERNAL_CHECK(grain >= 1, "grain ", grain);
  const int64_t ranges = (count - 1) / grain + 1;
  FL_INTERNAL_CHECK(ranges <= std::numeric_limits<uint32_t>::max(), ranges, " ranges");
  std::unique_lock lock(state_->loopMutex_, std::defer_lock);
  if (ranges == 1 || threads() == 1 || insideLoop || !lock.try_lock()) {
    for (int64_t i = 0; i < ranges; ++i) body(i * grain, std::min(count, i * grain + grain));
    return;
  }
  insideLoop = true;
  const auto outside = absl::MakeCleanup([] { insideLoop = false; });
  state_->run(body, count, grain, ranges);
}

namespace {

int defaultThreads() {
  const long asked = Flags::toInt("FL_NUM_THREADS", flags().threads);
  FL_USER_CHECK(asked >= 0 && asked <= kMaxThreads, "FL_NUM_THREADS must be from 0 to ",
                kMaxThreads, ", not ", asked);
  if (asked > 0) return static_cast<int>(asked);
  cpu_set_t allowed;
  const bool isKnown = sched_getaffinity(0, sizeof(allowed), &allowed) == 0;
  const int processors =
      isKnown ? CPU_COUNT(&allowed) : static_cast<int>(std::thread::hardware_concurrency());
  const auto quota = std::ceil(cpuQuota("/").value_or(processors));
  return std::max(1, std::min(processors, static_cast<int>(quota)));
}

}  // namespace

ThreadPool& threadPool() {
  // Never destroyed: helpers may run until the process ends.
  static auto& pool = *[] {
    pthread_atfork([] { threadPool().beforeFork(); }, [] { threadPool().afterFork(false); },
                   [] { threadPool().afterFork(true); });
    return new ThreadPool(defaultThreads());
  }();
  return pool;
}

void setNumThreads(int threads) {
  FL_API_ENTRY();
  threadPool().setThreads(threads);
}

int getNumThreads() { return threadPool().threads(); }

}  // namespace fl::host
