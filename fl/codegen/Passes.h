// The passes of Pipeline.def, one .cpp file each.
#pragma once

#include "fl/codegen/Compilation.h"

namespace fl::codegen {

#define FL_PASS(stage, name, function, why) void function(Compilation& compilation);
#include "fl/codegen/Pipeline.def"
#undef FL_PASS

}  // namespace fl::codegen
