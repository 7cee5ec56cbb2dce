#include "fl/base/CallSite.h"

#include <dwarf.h>
#include <elfutils/libdwfl.h>
#include <execinfo.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <mutex>
#include <string_view>
#include <vector>

#include "fl/base/ForkSafeMutex.h"

namespace fl {
namespace {

thread_local CallSite current;
// Of the outermost function that tells.
thread_local const detail::CallOperands* given = nullptr;

// Return addresses, from the inside out.
using Callers = std::vector<void*>;

// The line table lookup of libdw, opened once: opening costs milliseconds, a lookup microseconds.
class LineTable {
 public:
  // Of the innermost of the callers that is not in a system's header, if there is one.
  std::string find(const Callers& callers) {
    const std::lock_guard lock(mutex_);
    if (!dwfl_) open();
    std::string first;
    for (const void* caller : callers) {
      // A return address is behind the call; one byte before lies in the call itself.
      const auto pc = reinterpret_cast<Dwarf_Addr>(caller) - 1;
      const std::string place = placeOf(pc), into = inlinedInto(pc, place);
      if (!isSystemHeader(into)) return into;
      if (first.empty()) first = place;
    }
    return first;
  }

 private:
  void open() {
    static const Dwfl_Callbacks callbacks = {dwfl_linux_proc_find_elf, dwfl_standard_find_debuginfo,
                                             nullptr, nullptr};
    dwfl_ = dwfl_begin(&callbacks);
    if (dwfl_ && dwfl_linux_proc_report(dwfl_, getpid()) == 0)
      dwfl_report_end(dwfl_, nullptr, nullptr);
  }

  std::string placeOf(Dwarf_Addr pc) {
    int number = 0;
    Dwfl_Line* line = dwfl_ ? dwfl_getsrc(dwfl_, pc) : nullptr;
    const char* file =
        line ? dwfl_lineinfo(line, nullptr, &number, nullptr, nullptr, nullptr) : nullptr;
    return file ? shorten(file) + ":" + std::to_string(number) : "";
  }

  // The call from which `place` was inlined there, if that is in a system's header. Takes
  // milliseconds then.
  std::string inlinedInto(Dwarf_Addr pc, std::string place) {
    Dwarf_Addr bias = 0;
    Dwarf_Files* files = nullptr;
    Dwarf_Die *unit = nullptr, *innermost = nullptr, *scopes = nullptr;
    if (isSystemHeader(place)) unit = dwfl_addrdie(dwfl_, pc, &bias);
    if (!unit || dwarf_getsrcfiles(unit, &files, nullptr) != 0) return place;
    // The first, behind which are those of its declaration: what holds it is another question.
    int count = dwarf_getscopes(unit, pc - bias, &innermost);
    if (count > 0) count = dwarf_getscopes_die(innermost, &scopes);
    for (int i = 0; i < count && isSystemHeader(place); ++i) {
      Dwarf_Attribute file, at;
      Dwarf_Word number = 0, line = 0;
      dwarf_formudata(dwarf_attr(&scopes[i], DW_AT_call_file, &file), &number);
      dwarf_formudata(dwarf_attr(&scopes[i], DW_AT_call_line, &at), &line);
      const char* name = line > 0 ? dwarf_filesrc(files, number, nullptr, nullptr) : nullptr;
      if (name) place = shorten(name) + ":" + std::to_string(line);
    }
    std::free(innermost);
    std::free(scopes);
    return place;
  }

  static bool isSystemHeader(const std::string& place) {
    return place.starts_with("/usr/include/") || place.find("/include/c++/") != std::string::npos;
  }

  // Bazel compiles in .../execroot/<workspace>/; users know paths from the workspace's root.
  static std::string shorten(const std::string& file) {
    const size_t root = file.find("/execroot/");
    if (root == std::string::npos) return file.rfind("./", 0) == 0 ? file.substr(2) : file;
    const size_t end = file.find('/', root + 10);
    return end == std::string::npos ? file : file.substr(end + 1);
  }

  ForkSafeMutex mutex_;
  Dwfl* dwfl_ = nullptr;
};

// The first `kMost` different values that it was given, by number. 0 stands for none.
template <typename T, uint64_t kMost>
class Numbered {
 public:
  static Numbered& instance() {
    static auto& instance = *new Numbered();
    return instance;
  }
  uint64_t numberOf(const T& value) {
    const std::lock_guard lock(mutex_);
    const auto found = numbers_.find(value);
    if (found != numbers_.end()) return found->second;
    if (values_.size() > kMost) return 0;
    values_.push_back(&numbers_.emplace(value, values_.size()).first->first);
    return values_.size() - 1;
  }
  const T* operator[](uint64_t number) {
    const std::lock_guard lock(mutex_);
    return values_[number];
  }

