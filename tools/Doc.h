// `fl doc`: pages of docs/ that tables of the source make.
#pragma once

namespace fl::tools {

// argv[0] is "doc". Returns the exit code; throws for bad input.
int runDoc(int argc, char** argv);

}  // namespace fl::tools
