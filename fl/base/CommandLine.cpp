#include "fl/base/CommandLine.h"

#include <cstdlib>
#include <filesystem>
#include <string>

#include "absl/flags/parse.h"
#include "absl/flags/usage.h"
#include "absl/flags/usage_config.h"

namespace fl {

std::vector<char*> parseCommandLine(const char* usage, const char* file, int argc, char** argv) {
  // Under the name of this variable `bazel run` tells where the user stands.
  constexpr const char* kUserDirectory = "BUILD_WORKING_DIRECTORY";
  if (const char* directory = std::getenv(kUserDirectory)) {
    std::filesystem::current_path(directory);
    // What this program starts stands where it is started.
    unsetenv(kUserDirectory);
  }
  absl::SetProgramUsageMessage(usage);
  absl::FlagsUsageConfig config;
  config.contains_help_flags = [name = std::string(file)](absl::string_view flagsFile) {
    return flagsFile == name;
  };
  absl::SetFlagsUsageConfig(config);
  return absl::ParseCommandLine(argc, argv);
}

}  // namespace fl
