// The library functions by op; each returns null where oneDNN has no good implementation. Types and
// attributes are checked by inference before. Library.h is the
// interface; tests call these too.
#pragma once

#include "fl/library/Library.h"

namespace fl::library {

// Of any shape, whether or not it is the faster way.
std::shared_ptr<LibraryFunction> prepareAttention(const LibraryCall& call);
bool isFasterInBlocks(const LibraryCall& call);

std::shared_ptr<LibraryFunction> prepareMatmul(const LibraryCall& call);
std::shared_ptr<LibraryFunction> prepareConvolution(const LibraryCall& call);
std::shared_ptr<LibraryFunction> preparePool(const LibraryCall& call);
// Our own, of any dtype, for primitives that no kernel holds.
std::shared_ptr<LibraryFunction> prepareArgsort(const LibraryCall& call);
std::shared_ptr<LibraryFunction> prepareCumsum(const LibraryCall& call);
std::shared_ptr<LibraryFunction> prepareScatter(const LibraryCall& call);

}  // namespace fl::library
