// Convolution and pooling are sliding windows (Op::Window) and their transpose (Op::Fold) around
// one contraction.
#include "fl/definitions/Definitions.h"

#include <algorithm>
#include <limits>

#include "fl/base/Error.h"
#include "fl/ir/Inference.h"
#include "fl/tensor/Defines.h"
#include "fl/tensor/Detail.h"

namespace fl {
namespace {

using detail::applyOp;
using detail::castTo;
using detail::numberTensor;

Tensor toAxes(const Tensor& tensor, const Shape& axes) { return transpose(tensor, axes); }

// Puts the first two dimensions into larger ones, full of `value`: where they begin, and the sizes.
Tensor placeImage(const Tensor& image, Dim x, Dim y, Dim sizeX, Dim sizeY, double value) {
  const int rank = image.ndim();
  std::vector<Dim> widths(2 * rank, 0);
  widths[0] = x;
  widths[1] = y;
  widths[rank] = sizeX - x - image.dim(0);
  widths[rank + 1] = sizeY - y - image.dim(1);
  if (sizeX == image.dim(0) && sizeY == image.dim(1)) return image;
  return applyOp(ir::Op::Pad, {image, numberTensor(Number::of(value, image.type()))},
                 ir::Attrs(widths));
}

Tensor padImage(const Tensor& image, Dim px, Dim py, double value) {
  return placeImage(image, px, py, image.dim(0) + 2 * px, image.dim(1) + 2 * py, value);
}

Tensor cropImage(const Tensor& image, Dim px, Dim py) {
  return px == 0 && py == 0
             ? image
             : image(range(px, image.dim(0) - px), range(py, image.dim(1) - py)).copy();
}

Tensor contract(const Tensor& x, const Tensor& y) { return applyOp(ir::Op::Contract, {x, y}); }

// ---- Matrix multiplication ----

// How many matrices there are, empty ones too.
Dim batchOf(const Shape& shape) {
  return Shape(std::vector<Dim>(shape.get().begin() + 2, shape.get().end())).elements();
}

// [K, rows, batch] of a matrix whose inner dimension is `inner`.
Tensor innerFirst(const Tensor& matrix, bool innerIsFirst, Dim batch) {
  Tensor m = reshape(matrix, {matrix.dim(0), matrix.dim(1), batchOf(matrix.shape())});
  if (!innerIsFirst) {
    m = toAxes(m, {1, 0, 2});
  }
  return m.dim(2) == batch ? m
                           : applyOp(ir::Op::Broadcast, {m},
                                     ir::Attrs(std::vector<Dim>{m.dim(0), m.dim(1), batch}));
}

Tensor defineMatmul(const Tensor& lhs, const Tensor& rhs, const ir::Attrs& attrs) {
  const ir::ValueType types[] = {lhs.value()->valueType(), rhs.value()->valueType()};
  const ir::ValueType* operands[] = {&types[0], &types[1]};
  const Shape shape = ir::inferType(ir::Op::Matmul, operands, attrs).shape;
  const Dim batch = batchOf(shape);
  const Tensor x = innerFirst(lhs, attrs[0], batch), y = innerFirst(rhs, !attrs[1], batch);
  return reshape(contract(x, y), shape);
}

// ---- Convolution ----

struct Convolution {
  Dim sx, sy, px, py, dx, dy, groups;
  explicit Convolution(const ir::Attrs& a)
      : sx(a[0]), sy(a[1]), px(a[2]), py(a[3]), dx(a[4]), dy(a[5]), groups(a[6]) {}
};

// Windows of channels, [KW, KH, OW, OH, C, N].
Tensor windows(const Tensor& input, Dim kx, Dim ky, const Convolution& c) {
  return applyOp(ir::Op::Window, {padImage(input, c.px, c.py, 0)},
                 {kx, ky, c.sx, c.sy, c.dx, c.dy});
}

Tensor channels(const Tensor& tensor, int axis, Dim group, Dim groups) {
  const Dim size = tensor.dim(axis) / groups;
  std::vector<Index> indices(axis, Index(span));
  indices.push_back(range(group * size, (group + 1) * size));
  return groups == 1 ? tensor : tensor(indices).copy();
}

// Runs `body(group)` for every group and joins the results along `axis`.
template <class Body>
Tensor overGroups(Dim groups, unsigned axis, Body&& body) {
  std::vector<Tensor> parts;
  for (Dim group = 0; group < groups; ++group) parts.push_back(body(group));
  return groups == 1 ? parts[0] : concatenate(parts, axis);
}

Tensor defineConv2d(const std::vector<Tensor>& operands, const ir::Attrs& attrs) {
  const Tensor &input = operands[0], &weights = operands[1];
  const Convolution c(attrs);
  const Dim kx = weights.dim(0), ky = weights.dim(1), n = input.dim(3);
  const Dim ox = ir::windowCount(input.dim(0), kx, c.sx, c.px, c.dx);
  const Dim oy = ir::windowCount(input.dim(1), ky, c.sy, c.py, c.dy);
  const Tensor output = overGroups(c.groups, 2, [&](Dim group) {
    const Tensor x = windows(channels(input, 2, group, c.groups), kx, ky, c);
    const Tensor w = channels(weights, 3, group, c.groups);
    const Dim k = kx * ky * x.dim(4), outputs = w.dim(3);
    const Tensor columns = reshape(toAxes(x, {0, 1, 4, 2, 3, 5}), {k, ox * oy * n, 1});
    const Tensor y = contract(columns, reshape(w, {k, outputs, 1}));
    return toAxes(reshape(y, {ox, oy, n, outputs}), {0, 1, 3, 2});
  });
  return operands.size() == 2 ? output : output + reshape(operands[2], {1, 1, weights.dim(3), 1});
}

Tensor defineBackwardData(const Tensor& gradOutput, const Tensor& weights, const ir::Attrs& attrs) {
  const Convolution c(attrs);
  const Dim kx = weights.dim(0), ky = weights.dim(1), channelCount = weights.dim(2);
  const Dim ox = gradOutput.dim(0), oy = gradOutput.dim(1), n = gradOutput.dim(3);
  return overGroups(c.groups, 2, [&](Dim group) {
    const Tensor dy = toAxes(channels(gradOutput, 2, group, c.groups), {2, 0, 1, 3});
    const Tensor w = channels(weights, 3, group, c.groups);
    const Dim outputs = w.dim(3), k = kx * ky * channelCount;
    const Tensor filters = toAxes(reshape(w, {k, outputs, 1}), {1, 0, 2});
    const Tensor columns = contract(filters, reshape(dy, {outputs, ox * oy * n, 1}));
    const Tensor windows =
        toAxes(reshape(columns, {kx, ky, channelCount, ox, oy, n}), {0, 1, 3, 4, 2, 5});
    const Tensor folded =
        applyOp(ir::Op::Fold, {windows},
                {c.sx, c.sy, c.dx, c.dy, attrs[7] + 2 * c.px, attrs[8] + 2 * c.py});
    return cropImage(folded, c.px, c.py);
  });
}

Tensor defineBackwardFilter(const Tensor& gradOutput, const Tensor& input, const ir::Attrs& attrs) {
  const Convolution c(attrs);
  const Dim kx = attrs[7], ky = attrs[8];
  return overGroups(c.groups, 3, [&](Dim group) {
    const Tensor x = channels(input, 2, group, c.groups);
    const Tensor dy = toAxes(channels(gradOutput, 2, group, c.groups), {0, 1, 3, 2});
    const Dim outputs = dy.dim(3), places = dy.shape().elements() / outputs;
    // What is added up comes first, so that lines of images stay whole.
    const Tensor rows = toAxes(windows(x, kx, ky, c), {2, 3, 5, 0, 1, 4});
    const Tensor filter = contract(reshape(rows, {places, kx * ky * x.dim(2), 1}),
                                   reshape(dy, {places, outputs, 1}));
    return reshape(filter, {kx, ky, x.dim(2), outputs});
  });
}

// ---- Pooling ----

struct Pooling {
  Dim kx, ky, sx, sy, px, py;
  PoolingMode mode;
  explicit Pooling(const ir::Attrs& a)
      : kx(a[0]),
        ky(a[1]),
        sx(a[2]),
        sy(a[3]),
        px(a[4]),
        py(a[5]),
        mode(static_cast<PoolingMode>(a[6])) {}
};

// [KW * KH, OW, OH, C, N]
Tensor poolWindows(const Tensor& input, const Pooling& p, double padding) {
  const Tensor windows = applyOp(ir::Op::Window, {padImage(input, p.px, p.py, padding)},
                                 {p.kx, p.ky, p.sx, p.sy, 1, 1});
  Shape shape(std::vector<Dim>(windows.shape().get().begin() + 1, windows.shape().get().end()));
  shape[0] = p.kx * p.ky;
  return reshape(windows, shape);
}

// Elements that each window averages, broadcastable to [OW, OH, C, N].
Tensor windowSizes(const Tensor& input, const Pooling& p) {
  if (p.mode == PoolingMode::AVG_INCLUDE_PADDING) {
    return full(Shape({1}), static_cast<double>(p.kx * p.ky), input.type());
  }
  const Tensor ones = full(Shape({input.dim(0), input.dim(1), 1, 1}), 1.0, input.type());
  return sum(poolWindows(ones, p, 0), {0});
}

Tensor definePool2d(const Tensor& input, const ir::Attrs& attrs) {
  const Pooling p(attrs);
  if (p.mode == PoolingMode::MAX) {
    return amax(poolWindows(input, p, -std::numeric_limits<double>::infinity()), {0});
  }
  return castTo(sum(poolWindows(input, p, 0), {0}) / windowSizes(input, p), input.type());
}

// Op::Fold of windows [KW, KH, OW, OH, C, N] as maps, which fuse: what a window covers of one
// stride in each direction does not overlap with the same of others, and lies beside it.
Tensor foldInStrides(const Tensor& windows, const Pooling& p, Dim sizeX, Dim sizeY) {
  const Shape& shape = windows.shape();
  const Dim width = p.sx * shape[2], height = p.sy * shape[3];
  Tensor sum;
  for (Dim y = (p.ky - 1) / p.sy * p.sy; y >= 0; y -= p.sy) {  // in the order of windows
    for (Dim x = (p.kx - 1) / p.sx * p.sx; x >= 0; x -= p.sx) {
      const range columns(x, std::min(x + p.sx, p.kx)), rows(y, std::min(y + p.sy, p.ky));
      const Tensor strides = placeImage(windows(columns, rows), 0, 0, p.sx, p.sy, 0);
      const Tensor image =
          reshape(toAxes(strides, {0, 2, 1, 3, 4, 5}), {width, height, shape[4], shape[5]});
      // Beyond the last window are zeros.
      const range inX(0, std::min(width, sizeX - x)), inY(0, std::min(height, sizeY - y));
      const Tensor part = placeImage(image(inX, inY), x, y, sizeX, sizeY, 0);
      sum = sum.isEmpty() ? part : sum + part;
    }
  }
  return sum;
}

Tensor definePoolBackward(const Tensor& gradOutput, const Tensor& input, const ir::Attrs& attrs) {
  const Pooling p(attrs);
  const Tensor dy = reshape(gradOutput, Shape({1, gradOutput.dim(0), gradOutput.dim(1),
                                               gradOutput.dim(2), gradOutput.dim(3)}));
  Shape shape = dy.shape();
  shape[0] = p.kx * p.ky;
  Tensor windows;
  if (p.mode == PoolingMode::MAX) {
    const Tensor values = poolWindows(input, p, -std::numeric_limits<double>::infinity());
    const Tensor first = argmax(values, 0, true);
    windows = where(castTo(first, dtype::s32) == arange(shape, 0, dtype::s32), dy, 0.0);
  } else {
    const Tensor sizes = windowSizes(input, p);
    Shape spread = sizes.shape();
    spread.get().insert(spread.get().begin(), 1);
    windows = applyOp(ir::Op::Broadcast, {dy / reshape(sizes, spread)}, ir::Attrs(shape.get()));
  }
  const dtype wide = getTypeSize(input.type()) < 4 ? dtype::f32 : input.type();
  const Tensor split =
      reshape(castTo(windows, wide), Shape({p.kx, p.ky, shape[1], shape[2], shape[3], shape[4]}));
  const Tensor folded = foldInStrides(split, p, input.dim(0) + 2 * p.px, input.dim(1) + 2 * p.py);
  return castTo(cropImage(folded, p.px, p.py), input.type());
}

// ---- Attention ----

// In f32 at least, which scores and their exponentials want; the first `heads` operands, which may
// have their features first, as (time,D,heads,batch).
std::vector<Tensor> attentionOperands(const std::vector<Tensor>& given, size_t heads,
                                      const ir::Attrs& attrs) {
  std::vector<Tensor> result;
  for (const Tensor& operand : given) {
    const Tensor wide = castTo(operand, computeType(operand.type()));
    result.push_back(attrs[0] && result.size() < heads ? transpose(wide, {2, 0, 1, 3}) : wide);
  }
  return result;
}
Tensor attentionResult(const Tensor& heads, dtype type, const ir::Attrs& attrs) {
  return castTo(attrs[0] ? transpose(heads, {1, 2, 0, 3}) : heads, type);
}

// (time, keys, heads, batch): what each query takes of each value; of (query, key, value[, mask])
// from `operands` on.
Tensor attentionWeights(const Tensor* operands, bool masked) {
  Tensor scores = matmul(operands[0], operands[1], MatrixProperty::None, MatrixProperty::Transpose);
  if (masked) scores = scores + operands[3];
  const Tensor weights = exp(scores - amax(scores, {1}, true));
  return weights / sum(weights, {1}, true);
}

Tensor defineAttention(const std::vector<Tensor>& given, const ir::Attrs& attrs) {
  const std::vector<Tensor> in = attentionOperands(given, 3, attrs);
  const Tensor heads = matmul(attentionWeights(&in[0], in.size() > 3), in[2]);
  return attentionResult(heads, given[0].type(), attrs);
}

Tensor defineAttentionBackward(const std::vector<Tensor>& given, const ir::Attrs& attrs) {
  const std::vector<Tensor> in = attentionOperands(given, 4, attrs);
  const Tensor &gradOutput = in[0], &query = in[1], &key = in[2], &value = in[3];
  constexpr auto kPlain = MatrixProperty::None, kTransposed = MatrixProperty::Transpose;
  const Tensor weights = attentionWeights(&in[1], in.size() > 4);
  const Tensor gradWeights = matmul(gradOutput, value, kPlain, kTransposed);
  const Tensor gradScores = weights * (gradWeights - sum(weights * gradWeights, {1}, true));
  const Tensor gradients[] = {matmul(gradScores, key),
                              matmul(gradScores, query, kTransposed, kPlain),
                              matmul(weights, gradOutput, kTransposed, kPlain)};
  std::vector<Tensor> parts;
  for (const Tensor& gradient : gradients)
    parts.push_back(attentionResult(gradient, given[0].type(), attrs).flatten());
  const Shape& shape = given[1].shape();
  if (shape != given[2].shape()) return concatenate(parts, 0);
  return reshape(concatenate(parts, 0), {shape[0], shape[1], shape[2], shape[3], 3});
}

Tensor definition(ir::Op op, const std::vector<Tensor>& operands, const ir::Attrs& attrs) {
  switch (op) {
    case ir::Op::Matmul:
      return defineMatmul(operands[0], operands[1], attrs);
    case ir::Op::Conv2d:
      return defineConv2d(operands, attrs);
    case ir::Op::Conv2dBackwardData:
      return defineBackwardData(operands[0], operands[1], attrs);
    case ir::Op::Conv2dBackwardFilter:
      return defineBackwardFilter(operands[0], operands[1], attrs);
    case ir::Op::Pool2d:
      return definePool2d(operands[0], attrs);
    case ir::Op::Pool2dBackward:
      return definePoolBackward(operands[0], operands[1], attrs);
    case ir::Op::Attention:
      return defineAttention(operands, attrs);
    case ir::Op::AttentionBackward:
      return defineAttentionBackward(operands, attrs);
    default:
      FL_INTERNAL_CHECK(false, ir::opName(op), " has no definition");
  }
}

// With images of (C,W,H,N) made (W,H,C,N) for the definition, and back.
Tensor channelsLast(ir::Op op, std::vector<Tensor> operands, const ir::Attrs& attrs) {
  for (size_t i = 0; i < operands.size(); ++i) {
    if (ir::isImage(op, i)) {
      operands[i] = toAxes(operands[i], {1, 2, 0, 3});
    }
  }
  const Tensor result = definition(op, operands, attrs);
  return ir::resultIsImage(op) ? toAxes(result, {2, 0, 1, 3}) : result;
}

}  // namespace

TensorValue define(ir::Op op, std::vector<TensorValue> operands, const ir::Attrs& attrs) {
  std::vector<Tensor> tensors;
  for (TensorValue& operand : operands) tensors.emplace_back(std::move(operand));
  const bool last = ir::isOnImages(op) && ir::imageAxes(attrs).channel == 0;
  return (last ? channelsLast(op, tensors, attrs) : definition(op, tensors, attrs)).value();
}

std::vector<ir::ValueType> typesOf(const std::vector<TensorValue>& operands) {
  std::vector<ir::ValueType> types;
  for (const TensorValue& operand : operands) types.push_back(operand->valueType());
  return types;
}

}  // namespace fl
