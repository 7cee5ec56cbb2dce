// Sweeps over the reduced axes: the row tree and the column tree of fl/kernel/Kernel.h.
#include <llvm/Analysis/VectorUtils.h>

#include <algorithm>

#include "fl/codegen/cpu/KernelEmitter.h"

namespace fl::codegen::cpu {

// Rows of a tile of columns that are added to its sums in registers before the next block of it.
constexpr int64_t kRowsTogether = 8;
// Elements of columns that a cache of level 2 keeps from one sweep to the next.
constexpr int64_t kStayingElements = 1 << 18;
// Neighbours of a short row that are reduced at once; such rows have up to kLanes elements.
constexpr int kNeighbours = 4;

LlvmValue KernelEmitter::initial(ir::Op op, dtype type, bool vector) {
  const LlvmValue one = math_.constant(ir::reduceInit(op, type));
  return vector ? math_.spread(one, plan_.lanes) : one;
}

llvm::Value* KernelEmitter::addToTotal(const Reduce& reduce, llvm::Value* total,
                                       llvm::Value* part) {
  const dtype type = totalTypeOf(reduce);
  return math_.combine(reduce.op, {total, type}, math_.cast({part, typeOf(reduce)}, type)).value;
}

std::vector<int> KernelEmitter::turningAxes() const {
  std::vector<int> axes;
  for (int axis = lowestReducedAxis() + 1; axis < kernel_.rank; ++axis)
    if (kernel_.isReduced(axis)) axes.push_back(axis);
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
  for (const Reduce& reduce : stageReduces)
    totals.push_back(initial(reduce.op, totalTypeOf(reduce), false).value);
  totals = sweepParts(ir::kRowChunk, totals, [&](const SweepPart& part, const Values& current) {
    Values lanes;  // of each reduction: a[0..15], a[16..31], t[0..15]
    for (const Reduce& reduce : stageReduces)
      lanes.append(3, initial(reduce.op, typeOf(reduce), true).value);
    lanes = sweepTurns(stage, part, lanes, [&](const Values& carried) {
      return sweepRowTurn(stage, part.begin, part.end, carried);
    });
    Values next;
    for (size_t r = 0; r < stageReduces.size(); ++r) {
      const Reduce& reduce = stageReduces[r];
      const dtype type = typeOf(reduce);
      if (plan_.everySecond[stage]) inOrder(lanes[3 * r], lanes[3 * r + 1]);
      const LlvmValue folded = foldLanes(reduce.op, {lanes[3 * r], type}, {lanes[3 * r + 1], type},
                                         {lanes[3 * r + 2], type});
      next.push_back(addToTotal(reduce, current[r], folded.value));
    }
    return next;
  });
  for (size_t r = 0; r < stageReduces.size(); ++r) {
    const LlvmValue total = {totals[r], totalTypeOf(stageReduces[r])};
    values_.setTotal(stageReduces[r].index, {math_.cast(total, typeOf(stageReduces[r]))});
  }
}

void KernelEmitter::inOrder(llvm::Value*& even, llvm::Value*& odd) {
  const auto order = llvm::createInterleaveMask(ir::kLanes, 2);
  const llvm::ArrayRef<int> lanes = order;
  llvm::Value* whole = builder_.CreateShuffleVector(even, odd, lanes.take_front(ir::kLanes));
  odd = builder_.CreateShuffleVector(even, odd, lanes.drop_front(ir::kLanes));
  even = whole;
}

Values KernelEmitter::sweepRowTurn(int stage, llvm::Value* begin, llvm::Value* end,
                                   const Values& lanes) {
  const size_t count = reduces(stage).size();
  Values pairs, tails;
  for (size_t r = 0; r < count; ++r) {
    pairs.append({lanes[3 * r], lanes[3 * r + 1]});
    tails.push_back(lanes[3 * r + 2]);
  }
  llvm::Value* middle = endOfWhole(begin, end, int64_t{2} * plan_.lanes);
  pairs = sweepFullVectors(stage, begin, middle, pairs);
  tails = sweepTail(stage, middle, end, tails);
  Values result;
  for (size_t r = 0; r < count; ++r) result.append({pairs[2 * r], pairs[2 * r + 1], tails[r]});
  return result;
}

bool KernelEmitter::asksForNextRow(int stage) const {
  const auto begin = kernel_.stages.begin();
  const auto first = std::ranges::find(kernel_.stages, true, &ir::KernelStage::sweep);
  const bool isLong = std::ranges::count(plan_.keptRows, first - begin, &ir::KeptRow::writer) > 0;
  return walkedAxes_.size() > 0 && turningAxes().empty() &&
         std::ranges::count(begin, begin + stage, true, &ir::KernelStage::sweep) == !isLong;
}

Values KernelEmitter::distancesOfRows(int axis, int64_t steps, int64_t beyond, int64_t mostBytes) {
  constexpr int64_t kFew = 1 << 11;
  Values distances(kernel_.operands.size());
  for (size_t i = 0; i < distances.size(); ++i) {
    const auto& [role, type, strides] = kernel_.operands[i];
    llvm::Value* stride = arguments_.operands[i].strides[axis];
    if (role != ir::KernelOperand::Role::Input || !stride || strides[0] != ir::Stride::One)
      continue;
    llvm::Value* row = builder_.CreateMul(arguments_.extents[0], number(getTypeSize(type)));
    const auto fits = [&](int64_t bytes) { return builder_.CreateICmpSLE(row, number(bytes)); };
    llvm::Value* count = builder_.CreateSelect(fits(mostBytes), number(steps), number(0));
    count = builder_.CreateSelect(fits(kFew), number(2 * steps), count);
    count = builder_.CreateSelect(fits(beyond), number(0), count);
    distances[i] = builder_.CreateMul(stride, count);
  }
  return distances;
}

// With one vector a turn the two accumulators of a reduction change places each turn; their number
// of turns is even, so that they end where they began.
Values KernelEmitter::sweepFullVectors(int stage, llvm::Value* begin, llvm::Value* end,
                                       const Values& pairs) {
  const bool rotates = plan_.unroll == 1;
  // Longer rows would not stay in the cache of level 1, and of level 2, until they are read.
  constexpr int64_t kNear = 1 << 14, kFar = 1 << 16;
  const bool asks = asksForNextRow(stage);
  const Values near = asks ? distancesOfRows(walkedAxes_[0], 1, 0, kNear) : Values();
  const Values far = asks ? distancesOfRows(walkedAxes_[0], 1, kNear, kFar) : Values();
  return emitFor(builder_, begin, end, int64_t{plan_.lanes} * plan_.unroll, pairs,
                 [&](llvm::Value* i, const Values& current) {
                   ValueScopes::Scope scope(values_);
                   values_.setLanes(fullLanes(i, plan_.unroll));
                   fetchAhead(near, i, true);
                   fetchAhead(far, i);
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
  return emitFor(builder_, begin, end, plan_.lanes, tails,
                 [&](llvm::Value* i, const Values& current) {
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
  for (int width = plan_.lanes / 2; width > 1; width /= 2) {
    const auto half = [&](int from) -> LlvmValue {
      const auto picked = llvm::createSequentialMask(from, width, 0);
      return {builder_.CreateShuffleVector(sum.value, picked), sum.type};
    };
    sum = math_.combine(op, half(0), half(width));
  }
  const auto lane = [&](uint64_t index) -> LlvmValue {
    return {builder_.CreateExtractElement(sum.value, index), sum.type};
  };
  return math_.combine(op, lane(0), lane(1));
}

llvm::Value* KernelEmitter::columnTile() {
  if (!plan_.columnsStay) return number(plan_.columnTile);
  const int64_t shortest = int64_t{plan_.lanes} * plan_.unroll;
  llvm::Value* rows = number(1);
  for (int axis = 0; axis < kernel_.rank; ++axis)
    if (kernel_.isReduced(axis)) rows = builder_.CreateMul(rows, arguments_.extents[axis]);
  llvm::Value* fitting = builder_.CreateUDiv(number(kStayingElements), larger(rows, number(1)));
  fitting = smaller(endOfWhole(number(0), fitting, shortest), number(plan_.columnTile));
  return larger(fitting, number(shortest));
}

void KernelEmitter::placeSums(llvm::Value* tileBegin) {
  llvm::BasicBlock& entry = builder_.GetInsertBlock()->getParent()->getEntryBlock();
  llvm::IRBuilder<> atEntry(&entry, entry.begin());
  const auto row = [&](dtype type) -> ElementRow {
    const auto size = static_cast<int64_t>(getTypeSize(type));
    auto* memory = atEntry.CreateAlloca(builder_.getInt8Ty(), number(plan_.columnTile * size));
    memory->setAlignment(llvm::Align(64));
    return {builder_.CreatePtrAdd(memory, builder_.CreateMul(tileBegin, number(-size))), nullptr,
            type};
  };
  for (const ir::KernelStage& stage : kernel_.stages)
    for (const Reduce& reduce : stage.reduces)
      sums_.push_back({row(typeOf(reduce)), row(totalTypeOf(reduce))});
}

void KernelEmitter::emitColumns(llvm::Value* begin, llvm::Value* end) {
  llvm::Value* tile = columnTile();
  emitWhile(builder_, end, {begin}, [&](const Values& at) {
    placeSums(at[0]);
    llvm::Value* tileEnd = smaller(builder_.CreateAdd(at[0], tile), end);
    for (int stage = 0; stage < static_cast<int>(kernel_.stages.size()); ++stage) {
      if (kernel_.stages[stage].sweep) {
        sweepColumns(stage, at[0], tileEnd);
      } else {
        forBlocks(at[0], tileEnd, [&] {
          setTotals(stage);
          emitBody(stage, [](int, int, LlvmValue) {});
        });
      }
    }
    return Values{tileEnd};
  });
}

void KernelEmitter::setTotals(int stage) {
  for (int value : plan_.needed[stage]) {
    const ir::KernelValue& total = kernel_.values[value];
    if (total.form != ir::KernelValue::Form::Total) continue;
    std::vector<LlvmValue> vectors;
    for (const Lanes& lanes : values_.lanes())
      vectors.push_back(
          math_.cast(memory_.load(sums_[total.index].totals, {lanes.index}), total.type));
    values_.setTotal(total.index, vectors);
  }
}

void KernelEmitter::sweepColumns(int stage, llvm::Value* begin, llvm::Value* end) {
  const auto each = [&](llvm::function_ref<void(const Reduce&, const TileSums&, Lanes)> body) {
    emitEach(builder_, begin, end, plan_.lanes, [&](llvm::Value* i) {
      for (const Reduce& reduce : reduces(stage)) body(reduce, sums_[reduce.index], {i});
    });
  };
  const auto clear = [&](ElementRow TileSums::* row) {
    each([&](const Reduce& reduce, const TileSums& sums, Lanes lanes) {
      memory_.keep(initial(reduce.op, (sums.*row).type, true), sums.*row, lanes);
    });
  };
  clear(&TileSums::totals);
  const int64_t together = plan_.sideBySide ? ir::kLanes : kRowsTogether;
  sweepParts(ir::kColumnChunk, {}, [&](const SweepPart& part, const Values&) {
    clear(&TileSums::parts);
    sweepTurns(stage, part, {}, [&](const Values&) {
      llvm::Value* rest = part.begin;
      if (plan_.rowsTogether > 0) {
        rest = endOfWhole(part.begin, part.end, plan_.rowsTogether);
        emitEach(builder_, part.begin, rest, plan_.rowsTogether, [&](llvm::Value* first) {
          Rows rows;
          for (int64_t i = 0; i < plan_.rowsTogether; ++i) {
            llvm::Value* row = builder_.CreateAdd(first, number(i));
            rows.emplace_back(row, values_.placesAt(lowestReducedAxis(), row));
          }
          forBlocks(begin, end, [&] { sweepBlock(stage, rows, first, first); });
        });
      }
      emitEach(builder_, rest, part.end, together, [&](llvm::Value* first) {
        llvm::Value* last = smaller(builder_.CreateAdd(first, number(together)), part.end);
        forBlocks(begin, end, [&] { sweepBlock(stage, {}, first, last); });
      });
      return Values{};
    });
    each([&](const Reduce& reduce, const TileSums& sums, Lanes lanes) {
      llvm::Value* total = memory_.load(sums.totals, lanes).value;
      total = addToTotal(reduce, total, memory_.load(sums.parts, lanes).value);
      memory_.keep({total, sums.totals.type}, sums.totals, lanes);
    });
    return Values{};
  });
}

void KernelEmitter::sweepBlock(int stage, const Rows& rows, llvm::Value* first, llvm::Value* last) {
  setTotals(stage);
  values_.compute(stage);
  const std::vector<Lanes> lanes = values_.lanes();
  Values ahead;
  if (stores_ == ir::Stores::Fetching && plan_.rowsTogether == 0)
    ahead = distancesOfRows(lowestReducedAxis(), kRowsTogether, 0, INT64_MAX);
  const auto row = [&](size_t i) { return sums_[reduces(stage)[i / lanes.size()].index].parts; };
  const auto add = [&](Values sums) {
    emitBody(stage, [&](int vector, int r, LlvmValue value) {
      const Reduce& reduce = reduces(stage)[r];
      llvm::Value*& sum = sums[r * lanes.size() + vector];
      sum = math_.combine(reduce.op, {sum, typeOf(reduce)}, value).value;
    });
    return sums;
  };
  const auto sweep = [&](llvm::Value* begin, llvm::Value* end, const Values& sums) {
    return emitFor(builder_, begin, end, 1, sums, [&](llvm::Value* index, const Values& current) {
      ValueScopes::Scope scope(values_);
      values_.moveTo(lowestReducedAxis(), index);
      fetchAhead(ahead, lanes[0].index);
      return add(current);
    });
  };
  Values sums;
  for (size_t i = 0; i < reduces(stage).size() * lanes.size(); ++i)
    sums.push_back(memory_.load(row(i), {lanes[i % lanes.size()].index}).value);
  const bool isRow = plan_.sideBySide && !sums.empty();
  for (const auto& [row, places] : rows) {
    ValueScopes::Scope scope(values_);
    values_.moveTo(lowestReducedAxis(), row, places);
    sums = add(sums);
  }
  if (rows.empty())
    sums = isRow ? sweepShortRows(stage, last, sums, sweep) : sweep(first, last, sums);
  for (size_t i = 0; i < sums.size(); ++i)
    memory_.keep({sums[i], row(i).type}, row(i), lanes[i % lanes.size()]);
}

// The tree of foldLanes() for elements that fill no whole vectors: those that are 2 * kNeighbours
// apart are added first, then the two halves, which change places each turn of an even number.
Values KernelEmitter::sweepShortRows(int stage, llvm::Value* end, const Values& initials,
                                     SweepElements sweep) {
  constexpr int kBoth = 2 * kNeighbours;
  const size_t count = initials.size();
  Values sums;  // of each element of both halves, those of each reduction
  for (int i = 0; i < kBoth; ++i) sums.append(initials);
  llvm::Value* turnsEnd = builder_.CreateAnd(builder_.CreateAdd(end, number(kBoth - 1)), -kBoth);
  sums = emitFor(builder_, number(0), turnsEnd, kNeighbours, sums,
                 [&](llvm::Value* turn, const Values& current) {
                   Values next(current.begin() + kNeighbours * count, current.end());
                   for (int i = 0; i < kNeighbours; ++i) {
                     llvm::Value* at = builder_.CreateAdd(turn, number(i));
                     const auto* from = current.begin() + i * count;
                     next.append(sweep(at, smaller(builder_.CreateAdd(at, number(1)), end),
                                       Values(from, from + count)));
                   }
                   return next;
                 });
  for (size_t width = kNeighbours * count; width >= count; width /= 2) {
    for (size_t i = 0; i < width; ++i) {
      const Reduce& reduce = reduces(stage)[i % count];
      const LlvmValue sum{sums[i], typeOf(reduce)}, other{sums[i + width], typeOf(reduce)};
      sums[i] = math_.combine(reduce.op, sum, other).value;
    }
  }
  sums.resize(count);
  return sums;
}

}  // namespace fl::codegen::cpu
