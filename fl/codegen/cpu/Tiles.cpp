// Tiles of maps that cross memory: what a tile reads of an input that lies along axis 1 is
// transposed in registers, whole cache lines of some rows at a time, while the rows of the next
// tile are asked for. The body then finds it along axis 0 as it finds the other operands; one
// that only moves it stores it from the registers if its results are aligned. Parts of tiles at the
// ends of axes are copied first, to where whole ones can be read.
#include <llvm/Analysis/VectorUtils.h>

#include <algorithm>

#include "fl/codegen/cpu/KernelEmitter.h"

namespace fl::codegen::cpu {

using ir::kLanes;

namespace {

// Indices of axis 1 that are transposed together: a cache line of 16-bit elements.
constexpr int64_t kGroup = int64_t{2} * kLanes;

int64_t sizeOf(dtype type) { return static_cast<int64_t>(getTypeSize(type)); }

// Interleaving each row of the first half with its partner of the second half, once for each bit of
// a row's number, moves the number's bits to the place within the row.
Values transposed(llvm::IRBuilder<>& builder, Values rows) {
  const int side = static_cast<int>(rows.size());
  const auto order = llvm::createInterleaveMask(side, 2);
  const llvm::ArrayRef<int> lanes = order;
  for (int step = 1; step < side; step *= 2) {
    Values next;
    for (int i = 0; i < side / 2; ++i)
      for (const auto half : {lanes.take_front(side), lanes.drop_front(side)})
        next.push_back(builder.CreateShuffleVector(rows[i], rows[i + side / 2], half));
    rows = std::move(next);
  }
  return rows;
}

// Where pair i of a part stands in rows of 16-bit elements: instructions that interleave two rows
// take every second 4 elements.
int columnOfPair(int i, int part) { return i / 4 * 8 + part * 4 + i % 4; }

// Half of the elements of each two rows, interleaved, as words.
Values pairs(llvm::IRBuilder<>& builder, const Values& rows, int part) {
  const int count = static_cast<int>(rows.size());
  Values result;
  llvm::SmallVector<int> picked;
  for (int i = 0; i < count / 2; ++i)
    picked.append({columnOfPair(i, part), count + columnOfPair(i, part)});
  for (int i = 0; i < count; i += 2) {
    llvm::Value* both = builder.CreateShuffleVector(rows[i], rows[i + 1], picked);
    auto* words = llvm::FixedVectorType::get(builder.getInt32Ty(), count / 2);
    result.push_back(builder.CreateBitCast(both, words));
  }
  return result;
}

}  // namespace

std::vector<KernelEmitter::TileCopy> KernelEmitter::makeTileCopies() {
  std::vector<TileCopy> copies;
  for (int operand : plan_.crossing) {
    TileCopy copy{operand, kernel_.operands[operand].type, nullptr, nullptr};
    for (llvm::Value** part : {&copy.rows, &copy.columns}) {
      const int64_t bytes = kGroup * plan_.tileLength * sizeOf(copy.type);
      auto* memory = builder_.CreateAlloca(llvm::ArrayType::get(builder_.getInt8Ty(), bytes));
      memory->setAlignment(llvm::Align(64));
      *part = memory;
    }
    copies.push_back(copy);
  }
  return copies;
}

void KernelEmitter::emitTiles(llvm::Value* begin, llvm::Value* end, llvm::Value* first,
                              llvm::Value* runs) {
  computeScalarsOfAllStages();
  emitEach(builder_, begin, end, plan_.tileLength, [&](llvm::Value* from) {
    llvm::Value* limit = builder_.CreateAdd(from, number(plan_.tileLength));
    emitTile(from, smaller(limit, end), first, runs);
  });
}

void KernelEmitter::emitTile(llvm::Value* begin, llvm::Value* end, llvm::Value* first,
                             llvm::Value* runs) {
  emitEach(builder_, number(0), runs, kGroup, [&](llvm::Value* part) {
    llvm::Value* count = smaller(builder_.CreateSub(runs, part), number(kGroup));
    llvm::Value* moved = nullptr;
    if (plan_.movedRows > 0) moved = isMoved(builder_.CreateSub(end, begin), count);
    for (const TileCopy& copy : copies_) {
      transposeRows(copy, begin, end, builder_.CreateAdd(first, part), count, moved);
      if (!moved) fetchRows(copy, end, first, part);
    }
    llvm::Value* done = moved ? builder_.CreateSelect(moved, count, number(0)) : number(0);
    emitEach(builder_, done, count, 1, [&](llvm::Value* run) {
      ValueScopes::Scope scope(values_);
      values_.moveTo(1, builder_.CreateAdd(first, builder_.CreateAdd(part, run)));
      for (const TileCopy& copy : copies_) {
        llvm::Value* start = builder_.CreateMul(run, number(plan_.tileLength));
        llvm::Value* elements = builder_.CreateSub(start, begin);
        values_.readCopy(copy.operand,
                         builder_.CreateGEP(math_.elementType(copy.type), copy.columns, elements));
      }
      computeScalarsOfAllStages();
      emitMap(begin, end);
    });
  });
}

// Asks for a part of the rows that the next tile reads, so that memory works while this tile does.
// Where there is no next one nothing is read: an address that is only asked for cannot fault.
void KernelEmitter::fetchRows(const TileCopy& copy, llvm::Value* begin, llvm::Value* first,
                              llvm::Value* part) {
  const int64_t count = plan_.tileLength * kGroup / plan_.tileRuns;
  llvm::Value* done = builder_.CreateMul(builder_.CreateUDiv(part, number(kGroup)), number(count));
  llvm::Value* from = builder_.CreateAdd(begin, done);
  llvm::Value* stride = arguments_.operands[copy.operand].strides[0];
  emitEach(builder_, from, builder_.CreateAdd(from, number(count)), 1, [&](llvm::Value* i) {
    llvm::Value* row =
        builder_.CreatePtrAdd(values_.at(copy.operand), builder_.CreateMul(i, stride));
    row = builder_.CreateGEP(math_.elementType(copy.type), row, first);
    fetch(row, plan_.tileRuns * sizeOf(copy.type));
  });
}

void KernelEmitter::copyRows(const TileCopy& copy, llvm::Value* from, llvm::Value* rows,
                             llvm::Value* count) {
  llvm::Type* element = math_.elementType(copy.type);
  llvm::Value* stride = arguments_.operands[copy.operand].strides[0];
  emitEach(builder_, number(0), rows, 1, [&](llvm::Value* i) {
    const ElementRow in{builder_.CreatePtrAdd(from, builder_.CreateMul(i, stride)), nullptr,
                        copy.type};
    llvm::Value* to = builder_.CreateGEP(element, copy.rows, builder_.CreateMul(i, number(kGroup)));
    emitEach(builder_, number(0), count, kLanes, [&](llvm::Value* run) {
      builder_.CreateAlignedStore(memory_.load(in, maskedLanes(run, count)).value,
                                  builder_.CreateGEP(element, to, run),
                                  llvm::Align(sizeOf(copy.type)));
    });
  });
}

// As many rows as a register has elements, and at most half of the registers. Pairs of 16-bit
// elements, of two rows, are moved as one.
int64_t KernelEmitter::sideOf(dtype type) const {
  const int64_t size = sizeOf(type), bytes = vectorBits_ / 8;
  return std::min<int64_t>(kLanes, bytes / std::max<int64_t>(size, sizeof(float))) *
         (size == 2 ? 2 : 1);
}

Values KernelEmitter::columnsOf(dtype type, llvm::Value* at, llvm::Value* stride) {
  const int64_t side = sideOf(type), size = sizeOf(type);
  llvm::Type* vector = llvm::FixedVectorType::get(math_.elementType(type), side);
  Values rows, columns(side);
  for (int64_t i = 0; i < side; ++i, at = builder_.CreatePtrAdd(at, stride))
    rows.push_back(builder_.CreateAlignedLoad(vector, at, llvm::Align(size)));
  if (size != 2) return transposed(builder_, rows);
  for (int part = 0; part < 2; ++part) {
    const Values words = transposed(builder_, pairs(builder_, rows, part));
    for (int i = 0; i < side / 2; ++i)
      columns[columnOfPair(i, part)] = builder_.CreateBitCast(words[i], vector);
  }
  return columns;
}

llvm::Value* KernelEmitter::isMoved(llvm::Value* length, llvm::Value* count) {
  llvm::Value* rest = builder_.CreateOr(builder_.CreateAnd(length, number(plan_.movedRows - 1)),
                                        builder_.CreateXor(count, number(kGroup)));
  for (size_t i = 0; i < kernel_.operands.size(); ++i) {
    const auto& [role, type, strides] = kernel_.operands[i];
    if (role != KernelOperand::Role::Output) continue;
    llvm::Value* place = builder_.CreatePtrToInt(values_.at(i), builder_.getInt64Ty());
    if (llvm::Value* stride = arguments_.operands[i].strides[1])
      place = builder_.CreateOr(place, stride);
    const int64_t bytes = std::min<int64_t>(64, plan_.movedRows * sizeOf(type));
    rest = builder_.CreateOr(rest, builder_.CreateAnd(place, number(bytes - 1)));
  }
  return builder_.CreateIsNull(rest);
}

void KernelEmitter::moveSquares(const std::vector<Values>& squares, int64_t side, llvm::Value* row,
                                llvm::Value* line) {
  for (int64_t i = 0; i < side; ++i) {
    ValueScopes::Scope run(values_);
    values_.moveTo(1, builder_.CreateAdd(line, number(i)));
    for (int64_t from = 0; from < plan_.movedRows; from += plan_.lanes) {
      ValueScopes::Scope lanes(values_);
      Values pieces;
      for (int64_t piece = from; piece < from + plan_.lanes; piece += side)
        pieces.push_back(squares[piece / side][i]);
      llvm::Value* elements = llvm::concatenateVectors(builder_, pieces);
      if (side > plan_.lanes) {
        const auto taken = llvm::createSequentialMask(from % side, plan_.lanes, 0);
        elements = builder_.CreateShuffleVector(elements, taken);
      }
      values_.readCopy(plan_.crossing[0], elements);
      values_.setLanes(fullLanes(builder_.CreateAdd(row, number(from)), 1));
      emitBody(0, [](int, int, LlvmValue) {});
    }
  }
}

void KernelEmitter::transposeRows(const TileCopy& copy, llvm::Value* begin, llvm::Value* end,
                                  llvm::Value* line, llvm::Value* count, llvm::Value* moved) {
  const int64_t size = sizeOf(copy.type), side = sideOf(copy.type);
  const int64_t step = moved ? plan_.movedRows : side;
  llvm::Type* element = math_.elementType(copy.type);
  llvm::Value* length = builder_.CreateSub(end, begin);
  llvm::Value* stride = arguments_.operands[copy.operand].strides[0];
  llvm::Value* from =
      builder_.CreatePtrAdd(values_.at(copy.operand), builder_.CreateMul(begin, stride));
  from = builder_.CreateGEP(element, from, line);
  llvm::Value* isWhole = builder_.CreateICmpEQ(count, number(kGroup));
  isWhole = builder_.CreateAnd(isWhole,
                               builder_.CreateIsNull(builder_.CreateAnd(length, number(step - 1))));
  copyRows(copy, from, builder_.CreateSelect(isWhole, number(0), length), count);
  from = builder_.CreateSelect(isWhole, from, copy.rows);
  stride = builder_.CreateSelect(isWhole, stride, number(kGroup * size));
  const auto square = [&](llvm::Value* row, llvm::Value* column) {
    llvm::Value* at = builder_.CreatePtrAdd(from, builder_.CreateMul(row, stride));
    at = builder_.CreateGEP(element, at, column);
    std::vector<Values> squares;
    for (int64_t i = 0; i < step; i += side) {
      squares.push_back(columnsOf(copy.type, at, stride));
      at = builder_.CreatePtrAdd(at, builder_.CreateMul(stride, number(side)));
    }
    const auto keep = [&] {
      for (int64_t i = 0; i < side; ++i) {
        llvm::Value* run = builder_.CreateAdd(column, number(i));
        llvm::Value* to = builder_.CreateMul(run, number(plan_.tileLength));
        to = builder_.CreateGEP(element, copy.columns, builder_.CreateAdd(to, row));
        for (const Values& columns : squares) {
          builder_.CreateAlignedStore(columns[i], to, llvm::Align(size));
          to = builder_.CreateGEP(element, to, number(side));
        }
      }
      return number(0);
    };
    const auto move = [&] {
      moveSquares(squares, side, builder_.CreateAdd(begin, row), builder_.CreateAdd(line, column));
      return number(0);
    };
    moved ? emitChoice(builder_, moved, move, keep) : keep();
  };
  emitEach(builder_, number(0), count, side, [&](llvm::Value* column) {
    emitEach(builder_, number(0), length, step,
             [&](llvm::Value* row) { return square(row, column); });
  });
}

}  // namespace fl::codegen::cpu
