// Trains a small convolutional network on MNIST, or on the digits that come with the repository,
// and prints its accuracy on the test images; or evaluates a model that it saved.
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <exception>
#include <iostream>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "apps/mnist/Curve.h"
#include "apps/mnist/Mnist.h"
#include "fl/base/AtomicFile.h"
#include "fl/base/CommandLine.h"
#include "fl/base/Flags.h"
#include "fl/fl.h"

ABSL_FLAG(int, epochs, 40, "passes over the training images");
ABSL_FLAG(int, batch_size, 32, "images a step");
ABSL_FLAG(double, learning_rate, 0.1, "of stochastic gradient descent");
ABSL_FLAG(int, seed, 0, "of initial parameters and dropout");
ABSL_FLAG(std::string, backend, "", "lazy or eager; FL_BACKEND if not given");
ABSL_FLAG(std::string, device, "", "cpu or ref (slow, exact); FL_DEVICE if not given");
ABSL_FLAG(int, threads, 0, "threads to compute with; 0: FL_NUM_THREADS, or one a processor");
ABSL_FLAG(std::string, data, "",
          "directory of MNIST's four files; the bundled digits if not given");
ABSL_FLAG(std::string, save, "mnist_model.bin",
          "file that the trained model is written to; empty: none");
ABSL_FLAG(std::string, curve, "mnist_curve.svg",
          "file that the learning curve is drawn to; empty: none");
ABSL_FLAG(std::string, eval, "", "only evaluate the model in this file");

