#include <cmath>

#include "fl/autograd/Functions.h"
#include "fl/autograd/Internal.h"
#include "fl/base/CallSite.h"
#include "fl/tensor/TableOps.h"

namespace fl {

using detail::addGrad;
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

// What posEmb adds to the scores (time, keys, heads, batch) of the queries (time, features a head,
// heads, batch).
Variable positionScores(const Variable& posEmb, const Variable& queries, Dim keys, int32_t offset) {
  const Variable query = moddims(queries, {0, queries.dim(1), queries.dim(2) * queries.dim(3)});
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
  return moddims(transpose(rotated(range(first, first + keys)), {1, 0, 2}),
                 {query.dim(0), keys, queries.dim(2), queries.dim(3)});
}

// Queries and keys are multiplied by the op of the table, which holds no more scores than it must;
// (time, features a head, heads, batch). The mask has no gradient.
Variable attention(const Variable& query, const Variable& key, const Variable& value,
                   const Tensor& mask) {
  const Tensor q = query.tensor(), k = key.tensor(), v = value.tensor();
  return Variable(table::attention(q, k, v, mask),
                  {query.withoutData(), key.withoutData(), value.withoutData()},
                  [q, k, v, mask](std::vector<Variable>& inputs, const Variable& gradOutput) {
                    const auto gradients =
                        table::attentionBackward(gradOutput.tensor(), q, k, v, mask);
                    for (size_t i = 0; i < inputs.size(); ++i) {
                      if (inputs[i].isCalcGrad()) addGrad(inputs[i], gradients[i]);
                    }
                  });
}

// A mask as it is added to the scores (time, keys, heads, batch).
Variable maskOfScores(const Variable& mask, const Shape& scores) {
  const bool isOneForEach = mask.ndim() == 3 && mask.dim(2) == scores[2] * scores[3];
  const bool isOneForAll = mask.ndim() == 2 || (mask.ndim() == 3 && mask.dim(2) == 1);
  FL_USER_CHECK(
      (isOneForAll || isOneForEach) && mask.dim(0) == scores[0] && mask.dim(1) == scores[1],
      "multiheadAttention: mask ", words(mask), " must be (", scores[0], ", ", scores[1], ") or (",
      scores[0], ", ", scores[1], ", ", scores[2] * scores[3], ")");
  return isOneForEach ? moddims(mask, scores) : moddims(mask, {scores[0], scores[1], 1, 1});
}

Variable padMaskOfScores(const Variable& padMask, const Shape& scores) {
  FL_USER_CHECK(padMask.shape() == Shape({scores[1], scores[3]}), "multiheadAttention: padMask ",
                words(padMask), " must have shape (", scores[1], ", ", scores[3], ")");
  return moddims(padMask, {1, scores[1], 1, scores[3]});
}

// What is added to the scores, in one mask; empty without any.
Variable oneMask(const Variable& mask, const Variable& padMask, const Shape& scores, dtype type) {
  if (mask.isEmpty() && padMask.isEmpty()) return Variable();
  if (mask.isEmpty() || padMask.isEmpty()) {
    return toType(mask.isEmpty() ? padMaskOfScores(padMask, scores) : maskOfScores(mask, scores),
                  type);
  }
  return toType(maskOfScores(mask, scores), type) + toType(padMaskOfScores(padMask, scores), type);
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
  const Dim features = query.dim(1) / nHeads;
  const auto heads = [&](const Variable& x) {
    return moddims(x, {0, features, nHeads, query.dim(2)});
  };
  const Variable q = heads(query) / std::sqrt(static_cast<double>(features));
  const Variable added =
      oneMask(mask, padMask, {query.dim(0), key.dim(0), nHeads, query.dim(2)}, q.type());
  if (posEmb.isEmpty() && pDropout == 0 && !added.isCalcGrad()) {
    return moddims(attention(q, heads(key), heads(value), added.tensor()), query.shape());
  }
  Variable scores = matmulNT(q, heads(key));
  if (!posEmb.isEmpty()) scores = scores + positionScores(posEmb, q, key.dim(0), offset);
  if (!added.isEmpty()) scores = scores + added;
  const Variable weights = dropout(softmax(scores, 1), pDropout);
  return moddims(matmul(toType(weights, value.type()), heads(value)), query.shape());
}

}  // namespace fl
