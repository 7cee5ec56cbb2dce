#include "tools/Arguments.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <map>

#include "absl/flags/reflection.h"
#include "absl/strings/match.h"
#include "fl/base/CommandLine.h"
#include "fl/base/Error.h"
#include "tools/Files.h"

namespace fl::tools {
namespace {

using Flags = std::map<std::string, const absl::CommandLineFlag*>;

// Those of all subcommands, by name: of files beside this one, wherever another workspace has them.
Flags toolFlags() {
  const std::string folder = std::filesystem::path(__FILE__).parent_path().string() + "/";
  Flags flags;
  for (const auto& [name, flag] : absl::GetAllFlags()) {
    if (absl::StartsWith(flag->Filename(), folder)) flags.emplace(name, flag);
  }
  return flags;
}

void printHelp(const std::string& usage, const Flags& flags) {
  std::cout << "usage: " << usage << (flags.empty() ? "\n" : "\n\nFlags, with their defaults:\n");
  for (const auto& [name, flag] : flags) {
    std::cout << "  --" << name << "=" << flag->DefaultValue() << "\n      " << flag->Help()
              << "\n";
  }
}

}  // namespace

std::vector<char*> parseArguments(const std::string& usage, const char* file,
                                  const std::vector<std::string>& others, int argc, char** argv) {
  const std::string command = argv[0];
  Flags own = toolFlags(), foreign;
  for (auto flag = own.begin(); flag != own.end();) {
    const bool isOwn =
        flag->second->Filename() == file || std::ranges::count(others, flag->first) > 0;
    const auto next = std::next(flag);
    if (!isOwn) foreign.insert(own.extract(flag));
    flag = next;
  }
  if (std::any_of(argv + 1, argv + argc,
                  [](const char* word) { return std::string(word) == "--help"; })) {
    printHelp(usage, own);
    flushOutput();
    std::exit(0);
  }
  const std::vector<char*> arguments = parseCommandLine(usage.c_str(), file, argc, argv);
  for (const auto& [name, flag] : foreign) {
    FL_USER_CHECK(flag->CurrentValue() == flag->DefaultValue(), "--", name, ": is no flag of fl ",
                  command, "; fl ", command, " --help lists them");
  }
  return arguments;
}

}  // namespace fl::tools
