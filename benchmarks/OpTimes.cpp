#include "benchmarks/OpTimes.h"

#include <immintrin.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <thread>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "benchmarks/TracedPlan.h"
#include "fl/host/ThreadPool.h"
#include "fl/runtime/Counters.h"
#include "fl/runtime/MemoryManager.h"

namespace fl::bench {
namespace {

constexpr double kBlockMicroseconds = 1000;
constexpr int kMostCalls = 1000;
// Threads of a peer may spin for so long after a block.
constexpr std::chrono::milliseconds kPeersSpin(5);
// A block's first calls, which find the caches as another subject left them, are not timed.
constexpr double kWarmupMicroseconds = 500;

// Something to time, as it is seen in turns with others.
class Subject {
 public:
  explicit Subject(std::function<void()> call) : call_(std::move(call)) {
    call_();
    call_();
    const double once = timed(1);
    calls_ = std::clamp(static_cast<int>(kBlockMicroseconds / once), 1, kMostCalls);
    warmup_ = std::clamp(static_cast<int>(kWarmupMicroseconds / once), 1, kMostCalls);
  }
  void block() {
    for (int i = 0; i < warmup_; ++i) {
      call_();
    }
    times_.push_back(timed(calls_) / calls_);
  }
  double microseconds() const { return median(times_); }

 private:
  double timed(int calls) const {
    const auto start = Clock::now();
    for (int i = 0; i < calls; ++i) {
      call_();
    }
    return millisecondsSince(start) * 1e3;
  }

