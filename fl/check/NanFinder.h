// FL_CHECK=nan: after each step of a plan, whether an operator in it made the first NaN or
// infinity.
#pragma once

#include <string>

#include "fl/check/Probe.h"
#include "fl/ir/Interpreter.h"

namespace fl::check {

class NanFinder final : public runtime::StepObserver {
 public:
  // `schedule` was made of `compiled`, which passes made of `recorded`. Hands steps on to `next`.
  NanFinder(const std::string& flag, const ir::Graph& recorded, const ir::Graph& compiled,
            const ir::Schedule& schedule, runtime::StepObserver* next)
      : flag_(flag), recorded_(recorded), compiled_(compiled), schedule_(schedule), next_(next) {}
  // Throws a Finding (CheckedPlan.h) that says what was found; with the flag nan-log it warns.
  void afterSteps(size_t begin, size_t end, const runtime::StepMemory& memory) override;

 private:
  // An operator, as it was recorded where that is known, and what the compiler made of it then.
  struct Subject {
    ir::Op op;
    ir::ValueType type;
    CallSite site;
    ir::ValueId made = -1;
  };
  Subject subjectOf(ir::ValueId id) const;
  // `ranges` are of its operands.
  void tell(const Subject& subject, Dim element, double value, const std::string& ranges) const;
  void checkCall(const ir::LibraryStep& call, const runtime::StepMemory& memory) const;
  void checkLaunch(size_t step, const runtime::StepMemory& memory) const;
  void checkValue(const ir::LaunchStep& launch, int value, uint64_t place,
                  const runtime::StepMemory& memory) const;
  // The value that the operator applies to what it reads: without the cast of a 16-bit result.
  static const ir::KernelValue& applied(const ir::Kernel& kernel, const ir::LaunchStep& launch,
                                        int value);

  const std::string& flag_;
  const ir::Graph &recorded_, &compiled_;
  const ir::Schedule& schedule_;
  runtime::StepObserver* const next_;
};

}  // namespace fl::check
