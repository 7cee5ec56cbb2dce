// Counted loops in LLVM IR, rotated (a guard, then the test at the end), with carried values, and
// branches that choose a value.
// Relies on llvm::IRBuilder; KernelEmitter.h and MemoryAccess.h build all their loops with it.
#pragma once

#include <llvm/ADT/STLFunctionalExtras.h>
#include <llvm/ADT/SmallVector.h>
#include <llvm/IR/IRBuilder.h>

namespace fl::codegen::cpu {

using Values = llvm::SmallVector<llvm::Value*, 8>;

// while (carried[0] < end) carried = body(carried); returns the last carried values. The first is
// the counter, a signed i64.
Values emitWhile(llvm::IRBuilder<>& builder, llvm::Value* end, Values carried,
                 llvm::function_ref<Values(const Values&)> body);

// for (i = begin; i < end; i += step) carried = body(i, carried).
Values emitFor(llvm::IRBuilder<>& builder, llvm::Value* begin, llvm::Value* end, int64_t step,
               const Values& carried,
               llvm::function_ref<Values(llvm::Value* i, const Values&)> body);

// The same without carried values.
void emitEach(llvm::IRBuilder<>& builder, llvm::Value* begin, llvm::Value* end, int64_t step,
              llvm::function_ref<void(llvm::Value* i)> body);

// condition ? then() : otherwise(); only one of them runs.
llvm::Value* emitChoice(llvm::IRBuilder<>& builder, llvm::Value* condition,
                        llvm::function_ref<llvm::Value*()> then,
                        llvm::function_ref<llvm::Value*()> otherwise);

}  // namespace fl::codegen::cpu
