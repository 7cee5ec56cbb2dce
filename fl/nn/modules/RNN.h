// Recurrent networks: Elman's with ReLU or tanh, LSTM and GRU.
#pragma once

#include <tuple>

#include "fl/nn/modules/Module.h"
#include "fl/tensor/Defines.h"

namespace fl {

// num_layers recurrent layers, in both directions if bidirectional; between them, in training mode,
// elements are dropped with probability drop_prob. The only parameter, uniform within
// sqrt(1 / hidden_size), holds all weights and biases as fl::rnn, which says more, takes them.
//
// Takes a sequence (inputSize, batch, time), a hidden and a cell state (H, batch, layers *
// directions), of which those at the end may be missing or empty, for zeros. Gives as many outputs
// as inputs: the sequence (H * directions, batch, time), and the states after the last step.
// Shapes: (inputSize, batch, time) to (hiddenSize * directions, batch, time)
class RNN : public CloneableModule<RNN> {
 public:
  RNN(int input_size, int hidden_size, int num_layers, RnnMode mode, bool bidirectional = false,
      float drop_prob = 0.0);

  // Throws std::invalid_argument unless there are one to three inputs.
  std::vector<Variable> forward(const std::vector<Variable>& inputs) override;
  Variable forward(const Variable& input);
  std::tuple<Variable, Variable> forward(const Variable& input, const Variable& hidden_state);
  std::tuple<Variable, Variable, Variable> forward(const Variable& input,
                                                   const Variable& hidden_state,
                                                   const Variable& cell_state);
  using Module::operator();
  Variable operator()(const Variable& input);
  std::tuple<Variable, Variable> operator()(const Variable& input, const Variable& hidden_state);
  std::tuple<Variable, Variable, Variable> operator()(const Variable& input,
                                                      const Variable& hidden_state,
                                                      const Variable& cell_state);
  std::string prettyString() const override;

 private:
  RNN() = default;
  FL_SAVE_LOAD_WITH_BASE(Module, inputSize_, hiddenSize_, numLayers_, mode_, bidirectional_,
                         dropProb_)

  int inputSize_ = 0;
  int hiddenSize_ = 0;
  int numLayers_ = 0;
  RnnMode mode_ = RnnMode::RELU;
  bool bidirectional_ = false;
  float dropProb_ = 0;
};

}  // namespace fl
