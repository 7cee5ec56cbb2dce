// What the fake of cuDNN (FakeCudnn.h) is told: descriptors with their attributes, tensors among
// them, and graphs of operations on tensors of four dimensions.
#pragma once

#include <array>
#include <cstdint>
#include <cstring>
#include <functional>
#include <map>
#include <vector>

#include "fl/base/Types.h"
#include "fl/library/cuda/Cudnn.h"

namespace fl::testing {

struct Descriptor {
  cudnnBackendDescriptorType_t type;
  std::map<int, std::vector<char>> attributes;

  template <class T>
  std::vector<T> all(int name) const {
    const auto found = attributes.find(name);
    if (found == attributes.end()) return {};
    std::vector<T> values(found->second.size() / sizeof(T));
    std::memcpy(values.data(), found->second.data(), found->second.size());
    return values;
  }
  template <class T>
  T one(int name) const {
    return all<T>(name).at(0);
  }
  const Descriptor& other(int name) const { return **all<Descriptor*>(name).begin(); }
};

// A tensor's elements by image, channel, row and column.
class Elements {
 public:
  Elements(const Descriptor& tensor, const std::map<int64_t, char*>& buffers)
      : sizes(tensor.all<int64_t>(CUDNN_ATTR_TENSOR_DIMENSIONS)),
        strides_(tensor.all<int64_t>(CUDNN_ATTR_TENSOR_STRIDES)) {
    const auto type = tensor.one<cudnnDataType_t>(CUDNN_ATTR_TENSOR_DATA_TYPE);
    type_ = type == CUDNN_DATA_DOUBLE  ? dtype::f64
            : type == CUDNN_DATA_FLOAT ? dtype::f32
            : type == CUDNN_DATA_HALF  ? dtype::f16
                                       : dtype::bf16;
    const auto buffer = buffers.find(tensor.one<int64_t>(CUDNN_ATTR_TENSOR_UNIQUE_ID));
    if (buffer != buffers.end()) data_ = buffer->second;
  }

  using Index = std::array<int64_t, 4>;
  double read(const Index& index) const {
    uint64_t bits = 0;
    std::memcpy(&bits, place(index), getTypeSize(type_));
    return Number(type_, bits).toDouble();
  }
  void write(const Index& index, double value) const {
    const uint64_t bits = Number::fromDouble(value, type_).bits();
    std::memcpy(place(index), &bits, getTypeSize(type_));
  }

  // From the first element.
  int64_t offset(const Index& index) const {
    int64_t offset = 0;
    for (int i = 0; i < 4; ++i) offset += sizes[i] == 1 ? 0 : index[i] * strides_[i];
    return offset;
  }

  const std::vector<int64_t> sizes;

 private:
  char* place(const Index& index) const { return data_ + offset(index) * getTypeSize(type_); }
  std::vector<int64_t> strides_;
  dtype type_;
  char* data_ = nullptr;
};

template <class Body>
void everyIndex(const std::vector<int64_t>& sizes, const Body& body) {
  Elements::Index i;
  for (i[0] = 0; i[0] < sizes[0]; ++i[0]) {
    for (i[1] = 0; i[1] < sizes[1]; ++i[1]) {
      for (i[2] = 0; i[2] < sizes[2]; ++i[2]) {
        for (i[3] = 0; i[3] < sizes[3]; ++i[3]) body(i);
      }
    }
  }
}

// Does products, reductions, reshapes and what is done element by element, one after the other;
// what one hands to another is rounded to its type. Nothing is needed of the descriptors then.
std::function<void()> workOfGraph(const std::vector<Descriptor*>& operations,
                                  std::map<int64_t, char*> buffers);

}  // namespace fl::testing
