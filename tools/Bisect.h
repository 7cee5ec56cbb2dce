// `fl bisect`: the pass, or the making of machine code, that first changes what a graph computes.
#pragma once

namespace fl::tools {

// argv[0] is "bisect". The exit code is 0 if nothing changes a result, 2 if something does. Throws
// for bad input.
int runBisect(int argc, char** argv);

}  // namespace fl::tools
