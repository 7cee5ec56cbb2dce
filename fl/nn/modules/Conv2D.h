// Convolutions of images (W,H,C,N) and of sequences (W,C,N).
#pragma once

#include "fl/nn/Utils.h"
#include "fl/nn/modules/Module.h"

namespace fl {

// Cross-correlation of images, as fl::conv2d; paddings are numbers or PaddingMode::SAME.
// Parameters: the weights (wx,wy,nIn/groups,nOut), drawn by kaimingUniform with the inputs of one
// output as fanIn, and the bias (1,1,nOut,1), uniform within sqrt(1 / fanIn).
// Shapes: (W,H,nIn,N) to (W',H',nOut,N)
class Conv2D : public CloneableUnaryModule<Conv2D> {
 public:
  Conv2D(int nIn, int nOut, int wx, int wy, int sx = 1, int sy = 1, detail::IntOrPadMode px = 0,
         detail::IntOrPadMode py = 0, int dx = 1, int dy = 1, bool bias = true, int groups = 1);
  // Around given parameters. Throws std::invalid_argument if they do not fit each other.
  explicit Conv2D(const Variable& w, int sx = 1, int sy = 1, detail::IntOrPadMode px = 0,
                  detail::IntOrPadMode py = 0, int dx = 1, int dy = 1, int groups = 1);
  Conv2D(const Variable& w, const Variable& b, int sx = 1, int sy = 1, detail::IntOrPadMode px = 0,
         detail::IntOrPadMode py = 0, int dx = 1, int dy = 1, int groups = 1);
  FL_UNARY_MODULE(nIn_, nOut_, xFilter_, yFilter_, xStride_, yStride_, xPad_, yPad_, xDilation_,
                  yDilation_, bias_, groups_)

 protected:
  Conv2D() = default;
  // Throw std::invalid_argument naming the module unless the settings fit each other.
  void checkSettings(const char* name) const;
  void drawParameters(const char* name);

  int nIn_ = 0;
  int nOut_ = 0;
  int xFilter_ = 0;
  int yFilter_ = 0;
  int xStride_ = 1;
  int yStride_ = 1;
  int xPad_ = 0;
  int yPad_ = 0;
  int xDilation_ = 1;
  int yDilation_ = 1;
  bool bias_ = false;
  int groups_ = 1;
};

// Cross-correlation of sequences. The parameters are those of a Conv2D of height 1: the weights
// (wx,1,nIn/groups,nOut) and the bias (1,1,nOut,1).
// Shapes: (W,nIn,N) to (W',nOut,N)
class Conv1D : public Conv2D {
 public:
  Conv1D(int nIn, int nOut, int wx, int sx = 1, detail::IntOrPadMode px = 0, int dx = 1,
         bool bias = true, int groups = 1);
  using Conv2D::forward;
  Variable forward(const Variable& input) override;
  std::unique_ptr<Module> clone() const override;
  std::string prettyString() const override;

 private:
  Conv1D() = default;
  FL_SAVE_LOAD_WITH_BASE(Conv2D)
};

}  // namespace fl
