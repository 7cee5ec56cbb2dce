// Compiled, not run: a training program as a user of Flashlight writes it, after its include lines.
// What does not compile here has lost source compatibility.
#include <fstream>
#include <iomanip>
#include <iostream>
#include <stdexcept>
#include <string>
#include <tuple>
#include <utility>

#include "fl/fl.h"

using namespace fl;

namespace {

const int kTrainSize = 60000;
const int kValSize = 5000;
const int kTestSize = 10000;
const int kImageDim = 28;
const int kPixelMax = 255;
const int kInputIdx = 0;
const int kTargetIdx = 1;

int read_int(std::ifstream& file) {
  unsigned char bytes[4] = {};
  file.read(reinterpret_cast<char*>(bytes), 4);
  return bytes[0] << 24 | bytes[1] << 16 | bytes[2] << 8 | bytes[3];
}

template <typename T>
Tensor load_data(const std::string& path, const std::vector<long long int>& dims) {
  std::ifstream file(path, std::ios::binary);
  if (!file.is_open()) {
    throw std::runtime_error("cannot open " + path);
  }
  read_int(file);
  size_t elements = 1;
  for (auto dim : dims) {
    elements *= dim;
    if (read_int(file) != dim) {
      throw std::runtime_error("unexpected dimension in " + path);
    }
  }
  std::vector<T> data;
  for (size_t i = 0; i < elements; i++) {
    data.push_back(static_cast<unsigned char>(file.get()));
  }
  std::vector<long long int> reversed(dims.rbegin(), dims.rend());
  return Tensor::fromBuffer(Shape(reversed), data.data(), MemoryLocation::Host);
}

std::pair<Tensor, Tensor> load_dataset(const std::string& data_dir, bool test = false) {
  std::string prefix = data_dir + "/" + (test ? "t10k" : "train");
  int size = test ? kTestSize : kTrainSize;
  Tensor ims = load_data<float>(prefix + "-images-idx3-ubyte", {size, kImageDim, kImageDim});
  ims = reshape(ims, {kImageDim, kImageDim, 1, size});
  ims = (ims - kPixelMax / 2) / kPixelMax;
  Tensor labels = load_data<int>(prefix + "-labels-idx1-ubyte", {size});
  return std::make_pair(ims, labels);
}

std::pair<double, double> eval_loop(Sequential& model, BatchDataset& dataset) {
  AverageValueMeter loss_meter;
  FrameErrorMeter error_meter;

  model.eval();
  for (auto& example : dataset) {
    auto inputs = noGrad(example[kInputIdx]);
    auto output = model(inputs);

    Tensor max_vals, max_ids;
    max(max_vals, max_ids, output.tensor(), 0);

    auto target = noGrad(example[kTargetIdx]);
    error_meter.add(max_ids, target.tensor());

    auto loss = categoricalCrossEntropy(output, target);
    loss_meter.add(loss.tensor().scalar<float>());
  }
  model.train();

  double error = error_meter.value();
  double loss = loss_meter.value()[0];
  return std::make_pair(loss, error);
}

Sequential make_model() {
  Sequential model;
  auto pad = PaddingMode::SAME;
  model.add(View({kImageDim, kImageDim, 1, -1}));
  model.add(Conv2D(1, 32, 5, 5, 1, 1, pad, pad));
  model.add(ReLU());
  model.add(Pool2D(2, 2, 2, 2));
  model.add(std::make_shared<Conv2D>(32, 64, 5, 5, 1, 1, PaddingMode::SAME, PaddingMode::SAME));
  model.add(ReLU());
  model.add(Pool2D(2, 2, 2, 2));
  model.add(View({7 * 7 * 64, -1}));
  model.add(Linear(7 * 7 * 64, 1024));
  model.add(ReLU());
  model.add(Dropout(0.5));
  model.add(Linear(1024, 10));
  model.add(LogSoftmax());
  return model;
}

const float kLearningRate = 1e-2;
const int kEpochs = 10;
const int kBatchSize = 64;

double train_epoch(Sequential& model, SGDOptimizer& opt, BatchDataset& dataset) {
  AverageValueMeter loss_meter;
  for (auto& example : dataset) {
    auto inputs = noGrad(example[kInputIdx]);
    auto output = model(inputs);
    auto target = noGrad(example[kTargetIdx]);
    auto loss = categoricalCrossEntropy(output, target);
    loss_meter.add(loss.tensor().scalar<float>());
    loss.backward();
    opt.step();
    opt.zeroGrad();
  }
  return loss_meter.value()[0];
}

void train(Sequential& model, const std::string& data_dir) {
  Tensor train_x;
  Tensor train_y;
  std::tie(train_x, train_y) = load_dataset(data_dir);

  auto val_x = train_x(span, span, span, fl::range(0, kValSize));
  train_x = train_x(span, span, 0, fl::range(kValSize, kTrainSize));
  auto val_y = train_y(fl::range(0, kValSize));
  train_y = train_y(fl::range(kValSize, kTrainSize));

  BatchDataset trainset(std::make_shared<TensorDataset>(std::vector<Tensor>{train_x, train_y}),
                        kBatchSize);
  BatchDataset valset(std::make_shared<TensorDataset>(std::vector<Tensor>{val_x, val_y}),
                      kBatchSize);

  SGDOptimizer opt(model.params(), kLearningRate);
  for (int e = 0; e < kEpochs; e++) {
    double train_loss = train_epoch(model, opt, trainset);
    double val_loss, val_error;
    std::tie(val_loss, val_error) = eval_loop(model, valset);
    std::cout << "Epoch " << e << std::setprecision(3) << ": Avg Train Loss: " << train_loss
              << " Validation Loss: " << val_loss << " Validation Error (%): " << val_error
              << std::endl;
  }
}

void test(Sequential& model, const std::string& data_dir) {
  Tensor test_x;
  Tensor test_y;
  std::tie(test_x, test_y) = load_dataset(data_dir, true);
  BatchDataset testset(std::make_shared<TensorDataset>(std::vector<Tensor>{test_x, test_y}),
                       kBatchSize);
  double test_loss, test_error;
  std::tie(test_loss, test_error) = eval_loop(model, testset);
  std::cout << "Test Loss: " << test_loss << " Test Error (%): " << test_error << std::endl;
}

}  // namespace

int main(int argc, char** argv) {
  fl::init();
  if (argc != 2) {
    throw std::runtime_error("You must pass a data directory.");
  }
  fl::setSeed(1);
  std::string data_dir = argv[1];
  Sequential model = make_model();
  train(model, data_dir);
  test(model, data_dir);
  fl::save("mnist.bin", model);
  return 0;
}
