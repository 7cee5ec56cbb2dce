#include "tests/nn/ModuleCases.h"

#include "fl/nn/nn.h"

namespace fl::test {
namespace {

using Cases = std::map<std::string, ModuleCase>;

template <typename T, typename... Args>
ModuleCase caseOf(const std::string& pretty, Args... args) {
  return {pretty, [=] { return std::make_shared<T>(args...); },
          [](Module& target, const Module& source) {
            static_cast<T&>(target) = static_cast<const T&>(source);
          }};
}

Cases activations() {
  return {{"Sigmoid", caseOf<Sigmoid>("Sigmoid")},
          {"Log", caseOf<Log>("Log")},
          {"Tanh", caseOf<Tanh>("Tanh")},
          {"HardTanh", caseOf<HardTanh>("HardTanh")},
          {"ReLU", caseOf<ReLU>("ReLU")},
          {"ReLU6", caseOf<ReLU6>("ReLU6")},
          {"LeakyReLU", caseOf<LeakyReLU>("LeakyReLU (0.100000)", 0.1)},
          {"PReLU", caseOf<PReLU>("PReLU", 5)},
          {"ELU", caseOf<ELU>("ELU (0.700000)", 0.7)},
          {"ThresholdReLU", caseOf<ThresholdReLU>("ThresholdReLU (0.500000)", 0.5)},
          {"GatedLinearUnit", caseOf<GatedLinearUnit>("GatedLinearUnit (1)", 1)},
          {"LogSoftmax", caseOf<LogSoftmax>("LogSoftmax (1)", 1)},
          {"Softmax", caseOf<Softmax>("Softmax (0)")},
          {"Swish", caseOf<Swish>("Swish (1.500000)", 1.5)},
          {"GELU", caseOf<GELU>("GELU")}};
}

Cases shapes() {
  return {
      {"Identity", caseOf<Identity>("Identity")},
      {"Dropout", caseOf<Dropout>("Dropout (0.000000)", 0)},
      {"PrecisionCast", caseOf<PrecisionCast>("PrecisionCast * -> f32", dtype::f32)},
      {"View", caseOf<View>("View (-1, 4)", Shape({-1, 4}))},
      {"Reorder", caseOf<Reorder>("Reorder (2, 0, 1)", Shape({2, 0, 1}))},
      {"Padding", caseOf<Padding>("Padding (0.5, { (1, 2), (0, 3), })", std::pair(1, 2),
                                  std::pair(0, 3), 0.5)},
      {"Embedding", caseOf<Embedding>("Embedding (embeddings: 5) (dim: 3)", 3, 5)},
      {"Normalize", caseOf<Normalize>("Normalize ( axis : { 1 } , p : 3, eps : 1e-12, value : 2 )",
                                      std::vector<int>{1}, 3, 1e-12, 2)}};
}

Sequential smallModel() {
  Sequential model;
  model.add(Linear(4, 5));
  model.add(Tanh());
  model.add(Linear(5, 2));
  return model;
}

Cases layers() {
  const auto same = PaddingMode::SAME;
  const auto including = PoolingMode::AVG_INCLUDE_PADDING;
  const auto excluding = PoolingMode::AVG_EXCLUDE_PADDING;
  return {{"Linear", caseOf<Linear>("Linear (4->5) (with bias)", 4, 5)},
          {"LinearWithoutBias", caseOf<Linear>("Linear (4->5) (without bias)", 4, 5, false)},
          {"Conv2D", caseOf<Conv2D>("Conv2D (4->6, 3x2, 2,1, 2,1, 1,2) (with bias)", 4, 6, 3, 2, 2,
                                    1, 2, 1, 1, 2, true, 2)},
          {"Conv2DSame", caseOf<Conv2D>("Conv2D (2->3, 5x3, 1,1, SAME,SAME, 1,1) (without bias)", 2,
                                        3, 5, 3, 1, 1, same, same, 1, 1, false)},
          {"Conv1D",
           caseOf<Conv1D>("Conv1D (4->6, 3, 2, 2, 2) (with bias)", 4, 6, 3, 2, 2, 2, true, 2)},
          {"ConvTranspose2D",
           caseOf<ConvTranspose2D>("ConvTranspose2D (4->6, 3x2, 2,3, 0,1, 2,1) (with bias)", 4, 6,
                                   3, 2, 2, 3, 0, 1, 2, 1, true, 2, 1, 2)},
          {"ConvTranspose2DWithoutBias",
           caseOf<ConvTranspose2D>("ConvTranspose2D (2->3, 2x3, 1,1, 0,0, 1,1) (without bias)", 2,
                                   3, 2, 3, 1, 1, 0, 0, 1, 1, false)},
          {"Pool2D", caseOf<Pool2D>("Pool2D-max (3x2, 2,1, 1,1)", 3, 2, 2, 1, 1, 1)},
          {"Pool2DIncluding",
           caseOf<Pool2D>("Pool2D-avg (3x3, 2,2, 1,1)", 3, 3, 2, 2, 1, 1, including)},
          {"Pool2DExcluding",
           caseOf<Pool2D>("Pool2D-avg (3x3, 2,2, 1,1)", 3, 3, 2, 2, 1, 1, excluding)},
          {"WeightNorm",
           caseOf<WeightNorm>("WeightNorm (Linear (4->5) (with bias), 0)", Linear(4, 5), 0)},
          {"WeightNormConv2D",
           caseOf<WeightNorm>("WeightNorm (Conv2D (2->4, 2x3, 1,1, 0,0, 1,1) (without bias), 3)",
                              Conv2D(2, 4, 2, 3, 1, 1, 0, 0, 1, 1, false), 3)},
          {"Sequential", caseOf<Sequential>("Sequential [input -> (0) -> (1) -> (2) -> output]\n"
                                            "\t(0): Linear (4->5) (with bias)\n\t(1): Tanh\n"
                                            "\t(2): Linear (5->2) (with bias)",
                                            smallModel())}};
}

Cases normalizations() {
  using Axes = std::vector<int>;
  return {
      {"BatchNorm", caseOf<BatchNorm>("BatchNorm ( axis : { 2 }, size : 5 )", 2, 5, 0.3)},
      {"BatchNormOfActivations",
       caseOf<BatchNorm>("BatchNorm ( axis : { 0 1 }, size : 6 )", Axes{0, 1}, 6)},
      {"BatchNormCumulative", caseOf<BatchNorm>("BatchNorm ( axis : { 0 }, size : 3 )", 0, 3, -1)},
      {"BatchNormWithoutStatistics",
       caseOf<BatchNorm>("BatchNorm ( axis : { 0 }, size : 3 )", 0, 3, 0.1, 1e-5, false, false)},
      {"LayerNorm",
       caseOf<LayerNorm>("LayerNorm ( axis : { 0 } , size : 6)", Axes{0}, 1e-5, true, 6)},
      {"LayerNormOfPlanes",
       caseOf<LayerNorm>("LayerNorm ( axis : { 0 1 } , size : 12)", Axes{0, 1}, 1e-5, true, 12)},
      {"LayerNormOfAnySize",
       caseOf<LayerNorm>("LayerNorm ( axis : { 0 2 } , size : -1)", Axes{0, 2})},
      {"LayerNormOfTheMiddle",
       caseOf<LayerNorm>("LayerNorm ( axis : { 1 } , size : -1)", 1, 1e-5, false)},
      {"GroupNorm", caseOf<GroupNorm>("GroupNorm ( groups : 3, size : 6 )", 3, 6)},
      {"GroupNormOfRows",
       caseOf<GroupNorm>("GroupNorm ( groups : 2, size : 6 )", 2, 6, 1e-5, false)},
      {"RMSNorm", caseOf<RMSNorm>("RMSNorm ( size : 6 )", 6)}};
}

Cases recurrent() {
  return {
      {"RNNRelu", caseOf<RNN>("RNN (relu) (3->4)", 3, 4, 1, RnnMode::RELU)},
      {"RNNTanh",
       caseOf<RNN>("RNN (tanh) (3->8) (2-layer) (bidirectional)", 3, 4, 2, RnnMode::TANH, true)},
      {"LSTM", caseOf<RNN>("LSTM (3->8) (2-layer) (bidirectional)", 3, 4, 2, RnnMode::LSTM, true)},
      {"GRU", caseOf<RNN>("GRU (3->4) (2-layer)", 3, 4, 2, RnnMode::GRU)}};
}

Cases attention() {
  const ModuleCase entry = caseOf<MultiheadAttention>(
      "MultiheadAttention (heads : 2, dropout : 0)\n\t(0): Linear (6->6) (with bias)\n"
      "\t(1): Linear (6->6) (with bias)\n\t(2): Linear (6->6) (with bias)\n"
      "\t(3): Linear (6->6) (with bias)",
      6, 2);
  return {{"MultiheadAttention", entry},
          {"MultiheadAttentionOfThree", entry},
          {"MultiheadAttentionMasked", entry}};
}

Cases losses() {
  const std::vector<int> cutoff = {2, 5, 9};
  const std::string adaptive = "Adaptive Softmax (2, 5, 9)";
  return {{"MeanSquaredError", caseOf<MSE>("MeanSquaredError")},
          {"MeanAbsoluteError", caseOf<L1Loss>("MeanAbsoluteError")},
          {"BinaryCrossEntropy", caseOf<BinaryCrossEntropy>("BinaryCrossEntropy")},
          {"CategoricalCrossEntropy",
           caseOf<CategoricalCrossEntropy>("CategoricalCrossEntropy", ReduceMode::MEAN, 3)},
          {"CategoricalCrossEntropyOfEach",
           caseOf<CategoricalCrossEntropy>("CategoricalCrossEntropy", ReduceMode::NONE)},
          {"CategoricalCrossEntropySum",
           caseOf<CategoricalCrossEntropy>("CategoricalCrossEntropy", ReduceMode::SUM, 3)},
          {"AdaptiveSoftMax", caseOf<AdaptiveSoftMax>(adaptive, 8, cutoff, 2)},
          {"AdaptiveSoftMaxLoss",
           caseOf<AdaptiveSoftMaxLoss>(adaptive, std::make_shared<AdaptiveSoftMax>(8, cutoff, 2))},
          {"AdaptiveSoftMaxLossOfEach",
           caseOf<AdaptiveSoftMaxLoss>(adaptive, std::make_shared<AdaptiveSoftMax>(8, cutoff, 2),
                                       ReduceMode::NONE, 6)}};
}

}  // namespace

const Cases& moduleCases() {
  static const Cases cases = [] {
    Cases all;
    for (Cases part : {activations(), shapes(), layers(), normalizations(), recurrent(),
                       attention(), losses()}) {
      all.merge(part);
    }
    return all;
  }();
  return cases;
}

}  // namespace fl::test
