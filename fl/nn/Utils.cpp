#include "fl/nn/Utils.h"

#include <algorithm>

#include "fl/autograd/Functions.h"
#include "fl/autograd/Utils.h"
#include "fl/base/CallSite.h"
#include "fl/base/Error.h"
#include "fl/tensor/Composite.h"

namespace fl {

int64_t numTotalParams(std::shared_ptr<fl::Module> module) {
  int64_t count = 0;
  for (const Variable& param : module->params()) count += param.elements();
  return count;
}

bool allParamsClose(const Module& a, const Module& b, double absTolerance) {
  FL_API_ENTRY();
  if (a.numParamTensors() != b.numParamTensors()) return false;
  for (int i = 0; i < a.numParamTensors(); ++i) {
    if (!allClose(a.param(i), b.param(i), absTolerance)) return false;
  }
  return true;
}

namespace detail {

std::string paddingToString(int padding) {
  return padding == static_cast<int>(PaddingMode::SAME) ? "SAME" : std::to_string(padding);
}

void checkImages(const Module& module, const Variable& input) {
  FL_USER_CHECK(input.ndim() == 4, module.prettyString(), ": the input must be (W, H, C, N), not ",
                typeToString(input.type(), input.shape()));
}

Variable standardize(const Variable& input, const std::vector<int>& features, double eps) {
  const Variable none(Tensor(computeType(input.type())), false);
  Variable noMean, noVariance;
  return batchnorm(input, none, none, noMean, noVariance, features, /*train=*/true, /*momentum=*/0,
                   eps);
}

Variable scaleAndShift(const Variable& input, const Variable& weight, const Variable& bias,
                       const Shape& shape) {
  const auto scaled = [](const Tensor& x, const Tensor& w, const Tensor& b, const Shape& shape) {
    return x * reshape(w.astype(x.type()), shape) + reshape(b.astype(x.type()), shape);
  };
  const auto gradients = [](const Tensor& grad, const Tensor& x, const Tensor& w,
                            const Shape& shape) {
    const dtype type = computeType(x.type());  // sums of 16-bit floats may not be any
    const Tensor wide = grad.astype(type);
    return std::vector<Tensor>{grad * reshape(w.astype(x.type()), shape),
                               sumAs(wide * x.astype(type), shape).astype(w.type()),
                               sumAs(wide, shape).astype(w.type())};
  };
  const Tensor &x = input.tensor(), &w = weight.tensor();
  return Variable(
      composite("scaleAndShift", scaled, x, w, bias.tensor(), shape),
      {input.withoutData(), weight.withoutData(), bias.withoutData()},
      [=](std::vector<Variable>& inputs, const Variable& gradOutput) {
        std::vector<Tensor> grads =
            composite("gradient", gradients, gradOutput.tensor(), x, w, shape);
        for (size_t i = 0; i < inputs.size(); ++i) {
          if (inputs[i].isCalcGrad()) {
            inputs[i].addGrad(Variable(reshape(grads[i], inputs[i].shape()), /*calcGrad=*/false));
          }
        }
      });
}

std::string axesToString(const std::vector<int>& axes) {
  std::string text = "{ ";
  for (const int axis : axes) text += std::to_string(axis) + " ";
  return text + "}";
}

int64_t getNumRnnParams(int inputSize, int hiddenSize, int numLayers, RnnMode mode,
                        bool bidirectional) {
  const int64_t directions = bidirectional ? 2 : 1;
  const int64_t gates = mode == RnnMode::LSTM ? 4 : mode == RnnMode::GRU ? 3 : 1;
  const int64_t rows = directions * gates * hiddenSize;
  // Of each: the columns of W and R, and two biases.
  const int64_t first = inputSize + hiddenSize + 2;
  const int64_t other = directions * hiddenSize + hiddenSize + 2;
  return rows * (first + (numLayers - 1) * other);
}

}  // namespace detail

int derivePadding(int inSz, int filterSz, int stride, int pad, int dilation) {
  FL_API_ENTRY();
  FL_USER_CHECK(stride > 0, "derivePadding: the stride must be positive, not ", stride);
  if (pad == static_cast<int>(PaddingMode::SAME)) {
    const int last = inSz % stride == 0 ? stride : inSz % stride;
    const int total = (filterSz - 1) * dilation + 1 - last;
    return std::max((total + 1) / 2, 0);
  }
  FL_USER_CHECK(pad >= 0, "derivePadding: a padding of ", pad, " is negative and no PaddingMode");
  return pad;
}

Tensor join(const std::vector<Tensor>& inputs, double padValue, int batchDim) {
  FL_API_ENTRY();
  if (inputs.empty()) return Tensor();
  Shape shape;
  for (const Tensor& input : inputs) {
    FL_USER_CHECK(input.type() == inputs[0].type(), "join: tensors of types ", inputs[0].type(),
                  " and ", input.type());
    shape.get().resize(std::max(shape.ndim(), input.ndim()), 1);
    for (int i = 0; i < input.ndim(); ++i) shape[i] = std::max(shape[i], input.dim(i));
  }
  if (batchDim < 0) {
    const bool lastIsFree = shape.ndim() > 0 && shape[shape.ndim() - 1] == 1;
    batchDim = lastIsFree ? shape.ndim() - 1 : shape.ndim();
  }
  shape.get().resize(std::max(shape.ndim(), batchDim + 1), 1);
  FL_USER_CHECK(shape[batchDim] == 1, "join: dimension ", batchDim, " of ", shape,
                " is not free for the batch");
  shape[batchDim] = static_cast<Dim>(inputs.size());

  Tensor result = full(shape, padValue, inputs[0].type());
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (inputs[i].isEmpty()) continue;
    std::vector<Index> box;
    Shape boxShape = inputs[i].shape();
    boxShape.get().resize(shape.ndim(), 1);
    for (int d = 0; d < shape.ndim(); ++d) {
      const Dim start = d == batchDim ? static_cast<Dim>(i) : 0;
      box.push_back(range(start, start + boxShape[d]));
    }
    result(box) = reshape(inputs[i], boxShape);
  }
  return result;
}

}  // namespace fl
