// Indices of a tensor: literals, ranges, `span` and `end`, with Flashlight's semantics. Negative
// literals and range ends count from the end; a literal removes its dimension, a range keeps it.
// A tensor is flattened and selects along its dimension; floating elements are truncated toward 0.
#pragma once

#include <memory>
#include <optional>
#include <variant>
#include <vector>

#include "fl/base/Shape.h"

namespace fl {

class Tensor;

// The end of a dimension, for ranges: range(2, fl::end).
struct end_t {};
inline constexpr end_t end = end_t();

// Elements start, start + stride, ... below end.
struct range {
  using idx = std::variant<end_t, Dim>;

  range() = default;
  // [0, idx)
  explicit range(Dim idx);
  // [start, end)
  range(Dim start, idx end);
  range(Dim start, idx end, Dim stride);

  Dim start() const { return start_; }
  // Nothing for fl::end.
  std::optional<Dim> end() const { return end_; }
  // Throws std::runtime_error for fl::end.
  Dim endVal() const;
  Dim stride() const { return stride_; }
  bool operator==(const range& other) const;
  bool operator!=(const range& other) const { return !(*this == other); }

 private:
  Dim start_ = 0;
  std::optional<Dim> end_ = 0;
  Dim stride_ = 1;
};

// All of a dimension.
extern const range span;

namespace detail {
enum class IndexType : int { Tensor = 0, Range = 1, Literal = 2, Span = 3 };
}

struct Index {
  using IndexVariant = std::variant<Dim, range, std::shared_ptr<Tensor>>;

  /* implicit */ Index(const Tensor& tensor);
  /* implicit */ Index(const range& range);
  /* implicit */ Index(int idx) : Index(static_cast<Dim>(idx)) {}
  /* implicit */ Index(unsigned idx) : Index(static_cast<Dim>(idx)) {}
  /* implicit */ Index(long idx) : Index(static_cast<Dim>(idx)) {}
  /* implicit */ Index(unsigned long idx) : Index(static_cast<Dim>(idx)) {}
  /* implicit */ Index(Dim idx) : type_(detail::IndexType::Literal), index_(idx) {}

  detail::IndexType type() const { return type_; }
  bool isSpan() const { return type_ == detail::IndexType::Span; }
  // T is Dim, range or Tensor; throws std::bad_variant_access for another.
  template <typename T>
  const T& get() const {
    if constexpr (std::is_same_v<T, Tensor>) {
      return *std::get<std::shared_ptr<Tensor>>(index_);
    } else {
      return std::get<T>(index_);
    }
  }

 private:
  detail::IndexType type_;
  IndexVariant index_;
};

}  // namespace fl
