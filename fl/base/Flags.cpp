#include "fl/base/Flags.h"

#include <cstdlib>
#include <stdexcept>

namespace fl {
namespace {

std::string fromEnvironment(const char* env, const char* initial) {
  const char* value = std::getenv(env);
  return value ? value : initial;
}

Flags readFlags() {
  Flags result;
#define FL_FLAG(member, env, initial, doc) result.member = fromEnvironment(env, initial);
#include "fl/base/Flags.def"
#undef FL_FLAG
  return result;
}

}  // namespace

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
