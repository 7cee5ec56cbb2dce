// One HTML page that shows plans, stage by stage, in a browser. It needs nothing but itself: the
// page's script (fl/view/page) and the libraries that lay out and draw are in it, and the plans as
// JSON, which page/model.js reads.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "fl/kernel/Artifact.h"
#include "fl/view/Stage.h"

namespace fl::view {

// "07_recompute", as the file of a dump is named, and what it says.
struct NamedStage {
  std::string name;
  Stage stage;
};

// What steps [begin, end) took, which ran together if they are several.
struct StepTime {
  size_t begin;
  size_t end;
  double microseconds;
};

struct Plan {
  std::string name;
  ir::Target target;  // that the code of kernels is for
  std::vector<NamedStage> stages = {};
  std::vector<StepTime> times = {};  // of the last stage's steps, if they were measured
};

// By the ending of a file that holds it, the code of a kernel as it is generated for a target,
// under a name: "ll" and "s", LLVM IR and assembly, or "cu" and, where NVRTC is there, "ptx".
std::vector<std::pair<std::string, std::string>> codeOf(const ir::Kernel& kernel, ir::Stores stores,
                                                        const ir::Target& target,
                                                        const std::string& name);

class Page {
 public:
  // Compiles the kernels of the plan's last stage, some milliseconds each.
  void add(const Plan& plan);
  // `note` stands beside the choice of a plan.
  std::string html(const std::string& note = "") const;

 private:
  std::vector<std::string> plans_;  // JSON
};

}  // namespace fl::view
