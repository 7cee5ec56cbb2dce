// A shared library of CUDA, opened at run time, so that one program runs with and without it.
//
// Looked for in the folders of FL_CUDA_LIB, in /usr/local/cuda/lib64, and where the dynamic loader
// looks, which says why if there is none. It stays open for the process's life. An object belongs
// to one thread until it is filled; what it has found may be called from any. Opening takes some
// milliseconds, 75 for NVRTC. Relies on Flags.h alone: callers bring the types of the functions.
#pragma once

#include <string>

namespace fl {

class CudaLibrary {
 public:
  // libNAME.so.VERSION; `builtFor` is CUDA_VERSION of the headers that the caller is compiled with.
  CudaLibrary(const std::string& name, int version, int builtFor);

  // The function, or null; then problem() says so.
  void* find(const char* function);

  // Why the library is of no use, in one sentence with the versions that are needed and there; ""
  // if everything that was looked for is found.
  const std::string& problem() const { return problem_; }
  const std::string& path() const { return path_; }

 private:
  void* open(const std::string& file);

  const int builtFor_;
  void* handle_ = nullptr;
  std::string path_, problem_;
};

// "13.0" for 13000, as CUDA counts.
std::string cudaVersionText(int version);

}  // namespace fl
