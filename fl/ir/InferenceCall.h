// What the rules of Inference.cpp and LibraryInference.cpp are written with. Private to this room;
// Inference.h is the interface.
#pragma once

#include <span>
#include <string>

#include "fl/base/CallSite.h"
#include "fl/base/Error.h"
#include "fl/ir/Inference.h"

namespace fl::ir {

// One call under inspection; fail() words the error.
struct Call {
  Op op;
  std::span<const ValueType* const> operands;
  const Attrs& attrs;

  const ValueType& operand(size_t i) const { return *operands[i]; }
  const Shape& shape(size_t i) const { return operands[i]->shape; }

  std::string describe() const {
    std::string types;
    for (const ValueType* type : operands) {
      types += (types.empty() ? "" : " x ") + type->toString();
    }
    return describeCall(opName(op), types);
  }
  template <typename... Args>
  [[noreturn]] void fail(const Args&... rule) const {
    throwUser(describe(), ": ", rule...);
  }

  void requireSameTypes(size_t first = 0) const {
    for (size_t i = first + 1; i < operands.size(); ++i) {
      if (operand(i).type != operand(first).type) {
        fail("dtypes ", operand(first).type, " and ", operand(i).type, " differ");
      }
    }
  }
};

inline void checkDtype(const Call& call, dtype type) {
  const Types allowed = opInfo(call.op).types;
  if (allowed == Types::Float && !isFloating(type)) {
    call.fail("needs a floating dtype");
  }
  if (allowed == Types::Integer && isFloating(type)) {
    call.fail("needs an integer dtype");
  }
}

inline void checkSteps(const Call& call, Dim stride, Dim padding, Dim dilation) {
  if (stride < 1) {
    call.fail("a stride of ", stride, " is not positive");
  }
  if (dilation < 1) {
    call.fail("a dilation of ", dilation, " is not positive");
  }
  if (padding < 0) {
    call.fail("a padding of ", padding, " is negative");
  }
}

// The rules of Library ops.
ValueType inferLibrary(const Call& call);

}  // namespace fl::ir
