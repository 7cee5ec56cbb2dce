// Environment flags, one row each in Flags.def. Read once at first use; a wrong value throws
// std::invalid_argument naming variable, value and what it may be.
#pragma once

#include <string>

namespace fl {

struct Flags {
#define FL_FLAG(member, env, initial, values, doc) std::string member;
#include "fl/base/Flags.def"
#undef FL_FLAG

  // Throws std::invalid_argument naming the first variable with a value that it cannot have.
  void validate() const;
  // The value of an integer flag. Throws std::invalid_argument naming the variable.
  static long toInt(const char* env, const std::string& value);
};

// The process's flags; a test or an application may overwrite a member before first use of
// what it controls.
Flags& flags();

}  // namespace fl
