// Gathers of a kernel: elements read one by one at places that data gives, with bounds checked.
//
// A lane whose index is out of bounds reads nothing; the first such index of a call is kept for the
// caller, off the path of valid ones. Relies on MemoryAccess.h; used by ValueScopes.h.
#pragma once

#include "fl/codegen/cpu/MemoryAccess.h"

namespace fl::codegen::cpu {

class TableLookup {
 public:
  // Made at the start of a function; `badIndex` is the address of an ir::BadIndex.
  TableLookup(LlvmBuilder& math, MemoryAccess& memory, llvm::Value* badIndex);

  // The value of Gather number `number`: of scalars where `lanes` is null; else in these lanes, of
  // vectors or of scalars, the first of elements that follow one another and one index for all,
  // which may be known to be good.
  LlvmValue lookUp(int number, llvm::Value* table, dtype type, const std::vector<LlvmValue>& args,
                   const Lanes* lanes, bool isGood);
  // good() where the index is, else `bad`; the index is kept then.
  llvm::Value* check(int number, llvm::Value* index, llvm::Value* bound,
                     llvm::function_ref<llvm::Value*()> good, llvm::Value* bad);
  // What the kernel returns.
  llvm::Value* result() { return builder_.CreateLoad(builder_.getInt64Ty(), result_); }

 private:
  // Where to read: at the first element of the table in place of what is bad or does not exist.
  llvm::Value* goodElements(int number, const std::vector<LlvmValue>& args, llvm::Value* mask);
  // Keeps `index` and `bound` if they are the first.
  void keep(int number, llvm::Value* index, llvm::Value* bound);

  LlvmBuilder& math_;
  MemoryAccess& memory_;
  llvm::IRBuilder<>& builder_;
  llvm::Value* badIndex_;
  llvm::Value* result_;
};

}  // namespace fl::codegen::cpu
