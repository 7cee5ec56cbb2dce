// `fl opt`: runs passes over a .flir file and prints the result.
#pragma once

namespace fl::tools {

// argv[0] is "opt". Returns the exit code; throws for bad input.
int runOpt(int argc, char** argv);

}  // namespace fl::tools
