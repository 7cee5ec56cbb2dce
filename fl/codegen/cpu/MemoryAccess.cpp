#include "fl/codegen/cpu/MemoryAccess.h"

#include <llvm/Analysis/VectorUtils.h>
#include <llvm/IR/IntrinsicsX86.h>

#include <algorithm>

namespace fl::codegen::cpu {

MemoryAccess::MemoryAccess(LlvmBuilder& math, int lanes, bool masksBytes, ir::Stores stores,
                           int64_t ahead)
    : math_(math),
      builder_(math.ir()),
      masksBytes_(masksBytes),
      lanes_(lanes),
      takesRows_(stores == ir::Stores::Across),
      streams_(stores == ir::Stores::Streaming || stores == ir::Stores::Aligning),
      ahead_(streams_ || stores == ir::Stores::Fetching ? ahead : 0) {
  buffer_ = builder_.CreateAlloca(llvm::FixedVectorType::get(builder_.getInt64Ty(), ir::kLanes));
  buffer_->setAlignment(llvm::Align(64));
}

llvm::VectorType* MemoryAccess::vectorType(dtype type) {
  return llvm::FixedVectorType::get(math_.elementType(type), lanes_);
}

llvm::Value* MemoryAccess::address(const ElementRow& row, llvm::Value* index) {
  if (row.stride == nullptr)
    return builder_.CreateGEP(math_.elementType(row.type), row.begin, index);
  return builder_.CreatePtrAdd(row.begin, builder_.CreateMul(index, row.stride));
}

llvm::Value* MemoryAccess::addresses(const ElementRow& row, llvm::Value* index) {
  llvm::Value* strides = builder_.CreateVectorSplat(lanes_, row.stride);
  llvm::Value* along = builder_.CreateMul(builder_.CreateStepVector(strides->getType()), strides);
  return builder_.CreatePtrAdd(address(row, index), along);
}

LlvmValue MemoryAccess::loadOne(llvm::Value* address, dtype type) {
  return {builder_.CreateAlignedLoad(math_.elementType(type), address, alignOf(type)), type};
}

void MemoryAccess::storeOne(LlvmValue value, llvm::Value* address) {
  builder_.CreateAlignedStore(math_.bytes(value).value, address, alignOf(value.type));
}

llvm::Value* MemoryAccess::fetchAhead(llvm::Value* address, bool toWrite, bool isReversed) {
  if (ahead_ == 0) return address;
  llvm::Value* ahead = builder_.getInt64(isReversed ? -ahead_ : ahead_);
  builder_.CreateIntrinsic(llvm::Intrinsic::prefetch, {address->getType()},
                           {builder_.CreatePtrAdd(address, ahead), builder_.getInt32(toWrite),
                            builder_.getInt32(ahead_ < 4096 ? 3 : 2), builder_.getInt32(1)});
  return address;
}

void MemoryAccess::copyActive(const ElementRow& row, const Lanes& lanes, bool toRow) {
  llvm::Type* type = math_.elementType(row.type);
  llvm::Value* count =
      builder_.CreateBinaryIntrinsic(llvm::Intrinsic::smin, lanes.rest, builder_.getInt64(lanes_));
  const auto copy = [&](llvm::Value* i, int elements) {
    llvm::Value* element = address(row, builder_.CreateAdd(lanes.index, i));
    llvm::Value* place = builder_.CreateGEP(type, buffer_, i);
    llvm::Type* piece = elements == 1 ? type : llvm::FixedVectorType::get(type, elements);
    llvm::Value* held =
        builder_.CreateAlignedLoad(piece, toRow ? place : element, alignOf(row.type));
    builder_.CreateAlignedStore(held, toRow ? element : place, alignOf(row.type));
  };
  for (int size = row.stride ? 1 : lanes_; size > 0; size /= 2) {
    llvm::Value* begin = builder_.CreateAnd(count, builder_.getInt64(row.stride ? 0 : -2 * size));
    llvm::Value* end = builder_.CreateAnd(count, builder_.getInt64(-size));
    emitEach(builder_, begin, end, size, [&](llvm::Value* i) { copy(i, size); });
  }
}

LlvmValue MemoryAccess::load(const ElementRow& row, const Lanes& lanes) {
  if (lanes.mask == nullptr)
    return row.stride ? loadStrided(row, lanes) : loadWhole(row, lanes, lanes_);
  llvm::VectorType* type = vectorType(row.type);
  llvm::Constant* zero = llvm::Constant::getNullValue(type);
  if (row.stride == nullptr && (masksBytes_ || getTypeSize(row.type) >= 4)) {
    llvm::Value* from = address(row, lanes.index);
    return {builder_.CreateMaskedLoad(type, from, alignOf(row.type), lanes.mask, zero), row.type};
  }
  if (masksBytes_ && getTypeSize(row.type) >= 4)
    return {builder_.CreateMaskedGather(type, addresses(row, lanes.index), alignOf(row.type),
                                        lanes.mask, zero),
            row.type};
  const auto copied = [&]() -> llvm::Value* {
    builder_.CreateAlignedStore(zero, buffer_, alignOf(row.type));
    copyActive(row, lanes, false);
    return builder_.CreateAlignedLoad(type, buffer_, alignOf(row.type));
  };
  if (row.stride) return {copied(), row.type};
  // Within a page what lies behind the row may be read, too.
  const auto whole = [&] {
    return builder_.CreateSelect(lanes.mask, loadWhole(row, lanes, lanes_).value, zero);
  };
  const uint64_t page = 4096, bytes = lanes_ * getTypeSize(row.type);
  llvm::Value* from = builder_.CreatePtrToInt(address(row, lanes.index), builder_.getInt64Ty());
  llvm::Value* place = builder_.CreateAnd(from, builder_.getInt64(page - 1));
  llvm::Value* isInside = builder_.CreateICmpULE(place, builder_.getInt64(page - bytes));
  return {emitChoice(builder_, isInside, whole, copied), row.type};
}

LlvmValue MemoryAccess::loadWhole(const ElementRow& row, const Lanes& lanes, int count) {
  auto* type = llvm::FixedVectorType::get(math_.elementType(row.type), count);
  llvm::Value* from = fetchAhead(address(row, lanes.index), false);
  return {builder_.CreateAlignedLoad(type, from, alignOf(row.type)), row.type};
}

// Where there are gathers, they are of words of 32 bits, each the whole of one in memory: no page
// ends within it.
llvm::Value* MemoryAccess::loadEach(llvm::Value* table, llvm::Value* places, dtype type) {
  const int64_t size = static_cast<int64_t>(getTypeSize(type)), word = 4;
  llvm::Value* from = builder_.CreateGEP(math_.elementType(type), table, places);
  if (masksBytes_ && size <= word) {
    const auto number = [&](int64_t value) {
      return builder_.CreateVectorSplat(lanes_, builder_.getInt64(value));
    };
    llvm::Value* address = builder_.CreatePtrToInt(from, places->getType());
    llvm::Value* begin = builder_.CreateAnd(address, number(-word));
    llvm::Type* words = vectorType(dtype::u32);
    llvm::Value* held = builder_.CreateMaskedGather(
        words, builder_.CreateIntToPtr(begin, from->getType()), llvm::Align(word));
    llvm::Value* bits = builder_.CreateShl(builder_.CreateAnd(address, number(word - size)), 3);
    held = builder_.CreateLShr(held, builder_.CreateTrunc(bits, words));
    held = builder_.CreateTrunc(held, words->getWithNewBitWidth(8 * size));
    return builder_.CreateBitCast(held, vectorType(type));
  }
  llvm::Value* vector = llvm::PoisonValue::get(vectorType(type));
  for (int i = 0; i < lanes_; ++i) {
    llvm::Value* one = loadOne(builder_.CreateExtractElement(from, i), type).value;
    vector = builder_.CreateInsertElement(vector, one, i);
  }
  return vector;
}

// The strides of a flip, of every second element and of short rows side by side are found when the
// code runs.
LlvmValue MemoryAccess::loadStrided(const ElementRow& row, const Lanes& lanes) {
  llvm::VectorType* type = vectorType(row.type);
  const int64_t size = static_cast<int64_t>(getTypeSize(row.type));
  llvm::Value* from = address(row, lanes.index);
  const auto whole = [&](int64_t element) {
    llvm::Value* begin = builder_.CreatePtrAdd(from, builder_.getInt64(element * size));
    fetchAhead(begin, false, element < 0);
    return builder_.CreateAlignedLoad(type, begin, alignOf(row.type));
  };
  const auto reversed = [&] { return builder_.CreateVectorReverse(whole(1 - lanes_)); };
  const auto every = [&](int step) -> llvm::Value* {
    const auto begin = [&](int v) { return v == step - 1 ? (lanes_ - 1) * v : lanes_ * v; };
    llvm::SmallVector<llvm::Value*> parts;  // the last vector ends with what is picked
    for (int v = 0; v < step; v += 2) {
      llvm::SmallVector<int> picked;
      for (int i = v * lanes_; i < (v + 2) * lanes_; i += step)
        picked.push_back(i < (v + 1) * lanes_ ? i - begin(v) : lanes_ + i - begin(v + 1));
      parts.push_back(builder_.CreateShuffleVector(whole(begin(v)), whole(begin(v + 1)), picked));
    }
    return llvm::concatenateVectors(builder_, parts);
  };
  const auto each = [&]() -> llvm::Value* {
    llvm::Value* vector = llvm::PoisonValue::get(type);
    llvm::Value* element = from;
    for (int i = 0; i < lanes_; ++i) {
      if (i > 0) element = builder_.CreatePtrAdd(element, row.stride);
      vector = builder_.CreateInsertElement(vector, loadOne(element, row.type).value, i);
    }
    return vector;
  };
  const auto hasStride = [&](int64_t elements) {
    return builder_.CreateICmpEQ(row.stride, builder_.getInt64(elements * size));
  };
  const auto other = [&] {
    if (!takesRows_) return each();
    return emitChoice(builder_, hasStride(4), [&] { return every(4); }, each);
  };
  const auto forward = [&] {
    return emitChoice(builder_, hasStride(2), [&] { return every(2); }, other);
  };
  return {emitChoice(builder_, hasStride(-1), reversed, forward), row.type};
}

void MemoryAccess::storeContiguous(LlvmValue value, llvm::Value* address) {
  if (!streams_) return storeOne(value, fetchAhead(address, true));
  const uint64_t bytes = std::min<uint64_t>(64, lanes_ * getTypeSize(value.type));
  llvm::StoreInst* store = builder_.CreateAlignedStore(value.value, address, llvm::Align(bytes));
  llvm::Metadata* one = llvm::ConstantAsMetadata::get(builder_.getInt32(1));
  store->setMetadata(llvm::LLVMContext::MD_nontemporal,
                     llvm::MDNode::get(builder_.getContext(), one));
}

void MemoryAccess::finish() {
  if (streams_) builder_.CreateIntrinsic(llvm::Intrinsic::x86_sse_sfence, {}, {});
}

void MemoryAccess::store(LlvmValue value, const ElementRow& row, const Lanes& lanes) {
  value = math_.bytes(value);
  llvm::Value* to = lanes.mask == nullptr ? address(row, lanes.index) : nullptr;
  if (lanes.mask == nullptr && row.stride == nullptr) {
    storeContiguous(value, to);
  } else if (lanes.mask == nullptr) {
    for (int i = 0; i < lanes_; ++i) {
      if (i > 0) to = builder_.CreatePtrAdd(to, row.stride);
      storeOne({builder_.CreateExtractElement(value.value, i), row.type}, to);
    }
  } else if (row.stride == nullptr && masksBytes_) {
    builder_.CreateMaskedStore(value.value, address(row, lanes.index), alignOf(row.type),
                               lanes.mask);
  } else {
    // Processors that mask no bytes may take long to write lanes under a mask.
    builder_.CreateAlignedStore(value.value, buffer_, alignOf(row.type));
    copyActive(row, lanes, true);
  }
}

}  // namespace fl::codegen::cpu
