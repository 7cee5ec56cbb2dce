#include "fl/tensor/View.h"

#include <algorithm>
#include <limits>

#include "fl/base/Error.h"
#include "fl/ir/Inference.h"
#include "fl/tensor/Detail.h"

namespace fl::detail {
namespace {

using Kind = ViewMove::Kind;

Tensor flatIndices(const Tensor& tensor) {
  return tensor.type() == dtype::b8 ? nonzero(tensor) : tensor.flatten();
}

// The places that an index tensor names: NaN is none, nor is what s64 does not hold.
Tensor placesOf(const Tensor& index) {
  const Number most = Number::of(std::numeric_limits<int64_t>::max(), dtype::u64);
  const bool mayOverflow = index.type() == dtype::u64;
  const Tensor places =
      castTo(mayOverflow ? minimum(index, numberTensor(most)) : index, dtype::s64);
  const Number none = Number::of(ir::kNanIndex, dtype::s64);
  return isFloating(index.type()) ? where(isnan(index), numberTensor(none), places) : places;
}

// Collects the indices of one call, dimension by dimension.
class Indexing {
 public:
  // Of what `view` shows in the shape `in`: its own, perhaps with further dimensions of 1, or its
  // flattening. Errors show its own and the dtype.
  Indexing(TensorView* view, Shape in, dtype type)
      : view_(view), in_(std::move(in)), shown_(view->shape), type_(type) {
    reshapeTo(in_);
  }

  void add(const Index& index) {
    const Dim size = in_[starts_.size()];
    switch (index.type()) {
      case IndexType::Span:
        return addSpan(size);
      case IndexType::Literal:
        return addLiteral(size, index.get<Dim>());
      case IndexType::Range:
        return addRange(size, index.get<range>());
      case IndexType::Tensor:
        return addTensor(size, index.get<Tensor>());
    }
  }
  void addSpan(Dim size) { addBox(0, size, 1, true); }

  // Makes the view show what was indexed.
  void finish() {
    if (sizes_ != in_.get() || strides_ != std::vector<Dim>(in_.ndim(), 1))
      view_->moves.push_back({Kind::Box, Shape(sizes_), starts_, strides_});
    Shape shape(sizes_), left;
    for (const auto& [axis, index] : lookups_) {
      CallSite site = currentCallSite();
      if (shape != shown_) site.setIndexed(shown_);
      Shape along(std::vector<Dim>(in_.ndim(), 1));
      along[axis] = shape[axis] = index.elements();
      view_->moves.push_back(
          {Kind::Lookup, shape, {}, {}, axis, reshape(placesOf(index), along).value(), site});
    }
    for (int i = 0; i < shape.ndim(); ++i)
      if (kept_[i] && (i < std::max(shown_.ndim(), 1) || shape[i] != 1))
        left.get().push_back(shape[i]);
    view_->shape = shape;
    reshapeTo(left.ndim() == 0 ? Shape({1}) : left);
  }

 private:
  void reshapeTo(const Shape& shape) {
    if (view_->shape != shape) {
      view_->moves.push_back({Kind::Reshape, shape, {}, {}});
      view_->shape = shape;
    }
  }

  void addBox(Dim start, Dim size, Dim stride, bool kept) {
    starts_.push_back(start);
    sizes_.push_back(size);
    strides_.push_back(stride);
    kept_.push_back(kept);
  }

  // How an error begins, and how it ends.
  std::string described() const { return ir::describeIndexed({type_, shown_}) + ": "; }
  std::string place() const {
    return concat(in_.ndim() >= shown_.ndim() ? concat(" for dimension ", starts_.size(), " of ")
                                              : " for its ",
                  in_[starts_.size()], " elements");
  }

  void addLiteral(Dim size, Dim index) {
    FL_USER_CHECK(-size <= index && index < size, described(), index, " is out of range", place());
    addBox(index < 0 ? index + size : index, 1, 1, false);
  }

  void addRange(Dim size, const range& r) {
    const Dim start = r.start() < 0 ? r.start() + size : r.start();
    const Dim last = r.end().value_or(size);
    const Dim end = last < 0 ? last + size : last;
    // All of no elements is no element.
    const bool inside = 0 <= start && start + (size > 0) <= end && end <= size;
    FL_USER_CHECK(
        inside && r.stride() > 0, described(), "range [", r.start(), ", ",
        r.end() ? std::to_string(*r.end()) : "end", ") with stride ", r.stride(),
        r.stride() > 0 ? " is empty or out of range" : ": must be positive, flip() reverses,",
        place());
    addBox(start, end > start ? (end - start - 1) / r.stride() + 1 : 0, r.stride(), true);
  }

  void addTensor(Dim size, const Tensor& index) {
    const Dim count = index.shape().elements();
    FL_USER_CHECK(index.type() != dtype::b8 || count == size, described(), "a mask of ", count,
                  " elements", place());
    FL_USER_CHECK(size > 0 || count == 0, described(), count, " indices", place());
    lookups_.emplace_back(static_cast<int>(starts_.size()), flatIndices(index));
    addSpan(size);
  }

