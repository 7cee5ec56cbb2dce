// `fl run`: runs a graph on a backend and device with inputs drawn from a seed, compares the
// results with the reference device's, times it. Relies on fl/tensor/GraphRunner.h.
#pragma once

namespace fl::tools {

// The exit code: 1 if --check finds a difference. Throws for bad arguments and text.
int runRun(int argc, char** argv);

}  // namespace fl::tools
