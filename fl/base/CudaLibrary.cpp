#include "fl/base/CudaLibrary.h"

#include <dlfcn.h>

#include <algorithm>
#include <sstream>
#include <vector>

#include "fl/base/Error.h"
#include "fl/base/Flags.h"

namespace fl {

std::string cudaVersionText(int version) {
  return detail::concat(version / 1000, ".", version % 1000 / 10);
}

CudaLibrary::CudaLibrary(const std::string& name, int version, int builtFor) : builtFor_(builtFor) {
  const auto file = [&](int of) { return detail::concat("lib", name, ".so.", of); };
  handle_ = open(file(version));
  if (handle_ != nullptr) return;
  const std::string reason = dlerror();  // which the next attempt overwrites
  problem_ = detail::concat("CUDA: fl is built for CUDA ", cudaVersionText(builtFor), " and needs ",
                            file(version));
  constexpr int kOlder = 2;
  for (int older = version - 1; older >= std::max(1, version - kOlder); --older) {
    if (open(file(older)) == nullptr) continue;
    problem_ += ", and only " + path_ + " is there";
    path_.clear();
    return;
  }
  problem_ += detail::concat(", which cannot be opened (", reason, ")");
}

void* CudaLibrary::open(const std::string& file) {
  std::vector<std::string> folders;
  std::istringstream given(flags().cudaLib);
  for (std::string folder; std::getline(given, folder, ':');) folders.push_back(folder + "/");
  folders.insert(folders.end(), {"/usr/local/cuda/lib64/", ""});
  for (const std::string& folder : folders) {
    path_ = folder + file;
    if (void* handle = dlopen(path_.c_str(), RTLD_NOW | RTLD_LOCAL)) return handle;
  }
  path_.clear();
  return nullptr;
}

void* CudaLibrary::find(const char* function) {
  void* found = handle_ == nullptr ? nullptr : dlsym(handle_, function);
  if (found == nullptr && problem_.empty())
    problem_ = detail::concat("CUDA: fl is built for CUDA ", cudaVersionText(builtFor_), ", and ",
                              path_, " is older: it has no ", function);
  return found;
}

}  // namespace fl
