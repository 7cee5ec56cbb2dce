#include "fl/runtime/cuda/Candidates.h"

#include <algorithm>
#include <array>
#include <limits>
#include <mutex>
#include <new>
#include <stdexcept>
#include <utility>

#include "fl/base/Log.h"
#include "fl/runtime/Store.h"
#include "fl/runtime/SystemMemory.h"
#include "fl/runtime/cuda/Memory.h"

namespace fl::runtime::cuda {
namespace {

constexpr int kRounds = 3;
// Of the runs of the fastest in a round but the first, in which each has one; and of all until the
// last round begins, or the last one is run for the first time, which loads its code.
constexpr float kRoundMilliseconds = 0.2F, kMostMilliseconds = 50, kMostLoadMilliseconds = 500;
constexpr float kMostRuns = 20;
// Of the first's time; what is closer may be chance.
constexpr float kWorthIt = 0.97F;
constexpr size_t kAlignment = 256;  // of workspaces, which cuBLASLt demands
// A small number, in bytes, in every floating dtype: what is computed of it is neither infinite nor
// denormal.
constexpr unsigned char kElements = 0x3c;

struct Events {
  explicit Events(Context& context) {
    for (CUevent& event : all)
      context.check(context.use().cuEventCreate(&event, CU_EVENT_DEFAULT), "an event");
  }
  std::array<CUevent, kMostCandidates + 1> all = {};
};

CUevent eventOf(Context& context, size_t number) {
  static auto& events = *new PerGpu<Events>();
  return events.of(context).all[number];
}

// Runs candidates on memory of their own.
class Measurement {
 public:
  // Throws std::bad_alloc.
  Measurement(Context& context, const std::vector<size_t>& bytes, const Candidates& candidates)
      : context_(context) {
    size_t all = kAlignment, workspace = 0;
    for (const size_t each : bytes) all += roundUp(each, kAlignment);
    for (const auto& each : candidates) workspace = std::max(workspace, each->workspaceBytes());
    Memory& memory = Memory::of(context);
    memory_ = memory.allocate(all + workspace, BufferOrigin{"measuring a library's calls"});
    memory.fill(memory_->data(), kElements, all + workspace);
    uintptr_t at = roundUp(reinterpret_cast<uintptr_t>(memory_->data()), kAlignment);
    for (const size_t each : bytes) {
      buffers_.push_back(reinterpret_cast<void*>(at));
      at += roundUp(each, kAlignment);
    }
    workspace_ = reinterpret_cast<void*>(at);
  }

  // Runs each for the first time, and removes those that fail or come too late.
  void warmUp(Candidates* candidates) const {
    float spent = 0;
    record(0);
    std::erase_if(*candidates, [&](const auto& each) {
      if (spent > kMostLoadMilliseconds || !run(*each)) return true;
      record(1);
      context_.finish();
      spent = between(0, 1);
      return false;
    });
  }

  // The least times of a run.
  std::vector<float> times(const Candidates& candidates) const {
    std::vector<float> least(candidates.size(), std::numeric_limits<float>::max());
    int runs = 1;
    float spent = 0;
    for (int round = 0; round < kRounds && spent < kMostMilliseconds; ++round) {
      run(*candidates[0]);  // while the GPU does it, the host puts the others into the stream
      for (size_t i = 0; i < candidates.size(); ++i) {
        record(i);
        for (int each = 0; each < runs; ++each) run(*candidates[i]);
      }
      record(candidates.size());
      context_.finish();
      spent += between(0, candidates.size());
      for (size_t i = 0; i < candidates.size(); ++i)
        least[i] = std::min(least[i], between(i, i + 1) / static_cast<float>(runs));
      const float fitting = kRoundMilliseconds / *std::ranges::min_element(least);
      runs = static_cast<int>(std::clamp(fitting, 1.0F, kMostRuns));
    }
    return least;
  }

 private:
  // False if it fails.
  bool run(const Candidate& candidate) const try {
    candidate.run(context_, buffers_.data(), buffers_.back(), workspace_);
    return true;
  } catch (const std::runtime_error&) {
    return false;
  }
  void record(size_t number) const {
    context_.check(context_.use().cuEventRecord(eventOf(context_, number), context_.stream()),
                   "an event");
  }
  float between(size_t begin, size_t end) const {
    float time = 0;
    context_.check(
        context_.use().cuEventElapsedTime(&time, eventOf(context_, begin), eventOf(context_, end)),
        "the time of a library's call");
    return time;
  }

  Context& context_;
  MemoryBlockPtr memory_;
  std::vector<void*> buffers_;  // of the operands, then of the result
  void* workspace_ = nullptr;
};

std::string gpuOf(const Context& context) {
  std::array<char, 256> name = {};
  context.check(context.use().cuDeviceGetName(name.data(), name.size(), context.device()),
                "the GPU's name");
  return detail::concat(name.data(), " ", context.architecture());
}

}  // namespace

std::shared_ptr<Candidate> MeasuredCall::choose() const {
  Candidates all = candidates_;
  if (all.size() == 1) return all[0];
  static std::mutex mutex;  // one is measured at a time
  const std::lock_guard<std::mutex> turn(mutex);
  static const std::unique_ptr<Store> store = openStore(kCalls);
  const std::string key = call_ + "\n" + gpuOf(context_);
  const Store::Lock others = store ? store->lock(key) : Store::Lock();
  if (const auto kept = store ? store->find(key) : std::nullopt) {
    for (const auto& each : all)
      if (each->name() == *kept && each->prepare(context_)) return each;
  }
  std::erase_if(all, [&](const auto& each) { return !each->prepare(context_); });
  try {
    const Measurement measurement(context_, bytes_, all);
    measurement.warmUp(&all);
    if (all.empty()) return candidates_[0];
    std::vector<float> times = measurement.times(all);
    const float first = std::exchange(times[0], kWorthIt * times[0]);
    const auto best = std::ranges::min_element(times) - times.begin();
    logLine(1, detail::concat("tune: ", call_, ": way ", best + 1, " of ", times.size(), " takes ",
                              best == 0 ? first : times[best], " ms, the first ", first));
    if (store) store->insert(key, all[best]->name());
    return all[best];
  } catch (const std::bad_alloc&) {
    return candidates_[0];
  }
}

}  // namespace fl::runtime::cuda
