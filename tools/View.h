// `fl view`: a page that shows the plans of a dump in a browser, or a file's DOT.
#pragma once

namespace fl::tools {

// argv[0] is "view". Returns the exit code; throws for bad input.
int runView(int argc, char** argv);

}  // namespace fl::tools
