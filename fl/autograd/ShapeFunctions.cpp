#include <algorithm>
#include <memory>
#include <numeric>
#include <utility>

#include "fl/autograd/Functions.h"
#include "fl/autograd/Internal.h"
#include "fl/base/CallSite.h"

namespace fl {

using detail::addGrad;
using detail::checkAxis;
using detail::checkSameType;
using detail::toType;
using detail::unaryResult;

namespace {

// How often tileAs repeats each dimension of `from`.
Shape tileCounts(const Shape& from, const Shape& to) {
  Shape counts = to;
  FL_USER_CHECK(from.ndim() <= to.ndim(), "tileAs: shape ", from, " has more dimensions than ", to);
  for (int i = 0; i < from.ndim(); ++i) {
    const bool isSame = from[i] == to[i];  // also where both are 0
    FL_USER_CHECK(isSame || (from[i] > 0 && to[i] % from[i] == 0), "tileAs: shape ", from,
                  " does not tile to ", to, ": dimension ", i, " is no multiple");
    counts[i] = isSame ? 1 : to[i] / from[i];
  }
  return counts;
}

// The gradient of repeating: sums over the copies. A repeated dimension is split in (size, copies).
Tensor sumCopies(const Tensor& grad, const Shape& shape, const Shape& counts) {
  std::vector<Dim> sizes;
  std::vector<int> axes;
  for (int i = 0; i < std::max(shape.ndim(), counts.ndim()); ++i) {
    const Dim size = i < shape.ndim() ? shape[i] : 1;
    const Dim count = i < counts.ndim() ? counts[i] : 1;
    if (size != 1 || count == 1) sizes.push_back(size);
    if (count != 1) {
      axes.push_back(static_cast<int>(sizes.size()));
      sizes.push_back(count);
    }
  }
  const Tensor summed = axes.empty() ? grad : sum(reshape(grad, Shape(sizes)), axes);
  return reshape(summed, shape);
}

// Replaces the 0 and the -1 of moddims.
Shape inferredShape(const Shape& input, const Shape& dims) {
  Shape result = dims;
  int inferred = -1;
  Dim known = 1;
  for (int i = 0; i < dims.ndim(); ++i) {
    if (dims[i] == 0) {
      FL_USER_CHECK(i < input.ndim() || input.elements() == 0, "moddims: ", dims,
                    " keeps dimension ", i, ", but shape ", input, " has none");
      if (i < input.ndim()) result[i] = input[i];
    }
    if (dims[i] == -1) {
      FL_USER_CHECK(inferred < 0, "moddims: more than one -1 in ", dims);
      inferred = i;
    } else {
      known *= result[i];
    }
  }
  if (inferred >= 0) result[inferred] = known > 0 ? input.elements() / known : 0;
  // A 0 that keeps nothing may be one of an empty shape's.
  if (result.elements() != input.elements() && inferred < 0) result = dims;
  FL_USER_CHECK(result.elements() == input.elements(), "moddims: shape ", input, " has ",
                input.elements(), " elements, which do not fit ", dims);
  return result;
}

}  // namespace

Tensor detail::tileAs(const Tensor& input, const Shape& rdims) {
  FL_API_ENTRY();
  return tile(input, tileCounts(input.shape(), rdims));
}

Variable transpose(const Variable& input, const Shape& dims) {
  FL_API_ENTRY();
  return unaryResult(transpose(input.tensor(), dims), input, [dims](const Tensor& grad) {
    Shape inverse = dims;
    for (int i = 0; i < dims.ndim(); ++i) inverse[dims[i]] = i;
    return transpose(grad, inverse);
  });
}

Variable reorder(const Variable& input, const Shape& shape) {
  FL_API_ENTRY();
  std::vector<Dim> order(input.ndim());
  std::iota(order.begin(), order.end(), 0);
  FL_USER_CHECK(input.ndim() == 1 || std::is_permutation(order.begin(), order.end(),
                                                         shape.get().begin(), shape.get().end()),
                "reorder: ", shape, " is no order of the dimensions of ",
                typeToString(input.type(), input.shape()));
  return transpose(input, shape);
}

Variable tileAs(const Variable& input, const Shape& rdims) {
  FL_API_ENTRY();
  return tile(input, tileCounts(input.shape(), rdims));
}

Variable tileAs(const Variable& input, const Variable& reference) {
  FL_API_ENTRY();
  return tileAs(input, reference.shape());
}

Variable sumAs(const Variable& input, const Shape& rdims) {
  FL_API_ENTRY();
  const Shape shape = input.shape();
  return unaryResult(detail::sumAs(input.tensor(), rdims), input, [shape](const Tensor& grad) {
    Shape ones(std::vector<Dim>(shape.ndim(), 1));
    for (int i = 0; i < std::min(grad.ndim(), shape.ndim()); ++i) ones[i] = grad.dim(i);
    return detail::tileAs(reshape(grad, ones), shape);
  });
}

Variable sumAs(const Variable& input, const Variable& reference) {
  FL_API_ENTRY();
  return sumAs(input, reference.shape());
}

Variable concatenate(const std::vector<Variable>& concatInputs, int dim) {
  FL_API_ENTRY();
  FL_USER_CHECK(!concatInputs.empty(), "concatenate: no Variables to join");
  const Variable& first = concatInputs[0];
  if (concatInputs.size() == 1) return first;  // as it is, also along a dimension that it lacks
  checkAxis("concatenate", first, dim);
  std::vector<Tensor> tensors;
  std::vector<Variable> edges;
  for (const Variable& input : concatInputs) {
    checkSameType("concatenate", first, input);
    FL_USER_CHECK(input.ndim() == first.ndim(),
                  "concatenate: ", typeToString(first.type(), first.shape()), " and ",
                  typeToString(input.type(), input.shape()), " differ in dimensions");
    tensors.push_back(input.tensor());
    edges.push_back(input.withoutData());
  }
  return Variable(concatenate(tensors, dim), std::move(edges),
                  [dim](std::vector<Variable>& inputs, const Variable& gradOutput) {
                    std::vector<Index> slice(gradOutput.ndim(), span);
                    Dim start = 0;
                    for (Variable& input : inputs) {
                      const Dim end = start + input.dim(dim);
                      if (input.isCalcGrad()) {
                        if (end > start) slice[dim] = range(start, end);
                        addGrad(input, end > start ? gradOutput.tensor()(slice)
                                                   : full(input.shape(), 0.0, input.type()));
                      }
                      start = end;
                    }
                  });
}

namespace {

// Pieces that make up the input along `dim`: one function with several results. Each piece's
// gradient is put into `grads`, and an empty Variable that all of them come from has the gradient
// of the whole.
std::vector<Variable> piecesOf(const Variable& input, std::vector<Tensor> values, int dim) {
  std::vector<Shape> shapes;
  for (const Tensor& value : values) shapes.push_back(value.shape());
  const auto grads = std::make_shared<std::vector<Tensor>>(values.size());
  const Variable shared(Tensor(input.type()), {input.withoutData()},
                        [grads, shapes, dim](std::vector<Variable>& inputs, const Variable&) {
                          // Another backward() may come, of other pieces.
                          std::vector<Tensor> given =
                              std::exchange(*grads, std::vector<Tensor>(shapes.size()));
                          for (size_t i = 0; i < shapes.size(); ++i) {
                            if (given[i].isEmpty()) {
                              given[i] = full(shapes[i], 0.0, inputs[0].type());
                            }
                          }
                          addGrad(inputs[0], concatenate(given, dim));
                        });
  std::vector<Variable> pieces;
  for (size_t i = 0; i < values.size(); ++i) {
    pieces.emplace_back(std::move(values[i]), std::vector<Variable>{shared},
                        [grads, i](std::vector<Variable>& inputs, const Variable& gradOutput) {
                          (*grads)[i] = gradOutput.tensor();
                          addGrad(inputs[0], Tensor(inputs[0].shape(), inputs[0].type()));
                        });
  }
  return pieces;
}

}  // namespace

std::vector<Variable> split(const Variable& input, long splitSize, int dim) {
  FL_API_ENTRY();
  checkAxis("split", input, dim);
  FL_USER_CHECK(splitSize > 0, "split: the size of a piece must be positive, not ", splitSize);
  std::vector<long> sizes(input.dim(dim) / splitSize, splitSize);
  if (input.dim(dim) % splitSize > 0) sizes.push_back(input.dim(dim) % splitSize);
  return split(input, sizes, dim);
}

std::vector<Variable> split(const Variable& input, const std::vector<long>& splitSizes, int dim) {
  FL_API_ENTRY();
  checkAxis("split", input, dim);
  Dim total = 0;
  for (long size : splitSizes) {
    FL_USER_CHECK(size > 0, "split: the size of a piece must be positive, not ", size);
    total += size;
  }
  FL_USER_CHECK(total == input.dim(dim), "split: pieces of ", total,
                " elements in all do not make dimension ", dim, " of ",
                typeToString(input.type(), input.shape()));
  std::vector<Index> slice(input.ndim(), span);
  std::vector<Tensor> values;
  Dim start = 0;
  for (long size : splitSizes) {
    slice[dim] = range(start, start + size);
    values.push_back(input.tensor()(slice));
    start += size;
  }
  return piecesOf(input, std::move(values), dim);
}

Variable tile(const Variable& input, const Shape& dims) {
  FL_API_ENTRY();
  const Shape shape = input.shape();
  return unaryResult(tile(input.tensor(), dims), input,
                     [shape, dims](const Tensor& grad) { return sumCopies(grad, shape, dims); });
}

// The gradient is cast before it is summed over the copies: 16 bits would round the sum.
Variable tile(const Variable& input, const Shape& dims, const dtype precision) {
  FL_API_ENTRY();
  return toType(tile(input, dims), precision);
}

Variable flat(const Variable& input) {
  FL_API_ENTRY();
  return moddims(input, {-1});
}

Variable moddims(const Variable& input, const Shape& dims) {
  FL_API_ENTRY();
  const Shape shape = input.shape();
  const Shape result = inferredShape(shape, dims);
  return unaryResult(reshape(input.tensor(), result), input,
                     [shape](const Tensor& grad) { return reshape(grad, shape); });
}

Variable padding(const Variable& input, std::vector<std::pair<int, int>> pad, double val) {
  FL_API_ENTRY();
  FL_USER_CHECK(pad.size() <= input.ndim(), "padding: ", pad.size(),
                " pairs for the dimensions of ", typeToString(input.type(), input.shape()));
  if (pad.empty()) return input;
  Shape shape = input.shape();
  std::vector<Index> inner(input.ndim(), span);
  for (size_t i = 0; i < pad.size(); ++i) {
    const auto [before, behind] = pad[i];
    FL_USER_CHECK(before >= 0 && behind >= 0, "padding: ", before, " and ", behind,
                  " elements at dimension ", i, " of ", typeToString(input.type(), input.shape()),
                  " must not be negative");
    inner[i] = range(before, before + shape[i]);
    shape[i] += before + behind;
  }
  Tensor result = full(shape, val, input.type());
  if (!input.isEmpty()) result(inner) = input.tensor();
  return unaryResult(std::move(result), input,
                     [inner, shape = input.shape()](const Tensor& grad) -> Tensor {
                       return shape.elements() > 0 ? grad(inner) : full(shape, 0.0, grad.type());
                     });
}

}  // namespace fl
