// Plans as JSON that Model Explorer opens (https://github.com/google-ai-edge/model-explorer): its
// graphs, and data of their nodes to colour them by. A stage is a graph, kernels are its layers; a
// launch leads to the graph of its kernel. Relies on nlohmann's JSON.
#pragma once

#include <string>
#include <vector>

#include "fl/view/Page.h"

namespace fl::tools {

struct ModelExplorerFiles {
  std::string graphs;
  std::string bytes;  // node data
  std::string times;  // in microseconds; empty if no plan was timed
};
// Stages that say what the one before says are left out.
ModelExplorerFiles modelExplorerFiles(const std::vector<view::Plan>& plans);

}  // namespace fl::tools
