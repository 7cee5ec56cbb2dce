// The tool `fl`: subcommands over .flir text.
#include <iostream>

#include "tools/Opt.h"
#include "tools/Run.h"

int main(int argc, char** argv) {
  try {
    if (argc > 1 && std::string(argv[1]) == "opt") {
      return fl::tools::runOpt(argc - 1, argv + 1);
    }
    if (argc > 1 && std::string(argv[1]) == "run") {
      return fl::tools::runRun(argc - 1, argv + 1);
    }
    std::cerr << "usage: fl opt|run [flags] FILE.flir   (fl opt --help lists the flags)\n";
    return argc > 1 ? 1 : 0;
  } catch (const std::exception& error) {
    std::cerr << "fl: " << error.what() << "\n";
    return 1;
  }
}
