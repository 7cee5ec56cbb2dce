#include "tests/runtime/cuda/FakeCudnnGraph.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>

#include "fl/base/Error.h"

namespace fl::testing {
namespace {

using Index = Elements::Index;
// Memory of what is no buffer.
using Storage = std::vector<std::unique_ptr<std::vector<double>>>;

double pointwise(cudnnPointwiseMode_t mode, double x, double b) {
  switch (mode) {
    case CUDNN_POINTWISE_ADD:
      return x + b;
    case CUDNN_POINTWISE_SUB:
      return x - b;
    case CUDNN_POINTWISE_MUL:
      return x * b;
    case CUDNN_POINTWISE_DIV:
      return x / b;
    case CUDNN_POINTWISE_EXP:
      return std::exp(x);
    case CUDNN_POINTWISE_LOG:
      return std::log(x);
    default:
      FL_INTERNAL_CHECK(false, "pointwise mode ", static_cast<int>(mode));
  }
}

// Gives tensors without a buffer memory, and numbers of the host the value that they have now.
void provide(const Descriptor& tensor, std::map<int64_t, char*>& buffers, Storage& storage) {
  char*& buffer = buffers[tensor.one<int64_t>(CUDNN_ATTR_TENSOR_UNIQUE_ID)];
  const bool isNumber = !tensor.all<char>(CUDNN_ATTR_TENSOR_IS_BY_VALUE).empty();
  if (buffer != nullptr && !isNumber) return;
  size_t elements = 1;
  for (const int64_t size : tensor.all<int64_t>(CUDNN_ATTR_TENSOR_DIMENSIONS)) elements *= size;
  storage.push_back(std::make_unique<std::vector<double>>(elements));
  char* const memory = reinterpret_cast<char*>(storage.back()->data());
  if (isNumber) std::memcpy(memory, buffer, sizeof(float));
  buffer = memory;
}

Elements elementsOf(const Descriptor& operation, int name, std::map<int64_t, char*>& buffers,
                    Storage& storage) {
  const Descriptor& tensor = operation.other(name);
  provide(tensor, buffers, storage);
  return Elements(tensor, buffers);
}

void multiply(const Elements& a, const Elements& b, const Elements& product) {
  everyIndex(product.sizes, [&](const Index& i) {
    double sum = 0;
    for (int64_t k = 0; k < a.sizes[3]; ++k)
      sum += a.read({i[0], i[1], i[2], k}) * b.read({i[0], i[1], k, i[3]});
    product.write(i, sum);
  });
}

void reduce(bool isMaximum, const Elements& x, const Elements& y) {
  std::map<Index, double> all;
  everyIndex(x.sizes, [&](const Index& i) {
    Index kept = i;
    for (int axis = 0; axis < 4; ++axis) kept[axis] = y.sizes[axis] == 1 ? 0 : i[axis];
    const double none = isMaximum ? -std::numeric_limits<double>::infinity() : 0;
    double& result = all.try_emplace(kept, none).first->second;
    result = isMaximum ? std::max(result, x.read(i)) : result + x.read(i);
  });
  for (const auto& [index, result] : all) y.write(index, result);
}

// The same memory in other strides.
void reshape(const Elements& x, const Elements& y) {
  std::map<int64_t, double> values;
  everyIndex(x.sizes, [&](const Index& i) { values[x.offset(i)] = x.read(i); });
  everyIndex(y.sizes, [&](const Index& i) { y.write(i, values.at(y.offset(i))); });
}

std::function<void()> workOf(const Descriptor& operation, std::map<int64_t, char*>& buffers,
                             Storage& storage) {
  const auto tensor = [&](int name) { return elementsOf(operation, name, buffers, storage); };
  switch (operation.type) {
    case CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR:
      return [a = tensor(CUDNN_ATTR_OPERATION_MATMUL_ADESC),
              b = tensor(CUDNN_ATTR_OPERATION_MATMUL_BDESC),
              c = tensor(CUDNN_ATTR_OPERATION_MATMUL_CDESC)] { multiply(a, b, c); };
    case CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR: {
      const bool isMaximum =
          operation.other(CUDNN_ATTR_OPERATION_REDUCTION_DESC)
              .one<cudnnReduceTensorOp_t>(CUDNN_ATTR_REDUCTION_OPERATOR) == CUDNN_REDUCE_TENSOR_MAX;
      return [isMaximum, x = tensor(CUDNN_ATTR_OPERATION_REDUCTION_XDESC),
              y = tensor(CUDNN_ATTR_OPERATION_REDUCTION_YDESC)] { reduce(isMaximum, x, y); };
    }
    case CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR:
      return [x = tensor(CUDNN_ATTR_OPERATION_RESHAPE_XDESC),
              y = tensor(CUDNN_ATTR_OPERATION_RESHAPE_YDESC)] { reshape(x, y); };
    default: {
      const auto mode = operation.other(CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR)
                            .one<cudnnPointwiseMode_t>(CUDNN_ATTR_POINTWISE_MODE);
      const bool isBinary =
          !operation.all<Descriptor*>(CUDNN_ATTR_OPERATION_POINTWISE_BDESC).empty();
      const Elements x = tensor(CUDNN_ATTR_OPERATION_POINTWISE_XDESC);
      const Elements b = isBinary ? tensor(CUDNN_ATTR_OPERATION_POINTWISE_BDESC) : x;
      return [mode, x, b, y = tensor(CUDNN_ATTR_OPERATION_POINTWISE_YDESC)] {
        everyIndex(y.sizes,
                   [&](const Index& i) { y.write(i, pointwise(mode, x.read(i), b.read(i))); });
      };
    }
  }
}

}  // namespace

std::function<void()> workOfGraph(const std::vector<Descriptor*>& operations,
                                  std::map<int64_t, char*> buffers) {
  const auto storage = std::make_shared<Storage>();
  std::vector<std::function<void()>> all;
  for (const Descriptor* each : operations) all.push_back(workOf(*each, buffers, *storage));
  return [storage, all] {
    for (const auto& each : all) each();
  };
}

}  // namespace fl::testing
