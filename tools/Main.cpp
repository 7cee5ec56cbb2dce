// The tool `fl`: subcommands over .flir text.
#include <exception>
#include <iostream>
#include <string>

#include "fl/base/CallSite.h"
#include "tools/Files.h"
#include "tools/Memory.h"
#include "tools/Opt.h"
#include "tools/Reduce.h"
#include "tools/Run.h"
#include "tools/View.h"

namespace {

// The exit code; throws what a user is told.
int runCommand(int argc, char** argv) {
  const std::string command = argc > 1 ? argv[1] : "";
  if (command == "opt") {
    return fl::tools::runOpt(argc - 1, argv + 1);
  }
  if (command == "run") {
    return fl::tools::runRun(argc - 1, argv + 1);
  }
  if (command == "memory") {
    return fl::tools::runMemory(argc - 1, argv + 1);
  }
  if (command == "reduce") {
    return fl::tools::runReduce(argc - 1, argv + 1);
  }
  if (command == "view") {
    return fl::tools::runView(argc - 1, argv + 1);
  }
  const bool asked = command == "--help";
  (asked ? std::cout : std::cerr) << "usage: fl opt|run|memory|view|reduce [flags] FILE.flir   (fl "
                                     "opt --help lists the flags of opt)\n";
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
