#include "fl/codegen/cpu/LlvmBuilder.h"

#include <llvm/IR/IntrinsicsX86.h>

#include "fl/base/Error.h"
#include "fl/base/Fault.h"
#include "fl/ir/Philox.h"

namespace fl::codegen::cpu {

using V = LlvmValue;

llvm::Type* LlvmBuilder::elementType(dtype type) {
  if (type == dtype::f32) return builder_.getFloatTy();
  if (type == dtype::f64) return builder_.getDoubleTy();
  return builder_.getIntNTy(static_cast<unsigned>(getTypeSize(type)) * 8);
}

V LlvmBuilder::constant(const Number& number) {
  llvm::Type* type = elementType(number.type());
  auto* integer = builder_.getIntN(type->getScalarSizeInBits(), number.bits());
  return {builder_.CreateBitCast(integer, type), number.type()};
}

V LlvmBuilder::bytes(V x) {
  if (!isMask(x)) return x;
  return {builder_.CreateZExt(x.value, likeType(x, builder_.getInt8Ty())), x.type};
}

bool LlvmBuilder::isNull(V x) {
  auto* constant = llvm::dyn_cast<llvm::Constant>(x.value);
  return constant != nullptr && constant->isNullValue();
}

V LlvmBuilder::real(V like, double number) {
  return {kept(llvm::ConstantFP::get(like.value->getType(), number)), like.type};
}

// Code generation would load a constant of a vector at each use.
llvm::Value* LlvmBuilder::kept(llvm::Constant* constant) {
  if (inRareCode_ || constant->isNullValue() || !constant->getType()->isVectorTy()) return constant;
  llvm::Value*& register_ = kept_[constant];
  if (register_ == nullptr) {
    llvm::BasicBlock& entry = builder_.GetInsertBlock()->getParent()->getEntryBlock();
    llvm::IRBuilder<> start(&entry, entry.begin());
    auto* memory = new llvm::GlobalVariable(*entry.getModule(), constant->getType(), true,
                                            llvm::GlobalValue::PrivateLinkage, constant);
    register_ = start.CreateLoad(constant->getType(), memory);
  }
  return register_;
}

V LlvmBuilder::integer(V like, int64_t number) {
  if (isFloat(like)) return real(like, static_cast<double>(number));
  llvm::Type* type = likeType(like, elementType(like.type));
  return {llvm::ConstantInt::get(type, static_cast<uint64_t>(number), true), like.type};
}

V LlvmBuilder::binary(Instruction::BinaryOps op, V x, V y) {
  return {builder_.CreateBinOp(op, bytes(x).value, bytes(y).value), x.type};
}

V LlvmBuilder::mul(V x, V y) {
  llvm::Type* type = x.value->getType();
  if (type->isIntOrIntVectorTy(8)) {
    // No instruction multiplies bytes; instruction selection would do it one by one.
    llvm::Type* wide = type->getWithNewBitWidth(16);
    const auto widened = [&](V factor) { return builder_.CreateZExt(factor.value, wide); };
    return {builder_.CreateTrunc(builder_.CreateMul(widened(x), widened(y)), type), x.type};
  }
  return binary(isFloat(x) ? Instruction::FMul : Instruction::Mul, x, y);
}

// Instruction selection overwrites the second factor. In a polynomial that should be x, the sum so
// far, which is not needed again.
V LlvmBuilder::fma(V x, V y, V z) {
  llvm::Value* args[] = {y.value, x.value, z.value};
  return {builder_.CreateIntrinsic(x.value->getType(), llvm::Intrinsic::fma, args), x.type};
}

// Numbers of 32 bits are divided as f64, shorter ones as f32: one rounded division, truncated, is
// their exact quotient, because it differs from a whole number by 1 / y at least or not at all.
V LlvmBuilder::divideInteger(V x, V y) {
  if (width(x) == 64 || !x.value->getType()->isVectorTy())
    return binary(isSigned(x) ? Instruction::SDiv : Instruction::UDiv, x, y);
  return truncate(divide(exactReal(x), exactReal(y)), x.type);
}

V LlvmBuilder::remainderInteger(V x, V y) {
  if (width(x) == 64 || !x.value->getType()->isVectorTy())
    return binary(isSigned(x) ? Instruction::SRem : Instruction::URem, x, y);
  return sub(x, mul(divideInteger(x, y), y));
}

V LlvmBuilder::compare(CmpInst::Predicate ifFloat, CmpInst::Predicate ifSigned,
                       CmpInst::Predicate ifUnsigned, V x, V y) {
  x = bytes(x);
  y = bytes(y);
  if (isFloat(x)) return mask(builder_.CreateFCmp(ifFloat, x.value, y.value));
  return mask(builder_.CreateICmp(isSigned(x) ? ifSigned : ifUnsigned, x.value, y.value));
}

V LlvmBuilder::eq(V x, V y) {
  if (isMask(x) && isNull(y)) return maskNot(x);
  return compare(CmpInst::FCMP_OEQ, CmpInst::ICMP_EQ, CmpInst::ICMP_EQ, x, y);
}

V LlvmBuilder::ne(V x, V y) {
  if (isMask(x) && isNull(y)) return x;
  if (x.value == y.value && !isFloat(x))
    return mask(llvm::Constant::getNullValue(likeType(x, builder_.getInt1Ty())));
  return compare(CmpInst::FCMP_UNE, CmpInst::ICMP_NE, CmpInst::ICMP_NE, x, y);
}

V LlvmBuilder::select(V condition, V x, V y) {
  if (isMask(x) != isMask(y)) {
    x = bytes(x);
    y = bytes(y);
  }
  return {builder_.CreateSelect(truth(condition), x.value, y.value), x.type};
}

V LlvmBuilder::rarely(V mask, llvm::function_ref<V()> usual, llvm::function_ref<V()> rare) {
  const V common = usual();
  llvm::Value* any =
      mask.value->getType()->isVectorTy() ? builder_.CreateOrReduce(mask.value) : mask.value;
  const auto mixed = [&] {
    inRareCode_ = true;
    llvm::Value* value = select(mask, rare(), common).value;
    inRareCode_ = false;
    return value;
  };
  return {emitChoice(builder_, any, mixed, [&] { return common.value; }), common.type};
}

V LlvmBuilder::scaled(V x, V n, llvm::function_ref<V()> usual) {
  constexpr int kAllLanes = -1, kCurrentRounding = 4;
  auto* type = llvm::dyn_cast<llvm::FixedVectorType>(x.value->getType());
  const bool isRegister = type != nullptr && type->getNumElements() == 16 && x.type == dtype::f32;
  if (!hasAvx512_ || !isRegister) return usual();
  llvm::Value* args[] = {x.value, n.value, x.value, builder_.getInt16(kAllLanes),
                         builder_.getInt32(kCurrentRounding)};
  return {builder_.CreateIntrinsic(llvm::Intrinsic::x86_avx512_mask_scalef_ps_512, {}, args),
          x.type};
}

V LlvmBuilder::extremum(V x, V y, V takeX) {
  const V ordered = select(takeX, x, y);
  return isFloat(x) ? select(ne(x, x), x, ordered) : ordered;
}

V LlvmBuilder::apply(const ir::KernelValue& value, const std::vector<V>& args) {
  const V x = args[0];
  const V y = args.size() > 1 ? args[1] : x;
  const V z = args.size() > 2 ? args[2] : x;
  isShort_ = value.isShort;
  if (value.op == ir::Op::Cast) return cast(x, value.type);
  if (drawsNumber(value))
    return value.type == dtype::f64   ? ir::vm::philoxNumber<dtype::f64>(*this, x, y, z)
           : value.type == dtype::u32 ? ir::vm::philoxNumber<dtype::u32>(*this, x, y, z)
                                      : ir::vm::philoxNumber<dtype::f32>(*this, x, y, z);
  if (value.op == ir::Op::Random) return ir::vm::normalNumber(*this, x, y);
  FL_INTERNAL_CHECK(ir::isElementwise(value.op), ir::opName(value.op));
  return meaning(value.op, x, y, z);
}

V LlvmBuilder::meaning(ir::Op op, V x, V y, V z) {
  V result;
  ir::withMeaning(op, [&](auto meaning) { result = meaning.apply(*this, x, y, z); });
  if (!isWrong(ir::opName(op))) return result;
  return result.type == dtype::b8 ? logicalNot(result) : add(result, integer(result, 1));
}

V LlvmBuilder::randomRun(dtype type, V seed, V offset, V first, int vectors) {
  const bool isDouble = type == dtype::f64;
  const int numbers = ir::kLanes * vectors, blocks = numbers / numbersInBlock(type);
  const V start = spread(lshr(first, integer(first, isDouble ? 1 : 2)), blocks);
  const V block = add({builder_.CreateStepVector(start.value->getType()), dtype::u64}, start);
  const auto [w0, w1, w2, w3] =
      ir::vm::philoxBlock(*this, spread(seed, blocks), spread(offset, blocks), block).word;
  const auto join = [&](V low, V high) { return bitOr(low, shl(high, integer(high, 32))); };
  // Of each block: words 0 and 1, words 2 and 3.
  const V frontPairs = isDouble ? join(w1, w0) : join(w0, w1);
  const V backPairs = isDouble ? join(w3, w2) : join(w2, w3);
  llvm::SmallVector<int> picked;
  for (int i = 0; i < blocks; ++i) picked.append({i, blocks + i});
  V words{builder_.CreateShuffleVector(frontPairs.value, backPairs.value, picked), dtype::u64};
  if (isDouble) return ir::vm::philoxNumberOf<dtype::f64>(*this, words);
  auto* held = llvm::FixedVectorType::get(builder_.getInt32Ty(), numbers);
  words = {builder_.CreateBitCast(words.value, held), dtype::u32};
  return type == dtype::u32 ? words : ir::vm::philoxNumberOf<dtype::f32>(*this, words);
}

}  // namespace fl::codegen::cpu
