#include "fl/tensor/TableOps.h"

#include "fl/base/CallSite.h"
#include "fl/tensor/Detail.h"

namespace fl::table {
namespace {

using detail::applyOp;

// Images have their channels last in memory only where the layout pass says so.
constexpr Dim kChannelsLast = 0;

// With the sizes of the result that the operands do not determine.
ir::Attrs attrsOf(const Conv2dParameters& p, const Tensor& operand, std::vector<Dim> sizes = {}) {
  const Dim tf32 = Tf32Scope::isActive() && operand.type() == dtype::f32;
  sizes.insert(sizes.end(), {tf32, kChannelsLast});
  return ir::Attrs({p.sx, p.sy, p.px, p.py, p.dx, p.dy, p.groups}, sizes);
}

ir::Attrs attrsOf(const Pool2dParameters& p) {
  return {p.wx, p.wy, p.sx, p.sy, p.px, p.py, static_cast<Dim>(p.mode), kChannelsLast};
}

}  // namespace

Tensor conv2d(const Tensor& input, const Tensor& weights, const Tensor& bias,
              const Conv2dParameters& parameters) {
  FL_API_ENTRY();
  const ir::Attrs attrs = attrsOf(parameters, input);
  return bias.isEmpty() ? applyOp(ir::Op::Conv2d, {input, weights}, attrs)
                        : applyOp(ir::Op::Conv2d, {input, weights, bias}, attrs);
}

Tensor conv2dBackwardData(const Tensor& gradOutput, const Tensor& weights, const Shape& inputShape,
                          const Conv2dParameters& parameters) {
  FL_API_ENTRY();
  return applyOp(ir::Op::Conv2dBackwardData, {gradOutput, weights},
                 attrsOf(parameters, weights, {inputShape.dim(0), inputShape.dim(1)}));
}

Tensor conv2dBackwardFilter(const Tensor& gradOutput, const Tensor& input,
                            const Shape& weightsShape, const Conv2dParameters& parameters) {
  FL_API_ENTRY();
  return applyOp(ir::Op::Conv2dBackwardFilter, {gradOutput, input},
                 attrsOf(parameters, input, {weightsShape.dim(0), weightsShape.dim(1)}));
}

Tensor pool2d(const Tensor& input, const Pool2dParameters& parameters) {
  FL_API_ENTRY();
  return applyOp(ir::Op::Pool2d, {input}, attrsOf(parameters));
}

Tensor pool2dBackward(const Tensor& gradOutput, const Tensor& input,
                      const Pool2dParameters& parameters) {
  FL_API_ENTRY();
  return applyOp(ir::Op::Pool2dBackward, {gradOutput, input}, attrsOf(parameters));
}

Tensor attention(const Tensor& query, const Tensor& key, const Tensor& value, const Tensor& mask) {
  FL_API_ENTRY();
  return mask.isEmpty() ? applyOp(ir::Op::Attention, {query, key, value}, {0})
                        : applyOp(ir::Op::Attention, {query, key, value, mask}, {0});
}

std::array<Tensor, 3> attentionBackward(const Tensor& gradOutput, const Tensor& query,
                                        const Tensor& key, const Tensor& value,
                                        const Tensor& mask) {
  FL_API_ENTRY();
  constexpr auto kOp = ir::Op::AttentionBackward;
  const Tensor all = mask.isEmpty() ? applyOp(kOp, {gradOutput, query, key, value}, {0})
                                    : applyOp(kOp, {gradOutput, query, key, value, mask}, {0});
  const Dim first = query.elements(), second = first + key.elements();
  const auto part = [&](int i, Dim from, Dim to, const Shape& shape) {
    if (from == to) return full(shape, 0.0, all.type());
    return reshape(all.ndim() == 1 ? all(range(from, to)) : all(span, span, span, span, i), shape);
  };
  return {part(0, 0, first, query.shape()), part(1, first, second, key.shape()),
          part(2, second, all.elements(), value.shape())};
}

Tensor gather(const Tensor& x, const Tensor& index, int axis) {
  FL_API_ENTRY_OF(x, index);
  return applyOp(ir::Op::Gather, {x, detail::castTo(index, dtype::s64)}, {axis, 0});
}

}  // namespace fl::table
