#include "fl/runtime/StepLabel.h"

#include "absl/strings/str_cat.h"

namespace fl::runtime {

using profile::Extent;
using profile::Lane;

std::string kernelLabel(const ir::Kernel& kernel) {
  constexpr int kMost = 8;  // operators
  std::string text = kernel.rows() ? "rows" : kernel.columns() ? "columns" : "map";
  int count = 0;
  const auto add = [&](ir::Op op) {
    if (op != ir::Op::Cast && count++ < kMost) {
      absl::StrAppend(&text, count == 1 ? " " : "+", ir::opName(op));
    }
  };
  for (const ir::KernelValue& value : kernel.values) {
    if (value.form == ir::KernelValue::Form::Apply) {
      add(value.op);
    } else if (value.form == ir::KernelValue::Form::Gather) {
      add(ir::Op::Gather);
    } else if (value.form == ir::KernelValue::Form::Total) {
      add(kernel.reductionOf(value).op);
    }
  }
  if (count == 0) return text + " copy";
  return count > kMost ? absl::StrCat(text, "+", count - kMost, " more") : text;
}

namespace {

std::string stepLabel(const ir::Schedule& schedule, const ir::Step& step) {
  if (const auto* launch = std::get_if<ir::LaunchStep>(&step)) {
    return kernelLabel(schedule.kernels[launch->kernel]);
  }
  return std::string("library ") + ir::opName(std::get<ir::LibraryStep>(step).op);
}

}  // namespace

profile::Label* StepLabels::of(const ir::Schedule& schedule, size_t begin, size_t end) {
  const std::lock_guard lock(mutex_);
  labels_.resize(schedule.steps.size() + 1);
  profile::Label*& label = labels_[begin];
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
    label = profile::label(Lane::Running, Extent::Part, name, ir::stepSite(first), bytes);
  }
  return label;
}

profile::Label* StepLabels::ofRun(const ir::Schedule& schedule) {
  const std::lock_guard lock(mutex_);
  labels_.resize(schedule.steps.size() + 1);
  profile::Label*& label = labels_.back();
  if (!label) {
    const CallSite site = schedule.steps.empty() ? CallSite() : ir::stepSite(schedule.steps.back());
    label = profile::label(Lane::Running, Extent::Whole,
                           absl::StrCat("plan of ", schedule.steps.size(), " steps"), site);
  }
  return label;
}

void ProfiledRun::afterSteps(size_t begin, size_t end, const StepMemory& memory) {
  if (next_) next_->afterSteps(begin, end, memory);
  profile::Label* label = labels_.of(schedule_, begin, end);
  const int64_t now = profile::now();
  profile::add(label, last_, now);
  last_ = profile::now();
}

}  // namespace fl::runtime
