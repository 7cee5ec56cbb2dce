#include "apps/mnist/Mnist.h"

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <stdexcept>
#include <vector>

#include "absl/strings/str_cat.h"
#include "apps/mnist/Idx.h"
#include "apps/mnist/Runfile.h"

namespace fl::app {

namespace {

// Comes first in a model's file, for fl::load takes any bytes for the numbers that it is to load.
constexpr uint64_t kModelTag = 0x6c65646f6d206c66;  // "fl model"

std::string imageSize(Dim width, Dim height) { return absl::StrCat(width, "x", height); }

void checkLabels(const std::string& file, const std::vector<uint8_t>& labels) {
  const auto bad = std::find_if(labels.begin(), labels.end(),
                                [](uint8_t label) { return label >= kMnistClasses; });
  if (bad != labels.end()) {
    throw std::runtime_error(absl::StrCat(file, ": label ", *bad, " at index ",
                                          bad - labels.begin(), " is not in 0..",
                                          kMnistClasses - 1));
  }
}

}  // namespace

std::string digitsDirectory() {
  const std::string file = runfile("tests/data/digits/train-images-idx3-ubyte");
  if (file.empty()) {
    throw std::runtime_error("the digits are not beside the program; give a directory with --data");
  }
  return std::filesystem::path(file).parent_path();
}

std::pair<Tensor, Tensor> loadDataset(const std::string& directory, bool test) {
  const std::string prefix = directory + (test ? "/t10k" : "/train");
  const std::string imagesFile = prefix + "-images-idx3-ubyte";
  const std::string labelsFile = prefix + "-labels-idx1-ubyte";
  const Idx images = readIdx(imagesFile, 3, "images");
  const Idx labels = readIdx(labelsFile, 1, "labels");
  if (images.extents[0] != labels.extents[0]) {
    throw std::runtime_error(absl::StrCat(labelsFile, ": ", labels.extents[0], " labels, but ",
                                          imagesFile, " has ", images.extents[0], " images"));
  }
  checkLabels(labelsFile, labels.elements);
  const Dim count = static_cast<Dim>(images.extents[0]);
  const Dim height = static_cast<Dim>(images.extents[1]);
  const Dim width = static_cast<Dim>(images.extents[2]);
  // Rows of pixels are contiguous in the file, as the first dimension is in a tensor.
  const Tensor x = Tensor::fromVector({width, height, count}, images.elements);
  const Tensor y = Tensor::fromVector({count}, labels.elements);
  return {x.astype(dtype::f32) / 255. - 0.5, y.astype(dtype::s32)};
}

Sequential makeModel(Dim width, Dim height) {
  if (width < 4 || height < 4) {
    throw std::invalid_argument(
        absl::StrCat("images of ", imageSize(width, height), ": the model needs at least 4x4"));
  }
  const auto pad = PaddingMode::SAME;
  // Each pooling halves the image and drops an odd row.
  const Dim features = (width / 4) * (height / 4) * 64;
  Sequential model;
  model.add(View({width, height, 1, -1}));
  model.add(Conv2D(1, 32, 5, 5, 1, 1, pad, pad));
  model.add(ReLU());
  model.add(Pool2D(2, 2, 2, 2));
  model.add(Conv2D(32, 64, 5, 5, 1, 1, pad, pad));
  model.add(ReLU());
  model.add(Pool2D(2, 2, 2, 2));
  model.add(View({features, -1}));
  model.add(Linear(static_cast<int>(features), 1024));
  model.add(ReLU());
  model.add(Dropout(0.5));
  model.add(Linear(1024, kMnistClasses));
  model.add(LogSoftmax());
  return model;
}

void saveModel(const Sequential& model, Dim width, Dim height, const std::string& path) {
  save(path, kModelTag, width, height, model);
}

Sequential loadModel(const std::string& path, Dim width, Dim height) {
  uint64_t tag = 0;
  load(path, tag);
  if (tag != kModelTag) {
    throw std::runtime_error(path + ": holds something else than a model of this program");
  }
  Dim savedWidth = 0;
  Dim savedHeight = 0;
  load(path, tag, savedWidth, savedHeight);
  if (savedWidth != width || savedHeight != height) {
    throw std::runtime_error(absl::StrCat(path, ": a model for images of ",
                                          imageSize(savedWidth, savedHeight),
                                          ", but the data's are ", imageSize(width, height)));
  }
  Sequential model;
  load(path, tag, savedWidth, savedHeight, model);
  return model;
}

}  // namespace fl::app
