// How long the steps of a schedule take where they stand: each in a run of all.
#pragma once

#include <memory>
#include <string>

#include "fl/kernel/Schedule.h"
#include "fl/view/StepTimes.h"

namespace fl::tools {

// Of `runs` runs on the CPU after a warm-up, one a step or steps that run together. Inputs are
// drawn. Throws std::exception, with `name`, for a schedule that does not run on them.
std::shared_ptr<view::StepTimes> timeSteps(const std::string& name, const ir::Schedule& schedule,
                                           int runs);

}  // namespace fl::tools
