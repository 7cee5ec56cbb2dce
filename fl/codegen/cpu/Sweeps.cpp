// Sweeps over the reduced axes: the row tree and the column tree of fl/kernel/Kernel.h.
#include <numeric>

#include "fl/codegen/cpu/KernelEmitter.h"

namespace fl::codegen::cpu {

using ir::kLanes;
using Reduce = ir::KernelStage::Reduce;

namespace {

// Elements that a row's full vectors come in: the tree has this many accumulators.
constexpr int64_t kRowStep = 2 * kLanes;

}  // namespace

dtype KernelEmitter::typeOf(const Reduce& reduce) const {
  return kernel_.values[reduce.value].type;
}

LlvmValue KernelEmitter::initial(const Reduce& reduce, bool vector) {
  const LlvmValue one = math_.constant(ir::reduceInit(reduce.op, typeOf(reduce)));
  return vector ? math_.spread(one, kLanes) : one;
}

std::vector<int> KernelEmitter::outerReducedAxes() const {
  std::vector<int> axes;
  for (int axis = kernel_.rank - 1; axis >= 0; --axis) {
    if (kernel_.isReduced(axis)) axes.push_back(axis);
  }
  axes.pop_back();
  return axes;
}

Values KernelEmitter::sweepOver(int stage, llvm::ArrayRef<int> axes, const Values& carried,
                                llvm::function_ref<Values(const Values&)> body) {
  if (axes.empty()) return body(carried);
  return emitFor(builder_, number(0), arguments_.extents[axes[0]], 1, carried,
                 [&](llvm::Value* i, const Values& current) {
                   ValueScopes::Scope scope(values_);
                   values_.moveTo(axes[0], i);
                   values_.compute(stage);
                   return sweepOver(stage, axes.drop_front(), current, body);
                 });
}

void KernelEmitter::sweepRow(int stage) {
  const auto& stageReduces = reduces(stage);
  const std::vector<int> outer = outerReducedAxes();
  Values totals;
  for (const Reduce& reduce : stageReduces) totals.push_back(initial(reduce, false).value);
  const auto chunk = [&](llvm::Value* begin, const Values& current) {
    llvm::Value* limit = builder_.CreateAdd(begin, number(ir::kRowChunk));
    llvm::Value* end = smaller(limit, arguments_.extents[0]);
    Values lanes;  // of each reduction: a[0..15], a[16..31], t[0..15]
    for (const Reduce& reduce : stageReduces) lanes.append(3, initial(reduce, true).value);
    lanes = sweepOver(stage, outer, lanes, [&](const Values& carried) {
      return sweepRowPart(stage, begin, end, carried);
    });
    Values next;
    for (size_t r = 0; r < stageReduces.size(); ++r) {
      const ir::Op op = stageReduces[r].op;
      const dtype type = typeOf(stageReduces[r]);
      const LlvmValue part =
          foldLanes(op, {lanes[3 * r], type}, {lanes[3 * r + 1], type}, {lanes[3 * r + 2], type});
      next.push_back(math_.combine(op, {current[r], type}, part).value);
    }
    return next;
  };
  totals = emitFor(builder_, number(0), arguments_.extents[0], ir::kRowChunk, totals, chunk);
  for (size_t r = 0; r < stageReduces.size(); ++r) {
    values_.setTotal(stageReduces[r].index, {{totals[r], typeOf(stageReduces[r])}});
  }
}

Values KernelEmitter::sweepRowPart(int stage, llvm::Value* begin, llvm::Value* end,
                                   const Values& lanes) {
  const size_t count = reduces(stage).size();
  Values pairs, tails;
  for (size_t r = 0; r < count; ++r) {
    pairs.append({lanes[3 * r], lanes[3 * r + 1]});
    tails.push_back(lanes[3 * r + 2]);
  }
  llvm::Value* middle = endOfWhole(begin, end, kRowStep);
  pairs = sweepFullVectors(stage, begin, middle, pairs);
  tails = sweepTail(stage, middle, end, tails);
  Values result;
  for (size_t r = 0; r < count; ++r) {
    result.append({pairs[2 * r], pairs[2 * r + 1], tails[r]});
  }
  return result;
}

// With one vector a turn the two accumulators of a reduction change places each turn; their number
// of turns is even, so that they end where they began.
Values KernelEmitter::sweepFullVectors(int stage, llvm::Value* begin, llvm::Value* end,
                                       const Values& pairs) {
  const bool rotates = plan_.unroll == 1;
  return emitFor(builder_, begin, end, int64_t{kLanes} * plan_.unroll, pairs,
                 [&](llvm::Value* i, const Values& current) {
                   ValueScopes::Scope scope(values_);
                   values_.setLanes(fullLanes(i, plan_.unroll));
                   Values next = current;
                   emitBody(stage, [&](int vector, int r, LlvmValue value) {
                     const Reduce& reduce = reduces(stage)[r];
                     const LlvmValue sum{current[2 * r + vector], typeOf(reduce)};
                     if (rotates) next[2 * r] = current[2 * r + 1];
                     next[2 * r + (rotates ? 1 : vector)] =
                         math_.combine(reduce.op, sum, value).value;
                   });
                   return next;
                 });
}

Values KernelEmitter::sweepTail(int stage, llvm::Value* begin, llvm::Value* end,
                                const Values& tails) {
  return emitFor(builder_, begin, end, kLanes, tails, [&](llvm::Value* i, const Values& current) {
    ValueScopes::Scope scope(values_);
    const Lanes lanes = maskedLanes(i, end);
    values_.setLanes({lanes});
    Values next;
    emitBody(stage, [&](int, int r, LlvmValue value) {
      const LlvmValue sum{current[r], typeOf(reduces(stage)[r])};
      const LlvmValue moved = math_.combine(reduces(stage)[r].op, sum, value);
      next.push_back(builder_.CreateSelect(lanes.mask, moved.value, sum.value));
    });
    return next;
  });
}

LlvmValue KernelEmitter::foldLanes(ir::Op op, LlvmValue first, LlvmValue second, LlvmValue tail) {
  LlvmValue sum = math_.combine(op, math_.combine(op, first, second), tail);
  for (int width = kLanes / 2; width > 1; width /= 2) {
    const auto half = [&](int from) -> LlvmValue {
      llvm::SmallVector<int, kLanes> picked(width);
      std::iota(picked.begin(), picked.end(), from);
      return {builder_.CreateShuffleVector(sum.value, picked), sum.type};
    };
    sum = math_.combine(op, half(0), half(width));
  }
  const auto lane = [&](uint64_t index) -> LlvmValue {
    return {builder_.CreateExtractElement(sum.value, index), sum.type};
  };
  return math_.combine(op, lane(0), lane(1));
}

llvm::AllocaInst* KernelEmitter::allocate(llvm::Type* type) {
  llvm::BasicBlock& entry = builder_.GetInsertBlock()->getParent()->getEntryBlock();
  return llvm::IRBuilder<>(&entry, entry.begin()).CreateAlloca(type);
}

void KernelEmitter::sweepColumns(int stage) {
  const auto& stageReduces = reduces(stage);
  const size_t vectors = values_.lanes().size();
  std::vector<int> outer = outerReducedAxes();
  const int lowest = __builtin_ctz(kernel_.reduced);
  // Of each reduction one a vector. They wait in memory, as the chunks' parts need the registers.
  std::vector<llvm::AllocaInst*> totals;
  for (const Reduce& reduce : stageReduces) {
    llvm::Value* init = initial(reduce, true).value;
    for (size_t u = 0; u < vectors; ++u) {
      totals.push_back(allocate(init->getType()));
      builder_.CreateStore(init, totals.back());
    }
  }
  const auto load = [&](size_t total) -> LlvmValue {
    return {builder_.CreateLoad(totals[total]->getAllocatedType(), totals[total]),
            typeOf(stageReduces[total / vectors])};
  };
  const auto chunk = [&](llvm::Value* begin, const Values&) {
    llvm::Value* limit = builder_.CreateAdd(begin, number(ir::kColumnChunk));
    const Values parts =
        sweepColumnChunk(stage, lowest, begin, smaller(limit, arguments_.extents[lowest]));
    for (size_t i = 0; i < parts.size(); ++i) {
      const Reduce& reduce = stageReduces[i / vectors];
      const LlvmValue sum = math_.combine(reduce.op, load(i), {parts[i], typeOf(reduce)});
      builder_.CreateStore(sum.value, totals[i]);
    }
    return Values{};
  };
  sweepOver(stage, outer, {}, [&](const Values&) {
    return emitFor(builder_, number(0), arguments_.extents[lowest], ir::kColumnChunk, {}, chunk);
  });
  for (size_t r = 0; r < stageReduces.size(); ++r) {
    std::vector<LlvmValue> total;
    for (size_t u = 0; u < vectors; ++u) total.push_back(load(r * vectors + u));
    values_.setTotal(stageReduces[r].index, total);
  }
}

Values KernelEmitter::sweepColumnChunk(int stage, int axis, llvm::Value* begin, llvm::Value* end) {
  const size_t vectors = values_.lanes().size();
  Values parts;
  for (const Reduce& reduce : reduces(stage)) parts.append(vectors, initial(reduce, true).value);
  return emitFor(builder_, begin, end, 1, parts, [&](llvm::Value* i, const Values& current) {
    ValueScopes::Scope scope(values_);
    values_.moveTo(axis, i);
    Values next = current;
    emitBody(stage, [&](int vector, int r, LlvmValue value) {
      const Reduce& reduce = reduces(stage)[r];
      llvm::Value*& part = next[r * vectors + vector];
      part = math_.combine(reduce.op, {part, typeOf(reduce)}, value).value;
    });
    return next;
  });
}

}  // namespace fl::codegen::cpu
