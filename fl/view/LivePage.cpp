#include "fl/view/LivePage.h"

#include <unistd.h>

#include <cstdlib>
#include <exception>

#include "absl/strings/str_format.h"
#include "fl/base/AtomicFile.h"
#include "fl/base/Flags.h"
#include "fl/base/Log.h"
#include "fl/kernel/cuda/Launch.h"
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

class TimedPlan final : public runtime::LoadedSchedule {
 public:
  TimedPlan(std::unique_ptr<LoadedSchedule> plan, std::shared_ptr<StepTimes> times)
      : plan_(std::move(plan)), times_(std::move(times)) {}
  Outputs run(std::span<const MemoryBlockPtr> buffers, std::span<const Number> numbers,
              std::span<const bool> spare) const override {
    const StepClock clock(*times_);
    return plan_->run(buffers, numbers, spare);
  }
  const std::vector<int>& reusable() const override { return plan_->reusable(); }
  const ir::Schedule& schedule() const override { return plan_->schedule(); }
  const std::vector<runtime::DeviceKernelPtr>& kernels() const override { return plan_->kernels(); }

 private:
  const std::unique_ptr<LoadedSchedule> plan_;
  const std::shared_ptr<StepTimes> times_;
};

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

std::unique_ptr<runtime::LoadedSchedule> LivePlan::timed(
    std::unique_ptr<runtime::LoadedSchedule> plan) {
  constexpr size_t kRuns = 32;  // whose median is shown
  if (stages_.empty() || ir::cuda::isGpu(target_)) return plan;
  times_ = std::make_shared<StepTimes>(kRuns);
  return std::make_unique<TimedPlan>(std::move(plan), times_);
}

LivePlan::~LivePlan() {
  if (stages_.empty()) return;
  attempt([&] {
    Plan plan{.name = absl::StrFormat("plan%04d", number_), .target = target_, .times = times_};
    for (const auto& [name, text] : stages_) plan.stages.push_back({name, readStage(text)});
    livePage().page.add(plan);
  });
}

}  // namespace fl::view
