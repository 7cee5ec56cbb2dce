#include "fl/base/CommandLine.h"

#include <string>

#include "absl/flags/parse.h"
#include "absl/flags/usage.h"
#include "absl/flags/usage_config.h"

namespace fl {

std::vector<char*> parseCommandLine(const char* usage, const char* file, int argc, char** argv) {
  absl::SetProgramUsageMessage(usage);
  absl::FlagsUsageConfig config;
  config.contains_help_flags = [name = std::string(file)](absl::string_view flagsFile) {
    return flagsFile == name;
  };
  absl::SetFlagsUsageConfig(config);
  return absl::ParseCommandLine(argc, argv);
}

}  // namespace fl
