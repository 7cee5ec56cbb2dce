#include "fl/runtime/StepLabel.h"

#include "absl/strings/str_cat.h"
#include "fl/base/Hash.h"

namespace fl::runtime {

std::string kernelLabel(const ir::Kernel& kernel) {
  using Form = ir::KernelValue::Form;
  constexpr int kMost = 8;  // operators
  std::string text = kernel.rows() ? "rows" : kernel.columns() ? "columns" : "map";
  int count = 0;
  const auto add = [&](ir::Op op) {
    if (op == ir::Op::Cast || count++ >= kMost) return;
    absl::StrAppend(&text, count == 1 ? " " : "+", ir::opName(op));
  };
  for (const ir::KernelValue& value : kernel.values) {
    if (value.form == Form::Apply) add(value.op);
    if (value.form == Form::Gather) add(ir::Op::Gather);
    if (value.form == Form::Total) add(kernel.reductionOf(value).op);
  }
  if (count > kMost) absl::StrAppend(&text, "+", count - kMost, " more");
  const std::string canonical = printKernel(kernel, "");
  const auto id = static_cast<uint32_t>(hashBytes(canonical.data(), canonical.size()).low);
  return absl::StrCat(text, count == 0 ? " copy " : " ", absl::Hex(id, absl::kZeroPad8));
}

namespace {

std::string stepLabel(const ir::Schedule& schedule, const ir::Step& step) {
  const auto* launch = std::get_if<ir::LaunchStep>(&step);
  if (launch) return kernelLabel(schedule.kernels[launch->kernel]);
  return std::string("library ") + ir::opName(std::get<ir::LibraryStep>(step).op);
}

// The line in force where the plan has none: an eager operator's is any that calls it.
CallSite siteOf(const ir::Step& step) {
  return ir::stepSite(step).address() ? ir::stepSite(step) : currentCallSite();
}

}  // namespace

profile::Label* StepLabels::of(const ir::Schedule& schedule, size_t begin, size_t end) {
  const CallSite site = siteOf(schedule.steps[begin]);
  const std::lock_guard lock(mutex_);
  profile::Label*& label = labels_[{begin, site.address()}];
  if (!label) {
    const ir::Step& first = schedule.steps[begin];
    size_t bytes = 0;
    for (size_t i = begin; i < end; ++i) bytes += ir::stepBytes(schedule, schedule.steps[i]);
    std::string name = stepLabel(schedule, first);
    const auto* launch = std::get_if<ir::LaunchStep>(&schedule.steps[end - 1]);
    if (launch && launch->epilogue) {
      absl::StrAppend(&name, " and ", kernelLabel(schedule.kernels[launch->kernel]));
    } else if (end - begin > 1) {
      absl::StrAppend(&name, ", ", end - begin, " together");
    }
    label = profile::label(profile::Lane::Running, profile::Extent::Part, name, site, bytes);
  }
  return label;
}

profile::Label* StepLabels::ofRun(const ir::Schedule& schedule) {
  const CallSite site = schedule.steps.empty() ? CallSite() : siteOf(schedule.steps.back());
  const std::lock_guard lock(mutex_);
  profile::Label*& label = labels_[{schedule.steps.size(), site.address()}];
  if (!label)
    label = profile::label(profile::Lane::Running, profile::Extent::Whole,
                           absl::StrCat("plan of ", schedule.steps.size(), " steps"), site);
  return label;
}

void ProfiledRun::afterSteps(size_t begin, size_t end, const StepMemory& memory) {
  if (next_) next_->afterSteps(begin, end, memory);
  profile::Label* label = labels_.of(schedule_, begin, end);
  const int64_t now = profile::now();
  profile::add(label, std::exchange(last_, now), now);
}

}  // namespace fl::runtime
