// Tiles of maps that cross memory: what a tile reads of an input that lies along axis 1 is copied
// row by row, as the processor fetches it best, and from there transposed in registers, kLanes
// indices of axis 1 at a time. The body then finds it along axis 0 as it finds the other operands.
#include <llvm/Analysis/VectorUtils.h>

#include <algorithm>

#include "fl/codegen/cpu/KernelEmitter.h"

namespace fl::codegen::cpu {

using ir::kLanes;

namespace {

int64_t sizeOf(dtype type) { return static_cast<int64_t>(getTypeSize(type)); }

// Interleaving each row of the first half with its partner of the second half, once for each bit of
// a row's number, moves the number's bits to the place within the row.
Values transposed(llvm::IRBuilder<>& builder, Values rows) {
  const int side = static_cast<int>(rows.size());
  const auto order = llvm::createInterleaveMask(side, 2);
  const llvm::ArrayRef<int> lanes = order;
  for (int step = 1; step < side; step *= 2) {
    Values next;
    for (int i = 0; i < side / 2; ++i) {
      for (const auto half : {lanes.take_front(side), lanes.drop_front(side)}) {
        next.push_back(builder.CreateShuffleVector(rows[i], rows[i + side / 2], half));
      }
    }
    rows = std::move(next);
  }
  return rows;
}

}  // namespace

std::vector<KernelEmitter::TileCopy> KernelEmitter::makeTileCopies() {
  std::vector<TileCopy> copies;
  const auto reserve = [&](int64_t bytes) {
    auto* memory = builder_.CreateAlloca(llvm::ArrayType::get(builder_.getInt8Ty(), bytes));
    memory->setAlignment(llvm::Align(64));
    return memory;
  };
  for (int operand : plan_.crossing) {
    TileCopy copy{operand, kernel_.operands[operand].type, nullptr, nullptr};
    copy.rows = reserve(plan_.tileLength * pitch(copy));
    copy.columns = reserve(kLanes * plan_.tileLength * sizeOf(copy.type));
    copies.push_back(copy);
  }
  return copies;
}

// An odd number of cache lines, so that rows spread over the sets of a cache.
int64_t KernelEmitter::pitch(const TileCopy& copy) const {
  return plan_.tileRuns * sizeOf(copy.type) + 64;
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
  for (const TileCopy& copy : copies_) copyRows(copy, begin, end, first, runs);
  emitEach(builder_, number(0), runs, kLanes, [&](llvm::Value* part) {
    llvm::Value* length = builder_.CreateSub(end, begin);
    for (const TileCopy& copy : copies_) {
      transposeRows(copy, length, part);
      fetchRows(copy, end, first, part);
    }
    llvm::Value* count = smaller(builder_.CreateSub(runs, part), number(kLanes));
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

void KernelEmitter::copyRows(const TileCopy& copy, llvm::Value* begin, llvm::Value* end,
                             llvm::Value* first, llvm::Value* runs) {
  llvm::Type* element = math_.elementType(copy.type);
  llvm::Value* stride = arguments_.operands[copy.operand].strides[0];
  emitEach(builder_, begin, end, 1, [&](llvm::Value* i) {
    llvm::Value* from =
        builder_.CreatePtrAdd(values_.at(copy.operand), builder_.CreateMul(i, stride));
    llvm::Value* offset = builder_.CreateMul(builder_.CreateSub(i, begin), number(pitch(copy)));
    const ElementRow in{builder_.CreateGEP(element, from, first), nullptr, copy.type};
    llvm::Value* to = builder_.CreatePtrAdd(copy.rows, offset);
    const auto move = [&](const Lanes& lanes) {
      llvm::Value* moved = memory_.load(in, lanes).value;
      builder_.CreateAlignedStore(moved, builder_.CreateGEP(element, to, lanes.index),
                                  llvm::Align(sizeOf(copy.type)));
    };
    llvm::Value* whole = endOfWhole(number(0), runs, kLanes);
    emitEach(builder_, number(0), whole, kLanes, [&](llvm::Value* run) { return move({run}); });
    emitEach(builder_, whole, runs, kLanes,
             [&](llvm::Value* run) { return move(maskedLanes(run, runs)); });
  });
}

// Asks for a part of the rows that the next tile copies, so that memory works while this tile does.
// Where there is no next one nothing is read: an address that is only asked for cannot fault.
void KernelEmitter::fetchRows(const TileCopy& copy, llvm::Value* begin, llvm::Value* first,
                              llvm::Value* part) {
  constexpr int64_t kLine = 64;
  const int64_t count = plan_.tileLength * kLanes / plan_.tileRuns;
  llvm::Value* done = builder_.CreateMul(builder_.CreateUDiv(part, number(kLanes)), number(count));
  llvm::Value* from = builder_.CreateAdd(begin, done);
  llvm::Value* stride = arguments_.operands[copy.operand].strides[0];
  emitEach(builder_, from, builder_.CreateAdd(from, number(count)), 1, [&](llvm::Value* i) {
    llvm::Value* row =
        builder_.CreatePtrAdd(values_.at(copy.operand), builder_.CreateMul(i, stride));
    row = builder_.CreateGEP(math_.elementType(copy.type), row, first);
    for (int64_t byte = 0; byte < plan_.tileRuns * sizeOf(copy.type); byte += kLine) {
      fetch(builder_.CreatePtrAdd(row, number(byte)));
    }
  });
}

void KernelEmitter::transposeRows(const TileCopy& copy, llvm::Value* length, llvm::Value* run) {
  // As many rows as a register has elements, and at most half of the registers. Pairs of 16-bit
  // elements, of two rows, are moved as one.
  const int64_t size = sizeOf(copy.type), inOne = size == 2 ? 2 : 1;
  const int64_t side =
      std::min<int64_t>(kLanes, vectorBits_ / 8 / std::max<int64_t>(size, sizeof(float)));
  llvm::Type* element = math_.elementType(copy.type);
  llvm::Type* vector = llvm::FixedVectorType::get(element, side);
  llvm::Type* words = llvm::FixedVectorType::get(builder_.getInt32Ty(), side);
  const auto pairs = llvm::createInterleaveMask(side, 2);
  const auto square = [&](llvm::Value* row, llvm::Value* column) {
    llvm::Value* from =
        builder_.CreatePtrAdd(copy.rows, builder_.CreateMul(row, number(pitch(copy))));
    from = builder_.CreateGEP(element, from, builder_.CreateAdd(run, column));
    llvm::Value* to = builder_.CreateMul(column, number(plan_.tileLength));
    to = builder_.CreateGEP(element, copy.columns, builder_.CreateAdd(to, row));
    const auto load = [&](int64_t i) {
      llvm::Value* address = builder_.CreatePtrAdd(from, number(i * pitch(copy)));
      return builder_.CreateAlignedLoad(vector, address, llvm::Align(size));
    };
    Values rows;
    for (int64_t i = 0; i < side; ++i) {
      rows.push_back(load(i * inOne));
      if (inOne == 1) continue;
      llvm::Value* both = builder_.CreateShuffleVector(rows[i], load(2 * i + 1), pairs);
      rows[i] = builder_.CreateBitCast(both, words);
    }
    rows = transposed(builder_, rows);
    for (int64_t i = 0; i < side; ++i) {
      llvm::Value* address = builder_.CreatePtrAdd(to, number(i * plan_.tileLength * size));
      builder_.CreateAlignedStore(rows[i], address, llvm::Align(size));
    }
  };
  emitEach(builder_, number(0), number(kLanes), side, [&](llvm::Value* column) {
    emitEach(builder_, number(0), length, side * inOne,
             [&](llvm::Value* row) { return square(row, column); });
  });
}

}  // namespace fl::codegen::cpu
