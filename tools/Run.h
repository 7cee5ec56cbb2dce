// `fl run`: runs a graph, schedule or kernel on a device, compares the results with the reference
// device's, times it. Program.h runs, Values.h has the inputs and results.
#pragma once

#include <optional>
#include <ostream>
#include <vector>

#include "tools/Program.h"
#include "tools/npy/Npz.h"

namespace fl::tools {

// The exit code: 2 if --check finds a difference. Throws for bad arguments and text.
int runRun(int argc, char** argv);

struct Inputs {
  std::vector<NpyArray> arrays;
  bool someDrawn;
};
// Those that --inputs, the comment of numbers that a dump has in front of `text`, and --seed give;
// `log` is told where each comes from. Throws std::invalid_argument for files that do not fit and
// for numbers that are none, std::bad_alloc.
Inputs makeInputs(const Program& program, const std::string& text, std::ostream& log);

// What --tolerance says.
std::optional<double> runTolerance();

}  // namespace fl::tools
