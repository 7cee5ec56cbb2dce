#include "fl/runtime/cuda/CublasLt.h"

#include <cuda.h>

#include "fl/base/CudaLibrary.h"

namespace fl::runtime::cuda {
namespace {

struct Loaded {
  CublasLt table;
  std::string problem;
};

const CublasLt* installed = nullptr;  // by a test

Loaded* load() {
  if (installed != nullptr) return new Loaded{*installed, ""};
  auto* loaded = new Loaded();
  CudaLibrary library("cublasLt", CUDA_VERSION / 1000, CUDA_VERSION);
#define FL_CUBLASLT(function) \
  loaded->table.function =    \
      reinterpret_cast<decltype(loaded->table.function)>(library.find(#function));
#include "fl/runtime/cuda/CublasLt.def"
#undef FL_CUBLASLT
  loaded->problem = library.problem();
  return loaded;
}

const Loaded& loaded() {
  static const Loaded& once = *load();
  return once;
}

}  // namespace

const std::string& cublasLtProblem() { return loaded().problem; }
const CublasLt& cublasLt() { return loaded().table; }
void installCublasLt(const CublasLt& table) { installed = new CublasLt(table); }

}  // namespace fl::runtime::cuda
