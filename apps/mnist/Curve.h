// Draws what a training run reached as an SVG file. Relies on the program gnuplot, which runs as a
// process of its own.
#pragma once

#include <string>
#include <vector>

namespace fl::app {

// One value an epoch; accuracies in percent.
struct History {
  std::vector<double> trainLoss;
  std::vector<double> validationLoss;
  std::vector<double> validationAccuracy;
};

// Two panels over the epochs: both losses, and the accuracies with the test's as a level line. The
// file appears complete or not at all. Throws std::runtime_error naming the file.
void drawCurve(const History& history, double testAccuracy, const std::string& path);

}  // namespace fl::app
