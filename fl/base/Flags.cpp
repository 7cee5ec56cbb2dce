#include "fl/base/Flags.h"

#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <stdexcept>

#include "fl/base/Log.h"

namespace fl {
namespace {

// `values` as in Flags.def.
bool isAllowed(const std::string& value, const std::string& values) {
  if (values.empty()) return true;
  if (values == "number")
    return !value.empty() && value.find_first_not_of("0123456789") == std::string::npos;
  return ("|" + values + "|").find("|" + value + "|") != std::string::npos;
}

std::string fromEnvironment(const char* env, const char* initial) {
  const char* value = std::getenv(env);
  return value ? value : initial;
}

// FL_TEST_ are those of tests.
bool isUnknown(const std::string& name) {
#define FL_FLAG(member, env, initial, values, doc) \
  if (name == env) return false;
#include "fl/base/Flags.def"
#undef FL_FLAG
  return name.starts_with("FL_") && !name.starts_with("FL_TEST_");
}

// A variable that nobody reads is a mistake of whoever set it.
void warnOfUnknown() {
  for (char** each = environ; each && *each; ++each) {
    const std::string entry = *each;
    const std::string name = entry.substr(0, entry.find('='));
    if (isUnknown(name)) logWarning(name + " is no setting of fl, and changes nothing");
  }
}

Flags readFlags() {
  warnOfUnknown();
  Flags result;
#define FL_FLAG(member, env, initial, values, doc) result.member = fromEnvironment(env, initial);
#include "fl/base/Flags.def"
#undef FL_FLAG
  result.validate();
  return result;
}

void checkValue(const char* env, const std::string& value, const std::string& values) {
  if (!isAllowed(value, values))
    throw std::invalid_argument(std::string(env) + ": \"" + value + "\" is not " +
                                (values == "number" ? "a number from 0 on" : "one of " + values));
  if (values == "number") Flags::toInt(env, value);
}

}  // namespace

void Flags::validate() const {
#define FL_FLAG(member, env, initial, values, doc) checkValue(env, member, values);
#include "fl/base/Flags.def"
#undef FL_FLAG
}

long Flags::toInt(const char* env, const std::string& value) {
  char* end = nullptr;
  errno = 0;
  const long number = std::strtol(value.c_str(), &end, 10);
  const bool isInteger = !value.empty() && !*end;
  if (!isInteger || errno == ERANGE)
    throw std::invalid_argument(std::string(env) + ": \"" + value + "\" is " +
                                (isInteger ? "too large a number" : "no integer"));
  return number;
}

Flags& flags() {
  static Flags instance = readFlags();
  return instance;
}

}  // namespace fl
