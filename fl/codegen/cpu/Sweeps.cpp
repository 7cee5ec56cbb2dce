// Sweeps over the reduced axes: the row tree and the column tree of fl/kernel/Kernel.h.
#include <algorithm>
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

dtype KernelEmitter::totalTypeOf(const Reduce& reduce) const {
  return ir::totalType(reduce.op, typeOf(reduce));
}

LlvmValue KernelEmitter::initial(ir::Op op, dtype type, bool vector) {
  const LlvmValue one = math_.constant(ir::reduceInit(op, type));
  return vector ? math_.spread(one, kLanes) : one;
}

llvm::Value* KernelEmitter::addToTotal(const Reduce& reduce, llvm::Value* total,
                                       llvm::Value* part) {
  const dtype type = totalTypeOf(reduce);
  return math_.combine(reduce.op, {total, type}, math_.cast({part, typeOf(reduce)}, type)).value;
}

LlvmValue KernelEmitter::roundedTotal(const Reduce& reduce, llvm::Value* total) {
  return math_.cast({total, totalTypeOf(reduce)}, typeOf(reduce));
}

std::vector<int> KernelEmitter::turningAxes() const {
  std::vector<int> axes;
  for (int axis = lowestReducedAxis() + 1; axis < kernel_.rank; ++axis) {
    if (kernel_.isReduced(axis)) axes.push_back(axis);
  }
  return axes;
}

Values KernelEmitter::sweepParts(int64_t chunk, const Values& totals,
                                 llvm::function_ref<Values(const SweepPart&, const Values&)> body) {
  llvm::Value* length = arguments_.extents[lowestReducedAxis()];
  const auto chunks = [&](llvm::Value* turn, llvm::Value* lastTurn, const Values& carried) {
    return emitFor(builder_, number(0), length, chunk, carried,
                   [&](llvm::Value* begin, const Values& current) {
                     llvm::Value* end = smaller(builder_.CreateAdd(begin, number(chunk)), length);
                     return body({turn, lastTurn, begin, end}, current);
                   });
  };
  llvm::Value* turns = nullptr;
  for (int axis : turningAxes()) {
    llvm::Value* extent = arguments_.extents[axis];
    turns = turns ? builder_.CreateMul(turns, extent) : extent;
  }
  if (!turns) return chunks(nullptr, nullptr, totals);
  // ir::turnsTogether, where nothing is divided by 0.
  llvm::Value* fitting = builder_.CreateUDiv(number(chunk), larger(length, number(1)));
  llvm::Value* together = smaller(larger(fitting, number(1)), number(ir::kMaxTurnsTogether));
  Values carried = {number(0)};
  carried.append(totals);
  carried = emitWhile(builder_, turns, carried, [&](const Values& current) {
    llvm::Value* next = builder_.CreateAdd(current[0], together);
    Values moved =
        chunks(current[0], smaller(next, turns), Values(current.begin() + 1, current.end()));
    moved.insert(moved.begin(), next);
    return moved;
  });
  return Values(carried.begin() + 1, carried.end());
}

Values KernelEmitter::sweepTurns(int stage, const SweepPart& part, const Values& carried,
                                 llvm::function_ref<Values(const Values&)> body) {
  if (!part.turn) return body(carried);
  return emitFor(builder_, part.turn, part.lastTurn, 1, carried,
                 [&](llvm::Value* turn, const Values& current) {
                   ValueScopes::Scope scope(values_);
                   const std::vector<int> axes = turningAxes();
                   for (int axis : axes) {
                     llvm::Value* extent = arguments_.extents[axis];
                     const bool last = axis == axes.back();
                     values_.moveTo(axis, last ? turn : builder_.CreateURem(turn, extent));
                     if (!last) turn = builder_.CreateUDiv(turn, extent);
                   }
                   values_.compute(stage);
                   return body(current);
                 });
}

void KernelEmitter::sweepRow(int stage) {
  const auto& stageReduces = reduces(stage);
  Values totals;
  for (const Reduce& reduce : stageReduces) {
    totals.push_back(initial(reduce.op, totalTypeOf(reduce), false).value);
  }
  totals = sweepParts(ir::kRowChunk, totals, [&](const SweepPart& part, const Values& current) {
    Values lanes;  // of each reduction: a[0..15], a[16..31], t[0..15]
    for (const Reduce& reduce : stageReduces) {
      lanes.append(3, initial(reduce.op, typeOf(reduce), true).value);
    }
    lanes = sweepTurns(stage, part, lanes, [&](const Values& carried) {
      return sweepRowTurn(stage, part.begin, part.end, carried);
    });
    Values next;
    for (size_t r = 0; r < stageReduces.size(); ++r) {
      const Reduce& reduce = stageReduces[r];
      const dtype type = typeOf(reduce);
      const LlvmValue folded = foldLanes(reduce.op, {lanes[3 * r], type}, {lanes[3 * r + 1], type},
                                         {lanes[3 * r + 2], type});
      next.push_back(addToTotal(reduce, current[r], folded.value));
    }
    return next;
  });
  for (size_t r = 0; r < stageReduces.size(); ++r) {
    values_.setTotal(stageReduces[r].index, {roundedTotal(stageReduces[r], totals[r])});
  }
}

