// The tool `fl`: subcommands over .flir text.
#include <exception>
#include <iostream>
#include <string>

#include "fl/base/CallSite.h"
#include "tools/Bisect.h"
#include "tools/Cache.h"
#include "tools/Doc.h"
#include "tools/Files.h"
#include "tools/Memory.h"
#include "tools/Opt.h"
#include "tools/Reduce.h"
#include "tools/Run.h"
#include "tools/View.h"

namespace {

struct Command {
  const char* name;
  int (*run)(int argc, char** argv);
};
constexpr Command kCommands[] = {
    {"opt", fl::tools::runOpt},       {"run", fl::tools::runRun},
    {"memory", fl::tools::runMemory}, {"view", fl::tools::runView},
    {"reduce", fl::tools::runReduce}, {"bisect", fl::tools::runBisect},
    {"cache", fl::tools::runCache},   {"doc", fl::tools::runDoc},
};

// The exit code; throws what a user is told.
int runCommand(int argc, char** argv) {
  const std::string name = argc > 1 ? argv[1] : "";
  for (const Command& command : kCommands) {
    if (name == command.name) {
      return command.run(argc - 1, argv + 1);
    }
  }
  const bool asked = name == "--help";
  std::ostream& out = asked ? std::cout : std::cerr;
  out << "usage: fl ";
  for (const Command& command : kCommands) {
    out << (&command == kCommands ? "" : "|") << command.name;
  }
  out << " ...   (fl opt --help says what opt takes)\n";
  return asked ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  // The user typed a command and wrote no line: a place outside all code keeps ours out of
  // messages.
  static const char nowhere = 0;
  const fl::detail::CallSiteOverride typed(fl::CallSite(&nowhere, nullptr));
  try {
    const int code = runCommand(argc, argv);
    fl::tools::flushOutput();
    return code;
  } catch (const std::exception& error) {
    std::cerr << "fl: " << error.what() << "\n";
    return 1;
  }
}
