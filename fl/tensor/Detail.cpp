#include "fl/tensor/Detail.h"

#include "absl/container/inlined_vector.h"
#include "fl/base/CallSite.h"
#include "fl/base/Error.h"
#include "fl/ir/Inference.h"
#include "fl/tensor/Capture.h"

namespace fl::detail {
namespace {

TensorValue startValue(Dim start) {
  return defaultTensorBackend().fromNumber(Number::fromSigned(start, dtype::s64));
}

}  // namespace

TensorValue applyOp(ir::Op op, std::vector<TensorValue> operands, const ir::Attrs& attrs) {
  TensorBackend& backend = defaultTensorBackend();
  absl::InlinedVector<const ir::ValueType*, 4> types;
  for (const TensorValue& operand : operands) types.push_back(&operand->valueType());
  return backend.apply(op, std::move(operands), attrs, ir::inferType(op, types, attrs));
}

Tensor applyOp(ir::Op op, std::initializer_list<Operand> operands, const ir::Attrs& attrs) {
  std::vector<TensorValue> values;
  values.reserve(operands.size());
  for (const Operand& operand : operands) values.push_back(operand.tensor.value());
  return Tensor(applyOp(op, std::move(values), attrs));
}

std::string TensorOperands::toString() const {
  std::string words;
  const auto add = [&](dtype type, const Shape& shape) {
    words += (words.empty() ? "" : " x ") + typeToString(type, shape);
  };
  for (int i = 0; i < count_; ++i) {
    const Tensor* tensor = items_[i].tensor;
    tensor ? add(tensor->type(), tensor->shape()) : add(items_[i].number, {});
  }
  for (size_t i = 0; list_ && i < list_->size(); ++i) add((*list_)[i].type(), (*list_)[i].shape());
  return words;
}

std::string describe(const char* function, const Tensor& operand) {
  return describeCall(function, typeToString(operand.type(), operand.shape()));
}

void checkAxis(const char* function, const Tensor& input, Dim axis) {
  FL_USER_CHECK(axis >= 0 && axis < input.ndim(), describe(function, input), ": axis ", axis,
                " is out of range");
}

void checkCounted(const char* function, const Tensor& input, Dim places) {
  FL_USER_CHECK(places <= Dim{1} << 32, describe(function, input), ": u32 does not count ", places,
                " places");
}

Number stored(const Number& number, dtype type) {
  return type == dtype::b8 ? Number(type, number.toInt() & 0xff) : number.cast(type);
}

Tensor filled(const Shape& shape, const Number& number) {
  return applyOp(ir::Op::Broadcast, {numberTensor(number)}, ir::Attrs(shape.get()));
}

Tensor zeros(const Shape& shape, dtype type) { return filled(shape, Number::fromSigned(0, type)); }

Tensor numberTensor(const Number& number) {
  return Tensor(defaultTensorBackend().fromNumber(number));
}

Tensor asF32(double value) { return numberTensor(Number::of(value, dtype::f32)); }

TensorValue castTo(TensorValue value, dtype type) {
  if (value->type() == type) return value;
  const Number* number = value->number();
  if (!number) return applyOp(ir::Op::Cast, {value}, {static_cast<Dim>(type)});
  TensorValue cast = defaultTensorBackend().fromNumber(number->cast(type));
  if (activeCapture) activeCapture->onCast(value, cast);
  return cast;
}

Tensor castTo(const Tensor& tensor, dtype type) {
  return tensor.type() == type ? tensor : Tensor(castTo(tensor.value(), type));
}

TensorValue sliceValue(const TensorValue& value, const std::vector<Dim>& starts,
                       const std::vector<Dim>& sizes, const std::vector<Dim>& strides) {
  std::vector<TensorValue> operands = {value};
  std::vector<Dim> attrs = {static_cast<Dim>(starts.size())};
  attrs.insert(attrs.end(), sizes.begin(), sizes.end());
  attrs.insert(attrs.end(), strides.begin(), strides.end());
  for (Dim start : starts) operands.push_back(startValue(start));
  return applyOp(ir::Op::Slice, std::move(operands), ir::Attrs(std::move(attrs)));
}

TensorValue updateValue(const TensorValue& value, const TensorValue& box,
                        const std::vector<Dim>& starts, const std::vector<Dim>& strides) {
  std::vector<TensorValue> operands = {value, box};
  for (Dim start : starts) operands.push_back(startValue(start));
  return applyOp(ir::Op::Update, std::move(operands),
                 ir::Attrs({static_cast<Dim>(starts.size())}, strides));
}

TensorValue reshapeValue(const TensorValue& value, const Shape& shape) {
  return value->shape() == shape ? value
                                 : applyOp(ir::Op::Reshape, {value}, ir::Attrs(shape.get()));
}

Tensor widenForSum(const Tensor& input) {
  const dtype type = input.type();
  if (type == dtype::b8) return castTo(input != false, dtype::u32);
  const bool isWide = isFloating(type) || getTypeSize(type) >= getTypeSize(dtype::u32);
  return castTo(input, isWide ? computeType(type) : isSigned(type) ? dtype::s32 : dtype::u32);
}

dtype meanType(dtype type) {
  if (isFloating(type)) return type;
  return type == dtype::s64 || type == dtype::u64 ? dtype::f64 : dtype::f32;
}

Tensor binary(ir::Op op, const Tensor& lhs, const Tensor& rhs) {
  dtype type = promote(lhs.type(), rhs.type());
  if (ir::opInfo(op).types == ir::Types::Float && !isFloating(type)) type = dtype::f32;
  std::vector<TensorValue> operands;
  operands.reserve(2);
  operands.push_back(castTo(lhs.value(), type));
  operands.push_back(castTo(rhs.value(), type));
  return Tensor(applyOp(op, std::move(operands)));
}

}  // namespace fl::detail
