// Command lines of programs, whose flags are ABSL_FLAGs. Relies on Abseil.
#pragma once

#include <vector>

namespace fl {

// Sets the flags that argv names and returns what is left of it, the program's name first. An
// unknown flag, or a value that is none, ends the program with 1 and a message; --help ends it
// after printing `usage` and the flags that are defined in `file`, the caller's __FILE__. Call
// once.
std::vector<char*> parseCommandLine(const char* usage, const char* file, int argc, char** argv);

}  // namespace fl
