// Drawn inputs are any numbers, but some decide which elements a program touches: starts of boxes,
// and indices of lookups. These functions set those of the `drawn` inputs so that they fit, where
// the program, or one kernel of it, reads them directly or through views and casts; what it
// computes or stores first is as it is.
#pragma once

#include <vector>

#include "fl/kernel/Schedule.h"
#include "tools/npy/Npz.h"

namespace fl::tools {

void fitInputs(const ir::Graph& graph, const std::vector<bool>& drawn,
               std::vector<NpyArray>* inputs);
void fitInputs(const ir::Schedule& schedule, const std::vector<bool>& drawn,
               std::vector<NpyArray>* inputs);

// Throws std::invalid_argument if the inputs that are numbers make a slice, an update or a launch
// touch elements outside of what it reads or writes; and if a start is no such input.
void checkBoxes(const ir::Graph& graph, const std::vector<NpyArray>& inputs);
void checkBoxes(const ir::Schedule& schedule, const std::vector<NpyArray>& inputs);

}  // namespace fl::tools
