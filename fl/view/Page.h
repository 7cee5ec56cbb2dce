// One HTML page that shows plans, stage by stage, in a browser. It needs nothing but itself: the
// page's script (fl/view/page) and the libraries that lay out and draw are in it, and the plans as
// JSON, which page/model.js reads.
#pragma once

#include <string>
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
  std::vector<NamedStage> stages = {};
  std::vector<StepTime> times = {};  // of the last stage's steps, if they were measured
};

class Page {
 public:
  // The code of kernels is shown as it is generated for `target`.
  explicit Page(ir::Target target) : target_(std::move(target)) {}

  // Compiles the kernels of the plan's last stage, some milliseconds each.
  void add(const Plan& plan);
  std::string html() const;

 private:
  const ir::Target target_;
  std::vector<std::string> plans_;  // JSON
};

}  // namespace fl::view
