// Attention with each kind of mask, for devices to agree on.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "fl/fl.h"

namespace fl::testing {

enum class AttentionMask { None, Causal, Padding, ForEachHead };
inline const std::vector<AttentionMask> kAttentionMasks = {
    AttentionMask::None, AttentionMask::Causal, AttentionMask::Padding, AttentionMask::ForEachHead};

struct AttentionCase {
  dtype type;
  AttentionMask mask = AttentionMask::None;
  Dim queries = 64, keys = 80, features = 8, heads = 2, batch = 2;
};

// Nothing or -inf, where `isMasked` says so.
template <class IsMasked>
Variable attentionMask(const Shape& shape, const IsMasked& isMasked) {
  std::vector<float> mask;
  for (Dim i = 0; i < shape.elements(); ++i)
    mask.push_back(isMasked(i) ? -std::numeric_limits<float>::infinity() : 0);
  return Variable(Tensor::fromVector(shape, mask), false);
}

// The result, and the gradients of query, key and value.
inline std::vector<std::vector<float>> attentionValues(const AttentionCase& tested,
                                                       const std::string& device) {
  const auto& [type, kind, queries, keys, features, heads, batch] = tested;
  std::vector<Variable> inputs;
  Variable mask, padMask;
  {
    const BackendScope cpu("lazy", "cpu");
    setSeed(7);
    for (const Dim positions : {queries, keys, keys}) {
      const Tensor values = (rand({positions, features * heads, batch}) - 0.5) * 4;
      inputs.emplace_back(values.astype(type), true);
    }
    const Dim rows = queries, columns = keys, later = keys - queries;
    if (kind == AttentionMask::Causal) {
      mask = attentionMask({queries, keys}, [&](Dim i) { return i / rows > i % rows + later; });
    } else if (kind == AttentionMask::Padding) {
      padMask = attentionMask({keys, batch},
                              [&](Dim i) { return i % columns >= columns - 9 * (i / columns); });
    } else if (kind == AttentionMask::ForEachHead) {
      mask = attentionMask({queries, keys, heads * batch},
                           [&](Dim i) { return i / rows % columns > 0 && i * 7 % 11 < 4; });
    }
    sync();
  }
  const BackendScope scope("lazy", device);
  Variable y = multiheadAttention(inputs[0], inputs[1], inputs[2], Variable(), mask, padMask,
                                  static_cast<int32_t>(heads), 0);
  y.backward(Variable(y.tensor() * 0.5, false));
  std::vector<std::vector<float>> values = {y.tensor().astype(dtype::f32).toHostVector<float>()};
  for (const Variable& x : inputs)
    values.push_back(x.grad().tensor().astype(dtype::f32).toHostVector<float>());
  return values;
}

// Weights and what is summed are rounded to the type.
inline float attentionError(dtype type) { return type == dtype::f16 ? 5e-3F : 4e-2F; }

}  // namespace fl::testing
