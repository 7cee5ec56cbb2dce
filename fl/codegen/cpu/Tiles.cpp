// Tiles of maps that cross memory: what a tile reads of an input that lies along axis 1 is
// transposed in registers, whole cache lines of some rows at a time, while the rows of the next
// tile are asked for. The body then finds it along axis 0 as it finds the other operands. Parts of
// tiles at the ends of axes are copied first, to where whole ones can be read.
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
    for (const TileCopy& copy : copies_) {
      transposeRows(copy, begin, end, builder_.CreateAdd(first, part), count);
      fetchRows(copy, end, first, part);
    }
    emitEach(builder_, number(0), count, 1, [&](llvm::Value* run) {
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

void KernelEmitter::transposeRows(const TileCopy& copy, llvm::Value* begin, llvm::Value* end,
                                  llvm::Value* line, llvm::Value* count) {
  // As many rows as a register has elements, and at most half of the registers. Pairs of 16-bit
  // elements, of two rows, are moved as one.
  const int64_t size = sizeOf(copy.type), inOne = size == 2 ? 2 : 1;
  const int64_t side =
      std::min<int64_t>(kLanes, vectorBits_ / 8 / std::max<int64_t>(size, sizeof(float)));
  const int64_t step = side * inOne;
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
    llvm::Type* vector = llvm::FixedVectorType::get(element, step);
    llvm::Value* at = builder_.CreatePtrAdd(from, builder_.CreateMul(row, stride));
    at = builder_.CreateGEP(element, at, column);
    Values rows;
    for (int64_t i = 0; i < step; ++i, at = builder_.CreatePtrAdd(at, stride))
      rows.push_back(builder_.CreateAlignedLoad(vector, at, llvm::Align(size)));
    for (int part = 0; part < inOne; ++part) {
      const Values columns = transposed(builder_, inOne == 1 ? rows : pairs(builder_, rows, part));
      for (int i = 0; i < side; ++i) {
        const int moved = inOne == 1 ? i : columnOfPair(i, part);
        llvm::Value* to =
            builder_.CreateMul(builder_.CreateAdd(column, number(moved)), number(plan_.tileLength));
        to = builder_.CreateGEP(element, copy.columns, builder_.CreateAdd(to, row));
        builder_.CreateAlignedStore(columns[i], to, llvm::Align(size));
      }
    }
  };
  emitEach(builder_, number(0), count, step, [&](llvm::Value* column) {
    emitEach(builder_, number(0), length, step,
             [&](llvm::Value* row) { return square(row, column); });
  });
}

}  // namespace fl::codegen::cpu
