// Swapping out elementwise addition: all of an MNIST step reach ours; conv2d adds its own biases.
#include <utility>

#include "apps/mnist/Mnist.h"
#include "fl/research.h"

struct CountedAdd : fl::ForwardingBackend {
  using ForwardingBackend::ForwardingBackend;
  fl::Tensor add(const fl::Tensor& lhs, const fl::Tensor& rhs) override {
    ++additions;
    return ForwardingBackend::add(lhs, rhs);
  }
  int count() { return std::exchange(additions, 0); }
  int additions = 0;
};

int main() {
  CountedAdd backend(fl::defaultTensorBackend());
  fl::setDefaultTensorBackend(backend);
  fl::Sequential model = fl::app::makeModel(8, 8);
  fl::SGDOptimizer optimizer(model.params(), /*learningRate=*/0.1, /*momentum=*/0.9);
  const auto x = fl::noGrad(fl::rand({8, 8, 9})), y = fl::noGrad(fl::full({9}, 3, fl::dtype::s32));
  fl::sync(), backend.count();
  auto out = model(x), loss = fl::CategoricalCrossEntropy()(out + fl::tanh(out), y);  // a shortcut
  std::cout << "additions: forward " << backend.count();
  loss.backward(), std::cout << ", backward " << backend.count();
  optimizer.step(), std::cout << ", optimizer " << backend.count();
  std::cout << "; loss " << loss.scalar<float>() << '\n';
}
