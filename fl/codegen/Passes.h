// The passes of Pipeline.def that are made here, one .cpp file each.
#pragma once

#include <string>

#include "fl/codegen/Compilation.h"

namespace fl::codegen {

void canonicalize(Compilation& compilation);
void chooseLayouts(Compilation& compilation);
// A part of chooseLayouts.
void moveHeads(ir::Graph* graph);
void mergeEqualNodes(Compilation& compilation);
void matchLibrary(Compilation& compilation);
void removeDeadNodes(Compilation& compilation);
void fuse(Compilation& compilation);
void recompute(Compilation& compilation);
void buildSchedule(Compilation& compilation);

// What a pass of the stage left is wrong from here on, where two values may be mistaken.
void miscompile(const std::string& stage, Compilation& compilation);

}  // namespace fl::codegen
