#include "fl/base/Profile.h"

#include <algorithm>
#include <atomic>
#include <map>
#include <mutex>
#include <utility>
#include <vector>

#include "fl/base/Error.h"
#include "fl/base/Log.h"

namespace fl::detail {
namespace {

using std::chrono::steady_clock;

struct Piece {
  int64_t calls = 0;
  steady_clock::duration time{};
};

struct Profile {
  std::mutex mutex;
  std::map<std::string, Piece> pieces;
  int profilers = 0;
  std::atomic<bool> active = false;
};

Profile& profile() {
  static auto& instance = *new Profile();
  return instance;
}

void report(const std::map<std::string, Piece>& pieces) {
  std::vector<std::pair<std::string, Piece>> sorted(pieces.begin(), pieces.end());
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const auto& a, const auto& b) { return a.second.time > b.second.time; });
  for (const auto& [name, piece] : sorted) {
    const std::chrono::duration<double, std::milli> time = piece.time;
    logLine(2, concat("profile: ", name, ": ", piece.calls, " calls, ", time.count(), " ms"));
  }
}

}  // namespace

ScopedProfiler::ScopedProfiler() {
  std::lock_guard lock(profile().mutex);
  ++profile().profilers;
  profile().active = true;
}

ScopedProfiler::~ScopedProfiler() {
  std::lock_guard lock(profile().mutex);
  if (--profile().profilers > 0) return;
  profile().active = false;
  report(profile().pieces);
  profile().pieces.clear();
}

ProfileTracer::ProfileTracer(const std::string& name) {
  if (!profile().active.load(std::memory_order_relaxed)) return;
  name_ = name;
  start_ = steady_clock::now();
}

ProfileTracer::~ProfileTracer() {
  if (name_.empty()) return;
  const auto time = steady_clock::now() - start_;
  std::lock_guard lock(profile().mutex);
  Piece& piece = profile().pieces[name_];
  ++piece.calls;
  piece.time += time;
}

}  // namespace fl::detail
