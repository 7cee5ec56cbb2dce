// Where the user's program called the library: a return address, taken once by the outermost
// public function on a thread, turned into file:line only when it is printed. What stands in a
// header of the standard library is not the user's line: the one from which that was called is.
#pragma once

#include <cstdint>
#include <mutex>
#include <string>
#include <unordered_set>

#include "fl/base/FloatEnvironment.h"
#include "fl/base/Shape.h"

namespace fl {

// An address in the user's code, the public function that was called there, and the name of the
// module that was running, all optional. The strings live as long as the program. Every recorded
// operator has one, so it takes 16 bytes: pointers to user space have 48 bits.
class CallSite {
 public:
  CallSite() = default;
  CallSite(const void* address, const char* function) { set(address, function); }

  // One for each place.
  const void* address() const { return reinterpret_cast<const void*>(address_); }
  const char* function() const { return reinterpret_cast<const char*>(function_); }
  const char* scope() const;  // null outside of modules, and of all but the first 65,535 names
  void set(const void* address, const char* function) {
    address_ = reinterpret_cast<uintptr_t>(address);
    function_ = reinterpret_cast<uintptr_t>(function);
  }

  // Keeps where the call that was set came from, too, which takes microseconds: std::make_shared
  // and its like are one place for all that they make. Of 65,535 different ones at most.
  void setCallers();

  // Whether the call writes to a part of a tensor, and if so, whether nobody else has that tensor's
  // old value: it may be overwritten.
  bool writes() const { return writes_; }
  bool replaces() const { return replaces_; }
  void setWrites(bool replaces) {
    writes_ = true;
    replaces_ = replaces;
  }

  // What an error shows of the value that the call indexed, where that is not the operand: its
  // shape. Null for all but the first 16,383 shapes, too.
  const Shape* indexed() const;
  void setIndexed(const Shape& shape);
  void setIndexed(const CallSite& other) { indexed_ = other.indexed_; }

  // "apps/mnist/Train.cpp:41 (in Linear)", or "" when nothing is known. Costs milliseconds.
  std::string toString() const;

 private:
  friend class ModuleScope;
  static constexpr uintptr_t kCallers = uintptr_t{1} << 47;  // with the number of the callers

  uint64_t address_ : 48 = 0;
  uint64_t scope_ : 16 = 0;  // the name's number
  uint64_t function_ : 48 = 0;
  uint64_t writes_ : 1 = false;
  uint64_t replaces_ : 1 = false;
  uint64_t indexed_ : 14 = 0;  // the shape's number
};
static_assert(sizeof(CallSite) == 16);

// The site in force on this thread.
CallSite currentCallSite();

// Places in the user's code, for what is told once for each. Thread-safe.
class CallSites {
 public:
  // True if the site is new.
  bool insert(const CallSite& site);

 private:
  std::mutex mutex_;
  std::unordered_set<const void*> known_;
};

// How a message begins that `function` words: "median: sort" if the user called median, "sort" if
// that or an operator, which has no name to tell; x += y and its like are named "+=".
std::string calledAs(const std::string& function);

// The same with types of operands: "median: f32[3,4]". They and the name are those of the outermost
// function that tells what it was given, and `function` and `types` where none does.
std::string describeCall(const std::string& function, const std::string& types);

namespace detail {

// What a public function was given, which becomes words only for an error.
class CallOperands {
 public:
  virtual std::string toString() const = 0;

  const char* const function;

 protected:
  explicit CallOperands(const char* function) : function(function) {}
  ~CallOperands() = default;
};

class CallSiteScope {
 public:
  CallSiteScope(const void* address, const char* function, const CallOperands* operands = nullptr);
  ~CallSiteScope();
  void noteCallers();
  CallSiteScope(const CallSiteScope&) = delete;
  CallSiteScope& operator=(const CallSiteScope&) = delete;

 private:
  bool outermost_, tells_;
  const FloatEnvironment environment_;
};

// What is recorded in its life is the doing of another call than the outermost one of now.
class CallSiteOverride {
 public:
  explicit CallSiteOverride(const CallSite& site);
  ~CallSiteOverride();
  CallSiteOverride(const CallSiteOverride&) = delete;
  CallSiteOverride& operator=(const CallSiteOverride&) = delete;

 private:
  const CallSite outer_;
  const CallOperands* const outerGiven_;
};

}  // namespace detail

// While one lives, the thread's pending operators are run, if they have become too many, only where
// next() was called: a loop whose body calls it in one place is cut there, into equal plans.
class StepScope {
 public:
  StepScope() { ++depth; }
  ~StepScope() { --depth; }
  static void next() { isDue = true; }
  inline static thread_local int depth = 0;
  inline static thread_local bool isDue = false;
};

// Names the module that is running, for messages and dumps. `name` is kept.
class ModuleScope {
 public:
  explicit ModuleScope(const std::string& name);
  ~ModuleScope();
  ModuleScope(const ModuleScope&) = delete;
  ModuleScope& operator=(const ModuleScope&) = delete;

 private:
  const uint64_t outer_;
};

}  // namespace fl

// First line of every public function that can record or fail: nested calls keep the outer site.
// The number makes each function's code its own: folding equal functions into one (add() and
// operator+ are equal) would make a wrapper of the other, and its call the user's line.
#define FL_API_ENTRY()                   \
  asm volatile("" : : "i"(__COUNTER__)); \
  ::fl::detail::CallSiteScope flCallSiteScope(__builtin_return_address(0), __func__)

// The same of constructors, but those of tensors: their memory lives long, and they are called by
// std::make_shared and its like.
#define FL_API_CONSTRUCTOR() \
  FL_API_ENTRY();            \
  flCallSiteScope.noteCallers()