Values KernelEmitter::sweepRowTurn(int stage, llvm::Value* begin, llvm::Value* end,
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

void KernelEmitter::fetchNextRow(int stage, llvm::Value* index) {
  const auto isSweep = [](const ir::KernelStage& other) { return other.sweep; };
  const auto first = kernel_.stages.begin();
  if (walkedAxes_.empty() || !turningAxes().empty() || std::none_of(first, first + stage, isSweep))
    return;
  // Longer rows would not stay in the cache until they are read.
  constexpr int64_t kMostBytes = 1 << 16;
  fetchBlocks(walkedAxes_[0], index, plan_.unroll, [&](llvm::Value* stride, int64_t size) {
    llvm::Value* row = builder_.CreateMul(arguments_.extents[0], number(size));
    llvm::Value* isShort = builder_.CreateICmpSLE(row, number(kMostBytes));
    return builder_.CreateSelect(isShort, stride, number(0));
  });
}

void KernelEmitter::fetchBlocks(int axis, llvm::Value* index, int64_t vectors,
                                llvm::function_ref<llvm::Value*(llvm::Value*, int64_t)> ahead) {
  constexpr int64_t kCacheLine = 64;
  for (size_t i = 0; i < kernel_.operands.size(); ++i) {
    const ir::KernelOperand& operand = kernel_.operands[i];
    llvm::Value* stride = arguments_.operands[i].strides[axis];
    if (operand.role != ir::KernelOperand::Role::Input || !stride ||
        operand.strides[0] != ir::Stride::One) {
      continue;
    }
    const auto size = static_cast<int64_t>(getTypeSize(operand.type));
    llvm::Value* at =
        builder_.CreateAdd(ahead(stride, size), builder_.CreateMul(index, number(size)));
    for (int64_t byte = 0; byte < vectors * kLanes * size; byte += kCacheLine) {
      fetch(builder_.CreatePtrAdd(values_.at(static_cast<int>(i)),
                                  builder_.CreateAdd(at, number(byte))));
    }
  }
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
                   fetchNextRow(stage, i);
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
  // Of each reduction one a vector. They wait in memory, as the parts need the registers.
  std::vector<llvm::AllocaInst*> totals;
  for (const Reduce& reduce : stageReduces) {
    llvm::Value* init = initial(reduce.op, totalTypeOf(reduce), true).value;
    for (size_t u = 0; u < vectors; ++u) {
      totals.push_back(allocate(init->getType()));
      builder_.CreateStore(init, totals.back());
    }
  }
  const auto load = [&](size_t total) -> llvm::Value* {
    return builder_.CreateLoad(totals[total]->getAllocatedType(), totals[total]);
  };
  sweepParts(ir::kColumnChunk, {}, [&](const SweepPart& part, const Values&) {
    const Values parts = sweepColumnPart(stage, part);
    for (size_t i = 0; i < parts.size(); ++i) {
      builder_.CreateStore(addToTotal(stageReduces[i / vectors], load(i), parts[i]), totals[i]);
    }
    return Values{};
  });
  for (size_t r = 0; r < stageReduces.size(); ++r) {
    std::vector<LlvmValue> total;
    for (size_t u = 0; u < vectors; ++u) {
      total.push_back(roundedTotal(stageReduces[r], load(r * vectors + u)));
    }
    values_.setTotal(stageReduces[r].index, total);
  }
}

Values KernelEmitter::sweepColumnPart(int stage, const SweepPart& part) {
  const size_t vectors = values_.lanes().size();
  Values inits;
  for (const Reduce& reduce : reduces(stage)) {
    inits.append(vectors, initial(reduce.op, typeOf(reduce), true).value);
  }
  // Pieces of memory that lie far apart are not foreseen by the processor. Long ones are asked for
  // several rows at a time, so that the memory stays at one place for longer.
  constexpr int64_t kShortPiece = 512, kShortAhead = 1 << 13, kLongAhead = 1 << 15, kTogether = 8;
  int64_t piece = 0;
  for (const ir::KernelOperand& operand : kernel_.operands) {
    const bool isInput = operand.role == ir::KernelOperand::Role::Input;
    piece = std::max<int64_t>(piece, isInput ? getTypeSize(operand.type) * kLanes * vectors : 1);
  }
  const bool fetches = plan_.unroll > 2 && !values_.lanes()[0].mask, together = piece > kShortPiece;
  const auto fetchRow = [&] {
    const int64_t rows = (together ? kLongAhead : kShortAhead) / piece;
    fetchBlocks(
        lowestReducedAxis(), values_.lanes()[0].index, vectors,
        [&](llvm::Value* stride, int64_t) { return builder_.CreateMul(stride, number(rows)); });
  };
  const auto take = [&](llvm::Value* i, const Values& current) {
    ValueScopes::Scope scope(values_);
    values_.moveTo(lowestReducedAxis(), i);
    if (fetches && !together) fetchRow();
    Values next = current;
    emitBody(stage, [&](int vector, int r, LlvmValue value) {
      const Reduce& reduce = reduces(stage)[r];
      llvm::Value*& sum = next[r * vectors + vector];
      sum = math_.combine(reduce.op, {sum, typeOf(reduce)}, value).value;
    });
    return next;
  };
  const auto takeTogether = [&](llvm::Value* begin, const Values& current) {
    llvm::Value* end = smaller(builder_.CreateAdd(begin, number(kTogether)), part.end);
    emitFor(builder_, begin, end, 1, {}, [&](llvm::Value* i, const Values&) {
      ValueScopes::Scope scope(values_);
      values_.moveTo(lowestReducedAxis(), i);
      fetchRow();
      return Values{};
    });
    return emitFor(builder_, begin, end, 1, current, take);
  };
  return sweepTurns(stage, part, inits, [&](const Values& carried) {
    return fetches && together
               ? emitFor(builder_, part.begin, part.end, kTogether, carried, takeTogether)
               : emitFor(builder_, part.begin, part.end, 1, carried, take);
  });
}

}  // namespace fl::codegen::cpu
