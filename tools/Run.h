// `fl run`: runs a graph, schedule or kernel on a device, compares the results with the reference
// device's, times it. Program.h runs, Values.h has the inputs and results.
#pragma once

namespace fl::tools {

// The exit code: 2 if --check finds a difference. Throws for bad arguments and text.
int runRun(int argc, char** argv);

}  // namespace fl::tools
