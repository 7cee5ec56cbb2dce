#include "fl/contrib/modules/Transformer.h"

#include "fl/autograd/Functions.h"
#include "fl/base/CallSite.h"
#include "fl/base/Error.h"
#include "fl/nn/Init.h"
#include "fl/nn/Serialization.h"
#include "fl/nn/modules/LayerNorm.h"

CEREAL_REGISTER_TYPE(fl::Transformer)

namespace fl {
namespace {

enum Child { kMlpIn, kMlpOut, kAttention, kNorm1 = kAttention + 4, kNorm2 };

// 0 where a place may look, -inf elsewhere, for `time` places behind `before` others.
Variable causalMask(Dim time, Dim before, dtype type) {
  Tensor visible = tril(full(Shape({time, time}), 1.0, type));
  if (before > 0) {
    visible = concatenate(1, triu(full(Shape({time, before}), 1.0, type)), visible);
  }
  return noGrad(log(visible));
}

}  // namespace

Transformer::Transformer(int32_t modelDim, int32_t headDim, int32_t mlpDim, int32_t nHeads,
                         int32_t bptt, float pDropout, float pLayerdrop, bool useMask, bool preLN)
    : useMask_(useMask), preLN_(preLN) {
  FL_API_CONSTRUCTOR();
  initialize("Transformer", modelDim, headDim, mlpDim, nHeads, bptt, pDropout, pLayerdrop);
  addLinear(modelDim, mlpDim);
  addLinear(mlpDim, modelDim);
  addAttention(headDim);
  add(LayerNorm(std::vector<int>{0, 3}));
  add(LayerNorm(std::vector<int>{0, 3}));
}

void Transformer::check(const std::vector<Variable>& input) const {
  FL_USER_CHECK(input.size() == 2 || input.size() == 3, prettyString(), ": takes {input, padding ",
                "mask} or {previous step, input, padding mask}, not ", input.size(), " Variables");
  const Variable& x = input[input.size() - 2];
  checkInputs(x, input.back());
  if (input.size() == 3) {
    const Variable& previous = input[0];
    FL_USER_CHECK(
        previous.ndim() == 3 && previous.dim(0) == x.dim(0) && previous.dim(2) == x.dim(2),
        prettyString(), ": the previous step ", typeToString(previous.type(), previous.shape()),
        " does not fit the input ", typeToString(x.type(), x.shape()));
    FL_USER_CHECK(input[2].isEmpty(), prettyString(),
                  ": takes no padding mask beside a previous step");
  }
}

Variable Transformer::selfAttention(const std::vector<Variable>& input) {
  const Variable& x = input[input.size() - 2];
  const Variable memory = input.size() == 3 ? concatenate({input[0], x}, 1) : x;
  const Dim time = x.dim(1);
  Variable mask;
  if (useMask_ && time > 1) mask = causalMask(time, memory.dim(1) - time, x.type());
  return attend(x, memory, kAttention, mask, input.back());
}

Variable Transformer::mlp(const Variable& input) {
  return apply(kMlpOut, drop(relu(apply(kMlpIn, input))));
}

std::vector<Variable> Transformer::forward(const std::vector<Variable>& input) {
  FL_API_ENTRY();
  check(input);
  const Variable& x = input[input.size() - 2];
  const Variable layer = drawLayer(x.type());
  if (preLN_) {
    const Variable h = scaled(apply(kNorm1, selfAttention(input)), layer) + x;
    return {scaled(apply(kNorm2, mlp(h)), layer) + h};
  }
  const Variable h = apply(kNorm1, scaled(selfAttention(input), layer) + x);
  return {apply(kNorm2, scaled(mlp(h), layer) + h)};
}

void Transformer::setDropout(float value) {
  FL_API_ENTRY();
  setDropouts("Transformer", value, pLayerDropout_);
}

void Transformer::setLayerDropout(float value) {
  FL_API_ENTRY();
  setDropouts("Transformer", pDropout_, value);
}

std::string Transformer::prettyString() const {
  return detail::concat("Transformer (nHeads: ", nHeads_, "), (pDropout: ", pDropout_,
                        "), (pLayerdrop: ", pLayerDropout_, "), (bptt: ", context_,
                        "), (useMask: ", useMask_, "), (preLayerNorm: ", preLN_, ")");
}

}  // namespace fl
