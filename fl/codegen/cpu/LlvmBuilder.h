// The meaning of the op table in LLVM IR: a MeaningBuilder whose values are llvm::Values.
//
// A value is a scalar or a vector of any length; all operations work on both. No fast-math flag is
// ever set and fma is emitted only where the vector math asks for it, so that every executor
// computes the same bits. Relies on fl/ir/Meaning.h; KernelEmitter.h builds loops around it.
#pragma once

#include <llvm/ADT/DenseMap.h>
#include <llvm/IR/IRBuilder.h>

#include <array>
#include <vector>

#include "fl/codegen/cpu/Loops.h"
#include "fl/ir/Meaning.h"
#include "fl/kernel/Kernel.h"

namespace fl::codegen::cpu {

// A b8 value is held as i8 or, as comparisons make it, as i1: a mask. Either form is accepted
// everywhere, and bytes() or truth() convert only where the other form is needed. 16-bit floats are
// held as i16.
struct LlvmValue {
  llvm::Value* value = nullptr;
  dtype type = dtype::f32;
};

class LlvmBuilder : public ir::MeaningBuilder<LlvmBuilder> {
 public:
  using V = LlvmValue;
  using Instruction = llvm::Instruction;
  using CmpInst = llvm::CmpInst;
  static constexpr bool kStaticTypes = false;

  // `hasAvx512`: the target has the instructions of AVX-512 on whole registers.
  LlvmBuilder(llvm::IRBuilder<>& builder, bool hasAvx512)
      : builder_(builder), hasAvx512_(hasAvx512) {}

  llvm::IRBuilder<>& ir() { return builder_; }
  // How an element of `type` is held in memory and in registers.
  llvm::Type* elementType(dtype type);
  // A number given by its stored bits.
  V constant(const Number& number);
  // The same number in all lanes.
  V spread(V x, int lanes) { return {builder_.CreateVectorSplat(lanes, x.value), x.type}; }
  V bytes(V x);
  llvm::Value* truth(V x) { return isMask(x) ? x.value : builder_.CreateIsNotNull(x.value); }
  V cast(V x, dtype type);
  // One or two vectors of f32 cast to bf16, joined, by AVX512_BF16; `normal` if none is denormal.
  // And the u-th of them.
  V roundToBfloat16(const std::vector<V>& vectors, bool normal);
  V part(V joined, int u);
  // Every second element from the u-th on: what is joined is widened by an instruction each.
  V everySecond(V joined, int u);
  // The value of an Apply (fl/kernel/Kernel.h).
  V apply(const ir::KernelValue& value, const std::vector<V>& args);
  // Joined vectors of Random's numbers at `first` and the indices behind it; `first` is a
  // multiple of numbersInBlock(type). Every block is computed once for all of its numbers.
  V randomRun(dtype type, V seed, V offset, V first, int vectors);
  static int numbersInBlock(dtype type) { return type == dtype::f64 ? 2 : 4; }
  // op(x, y) of a reduction.
  V combine(ir::Op op, V x, V y) { return meaning(op, x, y, y); }

  // The primitives that fl/ir/Meaning.h lists.
  V real(V like, double number);
  V integer(V like, int64_t number);
  bool isDouble(V x) const { return x.type == dtype::f64; }
  bool isFloat(V x) const { return isFloating(x.type); }
  bool isShort() const { return isShort_; }
  bool isSigned(V x) const { return fl::isSigned(x.type); }
  int width(V x) const { return static_cast<int>(getTypeSize(x.type)) * 8; }

  V add(V x, V y) { return binary(isFloat(x) ? Instruction::FAdd : Instruction::Add, x, y); }
  V sub(V x, V y) { return binary(isFloat(x) ? Instruction::FSub : Instruction::Sub, x, y); }
  V mul(V x, V y);
  V divide(V x, V y) { return {builder_.CreateFDiv(x.value, y.value), x.type}; }
  V fma(V x, V y, V z);
  V negate(V x) { return {builder_.CreateFNeg(x.value), x.type}; }
  V magnitude(V x) { return unary(llvm::Intrinsic::fabs, x); }
  V sqrt(V x) { return unary(llvm::Intrinsic::sqrt, x); }
  V floor(V x) { return unary(llvm::Intrinsic::floor, x); }
  V ceil(V x) { return unary(llvm::Intrinsic::ceil, x); }
  V rint(V x) { return unary(llvm::Intrinsic::rint, x); }
  V divideInteger(V x, V y);
  V remainderInteger(V x, V y);

