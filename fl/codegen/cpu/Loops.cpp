#include "fl/codegen/cpu/Loops.h"

#include <utility>

namespace fl::codegen::cpu {

Values emitWhile(llvm::IRBuilder<>& builder, llvm::Value* end, Values carried,
                 llvm::function_ref<Values(const Values&)> body) {
  llvm::BasicBlock* before = builder.GetInsertBlock();
  llvm::Function* function = before->getParent();
  auto* loop = llvm::BasicBlock::Create(builder.getContext(), "loop", function);
  auto* after = llvm::BasicBlock::Create(builder.getContext(), "after", function);
  builder.CreateCondBr(builder.CreateICmpSLT(carried[0], end), loop, after);

  builder.SetInsertPoint(loop);
  Values current;
  for (llvm::Value* value : carried) {
    llvm::PHINode* phi = builder.CreatePHI(value->getType(), 2);
    phi->addIncoming(value, before);
    current.push_back(phi);
  }
  const Values next = body(current);
  llvm::BasicBlock* last = builder.GetInsertBlock();
  builder.CreateCondBr(builder.CreateICmpSLT(next[0], end), loop, after);

  builder.SetInsertPoint(after);
  Values result;
  for (size_t i = 0; i < carried.size(); ++i) {
    llvm::cast<llvm::PHINode>(current[i])->addIncoming(next[i], last);
    llvm::PHINode* phi = builder.CreatePHI(carried[i]->getType(), 2);
    phi->addIncoming(carried[i], before);
    phi->addIncoming(next[i], last);
    result.push_back(phi);
  }
  return result;
}

Values emitFor(llvm::IRBuilder<>& builder, llvm::Value* begin, llvm::Value* end, int64_t step,
               const Values& carried,
               llvm::function_ref<Values(llvm::Value* i, const Values&)> body) {
  Values all = {begin};
  all.append(carried.begin(), carried.end());
  Values result = emitWhile(builder, end, all, [&](const Values& current) {
    Values next = body(current[0], Values(current.begin() + 1, current.end()));
    next.insert(next.begin(), builder.CreateAdd(current[0], builder.getInt64(step)));
    return next;
  });
  result.erase(result.begin());
  return result;
}

void emitEach(llvm::IRBuilder<>& builder, llvm::Value* begin, llvm::Value* end, int64_t step,
              llvm::function_ref<void(llvm::Value* i)> body) {
  emitFor(builder, begin, end, step, {}, [&](llvm::Value* i, const Values&) {
    body(i);
    return Values{};
  });
}

llvm::Value* emitChoice(llvm::IRBuilder<>& builder, llvm::Value* condition,
                        llvm::function_ref<llvm::Value*()> then,
                        llvm::function_ref<llvm::Value*()> otherwise) {
  llvm::Function* function = builder.GetInsertBlock()->getParent();
  auto* first = llvm::BasicBlock::Create(builder.getContext(), "then", function);
  auto* second = llvm::BasicBlock::Create(builder.getContext(), "otherwise", function);
  auto* after = llvm::BasicBlock::Create(builder.getContext(), "chosen", function);
  builder.CreateCondBr(condition, first, second);
  const auto value = [&](llvm::BasicBlock* block, llvm::function_ref<llvm::Value*()> make) {
    builder.SetInsertPoint(block);
    llvm::Value* made = make();
    return std::pair(made, builder.CreateBr(after)->getParent());
  };
  const auto [x, endOfFirst] = value(first, then);
  const auto [y, endOfSecond] = value(second, otherwise);
  builder.SetInsertPoint(after);
  llvm::PHINode* chosen = builder.CreatePHI(x->getType(), 2);
  chosen->addIncoming(x, endOfFirst);
  chosen->addIncoming(y, endOfSecond);
  return chosen;
}

}  // namespace fl::codegen::cpu
