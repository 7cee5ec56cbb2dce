// One HTML page that shows plans, stage by stage, in a browser. It needs nothing but itself: the
// page's script (fl/view/page) and the libraries that lay out and draw are in it, and the plans as
// JSON, which page/model.js reads.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "fl/kernel/Artifact.h"
#include "fl/view/Stage.h"
#include "fl/view/StepTimes.h"

namespace fl::view {

// "07_recompute", as the file of a dump is named, and what it says.
struct NamedStage {
  std::string name;
  Stage stage;
};

struct Plan {
  std::string name;
  ir::Target target;  // that the code of kernels is for
  std::vector<NamedStage> stages = {};
  std::shared_ptr<StepTimes> times = {};  // of the last stage's steps, if they are measured
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
  // With the times that there are by now; `note` stands beside the choice of a plan.
  std::string html(const std::string& note = "") const;

 private:
  std::vector<std::pair<std::string, std::shared_ptr<StepTimes>>> plans_;  // JSON
};

}  // namespace fl::view
