#include "fl/codegen/cpu/KernelEmitter.h"

#include <algorithm>

namespace fl::codegen::cpu {

using ir::Stride;

namespace {

std::vector<int> keptAxesAbove0(const ir::Kernel& kernel) {
  std::vector<int> axes;
  for (int axis = 1; axis < kernel.rank; ++axis)
    if (!kernel.isReduced(axis)) axes.push_back(axis);
  return axes;
}

}  // namespace

KernelEmitter::KernelEmitter(const ir::Kernel& kernel, const ir::Target& target, ir::Stores stores,
                             bool findsNan, llvm::Function* function)
    : kernel_(stores == ir::Stores::Across ? axesExchanged(kernel) : kernel),
      stores_(stores),
      plan_(planKernel(kernel_, target, stores, findsNan)),
      walkedAxes_(keptAxesAbove0(kernel_)),
      builder_(llvm::BasicBlock::Create(function->getContext(), "entry", function)),
      math_(builder_, target.vectorBits == 512),
      memory_(math_, plan_.lanes, target.vectorBits == 512, stores, plan_.ahead),
      arguments_(loadArguments(function, findsNan)),
      begin_(function->getArg(1)),
      end_(function->getArg(2)),
      values_(kernel_, plan_, math_, memory_, lookup_ ? &*lookup_ : nullptr, arguments_),
      linePlan_(planLines(kernel_, plan_)),
      lines_(kernel_, linePlan_, math_, memory_, nullptr, arguments_),
      ahead_(distancesAhead()),
      vectorBits_(target.vectorBits),
      copies_(makeTileCopies()) {}

void KernelEmitter::emit() {
  walkDomain();
  memory_.finish();
  builder_.CreateRet(lookup_ ? lookup_->result() : number(-1));
}

KernelArguments KernelEmitter::loadArguments(llvm::Function* function, bool findsNan) {
  llvm::Type* word = builder_.getInt64Ty();
  llvm::Type* pointer = builder_.getPtrTy();
  const auto load = [&](llvm::Type* type, llvm::Value* from, size_t index) {
    return builder_.CreateLoad(type, builder_.CreateConstGEP1_64(word, from, index));
  };
  const bool exchanged = stores_ == ir::Stores::Across;  // as axes are numbered in the arguments
  const auto given = [&](int axis) { return exchanged && axis < 2 ? 1 - axis : axis; };
  llvm::Value* args = function->getArg(0);  // fl/kernel/Kernel.h
  llvm::Value* data = load(pointer, args, 0);
  llvm::Value* extents = load(pointer, args, 1);
  llvm::Value* strides = load(pointer, args, 2);
  KernelArguments result;
  result.scalars = load(pointer, args, 3);
  result.scratch = load(pointer, args, 5);
  if (findsNan) result.found = load(pointer, args, 6);
  for (int axis = 0; findsNan && axis < kernel_.rank; ++axis)
    result.places.push_back(load(word, load(pointer, args, 7), given(axis)));
  if (kernel_.gatherCount() > 0) lookup_.emplace(math_, memory_, load(pointer, args, 4));
  for (int axis = 0; axis < kernel_.rank; ++axis)
    result.extents.push_back(load(word, extents, given(axis)));
  for (size_t i = 0; i < kernel_.operands.size(); ++i) {
    const KernelOperand& operand = kernel_.operands[i];
    const bool isIndex = operand.role == KernelOperand::Role::Index;
    const int64_t size = isIndex ? 1 : static_cast<int64_t>(getTypeSize(operand.type));
    KernelArguments::Operand loaded{load(isIndex ? word : pointer, data, i), {}};
    for (int axis = 0; axis < kernel_.rank; ++axis) {
      const Stride known = operand.strides[axis];
      llvm::Value* stride = known == Stride::Zero ? nullptr : number(size);
      if (known == Stride::Any)
        stride = builder_.CreateMul(load(word, strides, i * kernel_.rank + given(axis)), stride);
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
  if (plan_.tiled || plan_.nested) {
    llvm::Value* endRun = builder_.CreateUDiv(end_, arguments_.extents[0]);
    llvm::Value* isPart = builder_.CreateICmpNE(start.along, number(0));
    llvm::Value* firstRun = builder_.CreateAdd(rest, builder_.CreateZExt(isPart, rest->getType()));
    start.wholeRuns = builder_.CreateSub(endRun, firstRun);
  }
  for (int axis : walkedAxes_) start.indices.push_back(split(axis));
  return start;
}

KernelEmitter::Position KernelEmitter::advanced(const Position& now, llvm::Value* count,
                                                const Runs& runs) {
  Position next{.number = builder_.CreateAdd(now.number, count)};
  if (now.along != nullptr) next.along = number(0);
  if (now.wholeRuns != nullptr) {
    llvm::Value* isWhole = builder_.CreateICmpEQ(now.along, number(0));
    llvm::Value* used =
        builder_.CreateSelect(isWhole, builder_.CreateMul(runs.lines, runs.planes), number(0));
    next.wholeRuns = builder_.CreateSub(now.wholeRuns, used);
  }
  llvm::Value* carry = runs.lines;
  for (size_t i = 0; i < walkedAxes_.size(); ++i) {
    llvm::Value* moved = builder_.CreateAdd(now.indices[i], carry);
    llvm::Value* wraps = builder_.CreateICmpEQ(moved, arguments_.extents[walkedAxes_[i]]);
    next.indices.push_back(builder_.CreateSelect(wraps, number(0), moved));
    carry = builder_.CreateSelect(wraps, i == 0 ? runs.planes : number(1), number(0));
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
  if (plan_.tiled || plan_.nested) position.wholeRuns = carried[next++];
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
  // Axes that emitNest or emitTiles walks.
  const size_t inner = plan_.nested ? 2 : plan_.tiled ? 1 : 0;
  for (size_t i = inner; i < walkedAxes_.size(); ++i)
    values_.moveTo(walkedAxes_[i], now.indices[i]);
  if (kernel_.rows()) {
    emitElement();
    return advanced(now, number(1), {number(1), number(1)});
  }
  llvm::Value* length = smaller(builder_.CreateSub(arguments_.extents[0], now.along),
                                builder_.CreateSub(end_, now.number));
  llvm::Value* end = builder_.CreateAdd(now.along, length);
  if (inner == 0) {
    computeScalarsOfAllStages();
    kernel_.columns() ? emitColumns(now.along, end) : emitMap(now.along, end);
    return advanced(now, length, {number(1), number(1)});
  }
  const Runs runs = runsAhead(now);
  plan_.tiled ? emitTiles(now.along, end, now.indices[0], runs.lines) : emitNest(now, end, runs);
  llvm::Value* count = builder_.CreateMul(runs.lines, runs.planes);
  return advanced(now, builder_.CreateMul(length, count), runs);
}

KernelEmitter::Runs KernelEmitter::runsAhead(const Position& now) {
  llvm::Value* lines = builder_.CreateSub(arguments_.extents[1], now.indices[0]);
  lines = smaller(lines, now.wholeRuns);
  if (plan_.tiled) lines = smaller(lines, number(plan_.tileRuns));
  llvm::Value* isWhole = builder_.CreateAnd(builder_.CreateICmpEQ(now.along, number(0)),
                                            builder_.CreateICmpSGT(now.wholeRuns, number(0)));
  lines = builder_.CreateSelect(isWhole, lines, number(1));
  if (!plan_.nested || walkedAxes_.size() < 2) return {lines, number(1)};
  llvm::Value* planes = builder_.CreateSub(arguments_.extents[2], now.indices[1]);
  planes = smaller(planes, builder_.CreateUDiv(now.wholeRuns, arguments_.extents[1]));
  llvm::Value* isPlane = builder_.CreateAnd(
      isWhole, builder_.CreateAnd(builder_.CreateICmpEQ(now.indices[0], number(0)),
                                  builder_.CreateICmpSGT(planes, number(0))));
  return {lines, builder_.CreateSelect(isPlane, planes, number(1))};
}

void KernelEmitter::emitNest(const Position& now, llvm::Value* end, const Runs& runs) {
  const auto lines = [&](llvm::Value* plane) {
    computeScalarsOfAllStages();
    emitEach(builder_, number(0), runs.lines, 1, [&](llvm::Value* i) {
      llvm::Value* line = builder_.CreateAdd(now.indices[0], i);
      ValueScopes::Scope scope(values_);
      values_.moveTo(1, line);
      computeScalarsOfAllStages();
      fetchAhead(ahead_);
      fetchLines(now, line, plane);
      emitMap(now.along, values_.endOfFound(now.along, end));
    });
  };
  if (walkedAxes_.size() < 2) return lines(nullptr);
  emitEach(builder_, number(0), runs.planes, 1, [&](llvm::Value* i) {
    llvm::Value* plane = builder_.CreateAdd(now.indices[1], i);
    ValueScopes::Scope scope(values_);
    values_.moveTo(2, plane);
    return lines(plane);
  });
}

// Far enough that memory answers in time, near enough that a cache of level 2 keeps the answer.
constexpr int64_t kElementsAhead = 2048;

// Runs that lie apart in memory are not foreseen by the processor. What is asked for lies at the
// same place of axes 1 and 2 where axis 3 is some steps on, or as far along the last axis.
Values KernelEmitter::distancesAhead() {
  Values distances(kernel_.operands.size());
  if (!plan_.nested) return distances;
  const int axis = std::min(kernel_.rank - 1, 3);
  llvm::Value* elements = arguments_.extents[0];
  for (int a = 1; a < axis; ++a) elements = builder_.CreateMul(elements, arguments_.extents[a]);
  // An empty kernel divides too.
  elements = builder_.CreateBinaryIntrinsic(llvm::Intrinsic::smax, elements, number(1));
  llvm::Value* steps = builder_.CreateUDiv(number(kElementsAhead), elements);
  steps = builder_.CreateAdd(steps, number(1));
  for (size_t i = 0; i < kernel_.operands.size(); ++i) {
    const auto& [role, type, strides] = kernel_.operands[i];
    llvm::Value* stride = arguments_.operands[i].strides[axis];
    if (role == KernelOperand::Role::Input && strides[0] != Stride::Zero && stride)
      distances[i] = builder_.CreateMul(stride, steps);
  }
  return distances;
}

void KernelEmitter::fetch(llvm::Value* address, int64_t bytes, bool toWrite, bool isNear) {
  for (int64_t byte = 0; byte < bytes; byte += 64)
    builder_.CreateIntrinsic(
        llvm::Intrinsic::prefetch, {address->getType()},
        {builder_.CreatePtrAdd(address, number(byte)), builder_.getInt32(toWrite),
         builder_.getInt32(isNear ? 3 : 2), builder_.getInt32(1)});
}

void KernelEmitter::fetchAhead(const Values& distances, llvm::Value* index, bool isNear) {
  for (size_t i = 0; i < distances.size(); ++i) {
    if (!distances[i]) continue;
    const dtype type = kernel_.operands[i].type;
    llvm::Value* row = builder_.CreatePtrAdd(values_.at(static_cast<int>(i)), distances[i]);
    if (index) row = builder_.CreateGEP(math_.elementType(type), row, index);
    fetch(row, index ? plan_.unroll * plan_.lanes * getTypeSize(type) : 1, false, isNear);
  }
}

void KernelEmitter::fetchLines(const Position& now, llvm::Value* line, llvm::Value* plane) {
  if (plan_.lineGathers.empty()) return;
  constexpr int64_t kLinesAhead = 16, kCacheLine = 64, kMostBytes = 512;
  ValueScopes::Scope scope(lines_);
  llvm::Value* last = builder_.CreateSub(arguments_.extents[1], number(1));
  lines_.moveTo(1, smaller(builder_.CreateAdd(line, number(kLinesAhead)), last));
  if (plane != nullptr) lines_.moveTo(2, plane);
  for (size_t i = 2; i < walkedAxes_.size(); ++i) lines_.moveTo(walkedAxes_[i], now.indices[i]);
  lines_.setLanes({{number(0)}});
  lines_.compute(0);
  for (int gather : plan_.lineGathers) {
    const ir::KernelValue& value = kernel_.values[gather];
    llvm::Value* elements = lines_.vector(value.args[0], 0).value;
    llvm::Value* begin = builder_.CreateGEP(math_.elementType(value.type), lines_.at(value.index),
                                            builder_.CreateExtractElement(elements, uint64_t{0}));
    llvm::Value* bytes = builder_.CreateMul(arguments_.extents[0], number(getTypeSize(value.type)));
    emitEach(builder_, number(0), smaller(bytes, number(kMostBytes)), kCacheLine,
             [&](llvm::Value* byte) { fetch(builder_.CreatePtrAdd(begin, byte)); });
  }
}

void KernelEmitter::emitMap(llvm::Value* begin, llvm::Value* end) {
  forBlocks(begin, end, [&] { emitBody(0, [](int, int, LlvmValue) {}); });
}

void KernelEmitter::forBlocks(llvm::Value* begin, llvm::Value* end,
                              llvm::function_ref<void()> body) {
  const auto block = [&](const std::vector<Lanes>& lanes) {
    ValueScopes::Scope scope(values_);
    values_.setLanes(lanes);
    body();
  };
  const auto turns = [&](llvm::Value* from, int vectors) {
    const int64_t step = int64_t{plan_.lanes} * vectors;
    llvm::Value* last = endOfWhole(from, end, step);
    emitEach(builder_, from, last, step,
             [&](llvm::Value* i) { return block(fullLanes(i, vectors)); });
    return last;
  };
  const auto full = [&](llvm::Value* from) {
    llvm::Value* last = turns(from, plan_.unroll);
    return plan_.rest ? turns(last, 1) : last;
  };
  const auto masked = [&](llvm::Value* from, llvm::Value* to) {
    emitEach(builder_, from, to, plan_.lanes,
             [&](llvm::Value* i) { return block({maskedLanes(i, to)}); });
  };
  if (stores_ != ir::Stores::Aligning) return masked(full(begin), end);
  // The body under masks stands once: it first leads up to where stores are aligned.
  llvm::Value* aligned = smaller(alignedIndex(begin, end), end);
  emitFor(builder_, number(0), number(2), 1, {begin}, [&](llvm::Value* turn, const Values& at) {
    llvm::Value* isFirst = builder_.CreateICmpEQ(turn, number(0));
    llvm::Value* to = builder_.CreateSelect(isFirst, aligned, end);
    masked(at[0], to);
    return Values{full(to)};
  });
}

llvm::Value* KernelEmitter::alignedIndex(llvm::Value* index, llvm::Value* end) {
  const auto output =
      std::ranges::find(kernel_.operands, KernelOperand::Role::Output, &KernelOperand::role);
  const int64_t size = static_cast<int64_t>(getTypeSize(output->type));
  llvm::Value* row = values_.at(static_cast<int>(output - kernel_.operands.begin()));
  // Stores wait for one another: the one of the run's last elements would wait for its line.
  fetch(builder_.CreatePtrAdd(row, builder_.CreateMul(end, number(size))), 1, true);
  llvm::Value* address = builder_.CreatePtrToInt(row, builder_.getInt64Ty());
  address = builder_.CreateAdd(address, builder_.CreateMul(index, number(size)));
  llvm::Value* bytes = builder_.CreateAnd(builder_.CreateNeg(address), number(63));
  return builder_.CreateAdd(index, builder_.CreateUDiv(bytes, number(size)));
}

void KernelEmitter::emitElement() {
  for (int stage = 0; stage < static_cast<int>(kernel_.stages.size()); ++stage) {
    values_.computeScalars(stage);
    kernel_.stages[stage].sweep ? sweepRow(stage) : values_.storeScalars(stage);
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
      for (int r = 0; r < static_cast<int>(reduces(stage).size()); ++r)
        takeReduced(vector, r, values_.vector(reduces(stage)[r].value, vector));
    }
  }
}

void KernelEmitter::computeScalarsOfAllStages() {
  for (int stage = 0; stage < static_cast<int>(kernel_.stages.size()); ++stage)
    values_.computeScalars(stage);
}

llvm::Value* KernelEmitter::endOfWhole(llvm::Value* begin, llvm::Value* end, int64_t step) {
  llvm::Value* whole = builder_.CreateAnd(builder_.CreateSub(end, begin), number(-step));
  return builder_.CreateAdd(begin, whole);
}

std::vector<Lanes> KernelEmitter::fullLanes(llvm::Value* index, int vectors) {
  std::vector<Lanes> lanes;
  for (int vector = 0; vector < vectors; ++vector)
    lanes.push_back({builder_.CreateAdd(index, number(int64_t{vector} * plan_.lanes))});
  return lanes;
}

Lanes KernelEmitter::maskedLanes(llvm::Value* index, llvm::Value* end) {
  llvm::Value* rest = builder_.CreateSub(end, index);
  llvm::Value* limit =
      builder_.CreateTrunc(smaller(rest, number(plan_.lanes)), builder_.getInt32Ty());
  llvm::Value* limits = builder_.CreateVectorSplat(plan_.lanes, limit);
  llvm::Value* mask = builder_.CreateICmpULT(builder_.CreateStepVector(limits->getType()), limits);
  return {index, mask, rest};
}

}  // namespace fl::codegen::cpu
