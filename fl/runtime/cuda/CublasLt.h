// cuBLASLt's functions as a table, opened at run time, which takes 0.2 s; a test may put its own in
// their place. May be used from any thread.
#pragma once

#include <cublasLt.h>

#include <string>

namespace fl::runtime::cuda {

struct CublasLt {
#define FL_CUBLASLT(function) decltype(&::function) function = nullptr;
#include "fl/runtime/cuda/CublasLt.def"
#undef FL_CUBLASLT
};

// "" if the library can be used; else why not, in one sentence.
const std::string& cublasLtProblem();
// Only where there is no problem.
const CublasLt& cublasLt();

// For tests: before any other call.
void installCublasLt(const CublasLt& table);

}  // namespace fl::runtime::cuda
