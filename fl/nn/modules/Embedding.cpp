#include "fl/nn/modules/Embedding.h"

#include <cmath>

#include "fl/autograd/Functions.h"
#include "fl/base/CallSite.h"
#include "fl/base/Error.h"
#include "fl/nn/Init.h"
#include "fl/nn/Serialization.h"

CEREAL_REGISTER_TYPE(fl::Embedding)

namespace fl {

Embedding::Embedding(int embeddingDim, int numEmbeddings)
    : embeddingDim_(embeddingDim), numEmbeddings_(numEmbeddings) {
  FL_API_CONSTRUCTOR();
  FL_USER_CHECK(embeddingDim > 0 && numEmbeddings > 0, "Embedding: sizes must be positive, not ",
                embeddingDim, " and ", numEmbeddings);
  const double bound = std::sqrt(1.0 / embeddingDim);
  params_ = {uniform(embeddingDim, numEmbeddings, -bound, bound)};
}

Embedding::Embedding(const Variable& w) : CloneableUnaryModule<Embedding>({w}) {
  FL_API_CONSTRUCTOR();
  FL_USER_CHECK(w.ndim() == 2, "Embedding: the table ", typeToString(w.type(), w.shape()),
                " must have two dimensions");
  embeddingDim_ = static_cast<int>(w.dim(0));
  numEmbeddings_ = static_cast<int>(w.dim(1));
}

Variable Embedding::forward(const Variable& input) {
  FL_API_ENTRY();
  return embedding(input, params_[0]);
}

std::string Embedding::prettyString() const {
  return detail::concat("Embedding (embeddings: ", numEmbeddings_, ") (dim: ", embeddingDim_, ")");
}

}  // namespace fl
