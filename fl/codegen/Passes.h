// The passes of Pipeline.def that are made here, one .cpp file each.
#pragma once

#include "fl/codegen/Compilation.h"

namespace fl::codegen {

void canonicalize(Compilation& compilation);
void chooseLayouts(Compilation& compilation);
void mergeEqualNodes(Compilation& compilation);
void matchLibrary(Compilation& compilation);
void removeDeadNodes(Compilation& compilation);
void fuse(Compilation& compilation);
void recompute(Compilation& compilation);
void buildSchedule(Compilation& compilation);

}  // namespace fl::codegen
