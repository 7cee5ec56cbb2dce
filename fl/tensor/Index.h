// Indices of a tensor: literals, ranges, `span` and `end`, with Flashlight's semantics. Negative
// literals and range ends count from the end; a literal removes its dimension, a range keeps it.
// A tensor is flattened and selects along its dimension; floating elements are truncated toward 0.
// Its elements are looked at when the result is computed: one out of range, or NaN, is an error
// then, which names the line of the call. A write with such an index does not happen: where it was
// only recorded, the first read that needs it throws, and after that the tensor has its old
// elements, and what was recorded since is computed from these, as if the write alone had thrown.
// For equal indices x(index) += y adds in the dtype of x, where 16 bits lose small terms of large
// sums.
#pragma once

#include <optional>
#include <variant>

#include "fl/tensor/TensorBase.h"

namespace fl {

// The end of a dimension, for ranges: range(2, fl::end).
struct end_t {};
inline constexpr end_t end = end_t();

// Elements start, start + stride, ... below end.
class range {
 public:
  using idx = std::variant<end_t, Dim>;

  // All elements.
  range() = default;
  // [0, idx)
  explicit range(const Dim& idx);
  // [start, end)
  range(const Dim& start, const idx& end);
  range(const Dim& start, const idx& end, const Dim stride);

  Dim start() const { return start_; }
  // Nothing for fl::end.
  const std::optional<Dim>& end() const { return end_; }
  // Throws std::runtime_error for fl::end.
  Dim endVal() const;
  Dim stride() const { return stride_; }
  bool operator==(const range& other) const;
  bool operator!=(const range& other) const { return !(*this == other); }

 private:
  Dim start_ = 0;
  std::optional<Dim> end_;
  Dim stride_ = 1;
};

// All of a dimension.
extern const range span;

namespace detail {
enum class IndexType : int { Tensor = 0, Range = 1, Literal = 2, Span = 3 };
}

struct Index {
  using IndexVariant = std::variant<Dim, range, Tensor>;

  /* implicit */ Index(const Tensor& tensor);
  /* implicit */ Index(const range& range);
  /* implicit */ Index(const Dim idx) : type_(detail::IndexType::Literal), index_(idx) {}

  detail::IndexType type() const { return type_; }
  bool isSpan() const { return type_ == detail::IndexType::Span; }
  // T is Dim, range or Tensor; throws std::bad_variant_access for another than type() says.
  template <typename T>
  const T& get() const {
    return std::get<T>(index_);
  }
  template <typename T>
  T& get() {
    return std::get<T>(index_);
  }
  IndexVariant getVariant() const { return index_; }

 private:
  detail::IndexType type_;
  IndexVariant index_;
};

}  // namespace fl
