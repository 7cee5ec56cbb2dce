// `fl cache`: what is kept on disk between runs.
#pragma once

namespace fl::tools {

// argv[0] is "cache". Returns the exit code; throws for bad input.
int runCache(int argc, char** argv);

}  // namespace fl::tools
