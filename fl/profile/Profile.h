// Where a process spends its time: a trace that Perfetto and Chrome's tracing page open, and a
// table of what ran.
//
// An event costs two readings of the clock and 24 bytes while there is a profile, and a test of a
// flag while there is none. A name is made once and is the process's for good.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <string>

#include "fl/base/CallSite.h"

namespace fl {

// Collects from now on what the process records, plans, compiles and runs; FL_PROFILE=file.json
// does from its start to its end. Throws std::runtime_error if the file could not be written, and
// std::invalid_argument while there is another profile. Thread-safe.
void startProfile(const std::string& file);
// Writes the trace to the file and the table to standard error. Does nothing without a profile.
// Throws std::runtime_error if the file cannot be written. Thread-safe.
void stopProfile();

// By line of the program, "main.cpp:3", how often it read a value that was pending, and so ended a
// plan: counted in a profile, from its start, and with FL_ON_SYNC=warn. Thread-safe.
std::map<std::string, uint64_t> reads();

}  // namespace fl

namespace fl::profile {

enum class Lane : uint8_t { Recording, Planning, Compiling, Running };

// Events that happen within others of their lane: passes of a plan's making, steps of its run. A
// lane's time is that of the others.
enum class Extent : uint8_t { Whole, Part };

// What an event is called, and the sum of all that are called so.
struct Label {
  Lane lane = Lane::Recording;
  Extent extent = Extent::Whole;
  std::string name;
  std::string where;  // the user's line
  size_t bytes = 0;   // read and written each time
  std::atomic<int64_t> calls = 0, nanoseconds = 0;
};
// The label with these; the same one for equal arguments. Costs milliseconds where the line is new.
Label* label(Lane lane, Extent extent, const std::string& name, const CallSite& site = {},
             size_t bytes = 0);

namespace detail {
extern std::atomic<bool> active;
}
inline bool isActive() { return detail::active.load(std::memory_order_relaxed); }
// Starts the profile that FL_PROFILE asks for; once. What is wrong with it is warned about.
void startIfAsked();

// Counts for fl::reads().
void noteRead(const CallSite& site);

// In nanoseconds, of a clock that only goes on.
int64_t now();
// This thread did something from `begin` to `end`. Counts if that lies within one profile.
void add(Label* label, int64_t begin, int64_t end);

// The time from here to the end of the block, called what `makeLabel` returns there.
template <class MakeLabel>
class Scope {
 public:
  explicit Scope(MakeLabel makeLabel) : makeLabel_(makeLabel), begin_(isActive() ? now() : -1) {}
  ~Scope() {
    if (begin_ >= 0) {
      const int64_t end = now();
      add(makeLabel_(), begin_, end);
    }
  }
  Scope(const Scope&) = delete;
  Scope& operator=(const Scope&) = delete;

 private:
  const MakeLabel makeLabel_;
  const int64_t begin_;
};

}  // namespace fl::profile
