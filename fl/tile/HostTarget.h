// What generated code may use on this machine. Relies on fl/base/Flags.h for the flag `cpu`.
#pragma once

#include "fl/kernel/Artifact.h"

namespace fl::tile {

// The extensions of x86-64-v4 or v3, whichever the processor and the operating system support in
// full; FL_CPU=x86-64-v3 stops at v3. Below v3 vectorBits is 0: there is no generated code. The
// levels, rather than all that a processor has, keep stored code usable on many machines. Throws
// std::invalid_argument for another value of the flag.
ir::Target hostTarget();

}  // namespace fl::tile
