#include "apps/mnist/Runfile.h"

#include <filesystem>
#include <memory>
#include <system_error>

#include "tools/cpp/runfiles/runfiles.h"

namespace fl::app {

std::string runfile(const std::string& name) {
  using bazel::tools::cpp::runfiles::Runfiles;
  std::error_code error;
  // Not argv[0]: it may be relative to a directory that the program has left.
  const std::filesystem::path program = std::filesystem::read_symlink("/proc/self/exe", error);
  const std::unique_ptr<Runfiles> runfiles(Runfiles::Create(program.string()));
  const std::string path = runfiles ? runfiles->Rlocation("fl/" + name) : "";
  return std::filesystem::exists(path, error) ? path : "";
}

}  // namespace fl::app
