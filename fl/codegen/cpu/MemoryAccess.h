// Loads and stores of elements along axis 0, for every element type and stride class.
//
// Full vectors are plain or, under a stride, one access an element; a vector with a mask is a
// masked access, or a gather, where the target has one and goes through a buffer on the stack
// otherwise. Nothing is assumed about aliasing: accesses keep their order. Relies on Loops.h; used
// by KernelEmitter.h.
#pragma once

#include "fl/codegen/cpu/LlvmBuilder.h"
#include "fl/kernel/Artifact.h"

namespace fl::codegen::cpu {

// The elements of a vector along axis 0, from `index` (i64) on.
struct Lanes {
  llvm::Value* index = nullptr;
  // Null if all elements exist; else a vector of i1, true for the first `rest` of them.
  llvm::Value* mask = nullptr;
  llvm::Value* rest = nullptr;  // i64, at least 1; it may exceed the vector
};

// The elements of an operand along axis 0.
struct ElementRow {
  llvm::Value* begin = nullptr;   // address of the element at index 0
  llvm::Value* stride = nullptr;  // bytes from one to the next; null if they are contiguous
  dtype type = dtype::f32;
};

class MemoryAccess {
 public:
  // Made at the start of a function. `masksBytes`: the target masks elements of 8 and 16 bits too,
  // and gathers (AVX-512).
  // `ahead`: bytes from what is loaded to what code for more than the caches hold asks for; 0: for
  // nothing.
  MemoryAccess(LlvmBuilder& math, int lanes, bool masksBytes, ir::Stores stores, int64_t ahead);

  LlvmValue loadOne(llvm::Value* address, dtype type);
  void storeOne(LlvmValue value, llvm::Value* address);

  LlvmValue load(const ElementRow& row, const Lanes& lanes);
  // `count` elements from lanes.index on, contiguous and without a mask.
  LlvmValue loadWhole(const ElementRow& row, const Lanes& lanes, int count);
  // The elements of `table` at the places that a vector of i64 gives.
  llvm::Value* loadEach(llvm::Value* table, llvm::Value* places, dtype type);
  void store(LlvmValue value, const ElementRow& row, const Lanes& lanes);
  // The same through the caches in any case, without stride and mask.
  void keep(LlvmValue value, const ElementRow& row, const Lanes& lanes) {
    storeOne(value, address(row, lanes.index));
  }
  // Whether store() takes a longer vector too: the elements from lanes.index on, without a mask.
  bool storesJoined(const ElementRow& row, const Lanes& lanes) const {
    return lanes.mask == nullptr && row.stride == nullptr && !streams_;
  }
  // Before the function returns: what was stored is seen by whoever sees that it has returned.
  void finish();

 private:
  llvm::VectorType* vectorType(dtype type);
  llvm::Align alignOf(dtype type) const { return llvm::Align(getTypeSize(type)); }
  llvm::Value* address(const ElementRow& row, llvm::Value* index);
  // Of a vector under a stride.
  llvm::Value* addresses(const ElementRow& row, llvm::Value* index);
  // The address; code for more than the caches hold asks for a line some vectors behind it, or
  // in front of it where addresses fall, as processors see too few loads ahead where much is
  // computed in between. What lies far ahead comes into the cache of level 2, which keeps it until
  // then.
  llvm::Value* fetchAhead(llvm::Value* address, bool toWrite, bool isReversed = false);
  LlvmValue loadStrided(const ElementRow& row, const Lanes& lanes);
  void storeContiguous(LlvmValue value, llvm::Value* address);
  // Between the row and the buffer, in vectors of powers of two if it is contiguous.
  void copyActive(const ElementRow& row, const Lanes& lanes, bool toRow);

  LlvmBuilder& math_;
  llvm::IRBuilder<>& builder_;
  const bool masksBytes_;
  const int lanes_;
  const bool takesRows_;      // side by side
  const bool streams_;        // whole vectors
  const int64_t ahead_;       // 0: nothing is asked for
  llvm::AllocaInst* buffer_;  // a vector of any type
};

}  // namespace fl::codegen::cpu
