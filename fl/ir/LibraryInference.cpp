#include "fl/ir/InferenceCall.h"

namespace fl::ir {
namespace {

ValueType matmul(const Call& call) {
  call.requireSameTypes();
  checkDtype(call, call.operand(0).type);
  const Shape &x = call.shape(0), &y = call.shape(1);
  if (x.ndim() < 2 || y.ndim() < 2) call.fail("needs two dimensions");
  const Dim m = x[call.attrs[0] ? 1 : 0], k = x[call.attrs[0] ? 0 : 1];
  const Dim k2 = y[call.attrs[1] ? 1 : 0], n = y[call.attrs[1] ? 0 : 1];
  if (k != k2) call.fail("inner dimensions ", k, " and ", k2, " differ");
  const std::vector<Dim> xBatch(x.get().begin() + 2, x.get().end());
  const std::vector<Dim> yBatch(y.get().begin() + 2, y.get().end());
  if (xBatch != yBatch && !xBatch.empty() && !yBatch.empty()) call.fail("batch dimensions differ");
  Shape out = {m, n};
  const auto& batch = xBatch.empty() ? yBatch : xBatch;
  out.get().insert(out.get().end(), batch.begin(), batch.end());
  return {call.operand(0).type, out};
}

ValueType conv2d(const Call& call) {
  call.requireSameTypes();
  checkDtype(call, call.operand(0).type);
  const Shape &x = call.shape(0), &w = call.shape(1);
  const Attrs& a = call.attrs;
  const ImageAxes axes = imageAxes(a);
  if (x.ndim() != 4 || w.ndim() != 4) {
    call.fail("needs an input (W,H,C,N) and a filter (KW,KH,C/groups,O)");
  }
  const Dim channels = x[axes.channel];
  if (a[6] < 1 || channels != w[2] * a[6] || w[3] % a[6] != 0) {
    call.fail("the input has ", channels, " channels, the filter takes ", w[2], " in ", a[6],
              " groups and makes ", w[3]);
  }
  if (call.operands.size() > 2) {
    const Shape& bias = call.shape(2);
    if (bias.ndim() < 3 || bias[2] != w[3] || bias.elements() != w[3]) {
      call.fail("the bias must be (1,1,", w[3], ",1)");
    }
  }
  Dim counts[2];
  for (int i = 0; i < 2; ++i) {
    const Dim size = x[i == 0 ? axes.x : axes.y];
    checkSteps(call, a[i], a[2 + i], a[4 + i]);
    counts[i] = windowCount(size, w[i], a[i], a[2 + i], a[4 + i]);
    if (counts[i] < 1 || w[i] < 1) {
      call.fail("a filter of ", w[i], " with stride ", a[i], ", padding ", a[2 + i], ", dilation ",
                a[4 + i], " does not fit into ", size);
    }
  }
  return {call.operand(0).type, axes.shape(counts[0], counts[1], w[3], x[ImageAxes::image])};
}

ValueType conv2dBackward(const Call& call) {
  call.requireSameTypes();
  checkDtype(call, call.operand(0).type);
  const Shape &gradient = call.shape(0), &other = call.shape(1);
  if (gradient.ndim() != 4 || other.ndim() != 4) call.fail("needs four dimensions");
  const Dim groups = call.attrs[6], width = call.attrs[7], height = call.attrs[8];
  const bool data = call.op == Op::Conv2dBackwardData;
  const ImageAxes axes = imageAxes(call.attrs);
  const Dim outputs = gradient[axes.channel], images = gradient[ImageAxes::image];
  const Dim channels = other[data ? 2 : axes.channel];
  if (groups < 1 || outputs % groups != 0 ||
      (data ? outputs != other[3] : channels % groups != 0 || images != other[ImageAxes::image])) {
    call.fail("channels, batches or ", groups, " groups do not match");
  }
  for (int i = 0; i < 2; ++i) {
    const int axis = i == 0 ? axes.x : axes.y;
    const Dim size = data ? call.attrs[7 + i] : other[axis];
    const Dim kernel = data ? other[i] : call.attrs[7 + i];
    checkSteps(call, call.attrs[i], call.attrs[2 + i], call.attrs[4 + i]);
    const Dim count =
        windowCount(size, kernel, call.attrs[i], call.attrs[2 + i], call.attrs[4 + i]);
    if (gradient[axis] != count) {
      call.fail("a gradient of ", gradient[axis], " where a filter of ", kernel, " makes ", count,
                " of ", size);
    }
  }
  return {call.operand(0).type, data ? axes.shape(width, height, channels * groups, images)
                                     : Shape({width, height, channels / groups, outputs})};
}

// Of the last operand, before which the gradient may come.
ValueType pool2d(const Call& call) {
  const ValueType& input = *call.operands.back();
  const Shape& x = input.shape;
  const Attrs& a = call.attrs;
  checkDtype(call, input.type);
  if (x.ndim() != 4) call.fail("needs (W,H,C,N)");
  if (a[6] < 0 || a[6] > 2) call.fail("there is no mode ", a[6], " of pooling");
  const ImageAxes axes = imageAxes(a);
  Shape out = x;
  for (int i = 0; i < 2; ++i) {
    const int axis = i == 0 ? axes.x : axes.y;
    checkSteps(call, a[2 + i], a[4 + i], 1);
    if (2 * a[4 + i] > a[i]) {
      call.fail("a padding of ", a[4 + i], " is more than half of a window of ", a[i]);
    }
    out[axis] = windowCount(x[axis], a[i], a[2 + i], a[4 + i], 1);
    if (a[i] < 1 || out[axis] < 1) {
      call.fail("a window of ", a[i], " with stride ", a[2 + i], " and padding ", a[4 + i],
                " does not fit into ", x[axis]);
    }
  }
  return {input.type, out};
}

// The last of the operands is the mask, if there is one.
ValueType attention(const Call& call) {
  call.requireSameTypes();
  checkDtype(call, call.operand(0).type);
  const size_t first = call.op == Op::AttentionBackward ? 1 : 0;
  const Shape &given = call.shape(first), &givenKey = call.shape(first + 1);
  const bool fits = given.ndim() == 4 && givenKey.ndim() == 4;
  const Shape query = fits ? headsOf(given, call.attrs) : given;
  const Shape key = fits ? headsOf(givenKey, call.attrs) : givenKey;
  if (!fits || givenKey != call.shape(first + 2) || query[1] != key[1] || query[2] != key[2] ||
      query[3] != key[3] || call.shape(0) != given) {
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
  if (first == 0) return call.operand(0);
  if (query != key) return {call.operand(0).type, {query.elements() + 2 * key.elements()}};
  return {call.operand(0).type, {given[0], given[1], given[2], given[3], 3}};
}

ValueType poolBackward(const Call& call) {
  const ValueType result = pool2d(call);
  if (call.operand(0) != result) call.fail("the gradient must be ", result.toString());
  return call.operand(1);
}

using Rule = ValueType (*)(const Call&);

constexpr Rule ruleOf(Op op) {
  switch (op) {
    case Op::Matmul:
      return matmul;
    case Op::Conv2d:
      return conv2d;
    case Op::Conv2dBackwardData:
    case Op::Conv2dBackwardFilter:
      return conv2dBackward;
    case Op::Pool2d:
      return pool2d;
    case Op::Pool2dBackward:
      return poolBackward;
    case Op::Attention:
    case Op::AttentionBackward:
      return attention;
    default:
      return nullptr;
  }
}
#define FL_OP(Name, name, kind, ...)                                        \
  static_assert(Kind::kind != Kind::Library || ruleOf(Op::Name) != nullptr, \
                #name ": write its rule of inference");
#include "fl/ir/Ops.def"
#undef FL_OP

}  // namespace

ValueType inferLibrary(const Call& call) {
  FL_INTERNAL_CHECK(call.attrs.size() == attrNames(call.op).size(), opName(call.op), " attrs");
  return ruleOf(call.op)(call);
}

}  // namespace fl::ir
