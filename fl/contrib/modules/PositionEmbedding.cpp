#include "fl/contrib/modules/PositionEmbedding.h"

#include "fl/autograd/Functions.h"
#include "fl/base/CallSite.h"
#include "fl/base/Error.h"
#include "fl/nn/Init.h"
#include "fl/nn/Serialization.h"
#include "fl/nn/Utils.h"

CEREAL_REGISTER_TYPE(fl::PositionEmbedding)

namespace fl {

PositionEmbedding::PositionEmbedding(int32_t layerDim, int32_t maxLen, double dropout)
    : dropout_(dropout) {
  FL_API_CONSTRUCTOR();
  FL_USER_CHECK(layerDim > 0 && maxLen > 0, "PositionEmbedding: sizes must be positive, not ",
                layerDim, " and ", maxLen);
  FL_USER_CHECK(dropout >= 0 && dropout <= 1, "PositionEmbedding: the dropout must be in [0, 1], ",
                "not ", dropout);
  params_ = {uniform(layerDim, maxLen, -0.1, 0.1)};
}

std::vector<Variable> PositionEmbedding::forward(const std::vector<Variable>& input) {
  FL_API_ENTRY();
  FL_USER_CHECK(input.size() == 1, "PositionEmbedding: takes one input, not ", input.size());
  const Variable& x = input[0];
  const Variable& table = params_[0];
  FL_USER_CHECK(x.ndim() == 3 && x.dim(0) == table.dim(0) && x.dim(1) <= table.dim(1),
                "PositionEmbedding: the input must be (", table.dim(0), ", time, batch) with at ",
                "most ", table.dim(1), " times, not ", typeToString(x.type(), x.shape()));
  const Variable positions = detail::toType(table(span, range(x.dim(1))), x.type());
  if (!train_ || dropout_ == 0) {
    return {x + positions};
  }
  // Tiled, because each example drops embeddings of its own.
  return {x + dropout(tileAs(positions, x), dropout_)};
}

std::string PositionEmbedding::prettyString() const { return "Position Embedding Layer"; }

}  // namespace fl