  std::function<void()> call_;
  int calls_ = 1;
  int warmup_ = 0;
  std::vector<double> times_;
};

// ---- the limit ----

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

// Copies `copied` bytes and reads `read` more. Each subject has memory of its own, so that none
// finds in the caches what another left there.
template <class Copy>
Subject streaming(int64_t copied, int64_t read, Copy copy) {
  const MemoryBlockPtr from = runtime::makeBlock(nullptr, copied + read);
  const MemoryBlockPtr to = runtime::makeBlock(nullptr, copied);
  std::memset(from->data(), 1, copied + read);
  return Subject([=] {
    char* const out = static_cast<char*>(to->data());
    const char* const in = static_cast<const char*>(from->data());
    host::threadPool().parallelFor(copied, kCopyGrain, [&](int64_t begin, int64_t end) {
      copy(out + begin, in + begin, end - begin);
    });
    const char* const rest = in + copied / kCacheLine * kCacheLine;
    host::threadPool().parallelFor(read, kCopyGrain, [&](int64_t begin, int64_t end) {
      readBytes(rest + begin, end - begin);
    });
  });
}

// ---- the others ----

std::vector<Tensor> makeInputs(const OpCase& opCase, Dim elements, const std::string& backend) {
  const BackendScope scope(backend);
  std::vector<Tensor> inputs = opCase.inputs(elements);
  for (const Tensor& input : inputs) {
    input.value()->data();
  }
  return inputs;
}

size_t bytesOfAll(const std::vector<Tensor>& tensors) {
  size_t bytes = 0;
  for (const Tensor& tensor : tensors) {
    bytes += tensor.bytes();
  }
  return bytes;
}

Subject calling(const OpCase& opCase, const std::vector<Tensor>& inputs) {
  return Subject([&opCase, &inputs] {
    for (const Tensor& result : opCase.run(inputs)) {
      result.value()->data();
    }
  });
}

using PeerTimes = std::map<std::string, std::vector<double>>;

void askPeers(const Peers& peers, const OpCase& opCase, Dim elements, PeerTimes* times) {
  for (const std::unique_ptr<Peer>& peer : peers) {
    if (const std::optional<double> time = peer->block(opCase.name, elements)) {
      (*times)[peer->name()].push_back(*time);
    }
  }
  if (!peers.empty()) {
    std::this_thread::sleep_for(kPeersSpin);
  }
}

std::map<std::string, double> medians(const PeerTimes& times) {
  std::map<std::string, double> medians;
  for (const auto& [name, each] : times) {
    medians[name] = median(each);
  }
  return medians;
}

uint64_t madeSoFar() {
  return runtime::counters().kernelsCompiled + runtime::counters().plansBuilt;
}

}  // namespace

OpTimes timeOp(const OpCase& opCase, Dim elements, int rounds, const Peers& peers) {
  const auto lazyInputs = makeInputs(opCase, elements, "lazy");
  const auto eagerInputs = makeInputs(opCase, elements, "eager");
  std::optional<BackendScope> scope(std::in_place, "lazy");
  Subject lazy = calling(opCase, lazyInputs);
  scope.emplace("eager");
  Subject eager = calling(opCase, eagerInputs);
  const int64_t inputBytes = bytesOfAll(eagerInputs);
  const int64_t resultBytes = bytesOfAll(opCase.run(eagerInputs));
  scope.reset();

  std::optional<Subject> kernel;
  std::unique_ptr<TracedPlan> plan;
  try {
    plan = std::make_unique<TracedPlan>(trace(opCase, eagerInputs));
    kernel.emplace([&] { plan->run(); });
  } catch (const ElementsRead&) {
  }
  const int64_t copied = std::min(resultBytes, (inputBytes + resultBytes) / 2);
  const int64_t read = std::max<int64_t>(0, inputBytes - resultBytes);
  Subject plain = streaming(copied, read, copyBytes);
  Subject stream = streaming(copied, read, streamBytes);

  PeerTimes peerTimes;
  const uint64_t made = madeSoFar();
  for (int round = 0; round < rounds; ++round) {
    scope.emplace("lazy");
    lazy.block();
    scope.emplace("eager");
    eager.block();
    scope.reset();
    if (kernel) {
      kernel->block();
    }
    plain.block();
    stream.block();
    askPeers(peers, opCase, elements, &peerTimes);
  }
  return {.name = opCase.name,
          .type = opCase.type,
          .memoryBound = opCase.memoryBound,
          .elements = elements,
          .kernel = kernel ? std::optional(kernel->microseconds()) : std::nullopt,
          .lazy = lazy.microseconds(),
          .eager = eager.microseconds(),
          .limit = std::min(plain.microseconds(), stream.microseconds()),
          .compiled = madeSoFar() - made,
          .peers = medians(peerTimes)};
}

Json toRow(const OpTimes& times) {
  Json peers = Json::object();
  for (const auto& [name, time] : times.peers) {
    peers[name] = time;
  }
  return {{"bench", "ops"},
          {"case", absl::StrCat(times.name, ", ", times.elements)},
          {"unit", "us"},
          {"threads", host::getNumThreads()},
          {"ours", times.lazy},
          {"eager", times.eager},
          {"limit", times.limit},
          {"peers", std::move(peers)},
          {"kernel", times.kernel ? Json(*times.kernel) : Json(nullptr)}};
}

namespace {

// The case without its dtype, which is the last word.
std::string stem(const OpTimes& times) { return times.name.substr(0, times.name.rfind(' ')); }

const OpTimes* inSingle(const OpTimes& times, const std::vector<OpTimes>& all) {
  const auto found = std::find_if(all.begin(), all.end(), [&](const OpTimes& each) {
    return each.type == dtype::f32 && each.elements == times.elements && stem(each) == stem(times);
  });
  return found == all.end() ? nullptr : &*found;
}

}  // namespace

std::vector<std::string> brokenBounds(const OpTimes& times, const std::vector<OpTimes>& all) {
  std::vector<std::string> broken;
  const auto check = [&](double time, double bound, double factor, const char* of) {
    if (time > factor * bound) {
      broken.push_back(absl::StrFormat("%.2f of %s, at most %.2f", time / bound, of, factor));
    }
  };
  if (times.compiled > 0) {
    broken.push_back(absl::StrCat(times.compiled, " plans and kernels made while timed"));
  }
  check(times.kernel.value_or(times.lazy), times.eager, 1.05, "eager");
  if (times.elements >= kRecordingIsSmall) {
    check(times.lazy, times.eager, 1.05, "eager, recording included");
  }
  if (times.memoryBound && times.elements >= kOutOfCache) {
    check(times.lazy, times.limit, 1.18, "the copy");
  }
  const bool half = times.type == dtype::f16, brain = times.type == dtype::bf16;
  if (const OpTimes* single = half || brain ? inSingle(times, all) : nullptr) {
    const double factor = half && times.elements < kOutOfCache ? 1.2 : 1.0;
    check(times.lazy, single->lazy, factor * 1.1, "f32");
  }
  return broken;
}

}  // namespace fl::bench
