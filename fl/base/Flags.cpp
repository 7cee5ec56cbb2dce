#include "fl/base/Flags.h"

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <stdexcept>

namespace fl {
namespace {

// Digits that fit a long.
bool isNumber(const std::string& value) {
  return !value.empty() && value.size() < 19 &&
         std::all_of(value.begin(), value.end(), [](unsigned char c) { return std::isdigit(c); });
}

// `values` as in Flags.def.
bool isAllowed(const std::string& value, const std::string& values) {
  if (values.empty()) return true;
  if (values == "number") return isNumber(value);
  return ("|" + values + "|").find("|" + value + "|") != std::string::npos;
}

std::string fromEnvironment(const char* env, const char* initial) {
  const char* value = std::getenv(env);
  return value ? value : initial;
}

Flags readFlags() {
  Flags result;
#define FL_FLAG(member, env, initial, values, doc) result.member = fromEnvironment(env, initial);
#include "fl/base/Flags.def"
#undef FL_FLAG
  result.validate();
  return result;
}

void checkValue(const char* env, const std::string& value, const std::string& values) {
  if (!isAllowed(value, values)) {
    throw std::invalid_argument(std::string(env) + ": \"" + value + "\" is not " +
                                (values == "number" ? "a number from 0 on" : "one of " + values));
  }
}

}  // namespace

void Flags::validate() const {
#define FL_FLAG(member, env, initial, values, doc) checkValue(env, member, values);
#include "fl/base/Flags.def"
#undef FL_FLAG
}

long Flags::toInt(const char* env, const std::string& value) {
  char* end = nullptr;
  const long number = std::strtol(value.c_str(), &end, 10);
  if (value.empty() || *end) {
    throw std::invalid_argument(std::string(env) + ": \"" + value + "\" is no integer");
  }
  return number;
}

Flags& flags() {
  static Flags instance = readFlags();
  return instance;
}

}  // namespace fl
