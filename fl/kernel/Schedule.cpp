#include "fl/kernel/Schedule.h"

#include <algorithm>
#include <set>

#include "fl/base/Error.h"

namespace fl::ir {
namespace {

size_t typeBytes(const ValueType& type) {
  return static_cast<size_t>(type.shape.elements()) * getTypeSize(type.type);
}

// Elements an operand touches: broadcast axes do not count.
size_t touchedBytes(const KernelOperand& operand, const LaunchOperand& binding,
                    const std::vector<Dim>& extents) {
  if (operand.role == KernelOperand::Role::Index) {
    return 0;
  }
  Dim elements = 1;
  for (size_t axis = 0; axis < extents.size(); ++axis) {
    elements *= binding.strides[axis] == 0 ? std::min<Dim>(extents[axis], 1) : extents[axis];
  }
  return static_cast<size_t>(elements) * getTypeSize(operand.type);
}

bool isNumber(const Schedule& schedule, const BufferRef& ref) {
  return ref.space == BufferRef::Space::Parameter &&
         static_cast<size_t>(ref.index) < schedule.parameters.size() &&
         schedule.parameters[ref.index].number;
}

void checkRef(const Schedule& schedule, const BufferRef& ref, int step) {
  const size_t index = static_cast<size_t>(ref.index);
  switch (ref.space) {
    case BufferRef::Space::Parameter:
      FL_INTERNAL_CHECK(index < schedule.parameters.size() && !schedule.parameters[index].number);
      break;
    case BufferRef::Space::Output:
      FL_INTERNAL_CHECK(index < schedule.outputs.size() && !schedule.outputs[index].shared);
      break;
    case BufferRef::Space::Temporary:
      FL_INTERNAL_CHECK(index < schedule.temporaries.size());
      FL_INTERNAL_CHECK(
          schedule.temporaries[index].first <= step && step <= schedule.temporaries[index].last,
          "temporary ", index, " is not alive at step ", step);
      break;
  }
}

void verifyLaunch(const Schedule& schedule, const LaunchStep& launch, int step) {
  FL_INTERNAL_CHECK(launch.kernel >= 0 &&
                    launch.kernel < static_cast<int>(schedule.kernels.size()));
  const Kernel& kernel = schedule.kernels[launch.kernel];
  const size_t rank = static_cast<size_t>(kernel.rank);
  FL_INTERNAL_CHECK(launch.extents.size() == rank &&
                    launch.numbers.size() == kernel.scalars.size() &&
                    launch.operands.size() == kernel.operands.size());
  for (size_t i = 0; i < launch.operands.size(); ++i) {
    const LaunchOperand& operand = launch.operands[i];
    FL_INTERNAL_CHECK(operand.strides.size() == rank);
    for (size_t axis = 0; axis < rank; ++axis) {
      const Stride known = kernel.operands[i].strides[axis];
      FL_INTERNAL_CHECK(known == Stride::Any || operand.strides[axis] == (known == Stride::One),
                        "operand ", i, " of step ", step, " breaks its stride class");
    }
    if (kernel.operands[i].role != KernelOperand::Role::Index) {
      checkRef(schedule, operand.buffer, step);
    }
  }
  for (size_t i = 0; i < launch.numbers.size(); ++i) {
    const Parameter& number = schedule.parameters.at(launch.numbers[i]);
    FL_INTERNAL_CHECK(number.number && number.type.type == kernel.scalars[i], "number ", i);
  }
}

// Follows what the steps have written, which is all that they may read.
class WrittenBuffers {
 public:
  explicit WrittenBuffers(const Schedule& schedule) : schedule_(schedule) {}

  void read(const BufferRef& ref, int step) const {
    FL_INTERNAL_CHECK(
        ref.space == BufferRef::Space::Parameter || isEmpty(ref) || written_.contains(ref), "step ",
        step, " reads what no step before it has written: ",
        ref.space == BufferRef::Space::Output ? "output " : "temporary ", ref.index);
  }
  void write(const BufferRef& ref) { written_.insert(ref); }

 private:
  bool isEmpty(const BufferRef& ref) const {
    return ref.space == BufferRef::Space::Output
               ? schedule_.outputs[ref.index].type.shape.elements() == 0
               : schedule_.temporaries[ref.index].bytes == 0;
  }
  const Schedule& schedule_;
  std::set<BufferRef> written_;
};

void followLaunch(const Kernel& kernel, const LaunchStep& launch, int step,
                  WrittenBuffers* written) {
  for (size_t i = 0; i < launch.operands.size(); ++i) {
    if (kernel.operands[i].role == KernelOperand::Role::Input) {
      written->read(launch.operands[i].buffer, step);
    }
  }
  for (size_t i = 0; i < launch.operands.size(); ++i) {
    if (kernel.operands[i].role == KernelOperand::Role::Output) {
      written->write(launch.operands[i].buffer);
    }
  }
}

void verifyPacking(const Schedule& schedule) {
  const auto& all = schedule.temporaries;
  for (size_t i = 0; i < all.size(); ++i) {
    FL_INTERNAL_CHECK(all[i].offset + all[i].bytes <= schedule.arenaBytes, "temporary ", i);
    for (size_t j = 0; j < i; ++j) {
      const bool together = all[i].first <= all[j].last && all[j].first <= all[i].last;
      const bool apart = all[i].offset + all[i].bytes <= all[j].offset ||
                         all[j].offset + all[j].bytes <= all[i].offset;
      FL_INTERNAL_CHECK(!together || apart, "temporaries ", j, " and ", i, " overlap");
    }
  }
}

}  // namespace

size_t stepBytes(const Schedule& schedule, const Step& step) {
  size_t bytes = 0;
  if (const auto* launch = std::get_if<LaunchStep>(&step)) {
    const Kernel& kernel = schedule.kernels[launch->kernel];
    for (size_t i = 0; i < launch->operands.size(); ++i) {
      bytes += touchedBytes(kernel.operands[i], launch->operands[i], launch->extents);
    }
  } else {
    const auto& call = std::get<LibraryStep>(step);
    for (const ValueType& type : call.operandTypes) {
      bytes += typeBytes(type);
    }
    bytes += typeBytes(call.resultType);
  }
  return bytes;
}

void verifySteps(const Schedule& schedule) {
  for (const Kernel& kernel : schedule.kernels) {
    verify(kernel);
  }
  WrittenBuffers written(schedule);
  for (size_t i = 0; i < schedule.steps.size(); ++i) {
    const int step = static_cast<int>(i);
    if (const auto* launch = std::get_if<LaunchStep>(&schedule.steps[i])) {
      verifyLaunch(schedule, *launch, step);
      followLaunch(schedule.kernels[launch->kernel], *launch, step, &written);
    } else {
      const auto& call = std::get<LibraryStep>(schedule.steps[i]);
      FL_INTERNAL_CHECK(call.operands.size() == call.operandTypes.size());
      for (const BufferRef& ref : call.operands) {
        if (!isNumber(schedule, ref)) {
          checkRef(schedule, ref, step);
          written.read(ref, step);
        }
      }
      checkRef(schedule, call.result, step);
      written.write(call.result);
    }
  }
}

void verify(const Schedule& schedule) {
  verifySteps(schedule);
  verifyPacking(schedule);
}

}  // namespace fl::ir
