// How long the steps of a schedule take where they stand: each in a run of all.
#pragma once

#include <string>
#include <vector>

#include "fl/view/Page.h"

namespace fl::tools {

// Medians of `runs` runs on the CPU after a warm-up, one a step or steps that run together. Inputs
// are drawn. Throws std::exception, with `name`, for a schedule that does not run on them.
std::vector<view::StepTime> timeSteps(const std::string& name, const ir::Schedule& schedule,
                                      int runs);

}  // namespace fl::tools
