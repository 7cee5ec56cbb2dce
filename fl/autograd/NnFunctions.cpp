#include "fl/autograd/Functions.h"
#include "fl/autograd/Internal.h"
#include "fl/autograd/tensor/AutogradOps.h"
#include "fl/base/CallSite.h"
#include "fl/tensor/Random.h"

namespace fl {

using detail::addGrad;
using detail::checkAxis;
using detail::checkSameType;
using detail::createAutogradPayload;
using detail::keptIf;
using detail::unaryResult;

Variable conv2d(const Variable& input, const Variable& weights, int sx, int sy, int px, int py,
                int dx, int dy, int groups, std::shared_ptr<detail::ConvBenchmarks> benchmarks) {
  FL_API_ENTRY();
  return conv2d(input, weights, Variable(Tensor(input.type()), false), sx, sy, px, py, dx, dy,
                groups, std::move(benchmarks));
}

Variable conv2d(const Variable& in, const Variable& wt, const Variable& bs, int sx, int sy, int px,
                int py, int dx, int dy, int groups,
                std::shared_ptr<detail::ConvBenchmarks> benchmarks) {
  FL_API_ENTRY();
  const Variable input = FL_ADJUST_INPUT_TYPE(in);
  const Variable weights = FL_ADJUST_INPUT_TYPE(wt);
  const Variable bias = FL_ADJUST_INPUT_TYPE(bs);
  checkSameType("conv2d", input, weights, bias);
  const Tensor& x = input.tensor();
  const Tensor& w = weights.tensor();
  const auto payload = createAutogradPayload(input, weights, bias);
  Tensor result = detail::conv2d(x, w, bias.tensor(), sx, sy, px, py, dx, dy, groups, payload);
  std::vector<Variable> edges = {input.withoutData(), weights.withoutData()};
  if (!bias.isEmpty()) edges.push_back(bias.withoutData());
  const bool wantsFilter = weights.isCalcGrad() || bias.isCalcGrad();
  const detail::ConvBenchmarks choices = benchmarks ? *benchmarks : detail::ConvBenchmarks();
  return Variable(std::move(result), std::move(edges),
                  [=, x = keptIf(wantsFilter, x), w = keptIf(input.isCalcGrad(), w)](
                      std::vector<Variable>& inputs, const Variable& gradOutput) {
                    const Tensor& grad = gradOutput.tensor();
                    if (inputs[0].isCalcGrad()) {
                      // Of the input only its shape is read.
                      addGrad(inputs[0], detail::conv2dBackwardData(
                                             grad, x ? *x : inputs[0].tensor(), *w, sx, sy, px, py,
                                             dx, dy, groups, choices.bwdDataBenchmark, payload));
                    }
                    if (!wantsFilter) return;
                    const bool wantsBias = inputs.size() > 2 && inputs[2].isCalcGrad();
                    auto [filterGrad, biasGrad] = detail::conv2dBackwardFilterBias(
                        grad, *x, inputs[1].tensor(),
                        wantsBias ? inputs[2].tensor() : Tensor(grad.type()), sx, sy, px, py, dx,
                        dy, groups, choices.bwdFilterBenchmark, choices.bwdBiasBenchmark, payload);
                    if (inputs[1].isCalcGrad()) addGrad(inputs[1], std::move(filterGrad));
                    if (wantsBias) addGrad(inputs[2], std::move(biasGrad));
                  });
}

Variable pool2d(const Variable& input, int wx, int wy, int sx, int sy, int px, int py,
                PoolingMode mode) {
  FL_API_ENTRY();
  const Tensor x = input.tensor();
  const auto payload = createAutogradPayload(input);
  return unaryResult(
      detail::pool2d(x, wx, wy, sx, sy, px, py, mode, payload), input, [=](const Tensor& grad) {
        // The result is not kept for it: an implementation that needs it does so.
        return detail::pool2dBackward(grad, x, Tensor(), wx, wy, sx, sy, px, py, mode, payload);
      });
}

Variable batchnorm(const Variable& in, const Variable& weight, const Variable& bias,
                   Variable& runningMean, Variable& runningVar, const std::vector<int>& axes,
                   bool train, double momentum, double epsilon) {
  FL_API_ENTRY();
  const Variable input = FL_ADJUST_INPUT_TYPE(in);
  const auto payload = createAutogradPayload(input, weight, bias);
  const Tensor &x = input.tensor(), &w = weight.tensor();
  Tensor saveMean, saveVar;
  Tensor result = detail::batchnorm(saveMean, saveVar, x, w, bias.tensor(), runningMean.tensor(),
                                    runningVar.tensor(), axes, train, momentum, epsilon, payload);
  return Variable(
      std::move(result), {input.withoutData(), weight.withoutData(), bias.withoutData()},
      [=](std::vector<Variable>& inputs, const Variable& gradOutput) {
        auto [gradInput, gradWeight, gradBias] =
            detail::batchnormBackward(gradOutput.tensor(), saveMean, saveVar, x, w, axes, train,
                                      static_cast<float>(epsilon), payload);
        if (inputs[0].isCalcGrad()) addGrad(inputs[0], gradInput);
        if (inputs[1].isCalcGrad() && !inputs[1].isEmpty()) {
          addGrad(inputs[1], reshape(gradWeight, inputs[1].shape()));
        }
        if (inputs[2].isCalcGrad() && !inputs[2].isEmpty()) {
          addGrad(inputs[2], reshape(gradBias, inputs[2].shape()));
        }
      });
}

Variable dropout(const Variable& input, double p) {
  FL_API_ENTRY();
  FL_USER_CHECK(p >= 0 && p <= 1, "dropout: the probability p must be in [0, 1], not ", p);
  if (p == 0) return input;
  const Tensor kept = rand(input.shape()) > p;
  const double scale = p < 1 ? 1 / (1 - p) : 0;
  return unaryResult(input.tensor() * kept * scale, input,
                     [kept, scale](const Tensor& grad) { return grad * kept * scale; });
}

Variable gatedlinearunit(const Variable& input, const int dim) {
  FL_API_ENTRY();
  checkAxis("gatedlinearunit", input, dim);
  const Dim size = input.dim(dim);
  FL_USER_CHECK(size % 2 == 0, "gatedlinearunit: dimension ", dim, " of ",
                typeToString(input.type(), input.shape()), " must be even");
  const auto half = [dim, size](const Tensor& x, int number) {
    std::vector<Index> indices(x.ndim(), span);
    indices[dim] = range(number * size / 2, (number + 1) * size / 2);
    return Tensor(x(indices));
  };
  const Tensor x = input.tensor();
  return unaryResult(half(x, 0) * fl::sigmoid(half(x, 1)), input,
                     [x, half, dim](const Tensor& grad) {
                       const Tensor gate = fl::sigmoid(half(x, 1));
                       const Tensor gated = grad * gate;
                       return concatenate({gated, gated * half(x, 0) * (1.0 - gate)}, dim);
                     });
}

Variable embedding(const Variable& input, const Variable& embeddings) {
  FL_API_ENTRY();
  FL_USER_CHECK(embeddings.ndim() == 2, "embedding: embeddings ",
                typeToString(embeddings.type(), embeddings.shape()), " must be (size, count)");
  FL_USER_CHECK(input.type() != dtype::b8, "embedding: input ",
                typeToString(input.type(), input.shape()), " must hold indices, not a mask");
  std::vector<Dim> dims = input.shape().get();
  dims.insert(dims.begin(), embeddings.dim(0));
  return moddims(embeddings(span, input.tensor().flatten()), Shape(dims));
}

}  // namespace fl
