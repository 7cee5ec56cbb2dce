#include "fl/kernel/cuda/Scatter.h"

#include <algorithm>
#include <bit>

namespace fl::ir::cuda {
namespace {

// Of a line, that a thread takes; kEach in fl/codegen/cuda/Scatter.cpp.
constexpr int64_t kEach = 4;

int64_t threadsOf(const ScatterShape& shape) {
  const uint64_t elements = shape.lineInner * shape.lineOuter;
  return std::clamp<int64_t>(std::bit_ceil(elements), kWarp, kBlockThreads);
}

// Blocks for each line.
int64_t chunksOf(const ScatterShape& shape) {
  const int64_t each = kEach * threadsOf(shape);
  return (shape.lineInner * shape.lineOuter + each - 1) / each;
}

int64_t linesOf(const ScatterShape& shape) {
  return shape.indexInner * shape.length * shape.indexOuter;
}

}  // namespace

std::optional<ScatterShape> scatterShape(const std::vector<ValueType>& operands, const Attrs& attrs,
                                         const ValueType& result) {
  const Shape &index = operands[1].shape, &from = operands[2].shape;
  const auto axis = static_cast<int>(attrs[0]);
  ScatterShape shape{1, from[axis], result.shape[axis], 1, 1, 1, 1};
  int64_t outer = 1;
  for (int i = 0; i < from.ndim(); ++i) {
    if (i == axis) continue;
    (i < axis ? shape.inner : outer) *= from[i];
    (i < axis ? shape.indexInner : shape.indexOuter) *= index[i];
  }
  const auto isWhole = [](int64_t of, int64_t all) { return of == 1 || of == all; };
  if (!isWhole(shape.indexInner, shape.inner) || !isWhole(shape.indexOuter, outer)) return {};
  shape.lineInner = shape.indexInner == shape.inner ? 1 : shape.inner;
  shape.lineOuter = shape.indexOuter == outer ? 1 : outer;
  const double reads = static_cast<double>(linesOf(shape)) * static_cast<double>(chunksOf(shape)) *
                       static_cast<double>(std::min(shape.length, shape.bound));
  return reads <= kMostReads ? std::optional(shape) : std::nullopt;
}

Launch launchOf(const ScatterShape& shape) {
  constexpr int64_t kMostBlocks = 1 << 20;  // which take several lines then
  const int64_t blocks = std::min(kMostBlocks, linesOf(shape) * chunksOf(shape));
  return {blocks, {static_cast<int>(threadsOf(shape)), 1, 1}};
}

std::vector<uint64_t> packArguments(const ScatterShape& shape, void* result, const void* index,
                                    const void* from, GatherReport* report) {
  const auto word = [](const auto* pointer) { return reinterpret_cast<uint64_t>(pointer); };
  std::vector<uint64_t> words = {word(result), word(index), word(from), word(report)};
  const int64_t chunks = chunksOf(shape);
  for (const int64_t number : {shape.inner, shape.length, shape.bound, shape.indexInner,
                               shape.lineInner, shape.lineOuter, chunks, linesOf(shape) * chunks}) {
    words.push_back(static_cast<uint64_t>(number));
  }
  return words;
}

}  // namespace fl::ir::cuda
