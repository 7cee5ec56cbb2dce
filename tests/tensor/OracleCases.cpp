#include "tests/tensor/OracleCases.h"

#include <algorithm>
#include <cmath>

#include "fl/ir/Inference.h"

namespace fl::testing {
namespace {

using ir::Kind;
using ir::Op;
using Role = CaseOperand::Role;
using Cases = std::vector<OracleCase>;
using Operands = std::vector<CaseOperand>;

CaseOperand values(const Shape& shape) { return {Role::Values, shape}; }
CaseOperand indices(const Shape& shape, Dim below) { return {Role::Indices, shape, below}; }
CaseOperand start(Dim number) { return {Role::Start, Shape(), number}; }

struct Skip {
  const char* reason;
  bool (*holds)(Op op, dtype type, Layout layout);
};

constexpr Skip kSkips[] = {
    {"the row takes floating dtypes alone",
     [](Op op, dtype type, Layout) {
       return ir::opInfo(op).types == ir::Types::Float && !isFloating(type);
     }},
    {"the row takes integer dtypes alone",
     [](Op op, dtype type, Layout) {
       return ir::opInfo(op).types == ir::Types::Integer && isFloating(type);
     }},
    {"f32, f64 and u32 are drawn, other dtypes are cast from them",
     [](Op op, dtype type, Layout) {
       return ir::opKind(op) == Kind::Random && type != dtype::f32 && type != dtype::f64 &&
              type != dtype::u32;
     }},
    {"the row has no operand to lay out",
     [](Op op, dtype, Layout layout) {
       return isView(layout) && (ir::opKind(op) == Kind::Source || ir::opKind(op) == Kind::Random);
     }},
};

struct SpecialSkip {
  const char* reason;
  bool (*holds)(Op op, Layout layout, const OracleCase& c, const Scalar& special);
};

bool isFinite(const Scalar& special) { return std::isfinite(special.real); }

constexpr SpecialSkip kSpecialSkips[] = {
    {"the row takes no elements",
     [](Op op, Layout, const OracleCase&, const Scalar&) {
       return ir::opKind(op) == Kind::Source || ir::opKind(op) == Kind::Random;
     }},
    {"they are EdgeTest.cpp's and EdgeReduceTest.cpp's",
     [](Op op, Layout, const OracleCase&, const Scalar&) {
       return ir::isElementwise(op) || ir::opKind(op) == Kind::Reduce;
     }},
    {"libraries leave out products with padding, which the definition adds as NaN",
     [](Op op, Layout, const OracleCase& c, const Scalar& special) {
       const bool padded = op == Op::Conv2dBackwardFilter && (c.attrs[2] != 0 || c.attrs[3] != 0);
       return padded && !isFinite(special);
     }},
    {"scores of what is above the row's .hi overflow, or their exponentials are far from double's",
     [](Op op, Layout, const OracleCase&, const Scalar& special) {
       return isAttention(op) && isFinite(special) && std::fabs(special.real) > ir::opInfo(op).hi;
     }},
    {"other layouts move what is added, as NaN and infinities show; an end of the dtype that is "
     "alone in a sum, or repeats, may count as 0 or overflow on the way",
     [](Op op, Layout layout, const OracleCase&, const Scalar& special) {
       return isAccumulating(op) && layout != Layout::Contiguous && isFloating(special.type) &&
              isFinite(special);
     }},
};

Cases views(Op op, const Extents& e) {
  const Shape shape = {e.a, e.b, e.c};
  switch (op) {
    case Op::Broadcast:
      return {{{values({1, e.b})}, ir::Attrs(shape.get())},
              {{values({e.a, 1, e.c})}, ir::Attrs(shape.get())}};
    case Op::Reshape:
      return {{{values(shape)}, {e.b * e.a, e.c}}, {{values(shape)}, {e.c, e.a, 1, e.b}}};
    case Op::Transpose:
      return {{{values(shape)}, {1, 0, 2}}, {{values(shape)}, {2, 0, 1}}};
    case Op::Slice: {
      // Every other element from the second on, backwards, all.
      const Dim first = e.a > 1 ? 1 : 0, taken = (e.a - first + 1) / 2;
      return {{{values(shape), start(first), start(std::max<Dim>(e.b - 1, 0)), start(0)},
               {3, taken, e.b, e.c, 2, -1, 1}}};
    }
    default: {
      const Dim kernel = std::min<Dim>(3, e.width), stride = e.width > 1 ? 2 : 1;
      return {
          {{values({e.width, e.height, e.channels, e.images})}, {kernel, 1, stride, 1, stride, 1}}};
    }
  }
}

Cases joins(Op op, const Extents& e) {
  const Shape shape = {e.a, e.b, e.c};
  if (op == Op::Pad) {
    return {{{values(shape), {Role::Fill, Shape(), 3}}, {1, 0, 2, 0, 3, 1}}};
  }
  return {{{values(shape), values({e.a, e.b + 2, e.c})}, {1}},
          {{values(shape), values({e.a + 5, e.b, e.c}), values(shape)}, {0}}};
}

Cases updates(Op op, const Extents& e) {
  const Shape shape = {e.a, e.b, e.c};
  switch (op) {
    case Op::Update: {
      const Dim taken = (e.a + 1) / 2;
      return {{{values(shape), values({taken, e.b, e.c}), start(0),
                start(std::max<Dim>(e.b - 1, 0)), start(0)},
               {3, 2, -1, 1}}};
    }
    case Op::Fold: {
      // [kernel, 1, outputs of a width, height, ...].
      const Dim kernel = std::min<Dim>(3, e.width), stride = e.width > 1 ? 2 : 1;
      const Dim count = ir::windowCount(e.width, kernel, stride, 0, 1);
      return {{{values({kernel, 1, count, e.height, e.channels, e.images})},
               {stride, 1, 1, 1, e.width, e.height}}};
    }
    default:
      return {
          {{values(shape), indices({e.a + 3, 1, 1}, e.a), values({e.a + 3, e.b, e.c})}, {0}},
          {{values(shape), indices({e.a, e.b, e.c}, std::max<Dim>(e.b, 1)), values(shape)}, {1}}};
  }
}

Cases convolutions(Op op, const Extents& e) {
  struct Variant {
    Dim groups, pad, last;  // channels in memory
  };
  Cases cases;
  const bool one = e.width == 1;
  for (const auto& [groups, pad, last] :
       one ? std::vector<Variant>{{1, 0, 0}, {1, 0, 1}}
           : std::vector<Variant>{{1, 0, 0}, {1, 1, 0}, {2, 1, 0}, {1, 1, 1}, {2, 1, 1}}) {
    const Dim kernel = one ? 1 : 3, stride = one ? 1 : 2, outputs = 2 * groups;
    const Dim width = ir::windowCount(e.width, kernel, stride, pad, 1);
    const Dim height = ir::windowCount(e.height, kernel, 1, pad, 1);
    const ir::ImageAxes axes = ir::imageAxes({last});
    const CaseOperand image = values(axes.shape(e.width, e.height, e.channels, e.images));
    const CaseOperand filter = values({kernel, kernel, e.channels / groups, outputs});
    const CaseOperand gradient = values(axes.shape(width, height, outputs, e.images));
    const auto with = [&, last = last, pad = pad, groups = groups](std::vector<Dim> sizes) {
      sizes.insert(sizes.end(), {0, last});
      return ir::Attrs({stride, 1, pad, pad, 1, 1, groups}, sizes);
    };
    if (op == Op::Conv2d) {
      cases.push_back({{image, filter}, with({})});
      cases.push_back({{image, filter, values({1, 1, outputs, 1})}, with({})});
    } else if (op == Op::Conv2dBackwardData) {
      cases.push_back({{gradient, filter}, with({e.width, e.height})});
    } else {
      cases.push_back({{gradient, image}, with({kernel, kernel})});
    }
  }
  return cases;
}

Cases attentions(Op op, const Extents& e) {
  Cases cases;
  for (const bool featuresFirst : {false, true}) {
    const auto heads = [&](Dim positions) {
      return featuresFirst ? values({3, e.c, positions, 2}) : values({positions, 3, e.c, 2});
    };
    const CaseOperand query = heads(e.a), key = heads(e.b);
    Operands operands = {query, key, key};
    if (op == Op::AttentionBackward) {
      operands.insert(operands.begin(), query);
    }
    Operands masked = operands;
    masked.push_back(values({e.a, e.b, 1, 1}));
    cases.push_back({operands, {featuresFirst}});
    cases.push_back({masked, {featuresFirst}});
  }
  return cases;
}

Cases libraries(Op op, const Extents& e) {
  if (op == Op::Matmul) {
    return {{{values({7, e.a, e.c}), values({e.a, e.b, e.c})}, {0, 0, 0}},
            {{values({e.a, 7}), values({e.a, e.b, e.c})}, {1, 0, 0}},
            {{values({7, e.a, e.c}), values({e.b, e.a})}, {0, 1, 0}},
            {{values({e.a, e.b}), values({3, e.a})}, {1, 1, 0}}};
  }
  if (op == Op::Attention || op == Op::AttentionBackward) {
    return attentions(op, e);
  }
  if (op != Op::Pool2d && op != Op::Pool2dBackward) {
    return convolutions(op, e);
  }
  Cases cases;
  const bool one = e.width == 1;
  const Dim kernel = one ? 1 : 3, stride = one ? 1 : 2, pad = one ? 0 : 1;
  const Dim width = ir::windowCount(e.width, kernel, stride, pad, 1);
  const Dim height = ir::windowCount(e.height, kernel, 1, pad, 1);
  for (Dim last : {0, 1}) {
    const ir::ImageAxes axes = ir::imageAxes({last});
    const CaseOperand image = values(axes.shape(e.width, e.height, e.channels, e.images));
    const CaseOperand gradient = values(axes.shape(width, height, e.channels, e.images));
    for (Dim mode : {0, 1, 2}) {
      const ir::Attrs attrs = {kernel, kernel, stride, 1, pad, pad, mode, last};
      cases.push_back({op == Op::Pool2d ? Operands{image} : Operands{gradient, image}, attrs});
    }
  }
  return cases;
}

Cases casts(dtype from, const Extents& e) {
  Cases cases;
  for (dtype to : allTypes()) {
    if (to != from) {
      cases.push_back({{values({e.a, e.b, e.c})}, {static_cast<Dim>(to)}});
    }
  }
  return cases;
}

}  // namespace

const char* layoutName(Layout layout) {
  static const char* const names[] = {"contiguous", "transposed", "broadcast",
                                      "sliced",     "size 0",     "size 1"};
  return names[static_cast<int>(layout)];
}

bool isView(Layout layout) {
  return layout == Layout::Transposed || layout == Layout::Broadcast || layout == Layout::Sliced;
}

bool isAttention(Op op) { return op == Op::Attention || op == Op::AttentionBackward; }

bool isAccumulating(Op op) {
  const Kind kind = ir::opKind(op);
  return op == Op::Sum || op == Op::ScatterAdd || op == Op::Fold || kind == Kind::Scan ||
         kind == Kind::Contract || kind == Kind::Library;
}

Extents extentsOf(Layout layout) {
  switch (layout) {
    case Layout::Empty:
      return {37, 0, 3, 9, 7, 4, 0};
    case Layout::One:
      return {1, 1, 1, 1, 1, 1, 1};
    default:
      return {37, 5, 3, 9, 7, 4, 2};
  }
}

Cases casesOf(Op op, dtype type, const Extents& e) {
  const Shape shape = {e.a, e.b, e.c};
  switch (ir::opKind(op)) {
    case Kind::Source:
      return {{{}, ir::Attrs({static_cast<Dim>(type), 0}, shape.get())},
              {{}, ir::Attrs({static_cast<Dim>(type), 2}, shape.get())}};
    case Kind::Random: {
      const CaseOperand seed = {Role::Seed, Shape(), (Dim{1} << 40) + 5},
                        offset = {Role::Seed, Shape(), 7};
      const ir::Attrs attrs({static_cast<Dim>(type)}, shape.get());
      Cases cases = {{{seed, offset}, attrs}};
      if (isFloating(type)) {
        cases.push_back({{seed, offset, {Role::Seed, Shape(), 8}}, attrs});  // normal numbers
      }
      return cases;
    }
    case Kind::Unary:
      return {{{values(shape)}, {}}};
    case Kind::Binary:
      return {{{values(shape), values(shape)}, {}}};
    case Kind::Select:
      return {{{{Role::Condition, shape}, values(shape), values(shape)}, {}}};
    case Kind::Cast:
      return casts(type, e);
    case Kind::View:
      return views(op, e);
    case Kind::Index:
      return {{{values(shape), indices({e.a + 3, e.b, e.c}, e.a)}, {0, 0}},
              {{values(shape), indices({1, e.b, 1}, std::max<Dim>(e.b, 1))}, {1, 1}}};
    case Kind::Join:
      return joins(op, e);
    case Kind::Update:
      return updates(op, e);
    case Kind::Reduce:
      return {{{values(shape)}, {0, 0}},
              {{values(shape)}, {1, 1}},
              {{values(shape)}, {0, 0, 2}},
              {{values(shape)}, {1}}};
    case Kind::Order:
      return {{{values(shape)}, {0, e.a}},
              {{values(shape)}, {1, e.b}},
              {{values(shape)}, {0, (e.a + 1) / 2}}};
    case Kind::Scan:
      return {{{values(shape)}, {0}}, {{values(shape)}, {1}}};
    case Kind::Contract:
      return {{{values(shape), values({e.a, 7, e.c})}, {}}};
    case Kind::Library:
      return libraries(op, e);
  }
  return {};
}

const char* skipReason(Op op, dtype type, Layout layout) {
  for (const Skip& skip : kSkips) {
    if (skip.holds(op, type, layout)) {
      return skip.reason;
    }
  }
  return nullptr;
}

const char* specialReason(Op op, Layout layout, const OracleCase& c, const Scalar& special) {
  for (const SpecialSkip& skip : kSpecialSkips) {
    if (skip.holds(op, layout, c, special)) {
      return skip.reason;
    }
  }
  return nullptr;
}

const char* bitsReason(Op op, Layout layout) {
  return op == Op::Matmul && layout == Layout::Transposed
             ? "products take over transposes and may add in another order then"
             : nullptr;
}

std::vector<const char*> skipReasons() {
  std::vector<const char*> reasons;
  for (const Skip& skip : kSkips) {
    reasons.push_back(skip.reason);
  }
  return reasons;
}

std::vector<const char*> specialReasons() {
  std::vector<const char*> reasons;
  for (const SpecialSkip& skip : kSpecialSkips) {
    reasons.push_back(skip.reason);
  }
  return reasons;
}

}  // namespace fl::testing
