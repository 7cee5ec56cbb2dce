#include "fl/ir/Inference.h"

#include <algorithm>
#include <cstdlib>
#include <limits>

#include "fl/base/Error.h"
#include "fl/ir/InferenceCall.h"

namespace fl::ir {
namespace {

ValueType elementwise(const Call& call) {
  const bool select = opKind(call.op) == Kind::Select;
  if (select && call.operand(0).type != dtype::b8) call.fail("the condition must be b8");
  call.requireSameTypes(select ? 1 : 0);
  const dtype type = call.operand(select ? 1 : 0).type;
  checkDtype(call, type);
  Shape shape = call.shape(0);
  for (size_t i = 1; i < call.operands.size(); ++i) {
    if (call.shape(i) == shape) continue;
    Shape joined;
    if (!broadcastShapes(shape, call.shape(i), &joined)) call.fail("shapes do not broadcast");
    shape = std::move(joined);
  }
  return {opInfo(call.op).result == Result::Bool ? dtype::b8 : type, std::move(shape)};
}

// The shape that the attributes from `first` on state.
Shape extents(const Call& call, size_t first) {
  const Shape shape(call.attrs.list(first));
  for (Dim dim : shape.get()) {
    if (dim < 0) call.fail("the shape ", shape, " has a negative dimension");
  }
  return shape;
}

ValueType source(const Call& call) {
  const Shape shape = extents(call, 2);
  if (call.attrs[1] < 0 || call.attrs[1] >= std::max(shape.ndim(), 1))
    call.fail("axis ", call.attrs[1], " of ", shape);
  return {static_cast<dtype>(call.attrs[0]), shape};
}

ValueType broadcast(const Call& call) {
  const Shape target = extents(call, 0);
  Shape joined;
  if (!broadcastShapes(call.shape(0), target, &joined) || joined != target)
    call.fail("does not broadcast to ", target);
  return {call.operand(0).type, target};
}

ValueType reshape(const Call& call) {
  const Shape target = extents(call, 0);
  if (target.elements() != call.shape(0).elements())
    call.fail("has ", call.shape(0).elements(), " elements, ", target, " has ", target.elements());
  return {call.operand(0).type, target};
}

ValueType transpose(const Call& call) {
  const std::vector<Dim> axes = call.attrs.list(0);
  const int rank = call.shape(0).ndim();
  std::vector<bool> seen(rank, false);
  Shape result;
  for (Dim axis : axes) {
    if (static_cast<int>(axes.size()) != rank || axis < 0 || axis >= rank || seen[axis])
      call.fail("axes ", Shape(axes), " are no permutation of its ", rank, " dimensions");
    seen[axis] = true;
    result.get().push_back(call.shape(0)[axis]);
  }
  if (static_cast<int>(axes.size()) != rank)
    call.fail("axes ", Shape(axes), " are no permutation of its ", rank, " dimensions");
  return {call.operand(0).type, result};
}

// A box of `sizes` with `strides` must fit into `shape` at some start, and the starts are scalars;
// or it fits at those stated.
void checkBox(const Call& call, const Shape& shape, const Shape& sizes,
              const std::vector<Dim>& strides, size_t firstStart,
              const std::vector<Dim>& stated = {}) {
  for (int i = 0; i < shape.ndim(); ++i) {
    const Dim reach = sizes[i] == 0 ? 0 : (sizes[i] - 1) * strides[i];
    const Dim span = sizes[i] == 0 ? 0 : std::abs(reach) + 1;
    if (sizes[i] < 0 || span > shape[i]) call.fail("a box of ", sizes, " does not fit");
    if (!stated.empty()) {
      const Dim low = stated[i] + std::min<Dim>(reach, 0);
      if (low < 0 || low + span > shape[i]) call.fail("a box at ", Shape(stated), " does not fit");
      continue;
    }
    const ValueType& start = call.operand(firstStart + i);
    if (start.type != dtype::s64 || start.shape.ndim() != 0) call.fail("starts are scalars of s64");
  }
}

ValueType slice(const Call& call) {
  const size_t rank = call.attrs.size() > 0 ? call.attrs[0] : 0;
  const size_t stated = statesStarts(call.attrs, static_cast<int>(rank)) ? rank : 0;
  if (static_cast<int>(rank) != call.shape(0).ndim() || call.operands.size() != rank + 1 - stated ||
      call.attrs.size() != 2 * rank + 1 + stated) {
    call.fail("needs one start, size and stride a dimension");
  }
  const std::vector<Dim> values = call.attrs.list(1);
  const Shape sizes(std::vector<Dim>(values.begin(), values.begin() + rank));
  const auto strides = values.begin() + static_cast<ptrdiff_t>(rank), starts = strides + rank;
  checkBox(call, call.shape(0), sizes, {strides, starts}, 1, {starts, values.end()});
  return {call.operand(0).type, sizes};
}

ValueType window(const Call& call) {
  const Shape& in = call.shape(0);
  if (in.ndim() < 2) call.fail("needs two dimensions");
  Shape out = {call.attrs[0], call.attrs[1]};
  for (int i = 0; i < 2; ++i) {
    checkSteps(call, call.attrs[2 + i], 0, call.attrs[4 + i]);
    const Dim count = windowCount(in[i], call.attrs[i], call.attrs[2 + i], 0, call.attrs[4 + i]);
    if (count < 1) call.fail("a window of ", call.attrs[i], " does not fit into ", in[i]);
    out.get().push_back(count);
  }
  out.get().insert(out.get().end(), in.get().begin() + 2, in.get().end());
  return {call.operand(0).type, out};
}

ValueType gather(const Call& call) {
  const Shape& x = call.shape(0);
  const Shape& index = call.shape(1);
  const Dim axis = call.attrs[0];
  if (call.attrs.size() != 2 || call.operand(1).type != dtype::s64 || axis < 0 ||
      axis >= x.ndim() || index.ndim() != x.ndim()) {
    call.fail("needs an s64 index of as many dimensions, and axis ", axis, " among them");
  }
  Shape rest = x, out;
  rest[axis] = index[axis];
  if (!broadcastShapes(rest, index, &out)) call.fail("shapes do not broadcast");
  if (x[axis] == 0 && out.elements() > 0) call.fail("axis ", axis, " is empty");
  return {call.operand(0).type, out};
}

ValueType scatter(const Call& call) {
  const Shape& x = call.shape(0);
  const Shape& index = call.shape(1);
  const Shape& y = call.shape(2);
  const Dim axis = call.attrs[0];
  if (call.operand(1).type != dtype::s64 || call.operand(0).type != call.operand(2).type ||
      axis < 0 || axis >= x.ndim() || index.ndim() != x.ndim() || y.ndim() != x.ndim()) {
    call.fail("needs an s64 index, equal dtypes and ranks, and axis ", axis, " among them");
  }
  for (int i = 0; i < x.ndim(); ++i) {
    const bool fits =
        i == axis ? index[i] == y[i] : x[i] == y[i] && (index[i] == 1 || index[i] == y[i]);
    if (!fits) call.fail("dimension ", i, " differs");
  }
  if (x[axis] == 0 && y.elements() > 0) call.fail("axis ", axis, " is empty");
  return call.operand(0);
}

ValueType fold(const Call& call) {
  const Shape& in = call.shape(0);
  if (in.ndim() < 4) call.fail("needs four dimensions");
  Shape out = {call.attrs[4], call.attrs[5]};
  for (int i = 0; i < 2; ++i) {
    if (windowCount(out[i], in[i], call.attrs[i], 0, call.attrs[2 + i]) != in[2 + i])
      call.fail("its windows do not cover ", out);
  }
  out.get().insert(out.get().end(), in.get().begin() + 4, in.get().end());
  return {call.operand(0).type, out};
}

void addExtent(const Call& call, size_t axis, Dim extent, Dim* total) {
  if (__builtin_add_overflow(*total, extent, total))
    call.fail("dimension ", axis, " has no size that can be counted");
}

ValueType pad(const Call& call) {
  call.requireSameTypes();
  const size_t rank = call.shape(0).ndim();
  if (call.attrs.size() != 2 * rank || call.operand(1).shape.ndim() != 0)
    call.fail("needs two widths a dimension and a scalar");
  Shape out = call.shape(0);
  for (size_t i = 0; i < rank; ++i) {
    if (call.attrs[i] < 0 || call.attrs[rank + i] < 0) {
      call.fail("the widths (", call.attrs[i], ", ", call.attrs[rank + i], ") of dimension ", i,
                " must not be negative");
    }
    addExtent(call, i, call.attrs[i], &out[i]);
    addExtent(call, i, call.attrs[rank + i], &out[i]);
  }
  return {call.operand(0).type, out};
}

ValueType concatenate(const Call& call) {
  call.requireSameTypes();
  const size_t axis = call.attrs[0];
  Shape out = call.shape(0);
  if (axis >= static_cast<size_t>(out.ndim())) call.fail("axis ", axis, " is out of range");
  out[axis] = 0;
  for (const ValueType* operand : call.operands) {
    Shape rest = operand->shape;
    if (rest.ndim() != out.ndim()) call.fail("ranks differ");
    addExtent(call, axis, rest[axis], &out[axis]);
    rest[axis] = out[axis];
    if (rest != out) call.fail("dimensions other than ", axis, " differ");
  }
  return {call.operand(0).type, out};
}

ValueType update(const Call& call) {
  const size_t rank = call.attrs[0];
  if (call.operand(0).type != call.operand(1).type ||
      static_cast<int>(rank) != call.shape(0).ndim() ||
      call.shape(1).ndim() != call.shape(0).ndim() || call.operands.size() != rank + 2 ||
      call.attrs.size() != rank + 1) {
    call.fail("needs equal dtypes and ranks, one start and stride a dimension");
  }
  checkBox(call, call.shape(0), call.shape(1), call.attrs.list(1), 2);
  return call.operand(0);
}

ValueType reduce(const Call& call) {
  const std::vector<Dim> axes = call.attrs.list(1);
  std::vector<bool> seen(call.shape(0).ndim(), false);
  for (Dim axis : axes) {
    if (axis < 0 || axis >= call.shape(0).ndim()) call.fail("axis ", axis, " is out of range");
    if (seen[axis]) call.fail("axis ", axis, " is given twice");
    seen[axis] = true;
  }
  return {call.operand(0).type, reducedShape(call.shape(0), axes, call.attrs[0])};
}

void checkAxis(const Call& call) {
  const Dim axis = call.attrs[0];
  if (axis < 0 || axis >= call.shape(0).ndim()) call.fail("axis ", axis, " is out of range");
}

ValueType order(const Call& call) {
  checkAxis(call);
  Shape shape = call.shape(0);
  Dim& length = shape[call.attrs[0]];
  if (call.attrs[1] < 0 || call.attrs[1] > length)
    call.fail("axis ", call.attrs[0], " has no ", call.attrs[1], " elements");
  length = call.attrs[1];
  return {dtype::s64, shape};
}

ValueType contract(const Call& call) {
  call.requireSameTypes();
  const Shape& x = call.shape(0);
  const Shape& y = call.shape(1);
  if (x.ndim() != 3 || y.ndim() != 3 || x[0] != y[0] || x[2] != y[2])
    call.fail("needs [K,M,B] and [K,N,B]");
  return {call.operand(0).type, Shape({x[1], y[1], x[2]})};
}

ValueType cast(const Call& call) { return {static_cast<dtype>(call.attrs[0]), call.shape(0)}; }
ValueType random(const Call& call) {
  const auto type = static_cast<dtype>(call.attrs[0]);
  if (type != dtype::f32 && type != dtype::f64 && type != dtype::u32)
    call.fail("draws f32, f64 or u32, not ", type);
  const size_t most = isFloating(type) ? 3 : 2;
  if (call.operands.size() > most)
    call.fail(type, " numbers take ", most - 1, most == 2 ? " offset" : " offsets");
  for (const ValueType* operand : call.operands) {
    if (operand->type != dtype::u64 || operand->shape.ndim() != 0)
      call.fail("the seed and offsets are scalars of u64");
  }
  return {type, extents(call, 1)};
}
ValueType scan(const Call& call) {
  checkAxis(call);
  return call.operand(0);
}

using Rule = ValueType (*)(const Call&);

// Of all ops of a kind, or of an op whose kind has no one rule.
constexpr Rule ruleOf(Op op, Kind kind) {
  switch (kind) {
    case Kind::Unary:
    case Kind::Binary:
    case Kind::Select:
      return elementwise;
    case Kind::Cast:
      return cast;
    case Kind::Source:
      return source;
    case Kind::Random:
      return random;
    case Kind::Index:
      return gather;
    case Kind::Reduce:
      return reduce;
    case Kind::Scan:
      return scan;
    case Kind::Order:
      return order;
    case Kind::Contract:
      return contract;
    case Kind::Library:
      return inferLibrary;
    case Kind::View:
    case Kind::Join:
    case Kind::Update:
      break;
  }
  switch (op) {
    case Op::Broadcast:
      return broadcast;
    case Op::Reshape:
      return reshape;
    case Op::Transpose:
      return transpose;
    case Op::Slice:
      return slice;
    case Op::Window:
      return window;
    case Op::Pad:
      return pad;
    case Op::Concatenate:
      return concatenate;
    case Op::Update:
      return update;
    case Op::Fold:
      return fold;
    case Op::Scatter:
    case Op::ScatterAdd:
      return scatter;
    default:
      throw InternalError("no rule of inference");
  }
}
// Compiles only where ruleOf() does not throw. (Sanitizers keep pointers from being compared here.)
#define FL_OP(Name, name, kind, ...)                              \
  static_assert(((void)ruleOf(Op::Name, Kind::kind), true), #name \
                ": write its rule of "                            \
                "inference");
#include "fl/ir/Ops.def"
#undef FL_OP

ValueType infer(const Call& call) { return ruleOf(call.op, opKind(call.op))(call); }

// Checked at the call, because a backend that records asks for the memory much later.
void checkBytes(const Call& call, const ValueType& result) {
  Dim bytes = getTypeSize(result.type);
  bool fits = true;
  for (Dim dim : result.shape.get()) {
    if (dim == 0) return;
    fits = !__builtin_mul_overflow(bytes, dim, &bytes) && fits;
  }
  if (!fits) call.fail("the result ", result.toString(), " has more bytes than can be counted");
}

}  // namespace

bool broadcastShapes(const Shape& lhs, const Shape& rhs, Shape* result) {
  const std::vector<Dim>& a = lhs.ndim() >= rhs.ndim() ? lhs.get() : rhs.get();
  const std::vector<Dim>& b = lhs.ndim() >= rhs.ndim() ? rhs.get() : lhs.get();
  *result = Shape(a);
  for (size_t i = 0; i < b.size(); ++i) {
    if (a[i] != b[i] && a[i] != 1 && b[i] != 1) return false;
    (*result)[i] = a[i] == 1 ? b[i] : a[i];
  }
  return true;
}

Shape reducedShape(const Shape& input, const std::vector<Dim>& axes, bool keepDims) {
  Shape result;
  for (int i = 0; i < input.ndim(); ++i) {
    const bool reduced = axes.empty() || std::find(axes.begin(), axes.end(), i) != axes.end();
    if (!reduced) {
      result.get().push_back(input[i]);
    } else if (keepDims) {
      result.get().push_back(1);
    }
  }
  return result;
}

Dim windowCount(Dim in, Dim kernel, Dim stride, Dim pad, Dim dilation) {
  const Dim span = in + 2 * pad - ((kernel - 1) * dilation + 1);
  return span < 0 || stride < 1 ? 0 : 1 + span / stride;
}

Shape ImageAxes::shape(Dim width, Dim height, Dim channels, Dim images) const {
  Shape shape = {1, 1, 1, images};
  shape[x] = width;
  shape[y] = height;
  shape[channel] = channels;
  return shape;
}

ImageAxes imageAxes(const Attrs& attrs) {
  return attrs.values().back() ? ImageAxes{1, 2, 0} : ImageAxes{0, 1, 2};
}

bool isOnImages(Op op) { return !attrNames(op).empty() && attrNames(op).back() == "channelsLast?"; }

bool allowsTf32(Op op, const Attrs& attrs) {
  const auto tf32 = std::ranges::find(attrNames(op), "tf32?");
  return tf32 != attrNames(op).end() && attrs[tf32 - attrNames(op).begin()] != 0;
}

bool isImage(Op op, size_t operand) {
  return isOnImages(op) && (operand == 0 || (op != Op::Conv2d && op != Op::Conv2dBackwardData));
}

bool resultIsImage(Op op) { return isOnImages(op) && op != Op::Conv2dBackwardFilter; }

Shape headsOf(const Shape& operand, const Attrs& attrs) {
  return attrs[0] ? Shape({operand[2], operand[0], operand[1], operand[3]}) : operand;
}

std::string describeIndexed(const ValueType& indexed) {
  const std::string called = calledAs("");
  return (called.empty() ? "index: " : called) + indexed.toString();
}

std::string badIndexMessage(const BadIndex& bad, const ValueType& table, Dim axis) {
  const Shape* shown = currentCallSite().indexed();
  const ValueType indexed{table.type, shown ? *shown : table.shape};
  std::string index = bad.index == kNanIndex ? "NaN" : std::to_string(bad.index);
  // What s64 does not hold is cut to this before it is looked up.
  index += bad.index == std::numeric_limits<int64_t>::max() ? " or more" : "";
  const bool whole = axis >= indexed.shape.ndim() || indexed.shape[axis] == bad.bound;
  return detail::concat(describeIndexed(indexed), ": ", index, " is out of range for ",
                        whole ? detail::concat("dimension ", axis, " of ") : "its ", bad.bound,
                        " elements");
}

ValueType inferType(Op op, std::span<const ValueType* const> operands, const Attrs& attrs) {
  const Call call{op, operands, attrs};
  const int arity = opInfo(op).arity, count = static_cast<int>(operands.size());
  FL_INTERNAL_CHECK(arity < 0 ? count >= -arity : count == arity, opName(op), " takes ", arity,
                    " operands, not ", count);
  ValueType result = infer(call);
  checkBytes(call, result);
  return result;
}

}  // namespace fl::ir