 private:
  struct Less {
    bool operator()(const auto& a, const auto& b) const { return a < b; }
    bool operator()(const Shape& a, const Shape& b) const { return a.get() < b.get(); }
  };
  ForkSafeMutex mutex_;
  std::map<T, uint64_t, Less> numbers_;
  std::vector<const T*> values_ = {nullptr};
};

using ModuleNames = Numbered<std::string, (1 << 16) - 1>;
using IndexedShapes = Numbered<Shape, (1 << 14) - 1>;
using CallersOfConstructors = Numbered<Callers, (1 << 16) - 1>;

}  // namespace

bool CallSites::insert(const CallSite& site) {
  const std::lock_guard<std::mutex> lock(mutex_);
  return known_.insert(site.address()).second;
}

const char* CallSite::scope() const {
  const std::string* name = ModuleNames::instance()[scope_];
  return name ? name->c_str() : nullptr;
}

const Shape* CallSite::indexed() const { return IndexedShapes::instance()[indexed_]; }

void CallSite::setIndexed(const Shape& shape) {
  indexed_ = IndexedShapes::instance().numberOf(shape);
}

void CallSite::setCallers() {
  constexpr int kMost = 24;  // frames, of which a few are within the library
  Callers callers(kMost);
  callers.resize(backtrace(callers.data(), kMost));
  callers.erase(callers.begin(), std::ranges::find(callers, address()));
  const uint64_t number = CallersOfConstructors::instance().numberOf(callers);
  if (number && !callers.empty()) address_ = kCallers | number;
}

std::string CallSite::toString() const {
  if (!address_) return "";
  static auto& lines = *new LineTable();
  std::string text =
      lines.find(address_ & kCallers ? *CallersOfConstructors::instance()[address_ ^ kCallers]
                                     : Callers{const_cast<void*>(address())});
  if (const char* module = scope())
    text += std::string(text.empty() ? "" : " ") + "(in " + module + ")";
  return text;
}

CallSite currentCallSite() { return current; }

namespace {

// Without template arguments; "+=" and its like, "" for any other operator.
std::string nameOf(const char* function) {
  const std::string_view name = function ? function : "", kOperator = "operator";
  if (!name.starts_with(kOperator)) return std::string(name.substr(0, name.find('<')));
  const std::string_view symbol = name.substr(kOperator.size());
  const bool updates = symbol == "+=" || symbol == "-=" || symbol == "*=" || symbol == "/=";
  return updates ? std::string(symbol) : "";
}

}  // namespace

std::string calledAs(const std::string& function) {
  const std::string called = nameOf(current.function());
  if (called.empty() || called == function) return function;
  // One that is a part of what the user called says nothing more.
  const bool isPart = !function.empty() && called.starts_with(function);
  return isPart ? called : called + ": " + function;
}

std::string describeCall(const std::string& function, const std::string& types) {
  const std::string teller = given ? nameOf(given->function) : "";
  const std::string words = given ? given->toString() : types;
  return calledAs(teller.empty() ? function : teller) + (words.empty() ? "" : ": " + words);
}

namespace detail {

CallSiteScope::CallSiteScope(const void* address, const char* function,
                             const CallOperands* operands)
    : outermost_(current.address() == nullptr),
      tells_(operands && !given),
      environment_(outermost_) {
  if (outermost_) current.set(address, function);
  if (tells_) given = operands;
}

void CallSiteScope::noteCallers() {
  if (outermost_) current.setCallers();
}

CallSiteScope::~CallSiteScope() {
  if (outermost_) current.set(nullptr, nullptr);
  if (tells_) given = nullptr;
}

CallSiteOverride::CallSiteOverride(const CallSite& site) : outer_(current), outerGiven_(given) {
  current = site;
  given = nullptr;
}
CallSiteOverride::~CallSiteOverride() {
  current = outer_;
  given = outerGiven_;
}

}  // namespace detail

ModuleScope::ModuleScope(const std::string& name) : outer_(current.scope_) {
  current.scope_ = ModuleNames::instance().numberOf(name);
}

ModuleScope::~ModuleScope() { current.scope_ = outer_; }

}  // namespace fl
