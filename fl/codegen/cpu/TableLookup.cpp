#include "fl/codegen/cpu/TableLookup.h"

namespace fl::codegen::cpu {

using ir::kLanes;

TableLookup::TableLookup(LlvmBuilder& math, MemoryAccess& memory, llvm::Value* badIndex)
    : math_(math), memory_(memory), builder_(math.ir()), badIndex_(badIndex) {
  result_ = builder_.CreateAlloca(builder_.getInt64Ty());
  builder_.CreateStore(builder_.getInt64(-1), result_);
}

// Neighbours in the result are often neighbours in the table: lines that are looked up whole. Where
// these are neighbours of the index as well, the first and the last tell whether all are good.
LlvmValue TableLookup::lookUp(int number, llvm::Value* table, dtype type,
                              const std::vector<LlvmValue>& args, const Lanes* lanes, bool isGood) {
  llvm::Type* held = math_.elementType(type);
  auto* vectorType = llvm::FixedVectorType::get(held, kLanes);
  const auto run = [&](llvm::Value* first) -> llvm::Value* {
    llvm::Value* from = builder_.CreateGEP(held, table, first);
    return builder_.CreateAlignedLoad(vectorType, from, llvm::Align(getTypeSize(type)));
  };
  llvm::Value *index = args[1].value, *bound = args[2].value;
  if (!index->getType()->isVectorTy()) {
    const auto found = [&]() -> llvm::Value* {
      llvm::Value* first = args[0].value;
      if (!lanes) return memory_.loadOne(builder_.CreateGEP(held, table, first), type).value;
      if (!lanes->mask) return run(first);
      return memory_.load({table, nullptr, type}, {first, lanes->mask, lanes->rest}).value;
    };
    llvm::Value* none = llvm::Constant::getNullValue(lanes ? vectorType : held);
    return {isGood ? found() : check(number, index, bound, found, none), type};
  }
  llvm::Value* mask = lanes->mask;
  const bool isIndex = mask == nullptr && args[0].value == index;
  llvm::Value* elements = isIndex ? index : goodElements(number, args, mask);
  llvm::Value* first = builder_.CreateExtractElement(elements, uint64_t{0});
  llvm::Value* line = builder_.CreateAdd(builder_.CreateVectorSplat(kLanes, first),
                                         builder_.CreateStepVector(elements->getType()));
  llvm::Value* isLine = builder_.CreateAndReduce(builder_.CreateICmpEQ(elements, line));
  if (isIndex) {
    llvm::Value* most = builder_.CreateExtractElement(bound, uint64_t{0});
    for (uint64_t lane : {0, kLanes - 1}) {
      llvm::Value* one = builder_.CreateAdd(first, builder_.getInt64(lane));
      isLine = builder_.CreateAnd(isLine, builder_.CreateICmpULT(one, most));
    }
  }
  const auto each = [&] {
    return memory_.loadEach(table, isIndex ? goodElements(number, args, mask) : elements, type);
  };
  return {emitChoice(builder_, isLine, [&] { return run(first); }, each), type};
}

llvm::Value* TableLookup::check(int number, llvm::Value* index, llvm::Value* bound,
                                llvm::function_ref<llvm::Value*()> good, llvm::Value* bad) {
  return emitChoice(builder_, builder_.CreateICmpULT(index, bound), good, [&] {
    keep(number, index, bound);
    return bad;
  });
}

// Lanes that do not exist may hold a good index, but lie beyond the table in another dimension.
llvm::Value* TableLookup::goodElements(int number, const std::vector<LlvmValue>& args,
                                       llvm::Value* mask) {
  llvm::Value *element = args[0].value, *index = args[1].value, *bound = args[2].value;
  const auto elementIf = [&](llvm::Value* isGood) {
    return builder_.CreateSelect(isGood, element, llvm::Constant::getNullValue(element->getType()));
  };
  llvm::Value* isBad = builder_.CreateICmpUGE(index, bound);
  if (mask != nullptr) {
    isBad = builder_.CreateAnd(isBad, mask);
    element = elementIf(mask);
  }
  const auto some = [&]() -> llvm::Value* {
    llvm::Value* bits = builder_.CreateBitCast(isBad, builder_.getInt16Ty());
    llvm::Value* lane =
        builder_.CreateBinaryIntrinsic(llvm::Intrinsic::cttz, bits, builder_.getTrue());
    keep(number, builder_.CreateExtractElement(index, lane),
         builder_.CreateExtractElement(bound, lane));
    return elementIf(builder_.CreateNot(isBad));
  };
  return emitChoice(builder_, builder_.CreateOrReduce(isBad), some, [&] { return element; });
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
