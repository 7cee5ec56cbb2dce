#include "fl/autograd/tensor/RnnWeights.h"

#include <algorithm>
#include <limits>

namespace fl::detail {
namespace {

constexpr Dim kMostElements = std::numeric_limits<Dim>::max();

int gateCount(RnnMode mode) { return mode == RnnMode::LSTM ? 4 : mode == RnnMode::GRU ? 3 : 1; }

}  // namespace

Dim RnnParameters::gateRows() const { return gateCount(mode) * hiddenSize; }

Dim RnnParameters::layerInputSize(int layer) const {
  return layer == 0 ? inSize : directions() * hiddenSize;
}

Dim RnnParameters::weightCount() const {
  const auto columns = [&](__int128 inputs) { return inputs + hiddenSize + 2; };  // of W, R, biases
  const __int128 all = columns(inSize) + (numLayers - 1) * columns(directions() * hiddenSize);
  return static_cast<Dim>(std::min<__int128>(all * directions() * gateRows(), kMostElements));
}

std::vector<RnnCellWeights> unpackRnnWeights(const Tensor& weights, const RnnParameters& p) {
  const Tensor flat = weights.flatten();
  const Dim rows = p.gateRows();
  Dim position = 0;
  const auto take = [&](Dim count) {
    position += count;
    return flat(range(position - count, position));
  };
  std::vector<RnnCellWeights> cells(p.states());
  for (int state = 0; state < p.states(); ++state) {
    const Dim size = p.layerInputSize(state / p.directions());
    cells[state].input = reshape(take(size * rows), {size, rows});
    cells[state].recurrent = reshape(take(p.hiddenSize * rows), {p.hiddenSize, rows});
  }
  for (RnnCellWeights& cell : cells) {
    cell.inputBias = take(rows);
    cell.recurrentBias = take(rows);
  }
  return cells;
}

Tensor packRnnWeights(const std::vector<RnnCellWeights>& cells, const Shape& shape) {
  std::vector<Tensor> parts;
  for (const RnnCellWeights& cell : cells) {
    parts.push_back(cell.input.flatten());
    parts.push_back(cell.recurrent.flatten());
  }
  for (const RnnCellWeights& cell : cells) {
    parts.push_back(cell.inputBias);
    parts.push_back(cell.recurrentBias);
  }
  return reshape(concatenate(parts, 0), shape);
}

}  // namespace fl::detail
