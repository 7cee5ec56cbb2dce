// The main() of a benchmark.
#pragma once

#include <functional>

namespace fl::bench {

// Takes the flags, of which those defined in `file` are in the help behind `usage`, and runs
// run(), whose result is the exit code. What it throws is printed behind `name`, and 1 the code, as
// for arguments that are no flags.
int runProgram(const char* name, const char* usage, const char* file, int argc, char** argv,
               const std::function<int()>& run);

}  // namespace fl::bench
