// Command lines of programs, whose flags are ABSL_FLAGs. Relies on Abseil.
#pragma once

#include <vector>

namespace fl {

// Sets the flags that argv names and returns what is left of it, the program's name first. An
// unknown flag, or a value that is none, ends the program with 1 and a message; --help ends it
// after printing `usage` and the flags that are defined in `file`, the caller's __FILE__. Call
// once, before any path is used: `bazel run` starts a program in a folder of its own, and this goes
// to where the user stands (BUILD_WORKING_DIRECTORY, which it unsets), so that relative paths are
// meant from there. Throws std::filesystem::filesystem_error if it cannot.
std::vector<char*> parseCommandLine(const char* usage, const char* file, int argc, char** argv);

}  // namespace fl
