#include "fl/autograd/Functions.h"
#include "fl/autograd/Internal.h"
#include "fl/autograd/tensor/AutogradOps.h"
#include "fl/base/CallSite.h"

namespace fl {

using detail::addGrad;
using detail::checkSameType;
using detail::RNNGradData;

namespace {

// A result of the network `shared`, whose gradient goes to `part` of `grads`.
Variable partOf(const Variable& shared, Tensor value, std::shared_ptr<RNNGradData> grads,
                Tensor RNNGradData::* part) {
  return Variable(
      std::move(value), {shared},
      [grads = std::move(grads), part](std::vector<Variable>& inputs, const Variable& gradOutput) {
        grads.get()->*part = gradOutput.tensor();
        addGrad(inputs[0], Tensor(inputs[0].shape(), inputs[0].type()));
      });
}

}  // namespace

// One function with three results: each result's gradient is put into `grads`, and an empty
// Variable that all three come from has the gradient of the whole.
std::tuple<Variable, Variable, Variable> rnn(const Variable& input, const Variable& hiddenState,
                                             const Variable& cellState, const Variable& weights,
                                             int hiddenSize, int numLayers, RnnMode mode,
                                             bool bidirectional, float dropout) {
  FL_API_ENTRY();
  checkSameType("rnn", input, weights);
  const auto payload = detail::createAutogradPayload(input, hiddenState, cellState, weights);
  const Tensor &x = input.tensor(), &h = hiddenState.tensor(), &c = cellState.tensor(),
               &w = weights.tensor();
  auto [output, hidden, cell] =
      detail::rnn(x, h, c, w, hiddenSize, numLayers, mode, bidirectional, dropout, payload);
  const auto grads = std::make_shared<RNNGradData>();
  const Variable shared(Tensor(input.type()),
                        {input.withoutData(), hiddenState.withoutData(), cellState.withoutData(),
                         weights.withoutData()},
                        [=, output = output](std::vector<Variable>& inputs, const Variable&) {
                          // Another backward() may come, of other results.
                          const auto given =
                              std::make_shared<RNNGradData>(std::exchange(*grads, {}));
                          auto [dx, dh, dc, dw] =
                              detail::rnnBackward(x, h, c, w, given, output, numLayers, hiddenSize,
                                                  mode, bidirectional, dropout, payload);
                          const Tensor* found[] = {&dx, &dh, &dc, &dw};
                          for (size_t i = 0; i < inputs.size(); ++i) {
                            if (inputs[i].isCalcGrad()) addGrad(inputs[i], *found[i]);
                          }
                        });
  return {partOf(shared, output, grads, &RNNGradData::dy),
          partOf(shared, hidden, grads, &RNNGradData::dhy),
          partOf(shared, cell, grads, &RNNGradData::dcy)};
}

}  // namespace fl
