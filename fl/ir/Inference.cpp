#include "fl/ir/Inference.h"

#include <algorithm>
#include <cstdlib>

#include "fl/base/CallSite.h"
#include "fl/base/Error.h"

namespace fl::ir {
namespace {

// One call under inspection; fail() words the error.
struct Call {
  Op op;
  std::span<const ValueType* const> operands;
  const Attrs& attrs;

  const ValueType& operand(size_t i) const { return *operands[i]; }
  const Shape& shape(size_t i) const { return operands[i]->shape; }

  std::string describe() const {
    std::string types;
    for (const ValueType* type : operands) {
      types += (types.empty() ? "" : " x ") + type->toString();
    }
    return describeCall(opName(op), types);
  }
  template <typename... Args>
  [[noreturn]] void fail(const Args&... rule) const {
    throwUser(describe(), ": ", rule...);
  }

  void requireSameTypes(size_t first = 0) const {
    for (size_t i = first + 1; i < operands.size(); ++i) {
      if (operand(i).type != operand(first).type) {
        fail("dtypes ", operand(first).type, " and ", operand(i).type, " differ");
      }
    }
  }
};

void checkDtype(const Call& call, dtype type) {
  const Types allowed = opInfo(call.op).types;
  if (allowed == Types::Float && !isFloating(type)) {
    call.fail("needs a floating dtype");
  }
  if (allowed == Types::Integer && isFloating(type)) {
    call.fail("needs an integer dtype");
  }
}

ValueType elementwise(const Call& call) {
  const bool select = opKind(call.op) == Kind::Select;
  if (select && call.operand(0).type != dtype::b8) {
    call.fail("the condition must be b8");
  }
  call.requireSameTypes(select ? 1 : 0);
  const dtype type = call.operand(select ? 1 : 0).type;
  checkDtype(call, type);
  Shape shape = call.shape(0);
  for (size_t i = 1; i < call.operands.size(); ++i) {
    Shape joined;
    if (!broadcastShapes(shape, call.shape(i), &joined)) {
      call.fail("shapes do not broadcast");
    }
    shape = std::move(joined);
  }
  return {opInfo(call.op).result == Result::Bool ? dtype::b8 : type, std::move(shape)};
}

// The shape that the attributes from `first` on state.
Shape extents(const Call& call, size_t first) {
  const Shape shape(call.attrs.list(first));
  for (Dim dim : shape.get()) {
    if (dim < 0) {
      call.fail("the shape ", shape, " has a negative dimension");
    }
  }
  return shape;
}

ValueType source(const Call& call) {
  const Shape shape = extents(call, 2);
  if (call.attrs[1] < 0 || call.attrs[1] >= std::max(shape.ndim(), 1)) {
    call.fail("axis ", call.attrs[1], " of ", shape);
  }
  return {static_cast<dtype>(call.attrs[0]), shape};
}

ValueType broadcast(const Call& call) {
  const Shape target = extents(call, 0);
  Shape joined;
  if (!broadcastShapes(call.shape(0), target, &joined) || joined != target) {
    call.fail("does not broadcast to ", target);
  }
  return {call.operand(0).type, target};
}

ValueType reshape(const Call& call) {
  const Shape target = extents(call, 0);
  if (target.elements() != call.shape(0).elements()) {
    call.fail("has ", call.shape(0).elements(), " elements, ", target, " has ", target.elements());
  }
  return {call.operand(0).type, target};
}

ValueType transpose(const Call& call) {
  const std::vector<Dim> axes = call.attrs.list(0);
  const int rank = call.shape(0).ndim();
  std::vector<bool> seen(rank, false);
  Shape result;
  for (Dim axis : axes) {
    if (static_cast<int>(axes.size()) != rank || axis < 0 || axis >= rank || seen[axis]) {
      call.fail("axes ", Shape(axes), " are no permutation of its ", rank, " dimensions");
    }
    seen[axis] = true;
    result.get().push_back(call.shape(0)[axis]);
  }
  if (static_cast<int>(axes.size()) != rank) {
    call.fail("axes ", Shape(axes), " are no permutation of its ", rank, " dimensions");
  }
  return {call.operand(0).type, result};
}

// A box of `sizes` with `strides` must fit into `shape` at some start, and the starts are scalars.
void checkBox(const Call& call, const Shape& shape, const Shape& sizes,
              const std::vector<Dim>& strides, size_t firstStart) {
  for (int i = 0; i < shape.ndim(); ++i) {
    const Dim span = sizes[i] == 0 ? 0 : (sizes[i] - 1) * std::abs(strides[i]) + 1;
    if (sizes[i] < 0 || span > shape[i]) {
      call.fail("a box of ", sizes, " does not fit");
    }
    const ValueType& start = call.operand(firstStart + i);
    if (start.type != dtype::s64 || start.shape.ndim() != 0) {
      call.fail("starts are scalars of s64");
    }
  }
}

ValueType slice(const Call& call) {
  const size_t rank = call.attrs.size() > 0 ? call.attrs[0] : 0;
  if (static_cast<int>(rank) != call.shape(0).ndim() || call.operands.size() != rank + 1 ||
      call.attrs.size() != 2 * rank + 1) {
    call.fail("needs one start, size and stride a dimension");
  }
  const std::vector<Dim> values = call.attrs.list(1);
  const Shape sizes(std::vector<Dim>(values.begin(), values.begin() + rank));
  checkBox(call, call.shape(0), sizes, {values.begin() + rank, values.end()}, 1);
  return {call.operand(0).type, sizes};
}

void checkSteps(const Call& call, Dim stride, Dim padding, Dim dilation) {
  if (stride < 1) {
    call.fail("a stride of ", stride, " is not positive");
  }
  if (dilation < 1) {
    call.fail("a dilation of ", dilation, " is not positive");
  }
  if (padding < 0) {
    call.fail("a padding of ", padding, " is negative");
  }
}

ValueType window(const Call& call) {
  const Shape& in = call.shape(0);
  if (in.ndim() < 2) {
    call.fail("needs two dimensions");
  }
  Shape out = {call.attrs[0], call.attrs[1]};
  for (int i = 0; i < 2; ++i) {
    checkSteps(call, call.attrs[2 + i], 0, call.attrs[4 + i]);
    const Dim count = windowCount(in[i], call.attrs[i], call.attrs[2 + i], 0, call.attrs[4 + i]);
    if (count < 1) {
      call.fail("a window of ", call.attrs[i], " does not fit into ", in[i]);
    }
    out.get().push_back(count);
  }
  out.get().insert(out.get().end(), in.get().begin() + 2, in.get().end());
  return {call.operand(0).type, out};
}

ValueType gather(const Call& call) {
  const Shape& x = call.shape(0);
  const Shape& index = call.shape(1);
  const Dim axis = call.attrs[0];
  if (call.operand(1).type != dtype::s64 || axis < 0 || axis >= x.ndim() ||
      index.ndim() != x.ndim()) {
    call.fail("needs an s64 index of as many dimensions, and axis ", axis, " among them");
  }
  Shape rest = x, out;
  rest[axis] = index[axis];
  if (!broadcastShapes(rest, index, &out)) {
    call.fail("shapes do not broadcast");
  }
  if (x[axis] == 0 && out.elements() > 0) {
    call.fail("axis ", axis, " is empty");
  }
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
    if (!fits) {
      call.fail("dimension ", i, " differs");
    }
  }
  if (x[axis] == 0 && y.elements() > 0) {
    call.fail("axis ", axis, " is empty");
  }
  return call.operand(0);
}

ValueType fold(const Call& call) {
  const Shape& in = call.shape(0);
  if (in.ndim() < 4) {
    call.fail("needs four dimensions");
  }
  Shape out = {call.attrs[4], call.attrs[5]};
  for (int i = 0; i < 2; ++i) {
    if (windowCount(out[i], in[i], call.attrs[i], 0, call.attrs[2 + i]) != in[2 + i]) {
      call.fail("its windows do not cover ", out);
    }
  }
  out.get().insert(out.get().end(), in.get().begin() + 4, in.get().end());
  return {call.operand(0).type, out};
}

ValueType pad(const Call& call) {
  call.requireSameTypes();
  const size_t rank = call.shape(0).ndim();
  if (call.attrs.size() != 2 * rank || call.operand(1).shape.ndim() != 0) {
    call.fail("needs two widths a dimension and a scalar");
  }
  Shape out = call.shape(0);
  for (size_t i = 0; i < rank; ++i) {
    if (call.attrs[i] < 0 || call.attrs[rank + i] < 0) {
      call.fail("the widths (", call.attrs[i], ", ", call.attrs[rank + i], ") of dimension ", i,
                " must not be negative");
    }
    out[i] += call.attrs[i] + call.attrs[rank + i];
  }
  return {call.operand(0).type, out};
}

ValueType concatenate(const Call& call) {
  call.requireSameTypes();
  const size_t axis = call.attrs[0];
  Shape out = call.shape(0);
  if (axis >= static_cast<size_t>(out.ndim())) {
    call.fail("axis ", axis, " is out of range");
  }
  out[axis] = 0;
  for (const ValueType* operand : call.operands) {
    Shape rest = operand->shape;
    if (rest.ndim() != out.ndim()) {
      call.fail("ranks differ");
    }
    out[axis] += rest[axis];
    rest[axis] = out[axis];
    if (rest != out) {
      call.fail("dimensions other than ", axis, " differ");
    }
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
    if (axis < 0 || axis >= call.shape(0).ndim()) {
      call.fail("axis ", axis, " is out of range");
    }
    if (seen[axis]) {
      call.fail("axis ", axis, " is given twice");
    }
    seen[axis] = true;
  }
  return {call.operand(0).type, reducedShape(call.shape(0), axes, call.attrs[0])};
}

void checkAxis(const Call& call) {
  const Dim axis = call.attrs[0];
  if (axis < 0 || axis >= call.shape(0).ndim()) {
    call.fail("axis ", axis, " is out of range");
  }
}

ValueType order(const Call& call) {
  checkAxis(call);
  Shape shape = call.shape(0);
  Dim& length = shape[call.attrs[0]];
  if (call.attrs[1] < 0 || call.attrs[1] > length) {
    call.fail("axis ", call.attrs[0], " has no ", call.attrs[1], " elements");
  }
  length = call.attrs[1];
  return {dtype::s64, shape};
}

ValueType contract(const Call& call) {
  call.requireSameTypes();
  const Shape& x = call.shape(0);
  const Shape& y = call.shape(1);
  if (x.ndim() != 3 || y.ndim() != 3 || x[0] != y[0] || x[2] != y[2]) {
    call.fail("needs [K,M,B] and [K,N,B]");
  }
  return {call.operand(0).type, Shape({x[1], y[1], x[2]})};
}

ValueType matmul(const Call& call) {
  call.requireSameTypes();
  checkDtype(call, call.operand(0).type);
  const Shape& x = call.shape(0);
  const Shape& y = call.shape(1);
  if (x.ndim() < 2 || y.ndim() < 2) {
    call.fail("needs two dimensions");
  }
  const Dim m = x[call.attrs[0] ? 1 : 0], k = x[call.attrs[0] ? 0 : 1];
  const Dim k2 = y[call.attrs[1] ? 1 : 0], n = y[call.attrs[1] ? 0 : 1];
  if (k != k2) {
    call.fail("inner dimensions ", k, " and ", k2, " differ");
  }
  const std::vector<Dim> xBatch(x.get().begin() + 2, x.get().end());
  const std::vector<Dim> yBatch(y.get().begin() + 2, y.get().end());
  if (xBatch != yBatch && !xBatch.empty() && !yBatch.empty()) {
    call.fail("batch dimensions differ");
  }
  Shape out = {m, n};
  const auto& batch = xBatch.empty() ? yBatch : xBatch;
  out.get().insert(out.get().end(), batch.begin(), batch.end());
  return {call.operand(0).type, out};
}

ValueType conv2d(const Call& call) {
  call.requireSameTypes();
  checkDtype(call, call.operand(0).type);
  const Shape& x = call.shape(0);
  const Shape& w = call.shape(1);
  const Attrs& a = call.attrs;
  if (x.ndim() != 4 || w.ndim() != 4) {
    call.fail("needs an input (W,H,C,N) and a filter (KW,KH,C/groups,O)");
  }
  if (a[6] < 1 || x[2] != w[2] * a[6] || w[3] % a[6] != 0) {
    call.fail("the input has ", x[2], " channels, the filter takes ", w[2], " in ", a[6],
              " groups and makes ", w[3]);
  }
  if (call.operands.size() > 2) {
    const Shape& bias = call.shape(2);
    if (bias.ndim() < 3 || bias[2] != w[3] || bias.elements() != w[3]) {
      call.fail("the bias must be (1,1,", w[3], ",1)");
    }
  }
  Shape out;
  for (int i = 0; i < 2; ++i) {
    checkSteps(call, a[i], a[2 + i], a[4 + i]);
    const Dim count = windowCount(x[i], w[i], a[i], a[2 + i], a[4 + i]);
    if (count < 1) {
      call.fail("a filter of ", w[i], " with stride ", a[i], ", padding ", a[2 + i], ", dilation ",
                a[4 + i], " does not fit into ", x[i]);
    }
    out.get().push_back(count);
  }
  out.get().insert(out.get().end(), {w[3], x[3]});
  return {call.operand(0).type, out};
}

ValueType conv2dBackward(const Call& call) {
  call.requireSameTypes();
  const Shape& gradient = call.shape(0);
  const Shape& other = call.shape(1);
  if (gradient.ndim() != 4 || other.ndim() != 4) {
    call.fail("needs four dimensions");
  }
  const Dim groups = call.attrs[6];
  const bool data = call.op == Op::Conv2dBackwardData;
  const Dim outputs = data ? other[3] : gradient[2];
  if (groups < 1 || outputs % groups != 0 ||
      (data ? gradient[2] != other[3] : other[2] % groups != 0) ||
      (!data && gradient[3] != other[3])) {
    call.fail("channels, batches or ", groups, " groups do not match");
  }
  if (call.op == Op::Conv2dBackwardData) {
    return {call.operand(0).type,
            Shape({call.attrs[7], call.attrs[8], other[2] * groups, gradient[3]})};
  }
  return {call.operand(0).type,
          Shape({call.attrs[7], call.attrs[8], other[2] / groups, gradient[2]})};
}

ValueType pool2d(const Call& call) {
  const Shape& x = call.shape(0);
  const Attrs& a = call.attrs;
  checkDtype(call, call.operand(0).type);
  if (x.ndim() != 4) {
    call.fail("needs (W,H,C,N)");
  }
  Shape out = x;
  for (int i = 0; i < 2; ++i) {
    checkSteps(call, a[2 + i], a[4 + i], 1);
    if (2 * a[4 + i] > a[i]) {
      call.fail("a padding of ", a[4 + i], " is more than half of a window of ", a[i]);
    }
    out[i] = windowCount(x[i], a[i], a[2 + i], a[4 + i], 1);
    if (a[i] < 1 || out[i] < 1) {
      call.fail("a window of ", a[i], " with stride ", a[2 + i], " and padding ", a[4 + i],
                " does not fit into ", x[i]);
    }
  }
  return {call.operand(0).type, out};
}

// The last of the operands is the mask, if there is one.
ValueType attention(const Call& call) {
  call.requireSameTypes();
  checkDtype(call, call.operand(0).type);
  const size_t first = call.op == Op::AttentionBackward ? 1 : 0;
  const Shape &query = call.shape(first), &key = call.shape(first + 1);
  if (query.ndim() != 4 || key.ndim() != 4 || key != call.shape(first + 2) || query[1] != key[1] ||
      query[2] != key[2] || query[3] != key[3] || call.shape(0) != query) {
    call.fail("needs a query (time,D,heads,batch), and a key and a value (keys,D,heads,batch)");
  }
  const Shape scores = {query[0], key[0], query[2], query[3]};
  const size_t masks = call.operands.size() - first - 3;
  for (int i = 0; masks > 0 && i < 4; ++i) {
    const Shape& mask = call.shape(first + 3);
    if (masks > 1 || mask.ndim() != 4 || (mask[i] != 1 && mask[i] != scores[i])) {
      call.fail("the mask must broadcast to ", scores);
    }
  }
  if (first == 0) {
    return {call.operand(0).type, query};
  }
  return {call.operand(0).type, Shape({query.elements() + 2 * key.elements()})};
}

ValueType inferLibrary(const Call& call) {
  switch (call.op) {
    case Op::Matmul:
      return matmul(call);
    case Op::Conv2d:
      return conv2d(call);
    case Op::Conv2dBackwardData:
    case Op::Conv2dBackwardFilter:
      return conv2dBackward(call);
    case Op::Pool2d:
      return pool2d(call);
    case Op::Pool2dBackward:
      return call.operand(1);
    case Op::Attention:
    case Op::AttentionBackward:
      return attention(call);
    default:
      FL_INTERNAL_CHECK(false, opName(call.op));
  }
}

ValueType inferUpdate(const Call& call) {
  switch (call.op) {
    case Op::Update:
      return update(call);
    case Op::Fold:
      return fold(call);
    default:
      return scatter(call);
  }
}

ValueType inferView(const Call& call) {
  switch (call.op) {
    case Op::Broadcast:
      return broadcast(call);
    case Op::Reshape:
      return reshape(call);
    case Op::Transpose:
      return transpose(call);
    case Op::Slice:
      return slice(call);
    case Op::Window:
      return window(call);
    default:
      FL_INTERNAL_CHECK(false, opName(call.op));
  }
}

ValueType infer(const Call& call) {
  switch (opKind(call.op)) {
    case Kind::Unary:
    case Kind::Binary:
    case Kind::Select:
      return elementwise(call);
    case Kind::Cast:
      return {static_cast<dtype>(call.attrs[0]), call.shape(0)};
    case Kind::Source:
      return source(call);
    case Kind::Random:
      return {static_cast<dtype>(call.attrs[0]), extents(call, 1)};
    case Kind::View:
      return inferView(call);
    case Kind::Index:
      return gather(call);
    case Kind::Join:
      return call.op == Op::Pad ? pad(call) : concatenate(call);
    case Kind::Update:
      return inferUpdate(call);
    case Kind::Reduce:
      return reduce(call);
    case Kind::Scan:
      checkAxis(call);
      return call.operand(0);
    case Kind::Order:
      return order(call);
    case Kind::Contract:
      return contract(call);
    case Kind::Library:
      return inferLibrary(call);
  }
  __builtin_unreachable();
}

// Checked at the call, because a backend that records asks for the memory much later.
void checkBytes(const Call& call, const ValueType& result) {
  Dim bytes = getTypeSize(result.type);
  bool fits = true;
  for (Dim dim : result.shape.get()) {
    if (dim == 0) {
      return;
    }
    fits = !__builtin_mul_overflow(bytes, dim, &bytes) && fits;
  }
  if (!fits) {
    call.fail("the result ", result.toString(), " has more bytes than can be counted");
  }
}

}  // namespace

bool broadcastShapes(const Shape& lhs, const Shape& rhs, Shape* result) {
  const std::vector<Dim>& a = lhs.ndim() >= rhs.ndim() ? lhs.get() : rhs.get();
  const std::vector<Dim>& b = lhs.ndim() >= rhs.ndim() ? rhs.get() : lhs.get();
  *result = Shape(a);
  for (size_t i = 0; i < b.size(); ++i) {
    if (a[i] != b[i] && a[i] != 1 && b[i] != 1) {
      return false;
    }
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

std::string badIndexMessage(const BadIndex& bad, const ValueType& indexed, Dim axis) {
  const std::string index = bad.index == kNanIndex ? "NaN" : std::to_string(bad.index);
  return detail::concat(calledAs("index"), ": ", indexed.toString(), ": ", index,
                        " is out of range for dimension ", axis, " of ", bad.bound, " elements");
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
