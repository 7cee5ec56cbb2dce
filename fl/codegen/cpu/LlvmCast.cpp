// Conversions between element types (the rule stands at Cast in fl/ir/Ops.def).
#include <llvm/Analysis/VectorUtils.h>
#include <llvm/IR/IntrinsicsX86.h>

#include <cmath>

#include "fl/codegen/cpu/LlvmBuilder.h"

namespace fl::codegen::cpu {
namespace {

bool isHalf(dtype type) { return type == dtype::f16 || type == dtype::bf16; }

}  // namespace

using V = LlvmValue;

V LlvmBuilder::cast(V x, dtype type) {
  if (x.type == type) return x;
  if (isHalf(x.type)) return cast(widenFloat(x), type);
  if (type == dtype::b8) return ne(x, integer(x, 0));
  if (isHalf(type)) return narrowFloat(cast(x, dtype::f32), type);
  if (isMask(x)) {
    const V like{llvm::Constant::getNullValue(likeType(x, elementType(type))), type};
    return select(x, integer(like, 1), integer(like, 0));
  }
  if (isFloat(x) && isFloating(type))
    return {builder_.CreateFPCast(x.value, likeType(x, elementType(type))), type};
  if (isFloat(x)) return realToInteger(x, type);
  if (isFloating(type)) return integerToReal(x, type);
  return {builder_.CreateIntCast(x.value, likeType(x, elementType(type)), isSigned(x)), type};
}

V LlvmBuilder::integerToReal(V x, dtype type) {
  llvm::Type* to = likeType(x, elementType(type));
  return {isSigned(x) ? builder_.CreateSIToFP(x.value, to) : builder_.CreateUIToFP(x.value, to),
          type};
}

V LlvmBuilder::exactReal(V x) {
  return integerToReal(bytes(x), width(x) == 32 ? dtype::f64 : dtype::f32);
}

// x is in the range of `type`. Conversions to fewer than 32 bits have no instruction.
V LlvmBuilder::truncate(V x, dtype type) {
  llvm::Type* to = likeType(x, elementType(type));
  if (getTypeSize(type) < 4) {
    llvm::Value* wide = builder_.CreateFPToSI(x.value, likeType(x, builder_.getInt32Ty()));
    return {builder_.CreateTrunc(wide, to), type};
  }
  return {
      fl::isSigned(type) ? builder_.CreateFPToSI(x.value, to) : builder_.CreateFPToUI(x.value, to),
      type};
}

// The limits are powers of two or 0, which every float holds; the largest number is one below.
V LlvmBuilder::realToInteger(V x, dtype type) {
  const int bits = static_cast<int>(getTypeSize(type)) * 8;
  const bool hasSign = fl::isSigned(type);
  const V low = real(x, hasSign ? -std::ldexp(1.0, bits - 1) : 0.0);
  const V end = real(x, std::ldexp(1.0, hasSign ? bits - 1 : bits));
  const V inRange = maskAnd(le(low, x), lt(x, end));
  const V exact = truncate(select(inRange, x, real(x, 0)), type);
  const int64_t smallest = hasSign ? static_cast<int64_t>(uint64_t{1} << (bits - 1)) : 0;
  const int64_t largest = static_cast<int64_t>(~uint64_t{0} >> (64 - bits + hasSign));
  const V below = select(lt(x, low), integer(exact, smallest), exact);
  return select(le(end, x), integer(exact, largest), below);
}

// If x is a part() or everySecond() of two joined vectors, the words of which are put beside zeros:
// once the halves lie in the lower and the upper words of each 128 bits, that is an instruction for
// each.
llvm::Value* LlvmBuilder::widenPart(llvm::Value* x) {
  constexpr int kWords = 2 * ir::kLanes, kGroup = 4;  // words of 64 bits
  auto* part = llvm::dyn_cast<llvm::ShuffleVectorInst>(x);
  if (part == nullptr) return nullptr;
  llvm::Value* whole = part->getOperand(0);
  if (llvm::cast<llvm::FixedVectorType>(whole->getType())->getNumElements() != kWords)
    return nullptr;
  if (part->getMaskValue(1) - part->getMaskValue(0) == 2) {
    auto* words = llvm::FixedVectorType::get(builder_.getInt32Ty(), kWords / 2);
    llvm::Value* pairs = builder_.CreateBitCast(whole, words);
    return part->getMaskValue(0) == 0 ? builder_.CreateShl(pairs, 16)
                                      : builder_.CreateAnd(pairs, uint64_t{0xffff0000});
  }
  const bool upper = part->getMaskValue(0) != 0;
  llvm::Type* groups = llvm::FixedVectorType::get(builder_.getInt64Ty(), kWords / kGroup);
  llvm::Value* halves = builder_.CreateBitCast(
      builder_.CreateShuffleVector(builder_.CreateBitCast(whole, groups), {0, 4, 1, 5, 2, 6, 3, 7}),
      whole->getType());
  llvm::SmallVector<int> beside;
  for (int i = 0; i < kWords; i += 2) {
    const int word = i / 2 / kGroup * 2 * kGroup + i / 2 % kGroup + (upper ? kGroup : 0);
    beside.insert(beside.end(), {i, kWords + word});
  }
  return builder_.CreateShuffleVector(llvm::Constant::getNullValue(whole->getType()), halves,
                                      beside);
}

V LlvmBuilder::widenFloat(V x) {
  llvm::Type* to = likeType(x, builder_.getFloatTy());
  if (x.type == dtype::f16) {
    llvm::Value* half = builder_.CreateBitCast(x.value, likeType(x, builder_.getHalfTy()));
    return {builder_.CreateFPExt(half, to), dtype::f32};
  }
  if (llvm::Value* wide = widenPart(x.value)) return {builder_.CreateBitCast(wide, to), dtype::f32};
  llvm::Value* wide = builder_.CreateZExt(x.value, likeType(x, builder_.getInt32Ty()));
  return {builder_.CreateBitCast(builder_.CreateShl(wide, 16), to), dtype::f32};
}

V LlvmBuilder::narrowFloat(V x, dtype type) {
  if (type == dtype::bf16) return roundToBfloat16(x);
  llvm::Value* half = builder_.CreateFPTrunc(x.value, likeType(x, builder_.getHalfTy()));
  return {builder_.CreateBitCast(half, likeType(x, builder_.getInt16Ty())), type};
}

// As bfloat16 of fl/base/Types.h: to nearest even, NaN made quiet.
V LlvmBuilder::roundToBfloat16(V x) {
  const V word{bits(x).value, dtype::u32};
  const V odd = bitAnd(lshr(word, integer(word, 16)), integer(word, 1));
  const V rounded = add(add(word, integer(word, 0x7fff)), odd);
  const V quiet = bitOr(word, integer(word, 0x400000));
  const V high = lshr(select(ne(x, x), quiet, rounded), integer(word, 16));
  return {builder_.CreateTrunc(high.value, likeType(x, builder_.getInt16Ty())), dtype::bf16};
}

// The instructions do the same but for denormals, which they take as 0.
V LlvmBuilder::roundToBfloat16(const std::vector<V>& vectors, bool normal) {
  constexpr int kDenormal = 1 << 5;
  const auto call = [&](llvm::Intrinsic::ID id, llvm::ArrayRef<llvm::Value*> args) {
    return builder_.CreateIntrinsic(id, {}, args);
  };
  llvm::Value* words = vectors.size() == 1 ? call(llvm::Intrinsic::x86_avx512bf16_cvtneps2bf16_512,
                                                  {vectors[0].value})
                                           : call(llvm::Intrinsic::x86_avx512bf16_cvtne2ps2bf16_512,
                                                  {vectors[1].value, vectors[0].value});
  const V rounded{
      builder_.CreateBitCast(words, words->getType()->getWithNewType(builder_.getInt16Ty())),
      dtype::bf16};
  if (normal) return rounded;
  const auto denormal = [&] {
    std::vector<V> masks;
    for (V x : vectors)
      masks.push_back(mask(call(llvm::Intrinsic::x86_avx512_fpclass_ps_512,
                                {x.value, builder_.getInt32(kDenormal)})));
    return join(masks);
  };
  const auto exact = [&] {
    std::vector<V> parts;
    for (V x : vectors) parts.push_back(roundToBfloat16(x));
    return join(parts);
  };
  const auto same = [&] { return rounded; };
  // Most vectors hold no 0, which is cheaper to find out.
  const V number{rounded.value, dtype::u16};
  const V zero = eq(bitAnd(number, integer(number, 0x7fff)), integer(number, 0));
  return rarely(zero, same, [&] { return rarely(denormal(), same, exact); });
}

V LlvmBuilder::join(const std::vector<V>& parts) {
  if (parts.size() == 1) return parts[0];
  return {llvm::concatenateVectors(builder_, {parts[0].value, parts[1].value}), parts[0].type};
}

V LlvmBuilder::part(V joined, int u) {
  const auto lanes = llvm::createSequentialMask(u * ir::kLanes, ir::kLanes, 0);
  return {builder_.CreateShuffleVector(joined.value, lanes), joined.type};
}

V LlvmBuilder::everySecond(V joined, int u) {
  const auto lanes = llvm::createStrideMask(u, 2, ir::kLanes);
  return {builder_.CreateShuffleVector(joined.value, lanes), joined.type};
}

}  // namespace fl::codegen::cpu
