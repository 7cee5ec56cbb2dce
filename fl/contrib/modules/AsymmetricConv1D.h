// Convolution over time that looks farther to one side.
#pragma once

#include "fl/nn/modules/Conv2D.h"

namespace fl {

// A Conv2D over the first dimension, of which futurePart of the padding is at the end: with 0.5
// each place sees as much on both sides, with 0 only the past, with 1 only the future. Padding px
// is 0 or PaddingMode::SAME. Parameters: as Conv2D's with wy = 1.
// Shapes: (T,H,nIn,N) to (T',H,nOut,N)
class AsymmetricConv1D : public Conv2D {
 public:
  AsymmetricConv1D(int nIn, int nOut, int wx, int sx = 1, detail::IntOrPadMode px = 0,
                   float futurePart = 0.5, int dx = 1, bool bias = true, int groups = 1);
  // Around given parameters. Throws std::invalid_argument if they do not fit each other.
  explicit AsymmetricConv1D(const Variable& w, int sx = 1, detail::IntOrPadMode px = 0,
                            float futurePart = 0.5, int dx = 1, int groups = 1);
  AsymmetricConv1D(const Variable& w, const Variable& b, int sx = 1, detail::IntOrPadMode px = 0,
                   float futurePart = 0.5, int dx = 1, int groups = 1);

  using UnaryModule::forward;
  Variable forward(const Variable& input) override;
  std::unique_ptr<Module> clone() const override;
  std::string prettyString() const override;

 private:
  AsymmetricConv1D() = default;
  FL_SAVE_LOAD_WITH_BASE(Conv2D, futurePart_)
  void checkSides() const;

  float futurePart_ = 0.5;
};

}  // namespace fl
