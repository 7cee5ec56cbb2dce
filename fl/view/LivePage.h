// FL_VIEW=file.html: the first plans that this process makes, on one page (fl/view/Page.h) that is
// written when it ends, and how many more there were.
//
// A page never stops the program: what goes wrong with it is warned about.
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "fl/kernel/Artifact.h"

namespace fl::view {

// One plan while it is made.
class LivePlan {
 public:
  // The page shows code for `target`.
  explicit LivePlan(ir::Target target) : target_(std::move(target)) {}
  // Adds the plan to the page, if it has stages. Not thread-safe.
  ~LivePlan();
  LivePlan(const LivePlan&) = delete;
  LivePlan& operator=(const LivePlan&) = delete;

  // Keeps the text after each pass, if FL_VIEW is set, and hands it on to `next`, if that is one.
  using Observer =
      std::function<void(int number, const std::string& pass, const std::string& text)>;
  Observer observer(Observer next);

 private:
  const ir::Target target_;
  int number_ = 0;  // of all plans
  std::vector<std::pair<std::string, std::string>> stages_;
};

}  // namespace fl::view
