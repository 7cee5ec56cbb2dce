#include "fl/view/LivePage.h"

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

struct LivePage {
  std::string path;
  Page page;
  int plans = 0;
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
    page = new LivePage{.path = flags().view, .page = {}};
    std::atexit([] { attempt([] { AtomicFile::write(page->path, page->page.html()); }); });
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
    LivePage& live = livePage();
    Plan plan{
        .name = absl::StrFormat("plan%04d", live.plans++), .target = target_, .times = times_};
    for (const auto& [name, text] : stages_) plan.stages.push_back({name, readStage(text)});
    live.page.add(plan);
  });
}

}  // namespace fl::view
