// How functions of this room reach a backend: checked, inferred application of ops to tensors.
#pragma once

#include <array>
#include <initializer_list>
#include <vector>

#include "fl/tensor/TensorBase.h"

namespace fl::detail {

// A number among operands: as a tensor it has this dtype.
struct NumberOperand {
  dtype type;
};

// The operands of a public function as its caller knows them, among arguments of any types. A
// Tensor& is a result.
class TensorOperands final : public CallOperands {
 public:
  template <typename... Args>
  explicit TensorOperands(const char* function, Args&&... args) : CallOperands(function) {
    (add(args), ...);
  }
  std::string toString() const override;

 private:
  struct Item {
    const Tensor* tensor;
    dtype number;
  };
  void add(const Tensor& tensor) { items_[count_++] = {&tensor, dtype::f32}; }
  void add(const NumberOperand& number) { items_[count_++] = {nullptr, number.type}; }
  void add(const std::vector<Tensor>& tensors) { list_ = &tensors; }
  void add(Tensor&) {}
  template <typename T>
  void add(const T&) {}

  std::array<Item, 3> items_;
  int count_ = 0;
  const std::vector<Tensor>* list_ = nullptr;
};

// FL_API_ENTRY of a function that tells its operands.
#define FL_API_ENTRY_OF(...)                                                          \
  const ::fl::detail::TensorOperands flOperands(__func__ __VA_OPT__(, ) __VA_ARGS__); \
  asm volatile("" : : "i"(__COUNTER__));                                              \
  ::fl::detail::CallSiteScope flCallSiteScope(__builtin_return_address(0), __func__, &flOperands)

// describeCall() for a function whose operands are tensors.
std::string describe(const char* function, const Tensor& operand);

// A tensor in a list of operands, which would copy it.
struct Operand {
  Operand(const Tensor& tensor) : tensor(tensor) {}
  const Tensor& tensor;
};

// The value of `op` on this thread's backend. Infers the type (and throws the user's errors).
Tensor applyOp(ir::Op op, std::initializer_list<Operand> operands, const ir::Attrs& attrs = {});
TensorValue applyOp(ir::Op op, std::vector<TensorValue> operands, const ir::Attrs& attrs = {});

// Throws the user's error of `function` unless `axis` is a dimension of `input`.
void checkAxis(const char* function, const Tensor& input, Dim axis);
// The same where u32 counts fewer places than there are.
void checkCounted(const char* function, const Tensor& input, Dim places);
// Along axis 0 a scalar is a line of one element.
inline bool isScalarAlong(const Tensor& input, Dim axis) { return input.ndim() == 0 && axis == 0; }
// What a tensor of `type` holds of a number that it is filled or updated with: of b8 any char,
// which only a cast makes 0 or 1.
Number stored(const Number& number, dtype type);
// A scalar argument of operators.
Tensor numberTensor(const Number& number);
// A number in every element.
Tensor filled(const Shape& shape, const Number& number);
Tensor zeros(const Shape& shape, dtype type);
// A double argument counts as a tensor of f32, as in Flashlight: integers become f32, f64 stays.
Tensor asF32(double value);
// `tensor` itself if it has the dtype.
Tensor castTo(const Tensor& tensor, dtype type);
TensorValue castTo(TensorValue value, dtype type);

// Box [start, start + stride, ...) of `sizes` elements; starts must be in range.
TensorValue sliceValue(const TensorValue& value, const std::vector<Dim>& starts,
                       const std::vector<Dim>& sizes, const std::vector<Dim>& strides);
TensorValue updateValue(const TensorValue& value, const TensorValue& box,
                        const std::vector<Dim>& starts, const std::vector<Dim>& strides);
TensorValue reshapeValue(const TensorValue& value, const Shape& shape);

// `input` in the dtype in which a sum accumulates.
Tensor widenForSum(const Tensor& input);
// The dtype of a mean: integers give f32 (64-bit ones f64).
dtype meanType(dtype type);

// Both operands of a binary op in their common dtype, then the op.
Tensor binary(ir::Op op, const Tensor& lhs, const Tensor& rhs);
// The dtype in which an array of type `array` and a scalar of C++ type T meet.
template <typename T>
dtype scalarType(dtype array) {
  if constexpr (std::is_same_v<T, bool> || std::is_same_v<T, char>) {
    return promote(array, dtype::b8);
  } else if constexpr (std::is_floating_point_v<T>) {
    return isFloating(array) ? array : dtype::f32;
  } else {
    return array == dtype_traits<T>::fl_type ? array : promote(array, dtype_traits<T>::ctype);
  }
}

}  // namespace fl::detail
