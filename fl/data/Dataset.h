// Dataset: a mapping from an index to a sample, where a sample is a vector of Tensors. Datasets
// wrap others (batch, shuffle, transform, ...); they are iterated with range-for.
#pragma once

#include <cstdint>
#include <functional>
#include <iterator>
#include <memory>
#include <string>
#include <vector>

#include "fl/base/CallSite.h"
#include "fl/tensor/TensorBase.h"

namespace fl {
namespace detail {

// Holds the sample it points to, so that `auto& sample` works; each dereference gets it anew.
template <typename D, typename F>
class DatasetIterator {
 public:
  using iterator_category = std::input_iterator_tag;
  using value_type = F;
  using difference_type = int64_t;
  using pointer = F*;
  using reference = F&;

  DatasetIterator() = default;
  explicit DatasetIterator(D* dataset) : dataset_(dataset), idx_(dataset->size() > 0 ? 0 : kEnd) {}

  // Out of line, so that what it records is at the line of the loop.
  [[gnu::noinline]] reference operator*() {
    FL_API_ENTRY();
    buffer_ = dataset_->get(idx_);
    return buffer_;
  }
  DatasetIterator& operator++() {
    if (++idx_ >= dataset_->size()) {
      idx_ = kEnd;
    }
    return *this;
  }
  DatasetIterator operator++(int) {
    DatasetIterator before(*this);
    ++*this;
    return before;
  }
  bool operator==(const DatasetIterator& other) const { return idx_ == other.idx_; }

 private:
  static constexpr int64_t kEnd = -1;

  D* dataset_ = nullptr;
  int64_t idx_ = kEnd;
  F buffer_;
};

}  // namespace detail

class Dataset {
 public:
  using PermutationFunction = std::function<int64_t(int64_t)>;
  using TransformFunction = std::function<Tensor(const Tensor&)>;
  using LoadFunction = std::function<Tensor(const std::string&)>;
  using BatchFunction = std::function<Tensor(const std::vector<Tensor>&)>;
  using DataTransformFunction = std::function<Tensor(void*, fl::Shape, fl::dtype)>;
  using iterator = detail::DatasetIterator<const Dataset, std::vector<Tensor>>;

  virtual ~Dataset() = default;

  virtual int64_t size() const = 0;
  // Throws std::out_of_range unless 0 <= idx < size().
  virtual std::vector<Tensor> get(const int64_t idx) const = 0;

  iterator begin() const { return iterator(this); }
  iterator end() const { return iterator(); }

 protected:
  void checkIndexBounds(int64_t idx) const;
};

}  // namespace fl
