#include "benchmarks/Subject.h"

#include <immintrin.h>

#include <algorithm>
#include <cstring>

#include "benchmarks/Report.h"
#include "fl/host/ThreadPool.h"
#include "fl/runtime/Counters.h"
#include "fl/runtime/MemoryManager.h"

namespace fl::bench {
namespace {

constexpr double kBlockMicroseconds = 1000;
constexpr int kMostCalls = 1000;
// The system may wake two threads on one processor, and takes milliseconds to part them.
constexpr double kWarmupMicroseconds = 5000;

// Bytes of a range of the copy; small enough that memcpy() does not use non-temporal stores.
constexpr int64_t kCopyGrain = 1 << 18;
constexpr int64_t kCacheLine = 64;

__attribute__((target("avx"))) void streamBytes(char* to, const char* from, int64_t bytes) {
  int64_t i = 0;
  for (; i + 32 <= bytes; i += 32) {
    const __m256i vector = _mm256_load_si256(reinterpret_cast<const __m256i*>(from + i));
    _mm256_stream_si256(reinterpret_cast<__m256i*>(to + i), vector);
  }
  _mm_sfence();
  std::memcpy(to + i, from + i, bytes - i);
}

void copyBytes(char* to, const char* from, int64_t bytes) { std::memcpy(to, from, bytes); }

__attribute__((target("avx"))) void readBytes(const char* from, int64_t bytes) {
  __m256d seen[4] = {};
  for (int64_t i = 0; i + 128 <= bytes; i += 128) {
    for (int k = 0; k < 4; ++k) {
      const auto* vector = reinterpret_cast<const double*>(from + i + 32 * k);
      seen[k] = _mm256_or_pd(seen[k], _mm256_load_pd(vector));
    }
  }
  for (const __m256d& each : seen) {
    asm volatile("" : : "x"(each));  // as if it were used
  }
}

// Reads more than caches hold. What is only read leaves them clean: nothing has to be written back
// while the next call is timed.
void emptyCaches() {
  struct alignas(kCacheLine) Line {
    char bytes[kCacheLine];
  };
  constexpr int64_t kMoreThanCachesHold = int64_t{256} << 20;
  static const std::vector<Line> lines(kMoreThanCachesHold / kCacheLine);
  constexpr int64_t kGrain = kCopyGrain / kCacheLine;
  host::threadPool().parallelFor(std::ssize(lines), kGrain, [](int64_t begin, int64_t end) {
    readBytes(lines[begin].bytes, (end - begin) * kCacheLine);
  });
}

// Copies `copied` bytes and reads `read` more. Each subject has memory of its own, so that none
// finds in the caches what another left there.
template <class Copy>
Subject streaming(int64_t copied, int64_t read, Caches caches, Copy copy) {
  const MemoryBlockPtr from = runtime::makeBlock(nullptr, copied + read);
  const MemoryBlockPtr to = runtime::makeBlock(nullptr, copied);
  std::memset(from->data(), 1, copied + read);
  const auto call = [=] {
    char* const out = static_cast<char*>(to->data());
    const char* const in = static_cast<const char*>(from->data());
    host::threadPool().parallelFor(copied, kCopyGrain, [&](int64_t begin, int64_t end) {
      copy(out + begin, in + begin, end - begin);
    });
    const char* const rest = in + copied / kCacheLine * kCacheLine;
    host::threadPool().parallelFor(read, kCopyGrain, [&](int64_t begin, int64_t end) {
      readBytes(rest + begin, end - begin);
    });
  };
  return Subject(call, caches);
}

int64_t copiedBytes(int64_t bytesRead, int64_t bytesWritten) {
  return std::min(bytesWritten, (bytesRead + bytesWritten) / 2);
}

int64_t moreBytes(int64_t bytesRead, int64_t bytesWritten) {
  return std::max<int64_t>(0, bytesRead - bytesWritten);
}

}  // namespace

Subject::Subject(std::function<void()> call, Caches caches)
    : call_(std::move(call)), caches_(caches) {
  call_();
  call_();
  const double once = timed(1);
  calls_ = std::clamp(static_cast<int>(kBlockMicroseconds / once), 1, kMostCalls);
  warmup_ = std::clamp(static_cast<int>(kWarmupMicroseconds / once), 1, kMostCalls);
}

void Subject::block() {
  for (int i = 0; i < warmup_; ++i) {
    call_();
  }
  times_.push_back(timed(calls_) / calls_);
}

double Subject::microseconds() const { return median(times_); }
double Subject::spread() const { return bench::spread(times_); }

double Subject::timed(int calls) const {
  const auto callTimes = [&](int times) {
    const auto start = Clock::now();
    for (int i = 0; i < times; ++i) {
      call_();
    }
    return millisecondsSince(start) * 1e3;
  };
  if (caches_ == Caches::Warm) {
    return callTimes(calls);
  }
  double all = 0;
  for (int i = 0; i < calls; ++i) {
    emptyCaches();
    all += callTimes(1);
  }
  return all;
}

CopyLimit::CopyLimit(int64_t bytesRead, int64_t bytesWritten, Caches caches)
    : plain_(streaming(copiedBytes(bytesRead, bytesWritten), moreBytes(bytesRead, bytesWritten),
                       caches, copyBytes)),
      stream_(streaming(copiedBytes(bytesRead, bytesWritten), moreBytes(bytesRead, bytesWritten),
                        caches, streamBytes)) {}

void CopyLimit::block() {
  plain_.block();
  stream_.block();
}

double CopyLimit::microseconds() const {
  return std::min(plain_.microseconds(), stream_.microseconds());
}

uint64_t madeSoFar() {
  return runtime::counters().kernelsCompiled + runtime::counters().plansBuilt;
}

}  // namespace fl::bench
