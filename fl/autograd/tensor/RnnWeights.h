// How the weights of a recurrent network lie in one tensor, as AutogradOps.h states under rnn().
#pragma once

#include <vector>

#include "fl/tensor/Defines.h"
#include "fl/tensor/TensorBase.h"

namespace fl::detail {

struct RnnParameters {
  Dim inSize, hiddenSize;
  int numLayers;
  RnnMode mode;
  bool bidirectional;

  int directions() const { return bidirectional ? 2 : 1; }
  // Pseudo layers; number l * directions() + d is direction d of layer l.
  int states() const { return numLayers * directions(); }
  // Rows of W and R: hiddenSize for each gate.
  Dim gateRows() const;
  // What a layer reads.
  Dim layerInputSize(int layer) const;
  Dim weightCount() const;
};

// Those of one pseudo layer. The matrices are transposed, as they lie.
struct RnnCellWeights {
  Tensor input;          // W^T (layer input size, gate rows)
  Tensor recurrent;      // R^T (hidden size, gate rows)
  Tensor inputBias;      // (gate rows)
  Tensor recurrentBias;  // (gate rows)
};

// `weights` has weightCount() elements; one entry a pseudo layer.
std::vector<RnnCellWeights> unpackRnnWeights(const Tensor& weights,
                                             const RnnParameters& parameters);
Tensor packRnnWeights(const std::vector<RnnCellWeights>& cells, const Shape& shape);

}  // namespace fl::detail
