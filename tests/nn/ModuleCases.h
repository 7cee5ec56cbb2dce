// Every module of fl/nn, in one or more settings, by the names of tests/reference/modules.npz.
#pragma once

#include <functional>
#include <map>
#include <string>

#include "fl/nn/modules/Module.h"

namespace fl::test {

struct ModuleCase {
  std::string pretty;  // what prettyString() says
  std::function<ModulePtr()> make;
  // target = source, of this class.
  std::function<void(Module& target, const Module& source)> assign;
};

const std::map<std::string, ModuleCase>& moduleCases();

}  // namespace fl::test
