// Builds a kernel and its launch from an iteration space and accesses to it: drops axes of extent
// 1, merges neighbours, orders axes, classifies strides, makes arithmetic on 16-bit floats
// explicit.
#pragma once

#include <optional>
#include <vector>

#include "fl/kernel/Schedule.h"

namespace fl::ir {

// Where a value's elements lie under an iteration space: offset + sum(stride * index).
struct Access {
  ElementOffset offset;
  std::vector<Dim> strides;  // one an axis of the space
  bool operator==(const Access&) const = default;
};

struct BuiltKernel {
  Kernel kernel;
  LaunchStep launch;
};

class KernelBuilder {
 public:
  // `reduced[a]` says that axis a of the space is swept.
  KernelBuilder(Shape space, std::vector<bool> reduced);

  // Operands; an input that was added before is found again.
  int addInput(BufferRef buffer, dtype type, Access access);
  int addOutput(BufferRef buffer, dtype type, Access access);

  // Values of the body; equal ones are found again.
  int load(int operand);
  int index(Access access);  // s64
  int number(int parameter, dtype type);
  // An elementwise op. 16-bit floats are selected as they are, else computed in f32 and rounded
  // after each op that may make something else of them.
  int apply(Op op, dtype type, const std::vector<int>& args);
  // One number of the op Random; `operands` are the node's.
  int random(dtype type, const std::vector<int>& operands, int index);
  // The element of `buffer` at `layout`, an access in which the gathered axis has stride 0, and
  // `index` (s64) steps of `stride` from there; `bound` is the axis's size. `origin` is the node's.
  int gather(BufferRef buffer, dtype type, Access layout, int index, Dim stride, Dim bound,
             int origin);
  int total(int reduction, dtype type);
  dtype type(int value) const { return kernel_.values[value].type; }

  void beginStage(bool sweep);
  void store(int operand, int value);
  // Returns the reduction's number.
  int reduce(Op op, int value);

  int valueCount() const { return static_cast<int>(kernel_.values.size()); }
  // Values that are added from now on are made for this node.
  void beginNode(ValueId node) { node_ = node; }
  int operandCount() const { return static_cast<int>(kernel_.operands.size()); }

  // Nothing if the kernel form cannot hold it: more than kMaxRank axes or kMaxOperands operands, or
  // reduced axes that an operand keeps from merging (the reduction tree is defined on merged axes).
  std::optional<BuiltKernel> finish();

 private:
  struct Axis {
    Dim extent;
    bool reduced;
    std::vector<Dim> strides;  // one an operand
  };
  int addOperand(KernelOperand::Role role, std::optional<BufferRef> buffer, dtype type,
                 Access access);
  int addValue(KernelValue value);
  int cast(dtype to, int value);
  int constant(Dim value);
  std::vector<Axis> mergedAxes() const;
  void orderAxes(std::vector<Axis>* axes) const;

  Shape space_;
  std::vector<bool> reduced_;
  Kernel kernel_;
  std::vector<std::optional<BufferRef>> buffers_;
  std::vector<Access> accesses_;
  std::vector<int> rounded_;  // the number that each value is the 16-bit form of, or -1
  std::vector<int> numbers_;
  std::vector<int> gathers_;  // origins
  ValueId node_ = -1;
  std::vector<ValueId> nodes_;  // one a value
};

// The access of a contiguous value under a space of its own shape.
Access contiguousAccess(const Shape& shape);
// That of a contiguous value with an element for each combination of the axes that are not reduced.
Access keptAccess(const Shape& space, const std::vector<bool>& reduced);

// Adds `kernel` or finds an equal one; returns its number.
int addKernel(Schedule* schedule, const Kernel& kernel);

}  // namespace fl::ir
