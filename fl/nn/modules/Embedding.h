// Vectors for indices.
#pragma once

#include "fl/nn/modules/Module.h"

namespace fl {

// Columns of a table for integer inputs, as fl::embedding. Parameter: the table (embeddingDim,
// numEmbeddings), uniform within sqrt(1 / embeddingDim).
// Shapes: (...) to (embeddingDim, ...)
class Embedding : public CloneableUnaryModule<Embedding> {
 public:
  Embedding(int embeddingDim, int numEmbeddings);
  // Around a given table. Throws std::invalid_argument unless it has two dimensions.
  explicit Embedding(const Variable& w);
  FL_UNARY_MODULE(embeddingDim_, numEmbeddings_)
  Embedding() = default;

  int embeddingDim_ = 0;
  int numEmbeddings_ = 0;
};

}  // namespace fl
