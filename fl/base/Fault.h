// FL_FAULT: a place that fails on purpose, so that tests see what stands in for it. A place is a
// pass of the compiler, by its name, or "emit"; "hash" makes all hashes of plans equal
// (WordCache.h), and "wrong:NAME" makes a pass, a rule of one, or the machine code or the library
// call of an operator wrong; "wrong:interpreter" has the CPU's interpreter of kernels add what
// it should subtract.
#pragma once

#include <string>

#include "fl/base/Error.h"
#include "fl/base/Flags.h"

namespace fl {

// Throws InternalError if FL_FAULT names `place`.
inline void injectFault(const char* place) {
  if (flags().fault == place) {
    throw InternalError(std::string("a fault that FL_FAULT put into ") + place);
  }
}

// True if FL_FAULT has a rule or operator compute something else; and that of this name.
inline bool isAnyWrong() { return flags().fault.starts_with("wrong:"); }
inline bool isWrong(const char* name) { return isAnyWrong() && flags().fault.substr(6) == name; }

}  // namespace fl
