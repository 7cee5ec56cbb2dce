#include "fl/base/CallSite.h"

#include <elfutils/libdwfl.h>
#include <unistd.h>

#include <map>
#include <mutex>
#include <string_view>
#include <vector>

namespace fl {
namespace {

thread_local CallSite current;
// Of the outermost function that tells.
thread_local const detail::CallOperands* given = nullptr;

// The line table lookup of libdw, opened once: opening costs milliseconds, a lookup microseconds.
class LineTable {
 public:
  LineTable() {
    static const Dwfl_Callbacks callbacks = {dwfl_linux_proc_find_elf, dwfl_standard_find_debuginfo,
                                             nullptr, nullptr};
    dwfl_ = dwfl_begin(&callbacks);
    if (dwfl_ && (dwfl_linux_proc_report(dwfl_, getpid()) != 0 ||
                  dwfl_report_end(dwfl_, nullptr, nullptr) != 0)) {
      dwfl_end(dwfl_);
      dwfl_ = nullptr;
    }
  }

  std::string find(const void* address) {
    std::lock_guard<std::mutex> lock(mutex_);
    if (!dwfl_) return "";
    // A return address is behind the call; one byte before lies in the call itself.
    const auto pc = reinterpret_cast<Dwarf_Addr>(address) - 1;
    Dwfl_Line* line = dwfl_getsrc(dwfl_, pc);
    int number = 0;
    const char* file =
        line ? dwfl_lineinfo(line, nullptr, &number, nullptr, nullptr, nullptr) : nullptr;
    return file ? shorten(file) + ":" + std::to_string(number) : "";
  }

 private:
  // Bazel compiles in .../execroot/<workspace>/; users know paths from the workspace's root.
  static std::string shorten(const std::string& file) {
    const size_t root = file.find("/execroot/");
    if (root == std::string::npos) return file.rfind("./", 0) == 0 ? file.substr(2) : file;
    const size_t end = file.find('/', root + 10);
    return end == std::string::npos ? file : file.substr(end + 1);
  }

  std::mutex mutex_;
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
    bool operator()(const std::string& a, const std::string& b) const { return a < b; }
    bool operator()(const Shape& a, const Shape& b) const { return a.get() < b.get(); }
  };
  std::mutex mutex_;
  std::map<T, uint64_t, Less> numbers_;
  std::vector<const T*> values_ = {nullptr};
};

using ModuleNames = Numbered<std::string, (1 << 16) - 1>;
using IndexedShapes = Numbered<Shape, (1 << 14) - 1>;

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

std::string CallSite::toString() const {
  if (!address_) return "";
  static auto& lines = *new LineTable();
  std::string text = lines.find(address());
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
    : outermost_(current.address() == nullptr), tells_(operands && !given) {
  if (outermost_) current.set(address, function);
  if (tells_) given = operands;
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
