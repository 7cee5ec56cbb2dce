// What every generated module begins with: the element types under the names of their dtypes, and
// the helpers that generated code calls. It includes nothing, so that no folder of headers is
// needed where NVRTC runs, and is C++17 but for the conversions of f16, which are PTX and which
// any other compiler must be given before it (widenHalf, narrowToHalf).
#pragma once

namespace fl::codegen::cuda {

extern const char kPrelude[];

}  // namespace fl::codegen::cuda
