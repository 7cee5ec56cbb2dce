// Recurrent networks, layer by layer. A layer's product with W is one for all steps; the steps then
// follow one another, each a product with R and a cell (RnnCells.h). Backward goes through the
// steps the other way round and leaves the gradients of all gates, from which one product each
// makes those of the input, of W and of R. No kernel depends on the number of steps.
#include <string>

#include "fl/autograd/tensor/ComposedAutogradExtension.h"
#include "fl/autograd/tensor/RnnCells.h"
#include "fl/autograd/tensor/RnnWeights.h"
#include "fl/base/CallSite.h"
#include "fl/base/Error.h"
#include "fl/tensor/Random.h"

namespace fl {
namespace {

using detail::RnnCellWeights;
using detail::RnnParameters;
using detail::RnnState;
using detail::RnnStep;

struct RnnPayload : detail::AutogradPayloadData {
  std::vector<Tensor> inputs;               // of each layer, (size, batch, time)
  std::vector<Tensor> dropped;              // what each of them was multiplied with; or empty
  std::vector<std::vector<RnnStep>> steps;  // of each pseudo layer, by time
};

// The network's arguments, checked; sequences have three dimensions here.
struct Network {
  Network(const Tensor& input, const Tensor& hiddenState, const Tensor& cellState,
          const Tensor& weights, int hiddenSize, int numLayers, RnnMode mode, bool bidirectional);

  Shape stateShape() const { return {parameters.hiddenSize, batch, parameters.states()}; }
  // The state of a pseudo layer; an empty tensor counts as zeros.
  Tensor stateOf(const Tensor& states, int state) const {
    return states.isEmpty() ? full({parameters.hiddenSize, batch}, 0.0, type)
                            : reshape(states, stateShape())(span, span, state);
  }
  RnnState stateOf(const Tensor& hidden, const Tensor& cell, int state) const {
    return {stateOf(hidden, state),
            parameters.mode == RnnMode::LSTM ? stateOf(cell, state) : Tensor(type)};
  }
  // When the n-th step of a direction is.
  Dim timeOf(int direction, Dim n) const { return direction == 0 ? n : time - 1 - n; }

