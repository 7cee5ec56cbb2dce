#include "fl/codegen/cpu/KernelEmitter.h"

#include <algorithm>
#include <numeric>

namespace fl::codegen::cpu {

using ir::KernelOperand;
using ir::kLanes;
using ir::Stride;

namespace {

std::vector<int> keptAxesAbove0(const ir::Kernel& kernel) {
  std::vector<int> axes;
  for (int axis = 1; axis < kernel.rank; ++axis) {
    if (!kernel.isReduced(axis)) axes.push_back(axis);
  }
  return axes;
}

}  // namespace

KernelEmitter::KernelEmitter(const ir::Kernel& kernel, const ir::Target& target, ir::Stores stores,
                             llvm::Function* function)
    : kernel_(kernel),
      plan_(planKernel(kernel, target)),
      walkedAxes_(keptAxesAbove0(kernel)),
      builder_(llvm::BasicBlock::Create(function->getContext(), "entry", function)),
      math_(builder_),
      memory_(math_, target.vectorBits == 512, stores),
      arguments_(loadArguments(function)),
      begin_(function->getArg(1)),
      end_(function->getArg(2)),
      values_(kernel, plan_, math_, memory_, lookup_ ? &*lookup_ : nullptr, arguments_),
      vectorBits_(target.vectorBits),
      copies_(makeTileCopies()) {}

void KernelEmitter::emit() {
  walkDomain();
  memory_.finish();
  builder_.CreateRet(lookup_ ? lookup_->result() : number(-1));
}

KernelArguments KernelEmitter::loadArguments(llvm::Function* function) {
  llvm::Type* word = builder_.getInt64Ty();
  llvm::Type* pointer = builder_.getPtrTy();
  const auto load = [&](llvm::Type* type, llvm::Value* from, size_t index) {
    return builder_.CreateLoad(type, builder_.CreateConstGEP1_64(word, from, index));
  };
  llvm::Value* args =
      function->getArg(0);  // fl/kernel/Kernel.h: data, extents, strides, scalars, badIndex
  llvm::Value* data = load(pointer, args, 0);
  llvm::Value* extents = load(pointer, args, 1);
  llvm::Value* strides = load(pointer, args, 2);
  KernelArguments result;
  result.scalars = load(pointer, args, 3);
  if (kernel_.gatherCount() > 0) lookup_.emplace(math_, memory_, load(pointer, args, 4));
  for (int axis = 0; axis < kernel_.rank; ++axis) {
    result.extents.push_back(load(word, extents, axis));
  }
  for (size_t i = 0; i < kernel_.operands.size(); ++i) {
    const KernelOperand& operand = kernel_.operands[i];
    const bool isIndex = operand.role == KernelOperand::Role::Index;
    const int64_t size = isIndex ? 1 : static_cast<int64_t>(getTypeSize(operand.type));
    KernelArguments::Operand loaded{load(isIndex ? word : pointer, data, i), {}};
    for (int axis = 0; axis < kernel_.rank; ++axis) {
      llvm::Value* stride = nullptr;
      if (operand.strides[axis] == Stride::One) {
        stride = number(size);
      } else if (operand.strides[axis] == Stride::Any) {
        stride = builder_.CreateMul(load(word, strides, i * kernel_.rank + axis), number(size));
      }
      loaded.strides.push_back(stride);
    }
    result.operands.push_back(std::move(loaded));
  }
  return result;
}

KernelEmitter::Position KernelEmitter::beginOfWalk() {
  Position start{.number = begin_};
  llvm::Value* rest = begin_;
  const auto split = [&](int axis) {
    llvm::Value* index = builder_.CreateURem(rest, arguments_.extents[axis]);
    rest = builder_.CreateUDiv(rest, arguments_.extents[axis]);
    return index;
  };
  if (!kernel_.rows()) start.along = split(0);
  if (plan_.tiled) {
    llvm::Value* endRun = builder_.CreateUDiv(end_, arguments_.extents[0]);
    llvm::Value* isPart = builder_.CreateICmpNE(start.along, number(0));
    llvm::Value* firstRun = builder_.CreateAdd(rest, builder_.CreateZExt(isPart, rest->getType()));
    start.wholeRuns = builder_.CreateSub(endRun, firstRun);
  }
  for (int axis : walkedAxes_) start.indices.push_back(split(axis));
  return start;
}

KernelEmitter::Position KernelEmitter::advanced(const Position& now, llvm::Value* count,
                                                llvm::Value* runs) {
  Position next{.number = builder_.CreateAdd(now.number, count)};
  if (now.along != nullptr) next.along = number(0);
  if (now.wholeRuns != nullptr) {
    llvm::Value* isWhole = builder_.CreateICmpEQ(now.along, number(0));
    llvm::Value* used = builder_.CreateSelect(isWhole, runs, number(0));
    next.wholeRuns = builder_.CreateSub(now.wholeRuns, used);
  }
  llvm::Value* carry = runs;
  for (size_t i = 0; i < walkedAxes_.size(); ++i) {
    llvm::Value* moved = builder_.CreateAdd(now.indices[i], carry);
    llvm::Value* wraps = builder_.CreateICmpEQ(moved, arguments_.extents[walkedAxes_[i]]);
    next.indices.push_back(builder_.CreateSelect(wraps, number(0), moved));
    carry = builder_.CreateZExt(wraps, builder_.getInt64Ty());
  }
  return next;
}

Values KernelEmitter::carriedOf(const Position& position) const {
  Values carried = {position.number};
  if (position.along != nullptr) carried.push_back(position.along);
  if (position.wholeRuns != nullptr) carried.push_back(position.wholeRuns);
  carried.append(position.indices.begin(), position.indices.end());
  return carried;
}

KernelEmitter::Position KernelEmitter::positionOf(const Values& carried) const {
  Position position{.number = carried[0]};
  size_t next = 1;
  if (!kernel_.rows()) position.along = carried[next++];
  if (plan_.tiled) position.wholeRuns = carried[next++];
  position.indices.append(carried.begin() + next, carried.end());
  return position;
}

void KernelEmitter::walkDomain() {
  llvm::Function* function = builder_.GetInsertBlock()->getParent();
  auto* walk = llvm::BasicBlock::Create(builder_.getContext(), "walk", function);
  auto* done = llvm::BasicBlock::Create(builder_.getContext(), "done", function);
  // An empty part must neither divide nor load: an extent may be 0.
  builder_.CreateCondBr(builder_.CreateICmpSLT(begin_, end_), walk, done);
  builder_.SetInsertPoint(walk);
  computeScalarsOfAllStages();
  emitWhile(builder_, end_, carriedOf(beginOfWalk()), [&](const Values& carried) {
    ValueScopes::Scope scope(values_);
    return carriedOf(walkStep(positionOf(carried)));
  });
  builder_.CreateBr(done);
  builder_.SetInsertPoint(done);
}

KernelEmitter::Position KernelEmitter::walkStep(const Position& now) {
  for (size_t i = plan_.tiled ? 1 : 0; i < walkedAxes_.size(); ++i) {
    values_.moveTo(walkedAxes_[i], now.indices[i]);
  }
  if (kernel_.rows()) {
    emitElement();
    return advanced(now, number(1), number(1));
  }
  llvm::Value* length = smaller(builder_.CreateSub(arguments_.extents[0], now.along),
                                builder_.CreateSub(end_, now.number));
  llvm::Value* end = builder_.CreateAdd(now.along, length);
  if (!plan_.tiled) {
    computeScalarsOfAllStages();
    emitRun(now.along, end);
    return advanced(now, length, number(1));
  }
  llvm::Value* runs = runsOfTile(now);
  emitTiles(now.along, end, now.indices[0], runs);
  return advanced(now, builder_.CreateMul(length, runs), runs);
}

llvm::Value* KernelEmitter::runsOfTile(const Position& now) {
  llvm::Value* toEdge = builder_.CreateSub(arguments_.extents[1], now.indices[0]);
  llvm::Value* runs = smaller(smaller(toEdge, now.wholeRuns), number(plan_.tileRuns));
  llvm::Value* isWhole = builder_.CreateAnd(builder_.CreateICmpEQ(now.along, number(0)),
                                            builder_.CreateICmpSGT(now.wholeRuns, number(0)));
  return builder_.CreateSelect(isWhole, runs, number(1));
}

void KernelEmitter::emitRun(llvm::Value* begin, llvm::Value* end) {
  const auto block = [&](const std::vector<Lanes>& lanes) {
    ValueScopes::Scope scope(values_);
    values_.setLanes(lanes);
    emitBlock();
    return Values{};
  };
  const int64_t step = int64_t{kLanes} * plan_.unroll;
  llvm::Value* middle = endOfWhole(begin, end, step);
  emitFor(builder_, begin, middle, step, {},
          [&](llvm::Value* i, const Values&) { return block(fullLanes(i)); });
  emitFor(builder_, middle, end, kLanes, {},
          [&](llvm::Value* i, const Values&) { return block({maskedLanes(i, end)}); });
}

void KernelEmitter::emitBlock() {
  for (int stage = 0; stage < static_cast<int>(kernel_.stages.size()); ++stage) {
    if (kernel_.stages[stage].sweep) {
      values_.compute(stage);
      sweepColumns(stage);
    } else {
      emitBody(stage, [](int, int, LlvmValue) {});
    }
  }
}

void KernelEmitter::emitElement() {
  for (int stage = 0; stage < static_cast<int>(kernel_.stages.size()); ++stage) {
    values_.computeScalars(stage);
    if (kernel_.stages[stage].sweep) {
      sweepRow(stage);
    } else {
      values_.storeScalars(stage);
    }
  }
}

void KernelEmitter::emitBody(int stage, TakeReduced takeReduced) {
  values_.computeScalars(stage);
  const int vectors = static_cast<int>(values_.lanes().size());
  const int step = plan_.rounded[stage].empty() ? 1 : 2;
  for (int first = 0; first < vectors; first += step) {
    const int end = std::min(first + step, vectors);
    for (int vector = first; vector < end; ++vector) values_.computeVector(stage, vector);
    values_.storeVectors(stage, first, end - first);
    for (int vector = first; vector < end; ++vector) {
      for (int r = 0; r < static_cast<int>(reduces(stage).size()); ++r) {
        takeReduced(vector, r, values_.vector(reduces(stage)[r].value, vector));
      }
    }
  }
}

void KernelEmitter::computeScalarsOfAllStages() {
  for (int stage = 0; stage < static_cast<int>(kernel_.stages.size()); ++stage) {
    values_.computeScalars(stage);
  }
}

llvm::Value* KernelEmitter::smaller(llvm::Value* x, llvm::Value* y) {
  return builder_.CreateBinaryIntrinsic(llvm::Intrinsic::smin, x, y);
}

llvm::Value* KernelEmitter::endOfWhole(llvm::Value* begin, llvm::Value* end, int64_t step) {
  llvm::Value* whole = builder_.CreateAnd(builder_.CreateSub(end, begin), number(-step));
  return builder_.CreateAdd(begin, whole);
}

std::vector<Lanes> KernelEmitter::fullLanes(llvm::Value* index) {
  std::vector<Lanes> lanes;
  for (int vector = 0; vector < plan_.unroll; ++vector) {
    lanes.push_back({builder_.CreateAdd(index, number(int64_t{vector} * kLanes))});
  }
  return lanes;
}

Lanes KernelEmitter::maskedLanes(llvm::Value* index, llvm::Value* end) {
  uint32_t numbers[kLanes];
  std::iota(std::begin(numbers), std::end(numbers), 0);
  llvm::Value* rest = builder_.CreateSub(end, index);
  llvm::Value* limit = builder_.CreateTrunc(smaller(rest, number(kLanes)), builder_.getInt32Ty());
  llvm::Value* mask =
      builder_.CreateICmpULT(llvm::ConstantDataVector::get(builder_.getContext(), numbers),
                             builder_.CreateVectorSplat(kLanes, limit));
  return {index, mask, rest};
}

}  // namespace fl::codegen::cpu