  V bitAnd(V x, V y) { return binary(Instruction::And, x, y); }
  V bitOr(V x, V y) { return binary(Instruction::Or, x, y); }
  V bitXor(V x, V y) { return binary(Instruction::Xor, x, y); }
  V bitNot(V x) { return {builder_.CreateNot(bytes(x).value), x.type}; }
  V shl(V x, V count) { return binary(Instruction::Shl, x, count); }
  V lshr(V x, V count) { return binary(Instruction::LShr, x, count); }
  V ashr(V x, V count) { return binary(Instruction::AShr, x, count); }

  V lt(V x, V y) { return compare(CmpInst::FCMP_OLT, CmpInst::ICMP_SLT, CmpInst::ICMP_ULT, x, y); }
  V le(V x, V y) { return compare(CmpInst::FCMP_OLE, CmpInst::ICMP_SLE, CmpInst::ICMP_ULE, x, y); }
  V eq(V x, V y);
  V ne(V x, V y);
  V maskAnd(V x, V y) { return mask(builder_.CreateAnd(truth(x), truth(y))); }
  V maskOr(V x, V y) { return mask(builder_.CreateOr(truth(x), truth(y))); }
  V maskNot(V x) { return mask(builder_.CreateNot(truth(x))); }
  V select(V condition, V x, V y);
  // The base's definition, its conditions nested so that x86 takes one max and one blend.
  V max(V x, V y) { return extremum(x, y, lt(y, x)); }
  V min(V x, V y) { return extremum(x, y, lt(x, y)); }

  V bits(V x) { return bitCast(x, isDouble(x) ? dtype::s64 : dtype::s32); }
  V fromBits(V x) { return bitCast(x, x.type == dtype::s64 ? dtype::f64 : dtype::f32); }
  template <dtype type>
  V castTo(V x) {
    return cast(x, type);
  }
  // Branches over rare() where no lane needs it.
  V rarely(V mask, llvm::function_ref<V()> usual, llvm::function_ref<V()> rare);
  V scaled(V x, V n, llvm::function_ref<V()> usual);
  // A loop.
  template <int times, size_t n, class Body>
  std::array<V, n> repeat(const std::array<V, n>& start, Body body) {
    const auto valuesOf = [](const std::array<V, n>& state) {
      Values values;
      for (const V& each : state) values.push_back(each.value);
      return values;
    };
    const auto stateOf = [&](const Values& values) {
      std::array<V, n> state = start;
      for (size_t i = 0; i < n; ++i) state[i].value = values[i];
      return state;
    };
    return stateOf(
        emitFor(builder_, builder_.getInt64(0), builder_.getInt64(times), 1, valuesOf(start),
                [&](llvm::Value*, const Values& now) { return valuesOf(body(stateOf(now))); }));
  }

 private:
  static bool isMask(V x) { return x.value->getType()->getScalarType()->isIntegerTy(1); }
  static bool isNull(V x);
  static V mask(llvm::Value* value) { return {value, dtype::b8}; }
  V meaning(ir::Op op, V x, V y, V z);
  // `element` with as many lanes as x has.
  static llvm::Type* likeType(V x, llvm::Type* element) {
    return x.value->getType()->getWithNewType(element);
  }
  V bitCast(V x, dtype type) {
    return {builder_.CreateBitCast(x.value, likeType(x, elementType(type))), type};
  }
  V unary(llvm::Intrinsic::ID id, V x) {
    return {builder_.CreateUnaryIntrinsic(id, x.value), x.type};
  }
  V binary(Instruction::BinaryOps op, V x, V y);
  V compare(CmpInst::Predicate ifFloat, CmpInst::Predicate ifSigned, CmpInst::Predicate ifUnsigned,
            V x, V y);
  V extremum(V x, V y, V takeX);

  V widenFloat(V x);
  llvm::Value* widenPart(llvm::Value* x);
  V narrowFloat(V x, dtype type);
  V roundToBfloat16(V x);
  V join(const std::vector<V>& parts);
  V integerToReal(V x, dtype type);
  V realToInteger(V x, dtype type);
  // x as a float that holds every number of its type up to 32 bits.
  V exactReal(V x);
  V truncate(V x, dtype type);

  llvm::Value* kept(llvm::Constant* constant);

  llvm::IRBuilder<>& builder_;
  const bool hasAvx512_;
  bool inRareCode_ = false;
  bool isShort_ = false;                                // of the value that is applied
  llvm::DenseMap<llvm::Constant*, llvm::Value*> kept_;  // by constant, loaded where functions begin
};

}  // namespace fl::codegen::cpu
