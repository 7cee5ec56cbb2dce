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

void checkMask(const char* name, const Variable& mask, const Shape& shape) {
  FL_USER_CHECK(mask.shape() == shape, "multiheadAttention: ", name, " ", words(mask),
                " must have shape ", shape);
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
                      if (inputs[i].isCalcGrad()) {
                        addGrad(inputs[i], gradients[i]);
                      }
                    }
                  });
}

// What is added to the scores (time, keys, heads, batch), in one mask; empty without any.
Variable oneMask(const Variable& mask, const Variable& padMask, dtype type) {
  if (padMask.isEmpty()) {
    return mask.isEmpty() ? mask : moddims(toType(mask, type), {0, 0, 1, 1});
  }
  const Variable pad = moddims(toType(padMask, type), {1, padMask.dim(0), 1, padMask.dim(1)});
  return mask.isEmpty() ? pad : moddims(toType(mask, type), {0, 0, 1, 1}) + pad;
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
  if (!mask.isEmpty()) {
    checkMask("mask", mask, {query.dim(0), key.dim(0)});
  }
  if (!padMask.isEmpty()) {
    checkMask("padMask", padMask, {key.dim(0), key.dim(2)});
  }
  const Dim features = query.dim(1) / nHeads;
  const auto heads = [&](const Variable& x) {
    return moddims(x, {0, features, nHeads, query.dim(2)});
  };
  const Variable q = heads(query) / std::sqrt(static_cast<double>(features));
  const Variable added = oneMask(mask, padMask, q.type());
  if (posEmb.isEmpty() && pDropout == 0 && !added.isCalcGrad()) {
    return moddims(attention(q, heads(key), heads(value), added.tensor()), query.shape());
  }
  Variable scores = matmulNT(q, heads(key));
  if (!posEmb.isEmpty()) {
    scores = scores + positionScores(posEmb, q, key.dim(0), offset);
  }
  if (!added.isEmpty()) {
    scores = scores + added;
  }
  const Variable weights = dropout(softmax(scores, 1), pDropout);
  return moddims(matmul(toType(weights, value.type()), heads(value)), query.shape());
}

}  // namespace fl
