#include "fl/tensor/Index.h"

#include <stdexcept>

#include "fl/base/CallSite.h"
#include "fl/base/Error.h"

namespace fl {

const range span = range(-1, -1, 0);

range::range(const Dim& idx) : range(0, idx) {}
range::range(const Dim& start, const idx& end) : range(start, end, 1) {}
range::range(const Dim& start, const idx& end, const Dim stride) : start_(start), stride_(stride) {
  const Dim* literal = std::get_if<Dim>(&end);
  end_ = literal ? std::optional<Dim>(*literal) : std::nullopt;
}

Dim range::endVal() const {
  if (!end_) {
    FL_API_ENTRY();
    throw std::runtime_error(detail::withCallSite("range::endVal: the range ends at fl::end"));
  }
  return *end_;
}

bool range::operator==(const range& other) const {
  return start_ == other.start_ && end_ == other.end_ && stride_ == other.stride_;
}

Index::Index(const Tensor& tensor) : type_(detail::IndexType::Tensor), index_(tensor) {}

Index::Index(const range& range)
    : type_(range == fl::span ? detail::IndexType::Span : detail::IndexType::Range),
      index_(range) {}

}  // namespace fl
