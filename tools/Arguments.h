// Command lines of the tool's subcommands, which share a program and so its flags.
#pragma once

#include <string>
#include <vector>

namespace fl::tools {

// As parseCommandLine() of fl/base/CommandLine.h, for a subcommand, argv[0], whose flags are those
// defined in `file` and `others`: --help prints `usage` and them, any other one is refused.
std::vector<char*> parseArguments(const std::string& usage, const char* file,
                                  const std::vector<std::string>& others, int argc, char** argv);

}  // namespace fl::tools