namespace {

using fl::BatchDataset;
using fl::Sequential;
using fl::Tensor;

constexpr int kInput = 0;
constexpr int kTarget = 1;

void check(bool holds, const std::string& message) {
  if (!holds) {
    throw std::runtime_error(message);
  }
}

BatchDataset makeBatches(const Tensor& x, const Tensor& y) {
  return BatchDataset(std::make_shared<fl::TensorDataset>(std::vector<Tensor>{x, y}),
                      absl::GetFlag(FLAGS_batch_size));
}

// The mean loss and the error in percent.
std::pair<double, double> evalLoop(Sequential& model, BatchDataset& dataset) {
  fl::AverageValueMeter lossMeter;
  fl::FrameErrorMeter errorMeter;
  model.eval();
  for (auto& example : dataset) {
    auto output = model(fl::noGrad(example[kInput]));
    auto target = fl::noGrad(example[kTarget]);

    Tensor maxValues, maxIds;
    fl::max(maxValues, maxIds, output.tensor(), 0);
    errorMeter.add(maxIds, target.tensor());

    auto loss = fl::categoricalCrossEntropy(output, target);
    lossMeter.add(loss.tensor().scalar<float>());
  }
  model.train();
  return {lossMeter.value()[0], errorMeter.value()};
}

// On a terminal, shows `line` in place of the one shown before.
void showProgress(const std::string& line) {
  if (isatty(STDOUT_FILENO)) {
    absl::PrintF("\r%s\x1b[K", line);
    std::fflush(stdout);
  }
}

// One pass over the data; the mean loss.
double trainEpoch(Sequential& model, fl::SGDOptimizer& optimizer, BatchDataset& dataset,
                  const std::string& epoch) {
  fl::AverageValueMeter lossMeter;
  int batch = 0;
  for (auto& example : dataset) {
    auto output = model(fl::noGrad(example[kInput]));
    auto loss = fl::categoricalCrossEntropy(output, fl::noGrad(example[kTarget]));
    lossMeter.add(loss.tensor().scalar<float>());

    loss.backward();
    optimizer.step();
    optimizer.zeroGrad();
    showProgress(absl::StrFormat("%s: batch %d of %d, loss %.4f", epoch, ++batch, dataset.size(),
                                 lossMeter.value()[0]));
  }
  showProgress("");
  return lossMeter.value()[0];
}

fl::app::History trainLoop(Sequential& model, BatchDataset& trainset, BatchDataset& valset) {
  const int epochs = absl::GetFlag(FLAGS_epochs);
  fl::SGDOptimizer optimizer(model.params(), absl::GetFlag(FLAGS_learning_rate));
  fl::app::History history;
  for (int e = 1; e <= epochs; ++e) {
    const auto start = std::chrono::steady_clock::now();
    const std::string epoch = absl::StrFormat("epoch %d of %d", e, epochs);
    const double trainLoss = trainEpoch(model, optimizer, trainset, epoch);
    const auto [valLoss, valError] = evalLoop(model, valset);
    check(std::isfinite(trainLoss) && std::isfinite(valLoss),
          absl::StrCat(epoch, ": the loss is not finite; a smaller --learning_rate may help"));
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
    absl::PrintF("%s: loss %.4f, validation loss %.4f, validation error %.1f%%, %.2f s\n", epoch,
                 trainLoss, valLoss, valError, seconds.count());
    std::fflush(stdout);
    history.trainLoss.push_back(trainLoss);
    history.validationLoss.push_back(valLoss);
    history.validationAccuracy.push_back(100 - valError);
  }
  return history;
}

// Trains on the data but for a twelfth, which is held out for validation (as 5,000 of MNIST's
// 60,000 are in Flashlight's example).
fl::app::History train(Sequential& model, const Tensor& x, const Tensor& y) {
  const fl::Dim count = y.elements();
  check(count > 1, "one training image: at least two are needed");
  const fl::Dim held = std::max<fl::Dim>(1, count / 12);
  auto valset = makeBatches(x(fl::span, fl::span, fl::range(0, held)), y(fl::range(0, held)));
  auto trainset =
      makeBatches(x(fl::span, fl::span, fl::range(held, count)), y(fl::range(held, count)));
  return trainLoop(model, trainset, valset);
}

// Before the work: what could not be kept after it.
void checkOutputs(const std::string& save, const std::string& curve) {
  for (const std::string& path : {save, curve}) {
    if (!path.empty()) {
      fl::AtomicFile::checkWritable(path);
    }
  }
  check(save.empty() || curve.empty() || !fl::AtomicFile::sameFile(save, curve),
        absl::StrCat("--save and --curve name the same file: ", save));
}

void trainAndSave(const std::string& directory, BatchDataset& testset, fl::Dim width,
                  fl::Dim height) {
  const std::string save = absl::GetFlag(FLAGS_save);
  const std::string curve = absl::GetFlag(FLAGS_curve);
  checkOutputs(save, curve);
  const auto [x, y] = fl::app::loadDataset(directory);
  check(x.dim(0) == width && x.dim(1) == height,
        absl::StrFormat("%s: training images of %dx%d, but test images of %dx%d", directory,
                        x.dim(0), x.dim(1), width, height));
  Sequential model = fl::app::makeModel(width, height);
  const fl::app::History history = train(model, x, y);
  const double accuracy = 100 - evalLoop(model, testset).second;
  if (!save.empty()) {
    fl::app::saveModel(model, width, height, save);
    absl::PrintF("model: %s\n", save);
  }
  if (!curve.empty()) {
    fl::app::drawCurve(history, accuracy, curve);
    absl::PrintF("curve: %s\n", curve);
  }
  absl::PrintF("test accuracy: %.1f%%\n", accuracy);
}

// What --backend, --device and --threads say goes before the environment.
void selectBackend() {
  if (const int threads = absl::GetFlag(FLAGS_threads); threads > 0) {
    fl::setNumThreads(threads);
  }
  const std::string device = absl::GetFlag(FLAGS_device);
  check((device.empty() ? fl::flags().device : device) != "null",
        "device null computes nothing: no model and no accuracy; --device=cpu or ref does");
  fl::setDefaultTensorBackend(fl::getBackend(absl::GetFlag(FLAGS_backend), device));
}

void parseFlags(int argc, char** argv) {
  const std::vector<char*> rest = fl::parseCommandLine(
      "Trains a convolutional network on handwritten digits.", __FILE__, argc, argv);
  check(rest.size() == 1, absl::StrCat(rest.back(), ": not a flag; flags start with --"));
  check(absl::GetFlag(FLAGS_epochs) > 0, "--epochs: must be at least 1");
  check(absl::GetFlag(FLAGS_batch_size) > 0, "--batch_size: must be at least 1");
  check(absl::GetFlag(FLAGS_learning_rate) > 0 && std::isfinite(absl::GetFlag(FLAGS_learning_rate)),
        "--learning_rate: must be a positive number");
  check(absl::GetFlag(FLAGS_threads) >= 0, "--threads: must not be negative");
}

void run(int argc, char** argv) {
  parseFlags(argc, argv);
  selectBackend();
  fl::setSeed(absl::GetFlag(FLAGS_seed));
  const std::string data = absl::GetFlag(FLAGS_data);
  const std::string directory = data.empty() ? fl::app::digitsDirectory() : data;
  const auto [x, y] = fl::app::loadDataset(directory, /*test=*/true);
  BatchDataset testset = makeBatches(x, y);
  const std::string saved = absl::GetFlag(FLAGS_eval);
  if (saved.empty()) {
    trainAndSave(directory, testset, x.dim(0), x.dim(1));
    return;
  }
  Sequential model = fl::app::loadModel(saved, x.dim(0), x.dim(1));
  absl::PrintF("test accuracy: %.1f%%\n", 100 - evalLoop(model, testset).second);
}

}  // namespace

int main(int argc, char** argv) {
  try {
    run(argc, argv);
    check(std::fflush(stdout) == 0 && !std::ferror(stdout),
          "standard output: cannot be written; not all of it is there");
    return 0;
  } catch (const std::exception& error) {
    showProgress("");
    std::cerr << "train: " << error.what() << std::endl;
    return 1;
  }
}
