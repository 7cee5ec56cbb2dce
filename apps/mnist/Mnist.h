// MNIST: its file format, the model of the example, and the model's file.
//
// The format is IDX: a big-endian header (magic number, extents), then one unsigned byte an
// element. Images of any size are read; the model's layers follow it. Relies on fl alone; Train.cpp
// is the program.
#pragma once

#include <string>
#include <utility>

#include "fl/fl.h"

namespace fl::app {

constexpr int kMnistClasses = 10;

// The directory of the handwritten digits that come with the repository (1,437 images of 8x8 for
// training, 360 for testing), found through Bazel's runfiles. Throws std::runtime_error where the
// program runs without them.
std::string digitsDirectory();

// Images x of shape (W, H, N), f32 in [-0.5, 0.5], and labels y of shape (N), s32 in 0..9, read
// from DIRECTORY/train-images-idx3-ubyte and train-labels-idx1-ubyte, or from the t10k files.
// Throws std::runtime_error naming the file and the rule that it breaks.
std::pair<Tensor, Tensor> loadDataset(const std::string& directory, bool test = false);

// Two convolutions with pooling and two linear layers: (W, H, N) -> log-probabilities (10, N).
// Throws std::invalid_argument for images smaller than 4x4, of which pooling leaves nothing.
Sequential makeModel(Dim width, Dim height);

// Writes a tag, the image size and the model (fl::save: the file appears complete or not at all).
// Throws std::runtime_error naming the file.
void saveModel(const Sequential& model, Dim width, Dim height, const std::string& path);

// The model that saveModel wrote. Throws std::runtime_error naming the file if it holds none, or
// one for images of another size.
Sequential loadModel(const std::string& path, Dim width, Dim height);

}  // namespace fl::app
