#include <cmath>

#include "fl/autograd/Functions.h"
#include "fl/autograd/Internal.h"
#include "fl/base/CallSite.h"

namespace fl {

using detail::checkSameType;
using detail::toType;

namespace {

std::string words(const Variable& variable) {
  return typeToString(variable.type(), variable.shape());
}

void checkAttention(const Variable& query, const Variable& key, const Variable& value,
                    int32_t nHeads) {
  checkSameType("multiheadAttention", query, key, value);
  FL_USER_CHECK(query.ndim() == 3 && key.ndim() == 3 && key.shape() == value.shape() &&
                    query.dim(1) == key.dim(1) && query.dim(2) == key.dim(2),
                "multiheadAttention: query ", words(query), ", key ", words(key), " and value ",
                words(value), " must be (time, features, batch), with one time of key and value");
  FL_USER_CHECK(nHeads > 0 && query.dim(1) % nHeads == 0, "multiheadAttention: ", nHeads,
                " heads do not divide the ", query.dim(1), " features of query ", words(query));
}

void checkMask(const char* name, const Variable& mask, const Shape& shape) {
  FL_USER_CHECK(mask.shape() == shape, "multiheadAttention: ", name, " ", words(mask),
                " must have shape ", shape);
}

// What posEmb adds to the scores (time, keys, heads * batch) of the queries (time, features a head,
// heads * batch).
Variable positionScores(const Variable& posEmb, const Variable& query, Dim keys, int32_t offset) {
  const bool isOneForAll = posEmb.ndim() == 2;
  const bool isOneForEach = posEmb.ndim() == 3 && posEmb.dim(2) == query.dim(2);
  FL_USER_CHECK((isOneForAll || isOneForEach) && posEmb.dim(1) == query.dim(1),
                "multiheadAttention: posEmb ", words(posEmb), " must be (positions, ", query.dim(1),
                ") or (positions, ", query.dim(1), ", ", query.dim(2), ")");
  const Variable products = matmulNT(toType(posEmb, query.type()), query);
  const Variable rotated = relativePositionalEmbeddingRotate(products);
  const Dim first = posEmb.dim(0) / 2 - offset;
  FL_USER_CHECK(first >= 0 && first + keys <= rotated.dim(0), "multiheadAttention: posEmb ",
                words(posEmb), " is too short for ", query.dim(0), " queries at offset ", offset,
                " and ", keys, " keys");
  return transpose(rotated(range(first, first + keys)), {1, 0, 2});
}

}  // namespace

// Zeros below each column, and one element less a column: the next begins one row lower.
Variable relativePositionalEmbeddingRotate(const Variable& input) {
  FL_API_ENTRY();
  FL_USER_CHECK(input.ndim() >= 2, "relativePositionalEmbeddingRotate: input ", words(input),
                " must have two dimensions at least");
  const Dim columns = input.dim(1);
  Shape shape = input.shape();
  shape[0] += columns - 1;
  const Variable column =
      moddims(padding(input, {{0, static_cast<int>(columns)}}, 0), {(shape[0] + 1) * columns, -1});
  return moddims(column(range(shape[0] * columns)), shape);
}

Variable multiheadAttention(const Variable& query, const Variable& key, const Variable& value,
                            const Variable& posEmb, const Variable& mask, const Variable& padMask,
                            const int32_t nHeads, const double pDropout, const int32_t offset) {
  FL_API_ENTRY();
  checkAttention(query, key, value, nHeads);
  const Dim time = query.dim(0), keys = key.dim(0), batch = query.dim(2);
  const Dim features = query.dim(1) / nHeads;
  const auto heads = [&](const Variable& x) { return moddims(x, {0, features, nHeads * batch}); };

  const Variable q = heads(query) / std::sqrt(static_cast<double>(features));
  Variable scores = matmulNT(q, heads(key));
  if (!posEmb.isEmpty()) {
    scores = scores + positionScores(posEmb, q, keys, offset);
  }
  if (!mask.isEmpty()) {
    checkMask("mask", mask, {time, keys});
    scores = scores + toType(mask, scores.type());
  }
  if (!padMask.isEmpty()) {
    checkMask("padMask", padMask, {keys, batch});
    const Variable each = moddims(toType(padMask, scores.type()), {1, keys, 1, batch});
    scores = moddims(moddims(scores, {time, keys, nHeads, batch}) + each, scores.shape());
  }
  const Variable weights = dropout(softmax(scores, 1), pDropout);
  return moddims(matmul(toType(weights, value.type()), heads(value)), query.shape());
}

}  // namespace fl
