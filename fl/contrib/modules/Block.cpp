#include "fl/contrib/modules/Block.h"

#include <algorithm>
#include <cmath>

#include "fl/autograd/Functions.h"
#include "fl/base/CallSite.h"
#include "fl/base/Error.h"
#include "fl/nn/Init.h"
#include "fl/nn/Utils.h"
#include "fl/nn/modules/Linear.h"
#include "fl/tensor/Random.h"

namespace fl::detail {
namespace {

// Of `size` places the nearest to each of newSize, as ArrayFire's resize() rounds.
Tensor nearestPlaces(Dim size, Dim newSize) {
  std::vector<int> places(newSize);
  for (Dim i = 0; i < newSize; ++i) {
    const double exact = static_cast<double>(i) * static_cast<double>(size) / newSize;
    places[i] = static_cast<int>(std::min<Dim>(std::lround(exact), size - 1));
  }
  return Tensor::fromVector(places);
}

// 0 where a place counts, -inf where it is padding.
Variable logOfMask(const Variable& padMask, Dim time, dtype type) {
  Tensor mask = padMask.tensor();
  if (mask.dim(0) != time) mask = mask(nearestPlaces(mask.dim(0), time), span);
  return noGrad(log(mask.astype(type)));
}

}  // namespace

Variable Block::apply(int id, const Variable& input) {
  const ModuleScope scope(moduleName(id));
  const std::vector<Variable> output = module(id)->forward({input});
  FL_USER_CHECK(output.size() == 1, module(id)->prettyString(), ": gives ", output.size(),
                " Variables inside a block, not one");
  return toType(output[0], input.type());
}

void AttentionBlock::initialize(const char* module, int modelDim, int headDim, int mlpDim,
                                int nHeads, int context, double pDropout, double pLayerDropout) {
  FL_USER_CHECK(modelDim > 0 && headDim > 0 && mlpDim > 0 && nHeads > 0, module,
                ": sizes must be positive, not modelDim ", modelDim, ", headDim ", headDim,
                ", mlpDim ", mlpDim, ", nHeads ", nHeads);
  FL_USER_CHECK(context >= 0, module, ": the context of relative positions cannot be ", context);
  setDropouts(module, pDropout, pLayerDropout);
  modelDim_ = modelDim;
  nHeads_ = nHeads;
  context_ = context;
  if (context > 0) params_.push_back(fl::uniform(2 * context - 1, headDim, -0.1, 0.1));
}

void AttentionBlock::setDropouts(const char* module, double pDropout, double pLayerDropout) {
  for (double p : {pDropout, pLayerDropout}) {
    FL_USER_CHECK(p >= 0 && p <= 1, module, ": a dropout must be in [0, 1], not ", p);
  }
  pDropout_ = pDropout;
  pLayerDropout_ = pLayerDropout;
}

void AttentionBlock::addLinear(int inputSize, int outputSize) {
  const double bound = std::sqrt(1.0 / inputSize);
  add(Linear(fl::uniform(outputSize, inputSize, -bound, bound)));
}

void AttentionBlock::addAttention(int headDim) {
  for (int i = 0; i < 3; ++i) addLinear(modelDim_, headDim * nHeads_);
  addLinear(headDim * nHeads_, modelDim_);
}

Variable AttentionBlock::attend(const Variable& x, const Variable& memory, int firstChild,
                                const Variable& mask, const Variable& padMask) {
  const Shape timeFirst({1, 0, 2});
  const Variable query = transpose(apply(firstChild, x), timeFirst);
  const Variable key = transpose(apply(firstChild + 1, memory), timeFirst);
  const Variable value = transpose(apply(firstChild + 2, memory), timeFirst);
  const Variable positions = context_ > 0 ? params_[0] : Variable();
  const Variable logMask = padMask.isEmpty() ? Variable() : logOfMask(padMask, x.dim(1), x.type());
  const int before = static_cast<int>(memory.dim(1) - x.dim(1));
  const Variable result = multiheadAttention(query, key, value, positions, mask, logMask, nHeads_,
                                             train_ ? pDropout_ : 0, before);
  return apply(firstChild + 3, transpose(result, timeFirst));
}

void AttentionBlock::checkInputs(const Variable& x, const Variable& padMask) const {
  FL_USER_CHECK(x.ndim() == 3 && x.dim(0) == modelDim_, prettyString(), ": the input must be (",
                modelDim_, ", time, batch), not ", typeToString(x.type(), x.shape()));
  FL_USER_CHECK(padMask.isEmpty() || (padMask.ndim() == 2 && padMask.dim(1) == x.dim(2)),
                prettyString(), ": the padding mask must be empty or (time, ", x.dim(2),
                "), for the input's batch, not ", typeToString(padMask.type(), padMask.shape()));
}

Variable AttentionBlock::drop(const Variable& input) const {
  return dropout(input, train_ ? pDropout_ : 0);
}

Variable AttentionBlock::drawLayer(dtype type) const {
  if (!train_ || pLayerDropout_ == 0) return Variable();
  return noGrad((rand(Shape({1})) > pLayerDropout_).astype(type));
}

Variable AttentionBlock::scaled(const Variable& part, const Variable& layer) {
  return layer.isEmpty() ? part : part * layer;
}

}  // namespace fl::detail
