// Code that tells which value makes the first NaN or infinity of a kernel. What a block computes is
// looked at together, at the cost of some instructions a value; which it was is found off that
// path.
#include <limits>

#include "fl/codegen/cpu/ValueScopes.h"

namespace fl::codegen::cpu {

using Form = ir::KernelValue::Form;

bool ValueScopes::mayMakeNan(int value) const {
  const ir::KernelValue& definition = kernel_.values[value];
  if (!isFloating(definition.type)) return false;
  if (definition.form == Form::Apply)
    return definition.op != ir::Op::Random && definition.op != ir::Op::Where;
  return definition.form == Form::Total && kernel_.reductionOf(definition).op == ir::Op::Sum;
}

// Without their sign, numbers are in the order of their bits, NaN above the infinity.
llvm::Value* ValueScopes::isNan(LlvmValue x, bool orInfinite) {
  const unsigned width = static_cast<unsigned>(getTypeSize(x.type)) * 8;
  llvm::Type* type = x.value->getType()->getWithNewType(builder_.getIntNTy(width));
  const uint64_t infinity =
      Number::fromDouble(std::numeric_limits<double>::infinity(), x.type).bits();
  llvm::Value* magnitude =
      builder_.CreateAnd(builder_.CreateBitCast(x.value, type),
                         llvm::ConstantInt::get(type, (uint64_t{1} << (width - 1)) - 1));
  return builder_.CreateICmp(orInfinite ? llvm::CmpInst::ICMP_SGE : llvm::CmpInst::ICMP_SGT,
                             magnitude, llvm::ConstantInt::get(type, infinity));
}

llvm::Value* ValueScopes::makesNan(int value, int vector) {
  const auto made = [&](bool orInfinite) {
    const auto find = [&](int of) { return isNan(tables_[tableOf(of, vector)][of], orInfinite); };
    llvm::Value* found = find(value);
    for (int arg : kernel_.values[value].args) {
      if (!isFloating(kernel_.values[arg].type)) continue;
      found = builder_.CreateAnd(found, builder_.CreateNot(find(arg)));
    }
    return found;
  };
  return builder_.CreateOr(made(true), made(false));
}

void ValueScopes::noteFound(int value, llvm::Value* lanes, int vector) {
  llvm::Value* place = builder_.getInt64(0);
  for (int axis = 0; axis < kernel_.rank; ++axis) {
    llvm::Value* index = axis == 0 && vector >= 0 ? lanes_[vector].index : indices_[axis];
    if (index == nullptr) continue;
    place = builder_.CreateAdd(place, builder_.CreateMul(index, arguments_.places[axis]));
  }
  llvm::Value* any = vector >= 0 ? builder_.CreateOrReduce(lanes) : lanes;
  if (vector >= 0) {
    llvm::Value* bits = builder_.CreateBitCast(lanes, builder_.getIntNTy(plan_.lanes));
    llvm::Value* lane =
        builder_.CreateBinaryIntrinsic(llvm::Intrinsic::cttz, bits, builder_.getFalse());
    lane = builder_.CreateZExtOrTrunc(lane, builder_.getInt64Ty());
    place = builder_.CreateAdd(place, builder_.CreateMul(lane, arguments_.places[0]));
  }
  place = builder_.CreateSelect(any, place, builder_.getInt64(UINT64_MAX));
  builder_.CreateAtomicRMW(llvm::AtomicRMWInst::UMin,
                           builder_.CreateConstGEP1_64(place->getType(), arguments_.found, value),
                           place, llvm::MaybeAlign(), llvm::AtomicOrdering::Monotonic);
}

void ValueScopes::findNan(const std::vector<int>& values, int vector) {
  if (arguments_.found == nullptr) return;
  llvm::Value* mask = vector >= 0 ? lanes_[vector].mask : nullptr;
  const auto existing = [&](llvm::Value* x) { return mask ? builder_.CreateAnd(x, mask) : x; };
  llvm::Value* any = nullptr;
  for (int value : values) {
    if (!mayMakeNan(value)) continue;
    llvm::Value* found = isNan(tables_[tableOf(value, vector)][value], true);
    any = any ? builder_.CreateOr(any, found) : found;
  }
  if (any == nullptr) return;
  any = vector >= 0 ? builder_.CreateOrReduce(existing(any)) : any;
  const auto note = [&]() -> llvm::Value* {
    for (int value : values)
      if (mayMakeNan(value)) noteFound(value, existing(makesNan(value, vector)), vector);
    return any;
  };
  emitChoice(builder_, any, note, [&] { return any; });
}

}  // namespace fl::codegen::cpu
