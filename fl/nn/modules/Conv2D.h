// Convolutions of images (W,H,C,N) and of sequences (W,C,N).
#pragma once

#include "fl/nn/modules/Convolution.h"
#include "fl/nn/modules/Module.h"

namespace fl {

namespace detail {
struct ConvBenchmarks;
}

// Cross-correlation of images, as fl::conv2d; paddings are numbers or PaddingMode::SAME.
// Parameters: the weights (wx,wy,nIn/groups,nOut), drawn by kaimingUniform with the inputs of one
// output as fanIn, and the bias (1,1,nOut,1), uniform within sqrt(1 / fanIn).
// Shapes: (W,H,nIn,N) to (W',H',nOut,N)
class Conv2D : public CloneableUnaryModule<Conv2D>, protected detail::Convolution {
 public:
  Conv2D(int nIn, int nOut, int wx, int wy, int sx = 1, int sy = 1, detail::IntOrPadMode px = 0,
         detail::IntOrPadMode py = 0, int dx = 1, int dy = 1, bool bias = true, int groups = 1);
  // Around given parameters. All throw std::invalid_argument for parameters that do not fit each
  // other, and for settings that do not.
  explicit Conv2D(const Variable& w, int sx = 1, int sy = 1, detail::IntOrPadMode px = 0,
                  detail::IntOrPadMode py = 0, int dx = 1, int dy = 1, int groups = 1);
  Conv2D(const Variable& w, const Variable& b, int sx = 1, int sy = 1, detail::IntOrPadMode px = 0,
         detail::IntOrPadMode py = 0, int dx = 1, int dy = 1, int groups = 1);
  FL_UNARY_MODULE(FL_CONVOLUTION_MEMBERS)

 protected:
  Conv2D() = default;

  std::shared_ptr<detail::ConvBenchmarks> benchmarks_;  // for conv2d()
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