  Dim batch, time;
  dtype type;
  RnnParameters parameters;
};

void checkState(const std::string& call, const char* name, const Tensor& state,
                const Network& network) {
  if (state.isEmpty()) return;
  Shape shape = state.shape();
  while (shape.ndim() < 3) shape.get().push_back(1);
  FL_USER_CHECK(shape == network.stateShape() && state.type() == network.type, call, " with a ",
                name, " state ", typeToString(state.type(), state.shape()), ": must be ",
                typeToString(network.type, network.stateShape()), " or empty");
}

Network::Network(const Tensor& input, const Tensor& hiddenState, const Tensor& cellState,
                 const Tensor& weights, int hiddenSize, int numLayers, RnnMode mode,
                 bool bidirectional)
    : batch(input.ndim() < 2 ? 1 : input.dim(1)),
      time(input.ndim() < 3 ? 1 : input.dim(2)),
      type(input.type()),
      parameters{input.ndim() < 1 ? 1 : input.dim(0), hiddenSize, numLayers, mode, bidirectional} {
  const std::string call = "rnn: " + typeToString(type, input.shape());
  checkEnumerator("rnn", "RnnMode", mode, RnnMode::GRU);
  FL_USER_CHECK(isFloating(type), call, ": needs a floating dtype");
  FL_USER_CHECK(input.ndim() >= 1 && input.ndim() <= 3 && !input.isEmpty(), call,
                ": needs an input (features, batch, time) that is not empty");
  FL_USER_CHECK(hiddenSize > 0 && numLayers > 0, call, ": hidden size ", hiddenSize, " and ",
                numLayers, " layers must be positive");
  const Dim count = parameters.weightCount();
  FL_USER_CHECK(weights.shape().elements() == count && weights.type() == type, call,
                " with weights ", typeToString(weights.type(), weights.shape()), ": needs ", count,
                " of ", type);
  checkState(call, "hidden", hiddenState, *this);
  FL_USER_CHECK(mode == RnnMode::LSTM || cellState.isEmpty(), call,
                ": only an LSTM has a cell state");
  checkState(call, "cell", cellState, *this);
}

Tensor stacked(std::vector<Tensor> slices) {
  for (Tensor& slice : slices) {
    slice = reshape(slice, {slice.dim(0), slice.dim(1), 1});
  }
  return concatenate(slices, 2);
}

// Columns of all steps, for products with matrices.
Tensor columns(const Tensor& sequence) {
  return reshape(sequence, {sequence.dim(0), sequence.dim(1) * sequence.dim(2)});
}

Tensor transposedProduct(const Tensor& transposed, const Tensor& columns) {
  return matmul(transposed, columns, MatrixProperty::Transpose);
}

Tensor productTransposed(const Tensor& lhs, const Tensor& rhs) {
  return matmul(lhs, rhs, MatrixProperty::None, MatrixProperty::Transpose);
}

// What remains of a layer's input: 0, or 1 / (1 - p), for each element.
Tensor dropoutMask(const Tensor& input, double p) {
  return (rand(input.shape()) > p).astype(input.type()) * (p < 1 ? 1 / (1 - p) : 0.0);
}

// The steps of one direction of a layer, by time; without `keep` only the states after them.
std::vector<RnnStep> runDirection(const Network& network, const RnnCellWeights& weights,
                                  const Tensor& input, RnnState state, int direction, bool keep) {
  const Tensor products = reshape(transposedProduct(weights.input, columns(input)),
                                  {network.parameters.gateRows(), network.batch, network.time});
  std::vector<RnnStep> steps(network.time);
  for (Dim n = 0; n < network.time; ++n) {
    const Dim t = network.timeOf(direction, n);
    if (n > 1) StepScope::next();  // the first steps have kernels of their own
    const Tensor recurrent = transposedProduct(weights.recurrent, state.hidden);
    steps[t] = forwardStep(
        network.parameters.mode,
        {products(span, span, t), recurrent, weights.inputBias, weights.recurrentBias}, state);
    state = steps[t].after;
    if (!keep) {
      steps[t] = {{}, state, {}};
    }
  }
  return steps;
}

// The gradients that one direction of a layer passes on.
struct DirectionGradient {
  Tensor input;  // (size, batch, time)
  RnnState before;
  RnnCellWeights weights;
};

DirectionGradient backDirection(const Network& network, const RnnCellWeights& weights,
                                const Tensor& input, const std::vector<RnnStep>& steps,
                                const Tensor& gradOutput, RnnState grad, int direction) {
  std::vector<Tensor> a(network.time), q(network.time), before(network.time);
  for (Dim n = 0; n < network.time; ++n) {
    const Dim t = network.timeOf(1 - direction, n);
    if (n > 1) StepScope::next();  // the first steps have kernels of their own
    grad.hidden = grad.hidden + gradOutput(span, span, t);
    detail::RnnStepGradient step = backwardStep(network.parameters.mode, steps[t], grad);
    const Tensor recurrent = matmul(weights.recurrent, step.q);
    grad.hidden = step.before.hidden.isEmpty() ? recurrent : step.before.hidden + recurrent;
    grad.cell = step.before.cell;
    a[t] = step.a;
    q[t] = step.q;
    before[t] = steps[t].before.hidden;
  }
  const Tensor gradA = columns(stacked(a));
  // They differ for a GRU alone.
  const Tensor gradQ = network.parameters.mode == RnnMode::GRU ? columns(stacked(q)) : gradA;
  const Tensor biasA = sum(gradA, {1}).astype(network.type);
  const Tensor biasQ = sum(gradQ, {1}).astype(network.type);
  return {reshape(matmul(weights.input, gradA), input.shape()),
          grad,
          {productTransposed(columns(input), gradA),
           productTransposed(columns(stacked(before)), gradQ), biasA, biasQ}};
}

void checkGradient(const char* name, const Tensor& gradient, const Network& network,
                   const Shape& shape) {
  FL_USER_CHECK(
      gradient.isEmpty() || (gradient.shape() == shape && gradient.type() == network.type),
      "rnnBackward: the gradient ", name, " ", typeToString(gradient.type(), gradient.shape()),
      " must be ", typeToString(network.type, shape), " or empty");
}

Tensor inShapeOf(const Tensor& model, const std::vector<Tensor>& states) {
  return model.isEmpty() ? Tensor(model.shape(), model.type())
                         : reshape(stacked(states), model.shape());
}

}  // namespace

std::tuple<Tensor, Tensor, Tensor> ComposedAutogradExtension::rnn(
    const Tensor& input, const Tensor& hiddenState, const Tensor& cellState, const Tensor& weights,
    const int hiddenSize, const int numLayers, const RnnMode mode, const bool bidirectional,
    const float dropout, std::shared_ptr<detail::AutogradPayload> payload) {
  const StepScope scope;
  const Network network(input, hiddenState, cellState, weights, hiddenSize, numLayers, mode,
                        bidirectional);
  FL_USER_CHECK(dropout >= 0 && dropout <= 1,
                "rnn: the probability dropout must be in [0, 1], not ", dropout);
  const RnnParameters& parameters = network.parameters;
  const std::vector<RnnCellWeights> cells = unpackRnnWeights(weights, parameters);
  auto kept = std::make_shared<RnnPayload>();
  Tensor sequence = reshape(input, {parameters.inSize, network.batch, network.time});
  std::vector<Tensor> hidden, cell;
  for (int layer = 0; layer < numLayers; ++layer) {
    kept->dropped.emplace_back();
    if (layer > 0 && dropout > 0) {
      kept->dropped.back() = dropoutMask(sequence, dropout);
      sequence = sequence * kept->dropped.back();
    }
    kept->inputs.push_back(sequence);
    std::vector<Tensor> outputs;
    for (int d = 0; d < parameters.directions(); ++d) {
      const int state = layer * parameters.directions() + d;
      const std::vector<RnnStep>& steps = kept->steps.emplace_back(
          runDirection(network, cells[state], sequence,
                       network.stateOf(hiddenState, cellState, state), d, payload != nullptr));
      std::vector<Tensor> values;
      for (const RnnStep& step : steps) values.push_back(step.after.hidden);
      outputs.push_back(stacked(values));
      const RnnState& last = steps[network.timeOf(d, network.time - 1)].after;
      hidden.push_back(last.hidden);
      cell.push_back(last.cell);
    }
    sequence = parameters.bidirectional ? concatenate(outputs, 0) : outputs[0];
  }
  if (payload) payload->data = kept;
  return {sequence, stacked(hidden), mode == RnnMode::LSTM ? stacked(cell) : Tensor(network.type)};
}

std::tuple<Tensor, Tensor, Tensor, Tensor> ComposedAutogradExtension::rnnBackward(
    const Tensor& input, const Tensor& hiddenState, const Tensor& cellState, const Tensor& weights,
    const std::shared_ptr<detail::RNNGradData> gradData, const Tensor&, const int numLayers,
    const int hiddenSize, const RnnMode mode, const bool bidirectional, const float,
    std::shared_ptr<detail::AutogradPayload> payload) {
  const StepScope scope;
  const Network network(input, hiddenState, cellState, weights, hiddenSize, numLayers, mode,
                        bidirectional);
  const auto* kept = payload ? dynamic_cast<const RnnPayload*>(payload->data.get()) : nullptr;
  const RnnParameters& parameters = network.parameters;
  FL_USER_CHECK(gradData && kept && kept->steps.size() == static_cast<size_t>(parameters.states()),
                "rnnBackward: needs gradients, and the payload of rnn() with the same arguments");
  const int directions = parameters.directions();
  const std::vector<RnnCellWeights> cells = unpackRnnWeights(weights, parameters);
  const Shape outputShape = {directions * parameters.hiddenSize, network.batch, network.time};
  checkGradient("dy", gradData->dy, network, outputShape);
  checkGradient("dhy", gradData->dhy, network, network.stateShape());
  checkGradient("dcy", gradData->dcy, network, network.stateShape());
  Tensor grad = gradData->dy.isEmpty() ? full(outputShape, 0.0, network.type) : gradData->dy;
  std::vector<RnnCellWeights> cellGrads(parameters.states());
  std::vector<Tensor> hiddenGrads(parameters.states()), cellStateGrads(parameters.states());
  for (int layer = numLayers - 1; layer >= 0; --layer) {
    Tensor gradInput;
    for (int d = 0; d < directions; ++d) {
      const int state = layer * directions + d;
      const range rows(d * parameters.hiddenSize, (d + 1) * parameters.hiddenSize);
      DirectionGradient result = backDirection(
          network, cells[state], kept->inputs[layer], kept->steps[state], grad(rows, span, span),
          network.stateOf(gradData->dhy, gradData->dcy, state), d);
      gradInput = d == 0 ? result.input : gradInput + result.input;
      hiddenGrads[state] = result.before.hidden;
      cellStateGrads[state] = result.before.cell;
      cellGrads[state] = result.weights;
    }
    const Tensor& dropped = kept->dropped[layer];
    grad = dropped.isEmpty() ? gradInput : gradInput * dropped;
  }
  return {reshape(grad, input.shape()), inShapeOf(hiddenState, hiddenGrads),
          inShapeOf(cellState, cellStateGrads), packRnnWeights(cellGrads, weights.shape())};
}

}  // namespace fl