  TensorView* const view_;
  const Shape in_, shown_;
  const dtype type_;
  std::vector<Dim> starts_, sizes_, strides_;
  std::vector<bool> kept_;
  std::vector<std::pair<int, Tensor>> lookups_;
};

bool isMove(const ViewMove& move) { return move.kind != Kind::Reshape; }

TensorValue applyMove(const TensorValue& value, const ViewMove& move) {
  switch (move.kind) {
    case Kind::Reshape:
      return reshapeValue(value, move.shape);
    case Kind::Box:
      return sliceValue(value, move.starts, move.shape.get(), move.strides);
    case Kind::Lookup: {
      const CallSiteOverride lookingUp(move.site);
      return applyOp(ir::Op::Gather, {value, move.index}, {move.axis, 0});
    }
  }
  __builtin_unreachable();
}

// `base` with `part` written to where `move` leads.
TensorValue writeMove(const TensorValue& base, const ViewMove& move, const TensorValue& part,
                      Write write) {
  if (move.kind == Kind::Lookup) {
    const ir::Op op = write == Write::Add ? ir::Op::ScatterAdd : ir::Op::Scatter;
    CallSite site = currentCallSite();
    site.setIndexed(move.site);
    const CallSiteOverride writing(site);
    return applyOp(op, {base, move.index, part}, {move.axis});
  }
  const auto sum = [&] {
    return defaultTensorBackend().add(Tensor(applyMove(base, move)), Tensor(part)).value();
  };
  const TensorValue box = write == Write::Add ? sum() : part;
  return updateValue(base, box, move.starts, move.strides);
}

}  // namespace

bool TensorView::hasLookups() const {
  return std::ranges::count(moves, Kind::Lookup, &ViewMove::kind) > 0;
}

void TensorView::index(const std::vector<Index>& indices, dtype type) {
  const bool filters = indices.size() == 1 && indices[0].type() == IndexType::Tensor &&
                       indices[0].get<Tensor>().shape().elements() == shape.elements();
  if (filters && shape.ndim() != 1) return flat(indices[0], type);
  Shape all = shape;
  all.get().resize(std::max(indices.size(), all.get().size()), 1);
  Indexing indexing(this, all, type);
  for (int i = 0; i < all.ndim(); ++i)
    i < std::ssize(indices) ? indexing.add(indices[i]) : indexing.addSpan(all[i]);
  indexing.finish();
}

void TensorView::flat(const Index& index, dtype type) {
  Indexing indexing(this, Shape({shape.elements()}), type);
  indexing.add(index);
  indexing.finish();
}

namespace {

// Whether a move chooses among what a lookup showed, other than along further axes of its result.
bool choosesAfterLookup(const std::vector<ViewMove>& moves) {
  int looked = -1;  // the axis of the last lookup
  bool reshaped = false;
  for (const ViewMove& move : moves) {
    const bool further = move.kind == Kind::Lookup && !reshaped && move.axis > looked;
    if (looked >= 0 && isMove(move) && !further) return true;
    looked = move.kind == Kind::Lookup ? move.axis : looked;
    reshaped = looked >= 0 && (reshaped || !isMove(move));
  }
  return false;
}

// Replaces the elements one by one, at the places that the view shows of a counting value.
TensorValue replacePlaces(const TensorValue& value, const TensorView& view,
                          const TensorValue& box) {
  const Shape all({value->shape().elements()}), shown({box->shape().elements()});
  const TensorValue places = readView(iota(value->shape(), {1}, dtype::s64).value(), view);
  const TensorValue written = applyOp(
      ir::Op::Scatter,
      {reshapeValue(value, all), reshapeValue(places, shown), reshapeValue(box, shown)}, {0});
  return reshapeValue(written, value->shape());
}

}  // namespace

TensorValue readView(const TensorValue& value, const TensorView& view) {
  const CallSiteOverride indexing(view.site);
  TensorValue current = value;
  for (const ViewMove& move : view.moves) current = applyMove(current, move);
  return current;
}

TensorValue writeView(const TensorValue& value, const TensorView& view, const TensorValue& box,
                      Write write) {
  // Where a lookup shows an element twice and only one of the two is written, writing back all that
  // the lookup showed would put the old element over the new one.
  if (write == Write::Replace && choosesAfterLookup(view.moves))
    return replacePlaces(value, view, box);
  // What is added is spread over zeros on all levels but the outermost, whose value is updated.
  // They are -0, which leaves every float what it is.
  const auto& moves = view.moves;
  const auto first = std::find_if(moves.begin(), moves.end(), isMove) - moves.begin();
  const auto behind = std::find_if(moves.rbegin(), moves.rend(), isMove).base() - moves.begin();
  std::vector<TensorValue> levels = {value};  // before each move, as far as it is written to
  for (std::ptrdiff_t i = 0; i < (write == Write::Add ? first : behind - 1); ++i)
    levels.push_back(applyMove(levels.back(), moves[i]));
  TensorValue current = box;
  for (size_t i = moves.size(); i-- > 0;) {
    const Shape& shape = i == 0 ? value->shape() : moves[i - 1].shape;
    if (!isMove(moves[i])) {
      current = reshapeValue(current, shape);
      continue;
    }
    const Number none = Number::fromDouble(-0.0, value->type());
    const TensorValue base = i < levels.size() ? levels[i] : filled(shape, none).value();
    current = writeMove(base, moves[i], current, write);
  }
  return current;
}

}  // namespace fl::detail
