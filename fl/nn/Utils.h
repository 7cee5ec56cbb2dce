// Helpers of modules: parameter counts and comparison, padding, batches of unequal tensors.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "fl/autograd/Utils.h"
#include "fl/nn/modules/Module.h"
#include "fl/tensor/Defines.h"

namespace fl {

// The number of elements of all parameters.
int64_t numTotalParams(std::shared_ptr<fl::Module> module);

// As many parameters in both, pairwise of equal dtype and shape, and closer than the tolerance.
bool allParamsClose(const Module& a, const Module& b, double absTolerance = 1e-5);

namespace detail {

// A padding of Conv2D and Pool2D: a number of positions or a mode.
struct IntOrPadMode {
  /* implicit */ IntOrPadMode(int val) : padVal(val) {}
  /* implicit */ IntOrPadMode(PaddingMode mode) : padVal(static_cast<int>(mode)) {}
  const int padVal;
};

std::string paddingToString(int padding);

// The number of weights and biases of fl::rnn, as they are packed there.
int64_t getNumRnnParams(int inputSize, int hiddenSize, int numLayers, RnnMode mode,
                        bool bidirectional);

// Throws std::invalid_argument naming the module unless its input is (W, H, C, N).
void checkImages(const Module& module, const Variable& input);

// (input - mean) / sqrt(variance + eps), with a mean and a variance (divided by the count) for each
// index along the neighbouring dimensions `features`.
Variable standardize(const Variable& input, const std::vector<int>& features, double eps);

// input * weight + bias, where those are parameters that take a shape which broadcasts.
Variable scaleAndShift(const Variable& input, const Variable& weight, const Variable& bias,
                       const Shape& shape);

// "{ 0 2 }"
std::string axesToString(const std::vector<int>& axes);

}  // namespace detail

// The padding on both sides of a dimension of inSz elements: `pad`, or for PaddingMode::SAME half
// of (filterSz - 1) * dilation + 1 - (inSz % stride or stride), rounded up, so that an odd total
// gives one output more than inSz / stride. Throws std::invalid_argument for other negative
// paddings.
int derivePadding(int inSz, int filterSz, int stride, int pad, int dilation);

// One tensor of tensors that may differ in size: each is padded with padValue at its ends and put
// at its own index of dimension `batchDim`; -1 takes the last dimension if all have size 1 there,
// else a new one. Throws std::invalid_argument for mixed dtypes, or a batchDim that is taken.
Tensor join(const std::vector<Tensor>& inputs, double padValue = 0.0, int batchDim = -1);

}  // namespace fl
