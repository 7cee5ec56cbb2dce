#include "fl/profile/Profile.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <iostream>
#include <iterator>
#include <map>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "fl/base/AtomicFile.h"
#include "fl/base/Error.h"
#include "fl/base/Flags.h"
#include "fl/base/ForkSafeMutex.h"
#include "fl/base/Log.h"
#include "nlohmann/json.hpp"

namespace fl::profile {

namespace detail {
std::atomic<bool> active = false;
}

namespace {

constexpr const char* kLanes[] = {"recording", "planning", "compiling", "running"};
// A trace of more events takes a viewer minutes to open. The table counts on.
constexpr int64_t kMostEvents = 2'000'000;
constexpr size_t kMostRows = 30;

struct Event {
  Label* label;
  int64_t begin, end;
};

// The events of one thread.
struct Thread {
  ForkSafeMutex mutex;
  std::vector<Event> events;
};

// Never destroyed: threads may add events until the process ends.
struct Profile {
  ForkSafeMutex mutex;
  std::string file;
  bool isOpen = false;  // until its events are taken
  std::atomic<int64_t> begin = 0;
  std::vector<std::shared_ptr<Thread>> threads;
  std::map<std::tuple<Lane, Extent, std::string, std::string, size_t>, std::unique_ptr<Label>>
      labels;
  std::atomic<int64_t> events = 0;
  std::map<std::string, uint64_t> reads;  // by line
};

Profile& profile() {
  static auto* instance = new Profile;
  return *instance;
}

Thread& thisThread() {
  thread_local const std::shared_ptr<Thread> thread = [] {
    auto made = std::make_shared<Thread>();
    const std::lock_guard lock(profile().mutex);
    profile().threads.push_back(made);
    return made;
  }();
  return *thread;
}

const char* nameOf(Lane lane) { return kLanes[static_cast<int>(lane)]; }

double milliseconds(int64_t nanoseconds) { return static_cast<double>(nanoseconds) / 1e6; }

// ---- the trace: Chrome's Trace Event Format, an array of objects with times in microseconds ----

// Each lane of each of so many threads has a row of its own.
size_t rowOf(Lane lane, size_t thread, size_t threads) {
  return static_cast<size_t>(lane) * threads + thread;
}

nlohmann::json rowName(Lane lane, size_t thread, size_t threads) {
  const size_t row = rowOf(lane, thread, threads);
  const std::string name = absl::StrCat(nameOf(lane), ", thread ", thread);
  return {
      {"ph", "M"}, {"pid", 1}, {"tid", row}, {"name", "thread_name"}, {"args", {{"name", name}}}};
}

nlohmann::json traced(const Event& event, size_t thread, size_t threads, int64_t start) {
  nlohmann::json args = nlohmann::json::object();
  if (!event.label->where.empty()) args["line"] = event.label->where;
  if (event.label->bytes > 0) args["bytes"] = event.label->bytes;
  return {{"ph", "X"},
          {"pid", 1},
          {"tid", rowOf(event.label->lane, thread, threads)},
          {"cat", nameOf(event.label->lane)},
          {"name", event.label->name},
          {"ts", static_cast<double>(event.begin - start) / 1e3},
          {"dur", static_cast<double>(event.end - event.begin) / 1e3},
          {"args", std::move(args)}};
}

void writeThread(std::ostream& stream, const std::vector<Event>& events, size_t index,
                 size_t threads, int64_t start) {
  bool isNamed[std::size(kLanes)] = {};
  for (const Event& event : events) {
    if (!std::exchange(isNamed[static_cast<int>(event.label->lane)], true))
      stream << ",\n" << rowName(event.label->lane, index, threads);
    stream << ",\n" << traced(event, index, threads, start);
  }
}

void writeTrace(const std::string& path, const std::vector<std::vector<Event>>& threads,
                int64_t start) {
  AtomicFile file(path);
  {
    std::ofstream stream(file.partial());
    stream << '['
           << nlohmann::json{
                  {"ph", "M"}, {"pid", 1}, {"name", "process_name"}, {"args", {{"name", "fl"}}}};
    for (size_t i = 0; i < threads.size(); ++i)
      writeThread(stream, threads[i], i, threads.size(), start);
    stream << "]\n";
    if (!stream.flush())
      throw std::runtime_error(absl::StrCat("the profile cannot be written to ", path));
  }
  file.commit();
}

// ---- the table ----

std::string tableRow(const Label& label, int64_t ran) {
  const int64_t calls = label.calls, nanoseconds = label.nanoseconds;
  const double each = static_cast<double>(nanoseconds) / static_cast<double>(calls);
  return absl::StrFormat("%9d %10.3f %5.1f%% %10.2f %6.1f  %s%s\n", calls,
                         milliseconds(nanoseconds),
                         100.0 * static_cast<double>(nanoseconds) / static_cast<double>(ran),
                         each / 1e3, static_cast<double>(label.bytes) / each, label.name,
                         label.where.empty() ? "" : " at " + label.where);
}

std::string table(int64_t end) {
  Profile& all = profile();
  std::vector<const Label*> steps;
  int64_t ran = 0, lanes[std::size(kLanes)] = {};
  for (const auto& [key, label] : all.labels) {
    if (label->extent == Extent::Whole) {
      lanes[static_cast<int>(label->lane)] += label->nanoseconds;
    } else if (label->lane == Lane::Running && label->calls > 0) {
      steps.push_back(label.get());
      ran += label->nanoseconds;
    }
  }
  std::ranges::stable_sort(steps, std::greater(),
                           [](const Label* l) { return l->nanoseconds.load(); });
  std::string text =
      absl::StrFormat("profile of %.3f s:", static_cast<double>(end - all.begin) / 1e9);
  for (size_t lane = 0; lane < std::size(kLanes); ++lane)
    absl::StrAppendFormat(&text, " %s %.3f ms,", kLanes[lane], milliseconds(lanes[lane]));
  absl::StrAppendFormat(&text, " of it steps %.3f ms; trace in %s\n", milliseconds(ran), all.file);
  if (all.events > kMostEvents)
    absl::StrAppend(&text, "the trace has the first ", kMostEvents, " of ", all.events.load(),
                    " events\n");
  absl::StrAppendFormat(&text, "%9s %10s %6s %10s %6s  step\n", "calls", "ms", "share", "us a call",
                        "GB/s");
  for (size_t i = 0; i < std::min(steps.size(), kMostRows); ++i) text += tableRow(*steps[i], ran);
  if (steps.size() > kMostRows)
    absl::StrAppend(&text, "and ", steps.size() - kMostRows, " more steps\n");
  if (!all.reads.empty()) text += "    reads  of what was pending\n";
  for (const auto& [where, count] : all.reads)
    absl::StrAppendFormat(&text, "%9d  at %s\n", count, where);
  return text;
}

void forgetTotals() {
  Profile& all = profile();
  for (const auto& [key, label] : all.labels) label->calls = label->nanoseconds = 0;
  all.events = 0;
  all.reads.clear();
}

// The events of each of the threads. None is added behind them before the next profile.
std::vector<std::vector<Event>> take(std::vector<std::shared_ptr<Thread>> threads) {
  std::vector<std::vector<Event>> taken;
  for (const std::shared_ptr<Thread>& thread : threads) {
    const std::lock_guard lock(thread->mutex);
    taken.push_back(std::exchange(thread->events, {}));
  }
  return taken;
}

void attempt(const std::function<void()>& work) {
  try {
    work();
  } catch (const std::exception& error) {
    logWarning(absl::StrCat("FL_PROFILE: ", error.what()));
  }
}

}  // namespace

Label* label(Lane lane, Extent extent, const std::string& name, const CallSite& site,
             size_t bytes) {
  const std::string where = site.toString();
  Profile& all = profile();
  const std::lock_guard lock(all.mutex);
  std::unique_ptr<Label>& found = all.labels[{lane, extent, name, where, bytes}];
  if (!found) found.reset(new Label{lane, extent, name, where, bytes});
  return found.get();
}

int64_t now() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

void add(Label* label, int64_t begin, int64_t end) {
  Profile& all = profile();
  Thread& thread = thisThread();
  const std::lock_guard lock(thread.mutex);
  if (!isActive() || begin < all.begin) return;
  label->calls.fetch_add(1, std::memory_order_relaxed);
  label->nanoseconds.fetch_add(end - begin, std::memory_order_relaxed);
  if (all.events.fetch_add(1, std::memory_order_relaxed) >= kMostEvents) return;
  thread.events.push_back({label, begin, end});
}

void startIfAsked() {
  static const bool once = [] {
    if (!flags().profile.empty()) {
      attempt([] { startProfile(flags().profile); });
      static const pid_t process = getpid();  // a child of fork() has no trace of its own
      std::atexit([] { getpid() == process ? attempt(stopProfile) : void(); });
    }
    return true;
  }();
  (void)once;
}

void noteRead(const CallSite& site) {
  const std::string where = site.toString();
  const std::lock_guard lock(profile().mutex);
  ++profile().reads[where];
}

}  // namespace fl::profile

namespace fl {

std::map<std::string, uint64_t> reads() {
  const std::lock_guard lock(profile::profile().mutex);
  return profile::profile().reads;
}

void startProfile(const std::string& file) {
  AtomicFile::checkWritable(file);
  profile::Profile& all = profile::profile();
  const std::lock_guard lock(all.mutex);
  FL_USER_CHECK(!all.isOpen, "startProfile(\"", file, "\"): the profile for \"", all.file,
                "\" has not been stopped");
  profile::forgetTotals();
  all.file = file;
  all.isOpen = true;
  all.begin = profile::now();
  profile::detail::active = true;
}

void stopProfile() {
  profile::Profile& all = profile::profile();
  std::unique_lock lock(all.mutex);
  if (!profile::detail::active.exchange(false)) return;
  const int64_t begin = all.begin, end = profile::now();
  auto threads = all.threads;
  lock.unlock();
  const auto events = profile::take(std::move(threads));
  lock.lock();
  std::erase_if(all.threads, [](const auto& each) { return each.use_count() == 1; });  // it ended
  const std::string file = all.file, table = profile::table(end);
  all.isOpen = false;
  lock.unlock();
  profile::writeTrace(file, events, begin);
  std::cerr << table;
}

}  // namespace fl
