// `fl memory`: the memory of a plan by step, as JSON.
#pragma once

namespace fl::tools {

// argv[0] is "memory". Returns the exit code; throws for bad input.
int runMemory(int argc, char** argv);

}  // namespace fl::tools
