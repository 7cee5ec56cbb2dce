#include "benchmarks/OpCases.h"

#include <cmath>
#include <random>

#include "fl/autograd/tensor/AutogradOps.h"
#include "fl/ir/Op.h"
#include "fl/tensor/TableOps.h"

namespace fl::bench {
namespace {

using Tensors = std::vector<Tensor>;
using Unary = std::function<Tensor(const Tensor&)>;

// Elements of a line in the cases that work on lines.
constexpr Dim kLine = 1024;

Dim side(Dim elements) { return std::lround(std::sqrt(elements)); }
Shape flat(Dim elements) { return Shape({elements}); }
Shape square(Dim elements) { return Shape({side(elements), side(elements)}); }
Shape lines(Dim elements) { return Shape({kLine, elements / kLine}); }
// Rows that fill no vector, or two.
template <Dim length>
Shape rows(Dim elements) {
  return Shape({length, elements / length});
}
// Images of 16x16 with 4 channels.
Shape images(Dim elements) { return Shape({16, 16, 4, elements / 1024}); }

// Numbers between low and high; integers between 0 and the larger of high and 1.
Tensor numbers(const Shape& shape, dtype type, double low, double high) {
  std::minstd_rand random(1);
  std::vector<float> values(shape.elements());
  std::uniform_real_distribution<float> real(static_cast<float>(low), static_cast<float>(high));
  std::uniform_int_distribution<int> whole(0, std::max(1, static_cast<int>(high)));
  for (float& value : values) {
    value = isFloating(type) ? real(random) : static_cast<float>(whole(random));
  }
  return Tensor::fromVector(shape, std::move(values), type);
}
Tensor numbers(const Shape& shape, dtype type) { return numbers(shape, type, -4, 4); }
Tensor indices(const Shape& shape, Dim bound) {
  return numbers(shape, dtype::s64, 0, static_cast<double>(bound - 1));
}

std::string named(const std::string& name, dtype type) { return name + " " + dtypeToString(type); }

// ---- rows of the op table ----

std::vector<dtype> dtypesOf(ir::Types types) {
  switch (types) {
    case ir::Types::Integer:
      return {dtype::s32, dtype::u8};
    case ir::Types::Float:
      return {dtype::f32, dtype::f16, dtype::bf16, dtype::f64};
    case ir::Types::All:
      return {dtype::f32, dtype::f16, dtype::bf16, dtype::f64, dtype::s32, dtype::u8};
  }
  __builtin_unreachable();
}

// Functions that no instruction computes, and division: their arithmetic may take longer than their
// memory.
bool isArithmeticLong(const ir::OpInfo& info) {
  const bool isApproximated = info.types == ir::Types::Float && info.ulp >= 1;
  return isApproximated || info.op == ir::Op::Mod || info.op == ir::Op::Div;
}

template <class Run>
void addElementwise(std::vector<OpCase>* cases, ir::Op op, int operands, Run run) {
  const ir::OpInfo& info = ir::opInfo(op);
  for (dtype type : dtypesOf(info.types)) {
    const auto inputs = [type, operands, &info](Dim elements) {
      Tensors inputs;
      for (int i = 0; i < operands; ++i) {
        inputs.push_back(numbers(flat(elements), type, info.lo, info.hi));
      }
      return inputs;
    };
    cases->push_back(
        {named(info.name, type), type, !isArithmeticLong(info), inputs,
         [run](const Tensors& inputs) { return Tensors{run(defaultTensorBackend(), inputs)}; }});
  }
}

template <class Run>
void addReductions(std::vector<OpCase>* cases, ir::Op op, Run run) {
  for (dtype type : dtypesOf(ir::Types::All)) {
    for (const auto& [suffix, axes] :
         {std::pair<const char*, std::vector<int>>{"", {}}, {" axis 0", {0}}, {" axis 1", {1}}}) {
      const auto inputs = [type](Dim elements) { return Tensors{numbers(square(elements), type)}; };
      cases->push_back({named(std::string(ir::opName(op)) + suffix, type), type, true, inputs,
                        [run, axes](const Tensors& inputs) {
                          return Tensors{run(defaultTensorBackend(), inputs[0], axes)};
                        }});
    }
  }
}

void addTableRows(std::vector<OpCase>* cases) {
#define FL_NONE
#define FL_CASE_Unary(Name, name)        \
  addElementwise(cases, ir::Op::Name, 1, \
                 [](TensorBackend& backend, const Tensors& x) { return backend.name(x[0]); });
#define FL_CASE_Binary(Name, name)                                                      \
  addElementwise(cases, ir::Op::Name, 2, [](TensorBackend& backend, const Tensors& x) { \
    return backend.name(x[0], x[1]);                                                    \
  });
#define FL_CASE_Reduce(Name, name)                                                          \
  addReductions(cases, ir::Op::Name,                                                        \
                [](TensorBackend& backend, const Tensor& x, const std::vector<int>& axes) { \
                  return backend.name(x, axes, false);                                      \
                });
#define FL_CASE_Source(Name, name)
#define FL_CASE_Random(Name, name)
#define FL_CASE_Select(Name, name)
#define FL_CASE_Cast(Name, name)
#define FL_CASE_View(Name, name)
#define FL_CASE_Index(Name, name)
#define FL_CASE_Join(Name, name)
#define FL_CASE_Update(Name, name)
#define FL_CASE_Scan(Name, name)
#define FL_CASE_Order(Name, name)
#define FL_CASE_Contract(Name, name)
#define FL_CASE_Library(Name, name)
#define FL_OP(Name, name, kind, ...) FL_CASE_##kind(Name, name)
#include "fl/ir/Ops.def"
#undef FL_OP
#undef FL_NONE
}

// ---- the others ----

enum Cost { Memory, Arithmetic };

// A function of one tensor.
OpCase unary(const std::string& name, dtype type, Cost cost, Shape (*shape)(Dim), Unary run) {
  return {named(name, type), type, cost == Memory,
          [=](Dim elements) { return Tensors{numbers(shape(elements), type)}; },
          [=](const Tensors& x) { return Tensors{run(x[0])}; }};
}

void addCasts(std::vector<OpCase>* cases) {
  using enum dtype;
  for (auto [from, to] : {std::pair{f32, f16},
                          {f16, f32},
                          {f32, bf16},
                          {bf16, f32},
                          {f16, bf16},
                          {f32, f64},
                          {f64, f32},
                          {f32, s32},
                          {s32, f32},
                          {f32, s64},
                          {s64, f32},
                          {f32, u8},
                          {u8, f32},
                          {s32, s64},
                          {s64, s32},
                          {f32, b8},
                          {b8, f32},
                          {f16, s32},
                          {s32, bf16}}) {
    OpCase cast = unary("astype from " + dtypeToString(from) + " to", to, Memory, flat,
                        [to](const Tensor& x) { return x.astype(to); });
    cast.inputs = [from](Dim elements) { return Tensors{numbers(flat(elements), from)}; };
    cases->push_back(std::move(cast));
  }
}

void addCreation(std::vector<OpCase>* cases) {
  const auto create = [&](const std::string& name, Cost cost, dtype type, auto make) {
    // The one input carries the shape, and is not read.
    cases->push_back({named(name, type), type, cost == Memory,
                      [](Dim elements) { return Tensors{Tensor(flat(elements), dtype::b8)}; },
                      [=](const Tensors& x) { return Tensors{make(x[0].shape(), type)}; }});
  };
  for (dtype type : {dtype::f32, dtype::s32}) {
    create("arange", Memory, type,
           [](const Shape& shape, dtype type) { return arange(shape, 0, type); });
    create("full", Memory, type,
           [](const Shape& shape, dtype type) { return full(shape, 1.5, type); });
    create("rand", Arithmetic, type,
           [](const Shape& shape, dtype type) { return rand(shape, type); });
  }
  create("randn", Arithmetic, dtype::f32,
         [](const Shape& shape, dtype type) { return randn(shape, type); });
  create("iota", Memory, dtype::f32, [](const Shape& shape, dtype type) {
    return iota({side(shape.elements())}, {1, side(shape.elements())}, type);
  });
  create("identity", Memory, dtype::f32,
         [](const Shape& shape, dtype type) { return identity(side(shape.elements()), type); });
}

void addRearranging(std::vector<OpCase>* cases, dtype type) {
  const auto add = [&](const char* name, Shape (*shape)(Dim), Unary run) {
    cases->push_back(unary(name, type, Memory, shape, std::move(run)));
  };
  add("reshape", flat, [](const Tensor& x) { return reshape(x, {x.dim(0) / 4, 4}); });
  add("transpose", square, [](const Tensor& x) { return transpose(x); });
  add("transpose axes 1 2", images, [](const Tensor& x) { return transpose(x, {0, 2, 1, 3}); });
  add("add a row", square, [](const Tensor& x) { return x + x(0); });
  add("copy of slice", flat, [](const Tensor& x) { return x(range(1, x.dim(0))).copy(); });
  add("copy of every second", flat,
      [](const Tensor& x) { return x(range(0, x.dim(0), 2)).copy(); });
  add("flip", flat, [](const Tensor& x) { return flip(x, 0); });
  add("roll", flat, [](const Tensor& x) { return roll(x, 3, 0); });
  add("tile", flat, [](const Tensor& x) { return tile(x, {2}); });
  add("tril", square, [](const Tensor& x) { return tril(x); });
  add("pad", square, [](const Tensor& x) { return pad(x, {{1, 1}, {1, 1}}); });
  cases->push_back({named("add a transpose", type), type, true,
                    [=](Dim elements) {
                      return Tensors{numbers(square(elements), type),
                                     numbers(square(elements), type)};
                    },
                    [](const Tensors& x) { return Tensors{x[0] + transpose(x[1])}; }});
  cases->push_back({named("concatenate", type), type, true,
                    [=](Dim elements) {
                      return Tensors{numbers(flat(elements), type), numbers(flat(elements), type)};
                    },
                    [](const Tensors& x) { return Tensors{concatenate(0, x[0], x[1])}; }});
  add("assign to slice", flat, [](const Tensor& x) {
    Tensor y = x;
    y(range(0, x.dim(0) / 2)) = 1.5;
    return y;
  });
  add("clip", flat, [](const Tensor& x) { return clip(x, -1, 1); });
  cases->push_back({named("where", type), type, true,
                    [=](Dim elements) {
                      return Tensors{numbers(flat(elements), dtype::b8),
                                     numbers(flat(elements), type), numbers(flat(elements), type)};
                    },
                    [](const Tensors& x) { return Tensors{where(x[0], x[1], x[2])}; }});
}

// Lines of 64 elements, looked up or written by as many indices as there are lines.
void addIndexing(std::vector<OpCase>* cases, dtype type) {
  constexpr Dim kWidth = 64;
  const auto inputs = [=](bool alongLine) {
    return [=](Dim elements) {
      const Dim rows = elements / kWidth;
      const Shape shape = alongLine ? Shape({rows, kWidth}) : Shape({kWidth, rows});
      return Tensors{numbers(shape, type), indices(flat(rows), rows), numbers(shape, type)};
    };
  };
  const auto add = [&](const char* name, Cost cost, auto make, auto run) {
    cases->push_back({named(name, type), type, cost == Memory, make,
                      [=](const Tensors& x) { return Tensors{run(x)}; }});
  };
  add("gather lines", Memory, inputs(false),
      [](const Tensors& x) { return x[0](span, x[1]).copy(); });
  add("gather elements", Arithmetic, inputs(true),
      [](const Tensors& x) { return x[0](x[1]).copy(); });
  add("scatter lines", Memory, inputs(false), [](const Tensors& x) {
    Tensor y = x[0];
    y(span, x[1]) = x[2];
    return y;
  });
  add("scatter-add lines", Memory, inputs(false), [](const Tensors& x) {
    Tensor y = x[0];
    y(span, x[1]) += x[2];
    return y;
  });
}

void addOrders(std::vector<OpCase>* cases, dtype type) {
  const auto add = [&](const char* name, Cost cost, Shape (*shape)(Dim), Unary run) {
    cases->push_back(unary(name, type, cost, shape, std::move(run)));
  };
  add("cumsum", Arithmetic, flat, [](const Tensor& x) { return cumsum(x, 0); });
  add("cumsum of lines", Arithmetic, lines, [](const Tensor& x) { return cumsum(x, 0); });
  add("cumsum axis 1", Memory, square, [](const Tensor& x) { return cumsum(x, 1); });
  add("argsort of lines", Arithmetic, lines, [](const Tensor& x) { return argsort(x, 0); });
  add("sort of lines", Arithmetic, lines, [](const Tensor& x) { return sort(x, 0); });
  add("median of lines", Arithmetic, lines, [](const Tensor& x) { return median(x, {0}); });
  add("topk of lines", Arithmetic, lines, [](const Tensor& x) {
    Tensor values, places;
    topk(values, places, x, 8, 0);
    return values;
  });
  add("nonzero", Arithmetic, flat, [](const Tensor& x) { return nonzero(x); });
}

void addComposites(std::vector<OpCase>* cases, dtype type) {
  const auto add = [&](const char* name, Cost cost, Shape (*shape)(Dim), Unary run) {
    cases->push_back(unary(name, type, cost, shape, std::move(run)));
  };
  add("sigmoid", Arithmetic, flat, [](const Tensor& x) { return sigmoid(x); });
  add("power 2", Memory, flat, [](const Tensor& x) { return power(x, 2); });
  add("mean", Memory, square, [](const Tensor& x) { return mean(x, {0}); });
  add("var", Memory, lines, [](const Tensor& x) { return var(x, {0}); });
  add("std", Memory, lines, [](const Tensor& x) { return fl::std(x, {0}); });
  add("norm", Memory, square, [](const Tensor& x) { return norm(x); });
  add("argmax", Memory, lines, [](const Tensor& x) { return argmax(x, 0); });
  add("countNonzero", Memory, square, [](const Tensor& x) { return countNonzero(x); });
  add("any", Memory, square, [](const Tensor& x) { return any(x); });
  add("all", Memory, square, [](const Tensor& x) { return all(x); });
}

// Work grows with the elements alone: the right side is 64x64, sequences are 128 long.
void addLibrary(std::vector<OpCase>* cases, dtype type) {
  const auto add = [&](const char* name, auto inputs, auto run) {
    cases->push_back({named(name, type), type, false, inputs,
                      [=](const Tensors& x) { return Tensors{run(x)}; }});
  };
  const auto matrices = [=](Dim elements) {
    return Tensors{numbers({elements / 64, 64}, type), numbers({64, 64}, type)};
  };
  const auto convolved = [=](Dim elements) {
    return Tensors{numbers(images(elements), type), numbers({3, 3, 4, 4}, type)};
  };
  const auto pooled = [=](Dim elements) {
    Shape half = images(elements);
    half[0] = half[1] = 8;
    return Tensors{numbers(images(elements), type), numbers(half, type)};
  };
  const auto sequences = [=](Dim elements) {
    // f64 has kernels, which differ for few and for many sequences: many at every size.
    return Tensors{numbers(
        type == dtype::f64 ? Shape({8, 4, 1, elements / 32}) : Shape({128, 8, elements / 1024, 1}),
        type)};
  };
  add("attention", sequences,
      [](const Tensors& x) { return table::attention(x[0], x[0], x[0], Tensor()); });
  add("attentionBackward", sequences, [](const Tensors& x) {
    return table::attentionBackward(x[0], x[0], x[0], x[0], Tensor())[0];
  });
  add("matmul", matrices, [](const Tensors& x) { return matmul(x[0], x[1]); });
  add("conv2d", convolved, [](const Tensors& x) { return conv2d(x[0], x[1], 1, 1, 1, 1); });
  add("conv2dBackwardData", convolved, [](const Tensors& x) {
    return detail::conv2dBackwardData(x[0], x[0], x[1], 1, 1, 1, 1, 1, 1, 1, nullptr, nullptr);
  });
  add("conv2dBackwardFilter", convolved, [](const Tensors& x) {
    return detail::conv2dBackwardFilterBias(x[0], x[0], x[1], Tensor(), 1, 1, 1, 1, 1, 1, 1,
                                            nullptr, nullptr, nullptr)
        .first;
  });
  add("pool2d", pooled, [](const Tensors& x) { return pool2d(x[0], 2, 2, 2, 2); });
  add("pool2dBackward", pooled, [](const Tensors& x) {
    return detail::pool2dBackward(x[1], x[0], x[1], 2, 2, 2, 2, 0, 0, PoolingMode::MAX, nullptr);
  });
}

// What is made of the operators above, or differs from one of them in a mode.
void addVariants(std::vector<OpCase>* cases) {
  constexpr dtype kType = dtype::f32;
  const auto add = [&](const char* name, Cost cost, Shape (*shape)(Dim),
                       std::function<Tensors(const Tensor&)> run) {
    cases->push_back({named(name, kType), kType, cost == Memory,
                      [=](Dim elements) { return Tensors{numbers(shape(elements), kType)}; },
                      [=](const Tensors& x) { return run(x[0]); }});
  };
  add("triu", Memory, square, [](const Tensor& x) { return Tensors{triu(x)}; });
  for (const auto& [name, mode] :
       {std::pair{"pad edge", PadType::Edge}, {"pad symmetric", PadType::Symmetric}}) {
    add(name, Memory, square,
        [mode = mode](const Tensor& x) { return Tensors{pad(x, {{1, 1}, {1, 1}}, mode)}; });
  }
  const auto addRows = [&](const std::string& suffix, Shape (*shape)(Dim)) {
    const auto addOne = [&](const char* name, Unary run) {
      cases->push_back(unary(name + suffix, kType, Memory, shape, std::move(run)));
    };
    addOne("sum", [](const Tensor& x) { return sum(x, {0}); });
    addOne("amax", [](const Tensor& x) { return amax(x, {0}); });
    addOne("var", [](const Tensor& x) { return var(x, {0}); });
  };
  addRows(" of rows of 4", rows<4>);
  addRows(" of rows of 32", rows<32>);
  add("argmin", Memory, lines, [](const Tensor& x) { return Tensors{argmin(x, 0)}; });
  add("max and its places", Memory, lines, [](const Tensor& x) {
    Tensors result(2);
    max(result[0], result[1], x, 0);
    return result;
  });
  add("sort and its places", Arithmetic, lines, [](const Tensor& x) {
    Tensors result(2);
    sort(result[0], result[1], x, 0);
    return result;
  });
  add("batchnorm", Memory, images, [](const Tensor& x) {
    const Tensor one = full({4}, 1.0), zero = full({4}, 0.0);
    Tensor mean = zero, variance = one;
    return Tensors{batchnorm(x, one, zero, mean, variance, {2}, true, 0.1, 1e-5)};
  });
  // Sequences of 4 steps of 8 numbers, many at every size.
  cases->push_back({"rnn LSTM f32", kType, false,
                    [](Dim elements) {
                      constexpr Dim kSize = 8, kSteps = 4;
                      return Tensors{numbers({kSize, elements / kSize / kSteps, kSteps}, kType),
                                     numbers({4 * kSize * (2 * kSize + 2)}, kType, -1, 1)};
                    },
                    [](const Tensors& x) {
                      return Tensors{std::get<0>(
                          rnn(x[0], Tensor(), Tensor(), x[1], 8, 1, RnnMode::LSTM, false, 0))};
                    }});
  // As many elements that are not 0 as rows, times 64 columns.
  cases->push_back({"matmul of sparse f32", kType, false,
                    [](Dim elements) {
                      const Dim rows = elements / 64;
                      const Tensor places = indices(flat(rows), rows).astype(dtype::s32);
                      return Tensors{numbers(flat(rows), kType), places,
                                     numbers({rows, 64}, kType)};
                    },
                    [](const Tensors& x) {
                      const Dim rows = x[0].dim(0);
                      const Tensor matrix(rows, rows, x[0], x[1], x[1], StorageType::COO);
                      return Tensors{matmul(matrix, x[2])};
                    }});
}

}  // namespace

std::vector<OpCase> opCases() {
  std::vector<OpCase> cases;
  addTableRows(&cases);
  addCasts(&cases);
  addCreation(&cases);
  for (dtype type : {dtype::f32, dtype::f16, dtype::bf16}) {
    addRearranging(&cases, type);
    addIndexing(&cases, type);
    addOrders(&cases, type);
    addComposites(&cases, type);
  }
  addVariants(&cases);
  // oneDNN takes no f64 on a CPU: these run the definitions, in primitives.
  for (dtype type : {dtype::f32, dtype::f16, dtype::bf16, dtype::f64}) {
    addLibrary(&cases, type);
  }
  return cases;
}

}  // namespace fl::bench
