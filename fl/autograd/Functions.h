// Differentiable functions of Variables, with Flashlight's names and parameter orders.
//
// Each records the tensor operators of its result, and later those of its gradient: no call waits
// for a value. Variables that meet in one function must have one dtype, else std::invalid_argument
// names the function; a double takes the dtype of the Variable beside it. Binary functions
// broadcast as tensors do (from the first dimension). The gradient of an input has its shape and
// dtype. In mixed precision (OptimMode.h) some functions cast what they are given.
//
// One file a theme: Unary-, Binary-, Shape-, Reduction-, Matrix-, Nn-, Rnn-, Attention- and
// LossFunctions.cpp.
#pragma once

#include <cstdint>
#include <memory>
#include <tuple>
#include <utility>
#include <vector>

#include "fl/autograd/OptimMode.h"
#include "fl/autograd/Variable.h"
#include "fl/autograd/tensor/AutogradExtension.h"
#include "fl/base/Error.h"
#include "fl/tensor/Defines.h"

namespace fl {

// ---- For functions like these ----
namespace detail {

// What chooses among algorithms for conv2d's three gradients; null where there is no choice.
struct ConvBenchmarks {
  std::shared_ptr<DynamicBenchmark> bwdFilterBenchmark;
  std::shared_ptr<DynamicBenchmark> bwdDataBenchmark;
  std::shared_ptr<DynamicBenchmark> bwdBiasBenchmark;
};

// fl::tileAs and fl::sumAs of plain tensors, for gradients: sumAs undoes broadcasting. The dtype
// stays.
Tensor tileAs(const Tensor& input, const Shape& rdims);
Tensor sumAs(const Tensor& input, const Shape& rdims);

// The shape of `input`, what a reduction over `axes` left, with size 1 at these axes, in any order.
// With keepDims it has that shape already.
Shape expandedShapeFromReducedDims(const Tensor& input, const std::vector<int>& axes,
                                   bool keepDims = false);

bool areVariableTypesEqual(const Variable& a, const Variable& b);
template <typename... Args>
bool areVariableTypesEqual(const Variable& a, const Variable& b, const Args&... args) {
  return areVariableTypesEqual(a, b) && (areVariableTypesEqual(a, args) && ...);
}

// Throws std::invalid_argument naming `function` unless all have one dtype.
template <typename... Rest>
void checkSameType(const char* function, const Variable& first, const Rest&... rest) {
  const auto check = [&](const Variable& other) {
    FL_USER_CHECK(areVariableTypesEqual(first, other), function, ": Variables of different types, ",
                  typeToString(first.type(), first.shape()), " and ",
                  typeToString(other.type(), other.shape()));
  };
  (check(rest), ...);
}

// What a function of fl/autograd/tensor keeps for its gradient; null if no input wants one.
template <typename H, typename... T>
std::shared_ptr<AutogradPayload> createAutogradPayload(const H& head, const T&... tail) {
  return (head.isCalcGrad() || ... || tail.isCalcGrad()) ? std::make_shared<AutogradPayload>()
                                                         : nullptr;
}

}  // namespace detail

// Throws std::invalid_argument naming the function that says this unless all Variables have one
// dtype.
#define FL_VARIABLE_DTYPES_MATCH_CHECK(...) ::fl::detail::checkSameType(__func__, __VA_ARGS__)

// ---- Arithmetic ----
Variable operator+(const Variable& lhs, const Variable& rhs);
Variable operator+(const double& lhs, const Variable& rhs);
Variable operator+(const Variable& lhs, const double& rhs);
Variable operator-(const Variable& lhs, const Variable& rhs);
Variable operator-(const double& lhs, const Variable& rhs);
Variable operator-(const Variable& lhs, const double& rhs);
Variable operator*(const Variable& lhs, const Variable& rhs);
Variable operator*(const double& lhs, const Variable& rhs);
Variable operator*(const Variable& lhs, const double& rhs);
Variable operator/(const Variable& lhs, const Variable& rhs);
Variable operator/(const double& lhs, const Variable& rhs);
Variable operator/(const Variable& lhs, const double& rhs);

// ---- Comparisons and logic: no gradient. Of two Variables b8, else the Variable's dtype ----
Variable operator>(const Variable& lhs, const Variable& rhs);
Variable operator>(const double& lhs, const Variable& rhs);
Variable operator>(const Variable& lhs, const double& rhs);
Variable operator<(const Variable& lhs, const Variable& rhs);
Variable operator<(const double& lhs, const Variable& rhs);
Variable operator<(const Variable& lhs, const double& rhs);
Variable operator>=(const Variable& lhs, const Variable& rhs);
Variable operator>=(const double& lhs, const Variable& rhs);
Variable operator>=(const Variable& lhs, const double& rhs);
Variable operator<=(const Variable& lhs, const Variable& rhs);
Variable operator<=(const double& lhs, const Variable& rhs);
Variable operator<=(const Variable& lhs, const double& rhs);
Variable operator&&(const Variable& lhs, const Variable& rhs);
Variable operator!(const Variable& input);

// ---- Elementwise ----
Variable negate(const Variable& input);
// 1 / x
Variable reciprocal(const Variable& input);
Variable exp(const Variable& input);
Variable log(const Variable& input);
Variable pow(const Variable& input, double p);
// log(1 + x), exact near 0.
Variable log1p(const Variable& input);
Variable sin(const Variable& input);
Variable cos(const Variable& input);
Variable sqrt(const Variable& input);
Variable tanh(const Variable& input);
// Limited to [min, max]; the gradient is zero at and beyond the limits.
Variable clamp(const Variable& input, const double min, const double max);
Variable sigmoid(const Variable& input);
// x * sigmoid(beta x)
Variable swish(const Variable& input, double beta);
Variable erf(const Variable& input);
// The gradient at 0 is 0.
Variable abs(const Variable& input);
// max(x, 0); the gradient at 0 is 0.
Variable relu(const Variable& input);
// x Phi(x) by its tanh approximation: 0.5 x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))).
Variable gelu(const Variable& input);
// x Phi(x) by the error function: 0.5 x (1 + erf(x / sqrt(2))).
Variable exactGelu(const Variable& input);
// The larger element; where both are equal the gradient goes to rhs, and to no double.
Variable max(const Variable& lhs, const Variable& rhs);
Variable max(const Variable& lhs, const double& rhs);
Variable max(const double& lhs, const Variable& rhs);
Variable min(const Variable& lhs, const Variable& rhs);
Variable min(const Variable& lhs, const double& rhs);
Variable min(const double& lhs, const Variable& rhs);

// ---- Shape ----
// Dimension i of the result is dimension dims[i]; no dims reverse all.
Variable transpose(const Variable& input, const Shape& dims = {});
// transpose() with every dimension named.
Variable reorder(const Variable& input, const Shape& shape);
// Repeats dimensions until the shape is that given; each size must divide its new one.
Variable tileAs(const Variable& input, const Variable& reference);
Variable tileAs(const Variable& input, const Shape& rdims);
// Sums the dimensions in which the shapes differ; there rdims must have size 1 or end before them.
Variable sumAs(const Variable& input, const Variable& reference);
Variable sumAs(const Variable& input, const Shape& rdims);
// Joins along dimension `dim`; all other dimensions are equal.
Variable concatenate(const std::vector<Variable>& concatInputs, int dim);
// Pieces of splitSize along `dim`, the last one smaller if it does not divide the size; or pieces
// of the given sizes, which must add up to it.
std::vector<Variable> split(const Variable& input, long splitSize, int dim);
std::vector<Variable> split(const Variable& input, const std::vector<long>& splitSizes, int dim);
// Repeats dims[i] times along dimension i; with `precision` the result has that dtype.
Variable tile(const Variable& input, const Shape& dims);
Variable tile(const Variable& input, const Shape& dims, const dtype precision);
// One dimension, in column-major order.
Variable flat(const Variable& input);
// Another shape, the same linear order: 0 keeps the input's size there, one -1 takes what is left.
Variable moddims(const Variable& input, const Shape& dims);
// pad[i].first elements `val` before and pad[i].second behind the input in dimension i; none in
// dimensions that `pad` does not reach.
Variable padding(const Variable& input, std::vector<std::pair<int, int>> pad, double val);

// ---- Reductions; no axes means all. Reduced dimensions go unless keepDims ----
Variable sum(const Variable& input, const std::vector<int>& axes, bool keepDims = false);
Variable mean(const Variable& input, const std::vector<int>& axes, bool keepDims = false);
// Divides by the count N if isbiased, else by N - 1 (Tensor's var names it the other way round).
// Throws std::invalid_argument for N = 1 in the second case.
Variable var(const Variable& input, const std::vector<int>& axes, const bool isbiased = false,
             bool keepDims = false);
// (sum |x|^p)^(1/p), p > 0.
Variable norm(const Variable& input, const std::vector<int>& axes, double p = 2,
              bool keepDims = false);
// input / max(norm, eps)
Variable normalize(const Variable& input, const std::vector<int>& axes, double p = 2,
                   double eps = 1e-12);
// exp(x) / sum(exp(x)) along `dim`, shifted by the maximum so that nothing overflows. As `sum`, it
// and logSoftmax make f32 of 16-bit floats.
Variable softmax(const Variable& input, const int dim);
// log(softmax(x)) without the intermediate rounding.
Variable logSoftmax(const Variable& input, const int dim);

// ---- Matrices ----
// (M,K) x (K,N) -> (M,N), with 1-D operands and batches as Tensor's matmul takes them. matmulTN
// takes lhs as (K,M), matmulNT rhs as (N,K).
Variable matmul(const Variable& lhs, const Variable& rhs);
Variable matmulTN(const Variable& lhs, const Variable& rhs);
Variable matmulNT(const Variable& lhs, const Variable& rhs);
// weight x input + bias: input (in, ...), weight (out, in), bias (out) or empty, result (out, ...).
Variable linear(const Variable& input, const Variable& weight);
Variable linear(const Variable& input, const Variable& weight, const Variable& bias);

// ---- Neural networks; images are (W,H,C,N) ----
// Cross-correlation with weights (KW,KH,C/groups,O), plus a bias (1,1,O,1) or empty:
// out = 1 + (in + 2 pad - ((kernel - 1) dilation + 1)) / stride.
Variable conv2d(const Variable& input, const Variable& weights, int sx = 1, int sy = 1, int px = 0,
                int py = 0, int dx = 1, int dy = 1, int groups = 1,
                std::shared_ptr<detail::ConvBenchmarks> benchmarks = nullptr);
Variable conv2d(const Variable& input, const Variable& weights, const Variable& bias, int sx = 1,
                int sy = 1, int px = 0, int py = 0, int dx = 1, int dy = 1, int groups = 1,
                std::shared_ptr<detail::ConvBenchmarks> benchmarks = nullptr);
// Over windows of wx * wy elements; padding counts as -inf for MAX.
Variable pool2d(const Variable& input, int wx, int wy, int sx = 1, int sy = 1, int px = 0,
                int py = 0, PoolingMode mode = PoolingMode::MAX);
// (input - mean) / sqrt(variance + epsilon) * weight + bias, with one mean, variance, weight and
// bias for each index along `axes`, the feature axes, which are kept. With `train` the statistics
// are the input's, and update the running ones; fl/autograd/tensor/AutogradOps.h says how. Weight,
// bias and running statistics may be empty. Parameters of 16-bit inputs are f32.
Variable batchnorm(const Variable& input, const Variable& weight, const Variable& bias,
                   Variable& runningMean, Variable& runningVar, const std::vector<int>& axes,
                   bool train, double momentum, double epsilon);
// A recurrent network over input (inSize, batch, time): its output (hiddenSize * directions, batch,
// time), and its hidden and cell state after the last step, (hiddenSize, batch, numLayers *
// directions). States may be empty, for zeros; fl/autograd/tensor/AutogradOps.h states the cells
// and the packing of the weights.
std::tuple<Variable, Variable, Variable> rnn(const Variable& input, const Variable& hiddenState,
                                             const Variable& cellState, const Variable& weights,
                                             int hiddenSize, int numLayers, RnnMode mode,
                                             bool bidirectional, float dropout);
// Keeps each element with probability 1 - p and scales it by 1 / (1 - p); takes one draw of
// fl::rand.
Variable dropout(const Variable& input, double p);
// The first half of dimension `dim` times the sigmoid of the second.
Variable gatedlinearunit(const Variable& input, const int dim);
// Columns of the table `embeddings` (size, count): result (size, ...) for indices `input` (...) of
// any dtype but b8. An index outside [0, count) is an error of whatever reads the result. The
// gradients of a column that was taken more than once add up.
Variable embedding(const Variable& input, const Variable& embeddings);

// ---- Attention ----
// Column j moves down by j, and zeros come in: (P, T, ...) becomes (P + T - 1, T, ...) with
// out[i, j] = input[i - j, j] (Shaw, Uszkoreit and Vaswani, arXiv 1803.02155).
Variable relativePositionalEmbeddingRotate(const Variable& input);
// For each of nHeads slices of the features softmax(query key' / sqrt(features a head)) value
// (Vaswani et al., arXiv 1706.03762), over the keys. query (T, features, batch); key and value
// (keys, features, batch); result like query. Empty Variables stand for what is left out:
//   posEmb (P, features a head)  also scores key k for query t by query' posEmb[P / 2 + k - t -
//                                offset], by 0 beyond its ends; it must reach key 0 and the last;
//                                or one for each head of each sequence, (..., nHeads * batch)
//   mask (T, keys)               is added to the scores, as -inf where no attention is to go
//   mask (T, keys, nHeads * batch)
//                                the same for each head of each sequence
//   padMask (keys, batch)        the same for all queries of a sequence
// The softmax goes through dropout(pDropout). `offset` is the time of the first query.
// Memory: the scores, T * keys * nHeads * batch, forward and backward; but in f32 and 16 bits,
// without posEmb, dropout and gradients of the masks, T and keys for a block of queries if T * keys
// is 2^14 at least and neither is below 64 (fl/library/Attention.cpp).
Variable multiheadAttention(const Variable& query, const Variable& key, const Variable& value,
                            const Variable& posEmb, const Variable& mask, const Variable& padMask,
                            const int32_t nHeads, const double pDropout, const int32_t offset = 0);

// ---- Losses ----
// -(y log(x) + (1 - y) log(1 - x)), elementwise, for inputs x between 0 and 1 (at the ends 0 times
// infinity is NaN) and targets y in [0, 1].
Variable binaryCrossEntropy(const Variable& inputs, const Variable& targets);
// The mean, the sum or each of -input[target]. input: log-probabilities (C, ...); targets: integer
// classes, the shape of input without its first dimension. Targets equal to ignoreIndex count
// nowhere: loss and gradient are zero, MEAN divides by the others. Any other target outside [0, C)
// is an error of whatever reads the result, as looking for it here would wait for the targets.
Variable categoricalCrossEntropy(const Variable& input, const Variable& targets,
                                 ReduceMode reduction = ReduceMode::MEAN, int ignoreIndex = -1);
// The mean of -input[target], each target counting as much as the `weight` (C) of its class.
// Input, targets and ignoreIndex are categoricalCrossEntropy's.
Variable weightedCategoricalCrossEntropy(const Variable& input, const Variable& targets,
                                         const Variable& weight, int ignoreIndex);

}  // namespace fl
