#include "fl/codegen/cpu/TableLookup.h"

#include <llvm/IR/DerivedTypes.h>

#include <iterator>
#include <numeric>

namespace fl::codegen::cpu {

using ir::kLanes;

TableLookup::TableLookup(LlvmBuilder& math, MemoryAccess& memory, llvm::Value* badIndex)
    : math_(math), memory_(memory), builder_(math.ir()), badIndex_(badIndex) {
  result_ = builder_.CreateAlloca(builder_.getInt64Ty());
  builder_.CreateStore(builder_.getInt64(-1), result_);
}

llvm::Value* TableLookup::result() { return builder_.CreateLoad(builder_.getInt64Ty(), result_); }

LlvmValue TableLookup::lookUp(int number, llvm::Value* table, dtype type,
                              const std::vector<LlvmValue>& args, llvm::Value* mask) {
  llvm::Value* index = args[1].value;
  llvm::Value* bound = args[2].value;
  const bool vector = index->getType()->isVectorTy();
  llvm::Value* isBad = builder_.CreateICmpUGE(index, bound);
  if (mask != nullptr) isBad = builder_.CreateAnd(isBad, mask);
  llvm::Value* anyBad = vector ? builder_.CreateOrReduce(isBad) : isBad;

  llvm::Function* function = builder_.GetInsertBlock()->getParent();
  auto* found = llvm::BasicBlock::Create(builder_.getContext(), "bad", function);
  auto* next = llvm::BasicBlock::Create(builder_.getContext(), "looked", function);
  builder_.CreateCondBr(anyBad, found, next);
  builder_.SetInsertPoint(found);
  if (vector) {
    llvm::Value* bits = builder_.CreateBitCast(isBad, builder_.getInt16Ty());
    llvm::Value* lane =
        builder_.CreateBinaryIntrinsic(llvm::Intrinsic::cttz, bits, builder_.getTrue());
    keep(number, builder_.CreateExtractElement(index, lane),
         builder_.CreateExtractElement(bound, lane));
  } else {
    keep(number, index, bound);
  }
  builder_.CreateBr(next);
  builder_.SetInsertPoint(next);

  // Lanes that do not exist may hold a good index, but lie beyond the table in another dimension.
  llvm::Value* isGood = builder_.CreateICmpULT(index, bound);
  if (mask != nullptr) isGood = builder_.CreateAnd(isGood, mask);
  llvm::Value* element = builder_.CreateSelect(
      isGood, args[0].value, llvm::Constant::getNullValue(args[0].value->getType()));
  if (vector) return loadLanes(table, type, element);
  return memory_.loadOne(builder_.CreateGEP(math_.elementType(type), table, element), type);
}

// Neighbours in the result are often neighbours in the table: lines that are looked up whole.
LlvmValue TableLookup::loadLanes(llvm::Value* table, dtype type, llvm::Value* elements) {
  llvm::Type* held = math_.elementType(type);
  auto* vectorType = llvm::FixedVectorType::get(held, kLanes);
  uint64_t numbers[kLanes];
  std::iota(std::begin(numbers), std::end(numbers), 0);
  llvm::Value* first = builder_.CreateExtractElement(elements, uint64_t{0});
  llvm::Value* line =
      builder_.CreateAdd(builder_.CreateVectorSplat(kLanes, first),
                         llvm::ConstantDataVector::get(builder_.getContext(), numbers));
  llvm::Value* isLine = builder_.CreateAndReduce(builder_.CreateICmpEQ(elements, line));

  const auto whole = [&]() -> llvm::Value* {
    llvm::Value* from = builder_.CreateGEP(held, table, first);
    return builder_.CreateAlignedLoad(vectorType, from, llvm::Align(getTypeSize(type)));
  };
  const auto each = [&]() -> llvm::Value* {
    llvm::Value* vector = llvm::PoisonValue::get(vectorType);
    for (uint64_t i = 0; i < kLanes; ++i) {
      llvm::Value* at = builder_.CreateExtractElement(elements, i);
      llvm::Value* from = builder_.CreateGEP(held, table, at);
      vector = builder_.CreateInsertElement(vector, memory_.loadOne(from, type).value, i);
    }
    return vector;
  };
  return {emitChoice(builder_, isLine, whole, each), type};
}

void TableLookup::keep(int number, llvm::Value* index, llvm::Value* bound) {
  llvm::Type* word = builder_.getInt64Ty();
  const auto keepFirst = [&](llvm::Value* isFirst, llvm::Value* value, llvm::Value* place) {
    llvm::Value* before = builder_.CreateLoad(word, place);
    builder_.CreateStore(builder_.CreateSelect(isFirst, value, before), place);
  };
  llvm::Value* isFirst = builder_.CreateICmpEQ(result(), builder_.getInt64(-1));
  keepFirst(isFirst, index, badIndex_);
  keepFirst(isFirst, bound, builder_.CreateConstGEP1_64(word, badIndex_, 1));
  keepFirst(isFirst, builder_.getInt64(number), result_);
}

}  // namespace fl::codegen::cpu
