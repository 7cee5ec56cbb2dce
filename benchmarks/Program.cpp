#include "benchmarks/Program.h"

#include <exception>
#include <iostream>
#include <stdexcept>

#include "fl/base/CommandLine.h"

namespace fl::bench {

int runProgram(const char* name, const char* usage, const char* file, int argc, char** argv,
               const std::function<int()>& run) {
  try {
    if (parseCommandLine(usage, file, argc, argv).size() > 1) {
      throw std::runtime_error("arguments are flags, which start with --");
    }
    return run();
  } catch (const std::exception& error) {
    std::cerr << name << ": " << error.what() << std::endl;
    return 1;
  }
}

}  // namespace fl::bench
