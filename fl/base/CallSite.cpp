#include "fl/base/CallSite.h"

#include <elfutils/libdwfl.h>
#include <unistd.h>

#include <mutex>
#include <set>
#include <string_view>

namespace fl {
namespace {

thread_local CallSite current;

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
    if (!dwfl_) {
      return "";
    }
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
    if (root == std::string::npos) {
      return file.rfind("./", 0) == 0 ? file.substr(2) : file;
    }
    const size_t end = file.find('/', root + 10);
    return end == std::string::npos ? file : file.substr(end + 1);
  }

  std::mutex mutex_;
  Dwfl* dwfl_ = nullptr;
};

const char* intern(const std::string& name) {
  static std::mutex mutex;
  static auto& names = *new std::set<std::string>();
  std::lock_guard<std::mutex> lock(mutex);
  return names.insert(name).first->c_str();
}

}  // namespace

std::string CallSite::toString() const {
  if (!address) {
    return "";
  }
  static auto& lines = *new LineTable();
  std::string text = lines.find(address);
  if (scope) {
    text += std::string(text.empty() ? "" : " ") + "(in " + scope + ")";
  }
  return text;
}

CallSite currentCallSite() { return current; }

std::string calledAs(const std::string& function) {
  const std::string_view site = current.function ? current.function : "";
  const std::string called(site.substr(0, site.find('<')));  // without template arguments
  const bool named = !called.empty() && !called.starts_with("operator");
  return named && called != function ? called + ": " + function : function;
}

namespace detail {

CallSiteScope::CallSiteScope(const void* address, const char* function)
    : outermost_(current.address == nullptr) {
  if (outermost_) {
    current.address = address;
    current.function = function;
  }
}

CallSiteScope::~CallSiteScope() {
  if (outermost_) {
    current.address = nullptr;
    current.function = nullptr;
  }
}

CallSiteOverride::CallSiteOverride(const CallSite& site) : outer_(current) { current = site; }
CallSiteOverride::~CallSiteOverride() { current = outer_; }

}  // namespace detail

ModuleScope::ModuleScope(const std::string& name) : outer_(current.scope) {
  current.scope = intern(name);
}

ModuleScope::~ModuleScope() { current.scope = outer_; }

}  // namespace fl
