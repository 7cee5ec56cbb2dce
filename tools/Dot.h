// A stage as text in Graphviz's DOT language.
#pragma once

#include <string>

#include "fl/view/Stage.h"

namespace fl::tools {

// Items are nodes; groups of a fusion plan, and the bodies of launched kernels, are clusters.
std::string printDot(const view::Stage& stage);

}  // namespace fl::tools
