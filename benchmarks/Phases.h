// What a piece of a program spends its time on, as a profile (fl::startProfile) has it.
#pragma once

#include <functional>

namespace fl::bench {

// Microseconds. Those of what several threads do at once, such as compiling, are added up.
struct Phases {
  double total = 0, record = 0, plan = 0, compile = 0, run = 0;
};

// Throws std::runtime_error if there is no room for the profile's file.
Phases phasesOf(const std::function<void()>& work);

}  // namespace fl::bench
