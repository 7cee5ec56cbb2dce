#include "fl/nn/modules/RNN.h"

#include <cmath>
#include <sstream>

#include "fl/autograd/Functions.h"
#include "fl/base/CallSite.h"
#include "fl/base/Error.h"
#include "fl/nn/Init.h"
#include "fl/nn/Serialization.h"
#include "fl/nn/Utils.h"

CEREAL_REGISTER_TYPE(fl::RNN)

namespace fl {
namespace {

// Of a damaged archive the mode may be none of them.
const char* nameOf(RnnMode mode) {
  switch (mode) {
    case RnnMode::RELU:
      return "RNN (relu)";
    case RnnMode::TANH:
      return "RNN (tanh)";
    case RnnMode::LSTM:
      return "LSTM";
    case RnnMode::GRU:
      return "GRU";
  }
  return "RNN";
}

}  // namespace

RNN::RNN(int input_size, int hidden_size, int num_layers, RnnMode mode, bool bidirectional,
         float drop_prob)
    : inputSize_(input_size),
      hiddenSize_(hidden_size),
      numLayers_(num_layers),
      mode_(mode),
      bidirectional_(bidirectional),
      dropProb_(drop_prob) {
  FL_API_CONSTRUCTOR();
  FL_USER_CHECK(input_size > 0 && hidden_size > 0 && num_layers > 0,
                "RNN: sizes and layers must be positive, not ", input_size, ", ", hidden_size,
                " and ", num_layers);
  FL_USER_CHECK(drop_prob >= 0 && drop_prob <= 1, "RNN: drop_prob must be in [0, 1], not ",
                drop_prob);
  const int64_t count =
      detail::getNumRnnParams(input_size, hidden_size, num_layers, mode, bidirectional);
  const double bound = std::sqrt(1.0 / hidden_size);
  params_ = {uniform(Shape({count}), -bound, bound)};
}

std::vector<Variable> RNN::forward(const std::vector<Variable>& inputs) {
  FL_API_ENTRY();
  FL_USER_CHECK(inputs.size() >= 1 && inputs.size() <= 3, prettyString(),
                ": takes one to three inputs, not ", inputs.size());
  const dtype type = inputs[0].type();
  const auto state = [&](size_t i) {
    return i < inputs.size() && !inputs[i].isEmpty() ? detail::toType(inputs[i], type)
                                                     : Variable(Tensor(type), false);
  };
  const auto [output, hidden, cell] =
      rnn(inputs[0], state(1), state(2), detail::toType(params_[0], type), hiddenSize_, numLayers_,
          mode_, bidirectional_, train_ ? dropProb_ : 0);
  std::vector<Variable> outputs = {output, hidden, cell};
  outputs.resize(inputs.size());
  return outputs;
}

Variable RNN::forward(const Variable& input) {
  FL_API_ENTRY();
  return forward(std::vector<Variable>{input})[0];
}

std::tuple<Variable, Variable> RNN::forward(const Variable& input, const Variable& hidden_state) {
  FL_API_ENTRY();
  const auto outputs = forward(std::vector<Variable>{input, hidden_state});
  return {outputs[0], outputs[1]};
}

std::tuple<Variable, Variable, Variable> RNN::forward(const Variable& input,
                                                      const Variable& hidden_state,
                                                      const Variable& cell_state) {
  FL_API_ENTRY();
  const auto outputs = forward(std::vector<Variable>{input, hidden_state, cell_state});
  return {outputs[0], outputs[1], outputs[2]};
}

Variable RNN::operator()(const Variable& input) {
  FL_API_ENTRY();
  return forward(input);
}

std::tuple<Variable, Variable> RNN::operator()(const Variable& input,
                                               const Variable& hidden_state) {
  FL_API_ENTRY();
  return forward(input, hidden_state);
}

std::tuple<Variable, Variable, Variable> RNN::operator()(const Variable& input,
                                                         const Variable& hidden_state,
                                                         const Variable& cell_state) {
  FL_API_ENTRY();
  return forward(input, hidden_state, cell_state);
}

std::string RNN::prettyString() const {
  std::ostringstream text;
  text << nameOf(mode_) << " (" << inputSize_ << "->" << (bidirectional_ ? 2 : 1) * hiddenSize_
       << ")";
  if (numLayers_ > 1) text << " (" << numLayers_ << "-layer)";
  if (bidirectional_) text << " (bidirectional)";
  if (dropProb_ > 0) text << " (dropout=" << dropProb_ << ")";
  return text.str();
}

}  // namespace fl
