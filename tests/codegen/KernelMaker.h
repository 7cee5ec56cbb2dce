// Kernels for tests, written down value by value. Relies on the kernel form only.
#pragma once

#include <utility>
#include <vector>

#include "fl/kernel/Kernel.h"

namespace fl::testing {

inline constexpr ir::Stride kZero = ir::Stride::Zero, kOne = ir::Stride::One,
                            kAny = ir::Stride::Any;

class KernelMaker {
 public:
  explicit KernelMaker(int rank, uint32_t reduced = 0) {
    kernel_.rank = rank;
    kernel_.reduced = reduced;
  }

  // These return the number of a value.
  int input(dtype type, std::vector<ir::Stride> strides) {
    return load(ir::KernelOperand::Role::Input, type, std::move(strides));
  }
  int index(std::vector<ir::Stride> strides) {
    return load(ir::KernelOperand::Role::Index, dtype::s64, std::move(strides));
  }
  int scalar(dtype type) {
    kernel_.scalars.push_back(type);
    return add({.form = ir::KernelValue::Form::Scalar,
                .type = type,
                .index = static_cast<int>(kernel_.scalars.size()) - 1});
  }
  int apply(ir::Op op, std::vector<int> args, bool isShort = false) {
    const bool boolean = ir::opInfo(op).result == ir::Result::Bool;
    const dtype type = boolean ? dtype::b8 : kernel_.values[args.back()].type;
    return add({.form = ir::KernelValue::Form::Apply,
                .op = op,
                .type = type,
                .args = args,
                .isShort = isShort});
  }
  int cast(int value, dtype type) {
    return add(
        {.form = ir::KernelValue::Form::Apply, .op = ir::Op::Cast, .type = type, .args = {value}});
  }
  int random(dtype type, int seed, int offset, int index) {
    return add({.form = ir::KernelValue::Form::Apply,
                .op = ir::Op::Random,
                .type = type,
                .args = {seed, offset, index}});
  }
  // A normal number of two uniform ones of its type.
  int normal(int first, int second) {
    return add({.form = ir::KernelValue::Form::Apply,
                .op = ir::Op::Random,
                .type = typeOf(first),
                .args = {first, second}});
  }
  // Of a table of its own; all three are s64.
  int gather(dtype type, int element, int index, int bound) {
    kernel_.operands.push_back({ir::KernelOperand::Role::Input, type,
                                std::vector<ir::Stride>(kernel_.rank, ir::Stride::Zero)});
    return add({.form = ir::KernelValue::Form::Gather,
                .type = type,
                .index = static_cast<int>(kernel_.operands.size()) - 1,
                .args = {element, index, bound}});
  }
  int total(int reduction, dtype type) {
    return add({.form = ir::KernelValue::Form::Total, .type = type, .index = reduction});
  }

  void beginStage(bool sweep) { kernel_.stages.push_back({.sweep = sweep}); }
  void store(int value, std::vector<ir::Stride> strides) {
    kernel_.operands.push_back(
        {ir::KernelOperand::Role::Output, kernel_.values[value].type, std::move(strides)});
    const int operand = static_cast<int>(kernel_.operands.size()) - 1;
    kernel_.stages.back().stores.push_back({operand, value});
  }
  // Returns the number of the reduction.
  int reduce(ir::Op op, int value) {
    kernel_.stages.back().reduces.push_back({op, value, reductions_});
    return reductions_++;
  }

  dtype typeOf(int value) const { return kernel_.values[value].type; }
  const ir::Kernel& kernel() const { return kernel_; }

 private:
  int add(ir::KernelValue value) {
    kernel_.values.push_back(std::move(value));
    return static_cast<int>(kernel_.values.size()) - 1;
  }
  int load(ir::KernelOperand::Role role, dtype type, std::vector<ir::Stride> strides) {
    kernel_.operands.push_back({role, type, std::move(strides)});
    return add({.form = ir::KernelValue::Form::Load,
                .type = type,
                .index = static_cast<int>(kernel_.operands.size()) - 1});
  }

  ir::Kernel kernel_;
  int reductions_ = 0;
};

}  // namespace fl::testing
