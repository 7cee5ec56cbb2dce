// More elements around a tensor.
#pragma once

#include <utility>

#include "fl/nn/modules/Module.h"

namespace fl {

// pad.first elements `val` before and pad.second behind the input, in each of the first dimensions
// that there is a pair for.
// Shapes: any, larger by the padding
class Padding : public CloneableUnaryModule<Padding> {
 public:
  using Pair = std::pair<int, int>;
  Padding(std::vector<Pair> pad, double val) : m_pad(std::move(pad)), m_val(val) {}
  Padding(Pair pad0, double val) : m_pad({pad0}), m_val(val) {}
  Padding(Pair pad0, Pair pad1, double val) : m_pad({pad0, pad1}), m_val(val) {}
  Padding(Pair pad0, Pair pad1, Pair pad2, double val) : m_pad({pad0, pad1, pad2}), m_val(val) {}
  Padding(Pair pad0, Pair pad1, Pair pad2, Pair pad3, double val)
      : m_pad({pad0, pad1, pad2, pad3}), m_val(val) {}
  FL_UNARY_MODULE(m_pad, m_val)
  Padding() = default;

  std::vector<Pair> m_pad;
  double m_val = 0;
};

}  // namespace fl
