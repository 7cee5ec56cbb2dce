// What the modules that move windows over images have in common: sizes and settings, x before y.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "fl/nn/Utils.h"

namespace fl::detail {

// Throws std::invalid_argument naming the module unless both numbers are positive.
void checkPositive(const char* module, const char* what, int x, int y);

// Paddings are numbers or PaddingMode::SAME.
struct Windows {
  int xFilter_ = 1;
  int yFilter_ = 1;
  int xStride_ = 1;
  int yStride_ = 1;
  int xPad_ = 0;
  int yPad_ = 0;

  // Throws std::invalid_argument naming the module unless they can be.
  void check(const char* module) const;
  // derivePadding() for images.
  std::pair<int, int> paddings(const Variable& images, int xDilation, int yDilation) const;
  // "3x3, 1,1, SAME,0"
  std::string toString() const;
};

struct Convolution : Windows {
  int nIn_ = 0;
  int nOut_ = 0;
  int xDilation_ = 1;
  int yDilation_ = 1;
  bool bias_ = false;
  int groups_ = 1;

  // Throws std::invalid_argument naming the module unless they can be and fit each other.
  void check(const char* module) const;
  // Weights (wx,wy,inputs/groups,outputs), drawn by kaimingUniform with the inputs of one output as
  // fanIn, and the bias (1,1,nOut,1), if there is one, uniform within sqrt(1 / fanIn).
  std::vector<Variable> drawParameters(int inputs, int outputs) const;
  std::string describe(const char* module) const;
};

// What a module saves of them. They have no serialize(): the modules would inherit it.
#define FL_WINDOW_MEMBERS xFilter_, yFilter_, xStride_, yStride_, xPad_, yPad_
#define FL_CONVOLUTION_MEMBERS \
  nIn_, nOut_, FL_WINDOW_MEMBERS, xDilation_, yDilation_, bias_, groups_

}  // namespace fl::detail
