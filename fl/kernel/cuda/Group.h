// Launches of one kernel that are one on a GPU, as an optimizer's are for all of its parameters: a
// launch takes the GPU and the host a microsecond or two, whatever it does.
//
// Code for a group is made for at most so many launches, a power of two. Its parameter has the
// number of the block that each launch begins with, as words for one launch more than that, those
// behind the last being the number of all blocks; and then the words of each (packArguments). A
// block finds its launch by them. The words are the kernel's parameter as those of a single launch
// are, rather than memory that is uploaded before each run: a launch and a graph's node copy them,
// and GPUs read parameters as fast as constants, wherever they begin.
#pragma once

#include <vector>

#include "fl/kernel/cuda/Launch.h"

namespace fl::ir::cuda {

// Maps without lookups: their blocks share no memory, and report nothing. Registers hold the
// addresses of a group's launch, which are constants in other code, and not those of many operands.
inline bool mayGroup(const Kernel& kernel) {
  constexpr size_t kMostOperands = 16;
  return kernel.reduced == 0 && kernel.gatherCount() == 0 &&
         kernel.operands.size() <= kMostOperands;
}

// How many launches of so many words fit into a parameter, a power of two.
int mostLaunches(size_t words);

struct PackedLaunch {
  Launch shape;
  std::vector<uint64_t> words;
};
// Of at least one launch and at most `most`, all of one kernel, for code for groups of that size.
PackedLaunch packGroup(const std::vector<PackedLaunch>& launches, int most);

}  // namespace fl::ir::cuda
