#include "fl/view/LivePage.h"

#include <unistd.h>

#include <cstdlib>
#include <exception>

#include "absl/strings/str_format.h"
#include "fl/base/AtomicFile.h"
#include "fl/base/Flags.h"
#include "fl/base/Log.h"
#include "fl/view/Page.h"

namespace fl::view {
namespace {

// A plan takes milliseconds and tens of kilobytes.
constexpr int kMostPlans = 50;

struct LivePage {
  const std::string path = flags().view;
  const pid_t process = getpid();  // a child of fork() has no page of its own
  Page page = {};
  int plans = 0;

  void write() const {
    if (getpid() != process) return;
    const std::string more =
        absl::StrFormat("and %d more plans: FL_VIEW shows the first %d, FL_DUMP has all",
                        plans - kMostPlans, kMostPlans);
    AtomicFile::write(path, page.html(plans > kMostPlans ? more : ""));
  }
};

template <typename Function>
void attempt(Function function) {
  try {
    function();
  } catch (const std::exception& error) {
    logWarning(std::string("FL_VIEW: ") + error.what());
  }
}

// Never destroyed: it is written when other objects already are.
LivePage& livePage() {
  static LivePage* page = nullptr;
  if (!page) {
    page = new LivePage;
    std::atexit([] { attempt([] { page->write(); }); });
  }
  return *page;
}

}  // namespace

LivePlan::Observer LivePlan::observer(Observer next) {
  if (flags().view.empty()) return next;
  number_ = livePage().plans++;
  if (number_ >= kMostPlans) return next;
  return
      [this, next = std::move(next)](int number, const std::string& pass, const std::string& text) {
        stages_.emplace_back(absl::StrFormat("%02d_%s", number, pass), text);
        if (next) next(number, pass, text);
      };
}

LivePlan::~LivePlan() {
  if (stages_.empty()) return;
  attempt([&] {
    Plan plan{.name = absl::StrFormat("plan%04d", number_), .target = target_};
    for (const auto& [name, text] : stages_) plan.stages.push_back({name, readStage(text)});
    livePage().page.add(plan);
  });
}

}  // namespace fl::view
