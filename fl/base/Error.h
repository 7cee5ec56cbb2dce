// Errors for two readers. A user error names the operator, the shapes, the rule and the user's
// line; an internal error names our file and line and asks for a dump.
#pragma once

#include <locale>
#include <new>
#include <sstream>
#include <stdexcept>
#include <string>
#include <utility>

namespace fl {

// A broken invariant of ours, or of what extends the compiler; never the user's fault.
class InternalError : public std::logic_error {
 public:
  using std::logic_error::logic_error;
};

// Memory that the machine, or a limit of the program's, does not give.
class OutOfMemory : public std::bad_alloc {
 public:
  explicit OutOfMemory(std::string message = "no memory") : message_(std::move(message)) {}
  const char* what() const noexcept override { return message_.c_str(); }

 private:
  const std::string message_;
};

namespace detail {

// How an internal error of ours begins and ends.
inline constexpr char kInternal[] = "internal error at ";
inline constexpr char kReportIt[] = ". Please report it with the folder that FL_DUMP=dir writes.";

// Appends ", at file:line" of the user's call.
std::string withCallSite(const std::string& message);
[[noreturn]] void throwInternal(const char* file, int line, const char* condition,
                                const std::string& message);
[[noreturn]] void throwNoEnumerator(const char* function, const char* type, int value);

template <typename... Args>
std::string concat(const Args&... args) {
  std::ostringstream os;
  os.imbue(std::locale::classic());  // whatever the program's
  ((os << args), ...);
  return os.str();
}

}  // namespace detail

// Throws the user's error of `function` unless `value` is one of its type's, of which there are
// those from 0 to `last`.
template <typename Enum>
void checkEnumerator(const char* function, const char* type, Enum value, Enum last) {
  const bool known = static_cast<unsigned>(value) <= static_cast<unsigned>(last);
  if (!known) detail::throwNoEnumerator(function, type, static_cast<int>(value));
}

// Throws "<parts...>, at <the user's file:line>".
template <typename Error = std::invalid_argument, typename... Args>
[[noreturn]] void throwUser(const Args&... parts) {
  throw Error(detail::withCallSite(detail::concat(parts...)));
}

}  // namespace fl

// FL_USER_CHECK(condition, message parts...): the parts are evaluated only on failure.
#define FL_USER_CHECK(condition, ...)               \
  do {                                              \
    if (!(condition)) ::fl::throwUser(__VA_ARGS__); \
  } while (false)

#define FL_INTERNAL_CHECK(condition, ...)                                               \
  do {                                                                                  \
    if (!(condition)) {                                                                 \
      ::fl::detail::throwInternal(__FILE__, __LINE__, #condition,                       \
                                  ::fl::detail::concat("" __VA_OPT__(, ) __VA_ARGS__)); \
    }                                                                                   \
  } while (false)
