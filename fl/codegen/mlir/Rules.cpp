// The rules of GraphWriter.h: what each kind of operator prints.
#include <algorithm>

#include "fl/codegen/mlir/GraphWriter.h"
#include "fl/codegen/mlir/Spaces.h"
#include "fl/ir/Philox.h"

namespace fl::codegen::mlir {

using ir::Kind;
using ir::Op;
using ir::ValueType;

namespace {

// The dtype in which elements are added up.
dtype sumType(dtype type) { return isFloating(type) ? dtype::f64 : type; }

Shape withAxis(Dim extent, const Shape& shape) {
  std::vector<Dim> extents = shape.get();
  extents.insert(extents.begin(), extent);
  return Shape(extents);
}

TextValue randomNumber(TextBuilder& b, dtype type, const TextValue& seed, const TextValue& offset,
                       const TextValue& index) {
  return type == dtype::f64   ? ir::vm::philoxNumber<dtype::f64>(b, seed, offset, index)
         : type == dtype::u32 ? ir::vm::philoxNumber<dtype::u32>(b, seed, offset, index)
                              : ir::vm::philoxNumber<dtype::f32>(b, seed, offset, index);
}

}  // namespace

void GraphWriter::printElementwise() {
  std::vector<Seen> inputs;
  for (size_t i = 0; i < node().operands.size(); ++i) inputs.push_back(broadcast(i, type().shape));
  const bool computes = ir::opKind(node().op) != Kind::Select;
  printMap(inputs, [&](TextBuilder& b, const Values& values, const TextValue&) {
    Values args;
    for (const TextValue& value : values) {
      args.push_back(computes ? b.cast(value, computeType(value.type)) : value);
    }
    b.setShort(computeType(type().type) != type().type);
    return b.meaning(node().op, args[0], args[args.size() > 1 ? 1 : 0],
                     args[args.size() > 2 ? 2 : 0]);
  });
}

void GraphWriter::printCast() {
  printMap({broadcast(0, type().shape)},
           [](TextBuilder&, const Values& values, const TextValue&) { return values[0]; });
}

void GraphWriter::printIota() {
  const int rank = type().shape.ndim(), axis = static_cast<int>(node().attrs[1]);
  printMap({}, [&](TextBuilder& b, const Values&, const TextValue&) {
    if (rank == 0) return b.constant(Number::fromSigned(0, dtype::s64));
    return b.fromIndex(b.define(detail::concat("linalg.index ", rank - 1 - axis, " : index")));
  });
}

void GraphWriter::printRandom() {
  const Shape& shape = type().shape;
  std::vector<Seen> inputs;
  for (size_t i = 0; i < node().operands.size(); ++i) inputs.push_back(broadcast(i, shape));
  printMap(inputs, [&](TextBuilder& b, const Values& values, const TextValue&) {
    std::string index = b.indexConstant(0);
    const std::vector<Dim> strides = contiguousStrides(shape);
    for (int axis = 0; axis < shape.ndim(); ++axis) {
      const int loop = shape.ndim() - 1 - axis;
      const std::string part = b.define(detail::concat("linalg.index ", loop, " : index"));
      index = plus(b, index, scaled(b, part, strides[axis]));
    }
    const TextValue element = b.fromIndex(index);
    const TextValue first = randomNumber(b, type().type, values[0], values[1], element);
    if (values.size() == 2) return first;
    const TextValue second = randomNumber(b, type().type, values[0], values[2], element);
    return ir::vm::normalNumber(b, first, second);
  });
}

void GraphWriter::printView() {
  const Op op = node().op;
  if (op == Op::Slice) return printSlice();
  if (op == Op::Reshape) return printReshape();
  const int rank = type().shape.ndim();
  Seen input{operand(0), operandType(0), {}};
  if (op == Op::Broadcast) {
    input = broadcast(0, type().shape);
  } else if (op == Op::Transpose) {
    input.axes.resize(rank);
    for (int i = 0; i < rank; ++i) input.axes[node().attrs[i]] = i;
  } else {
    FL_INTERNAL_CHECK(op == Op::Window, ir::opName(op));
    Names dimensions;
    for (int i = 0; i < 2; ++i) {
      dimensions.push_back(detail::concat(loopName(i, rank), " * ", node().attrs[4 + i], " + ",
                                          loopName(2 + i, rank), " * ", node().attrs[2 + i]));
    }
    for (int i = 4; i < rank; ++i) dimensions.push_back(loopName(i, rank));
    input.map = affineMap(dimensions, rank);
  }
  printMap({input}, [](TextBuilder&, const Values& values, const TextValue&) { return values[0]; });
}

void GraphWriter::printSlice() {
  const int rank = type().shape.ndim();
  std::vector<Seen> starts;
  const bool stated = ir::statesStarts(node().attrs, rank);
  for (int i = 0; i < rank && !stated; ++i) starts.push_back(broadcast(1 + i, type().shape));
  printMap(starts, [&](TextBuilder& b, const Values& values, const TextValue&) {
    Names place;
    for (int i = 0; i < rank; ++i) {
      const std::string index = b.define(detail::concat("linalg.index ", rank - 1 - i, " : index"));
      const std::string start =
          stated ? b.indexConstant(node().attrs[1 + 2 * rank + i]) : b.toIndex(values[i]);
      place.push_back(plus(b, start, scaled(b, index, node().attrs[1 + rank + i])));
    }
    return extract(b, operand(0), operandType(0), place);
  });
}

void GraphWriter::printReshape() {
  Names extents;
  for (Dim extent : type().shape.get()) extents.push_back(std::to_string(extent));
  const std::string listType = detail::concat("tensor<", extents.size(), "xi64>");
  const std::string list = extents.empty() ? "" : "[" + reversed(extents) + "]";
  code_.line(own("shape"), " = arith.constant dense<", list, "> : ", listType);
  code_.line(names_[node_], " = tensor.reshape ", operand(0), "(", own("shape"), ") : (",
             tensorType(operandType(0)), ", ", listType, ") -> ", tensorType(type()));
}

void GraphWriter::printGather() {
  const int rank = type().shape.ndim(), axis = static_cast<int>(node().attrs[0]);
  const ValueType& from = operandType(0);
  printMap(
      {broadcast(1, type().shape)}, [&](TextBuilder& b, const Values& values, const TextValue&) {
        Names place;
        for (int i = 0; i < from.shape.ndim(); ++i) {
          if (i == axis) {
            place.push_back(printInRange(b, values[0], from.shape[i]));
          } else if (from.shape[i] != type().shape[i]) {
            place.push_back(b.indexConstant(0));
          } else {
            place.push_back(b.define(detail::concat("linalg.index ", rank - 1 - i, " : index")));
          }
        }
        return extract(b, operand(0), from, place);
      });
}

std::string GraphWriter::printBox(const std::string& result, size_t source, const std::string& init,
                                  const Names& starts, const std::vector<Dim>& strides) {
  const ValueType& from = operandType(source);
  if (from.shape.elements() == 0) return init;
  return printLoops(result, from.shape, init, type(),
                    [&](TextBuilder& b, const Names& index, const std::string&) {
                      Names place;
                      for (size_t i = 0; i < index.size(); ++i) {
                        const std::string start =
                            starts[i].empty() ? b.indexConstant(0) : starts[i];
                        place.push_back(plus(b, start, scaled(b, index[i], strides[i])));
                      }
                      return Element{place, extract(b, operand(source), from, index)};
                    });
}

void GraphWriter::printJoin() {
  const int rank = type().shape.ndim();
  const std::vector<Dim> ones(rank, 1);
  const auto startsAt = [&](const std::string& prefix, const std::vector<Dim>& offsets) {
    Names starts(rank);
    for (int i = 0; i < rank; ++i) {
      if (offsets[i] == 0) continue;
      starts[i] = prefix + "s" + std::to_string(i);
      code_.line(starts[i], " = arith.constant ", offsets[i], " : index");
    }
    return starts;
  };
  std::string joined = printEmpty(own("e"), type());
  if (node().op == Op::Pad) {
    const std::string number = own("y"), filled = own("filled");
    code_.line(number, " = tensor.extract ", operand(1), "[] : ", tensorType(operandType(1)));
    code_.line(filled, " = linalg.fill ins(", number, " : ", typeName(type().type), ") outs(",
               joined, " : ", tensorType(type()), ") -> ", tensorType(type()));
    const Names starts = startsAt(own(""), node().attrs.list(0));
    names_[node_] = printBox(names_[node_], 0, filled, starts, ones);
    return;
  }
  std::vector<Dim> offsets(rank, 0);
  const size_t last = node().operands.size() - 1;
  for (size_t i = 0; i <= last; ++i) {
    const std::string part = own("part" + std::to_string(i));
    joined = printBox(i == last ? names_[node_] : part, i, joined, startsAt(part, offsets), ones);
    offsets[node().attrs[0]] += operandType(i).shape[node().attrs[0]];
  }
  names_[node_] = joined;
}

void GraphWriter::printUpdate() {
  TextBuilder b(code_, own("s").substr(1));
  Names starts;
  for (int i = 0; i < type().shape.ndim(); ++i) starts.push_back(printStart(b, 2 + i));
  names_[node_] = printBox(names_[node_], 1, operand(0), starts, node().attrs.list(1));
}

void GraphWriter::printScatter() {
  const ValueType &indices = operandType(1), &from = operandType(2);
  if (from.shape.elements() == 0) {
    names_[node_] = operand(0);
    return;
  }
  const auto axis = static_cast<size_t>(node().attrs[0]);
  const bool adds = node().op == Op::ScatterAdd;
  const dtype computed = computeType(type().type);
  const auto visit = [&](TextBuilder& b, const Names& index, const std::string& carried) {
    Names at(index.begin(), index.begin() + indices.shape.ndim());
    for (size_t i = 0; i < at.size(); ++i) {
      if (indices.shape[i] != from.shape[i]) at[i] = b.indexConstant(0);
    }
    Names place = index;
    place[axis] = printInRange(b, extract(b, operand(1), indices, at), type().shape[axis]);
    const TextValue element = extract(b, operand(2), from, index);
    if (!adds) return Element{place, element};
    const TextValue before = extract(b, carried, type(), place);
    const TextValue sum = b.add(b.cast(before, computed), b.cast(element, computed));
    return Element{place, b.cast(sum, element.type)};
  };
  names_[node_] = printLoops(names_[node_], from.shape, operand(0), type(), visit);
}

void GraphWriter::printFold() {
  const ValueType& windows = operandType(0);
  const ValueType total{sumType(type().type), type().shape};
  std::string sums = printFilled(own("zero"), total, Number::fromSigned(0, total.type));
  if (windows.shape.elements() > 0) {
    const auto visit = [&](TextBuilder& b, const Names& index, const std::string& carried) {
      Names place;
      for (int i = 0; i < 2; ++i) {
        place.push_back(plus(b, scaled(b, index[i], node().attrs[2 + i]),
                             scaled(b, index[2 + i], node().attrs[i])));
      }
      place.insert(place.end(), index.begin() + 4, index.end());
      const TextValue element = b.cast(extract(b, operand(0), windows, index), total.type);
      return Element{place, b.add(extract(b, carried, total, place), element)};
    };
    sums = printLoops(own("sum"), windows.shape, sums, total, visit);
  }
  printRounded(sums, total.type);
}

void GraphWriter::printReduce() {
  const ValueType& from = operandType(0);
  const int rank = from.shape.ndim();
  const std::vector<Dim> axes = node().attrs.list(1);
  const bool keepsDims = node().attrs[0] != 0, sums = node().op == Op::Sum;
  const ValueType total{sums ? sumType(type().type) : type().type, type().shape};
  const std::string init = printFilled(own("init"), total, ir::reduceInit(node().op, total.type));
  if (from.shape.elements() == 0) return printRounded(init, total.type);
  std::vector<bool> reduced(rank);
  Seen output{init, total, {}};
  for (int i = 0; i < rank; ++i) {
    reduced[i] = axes.empty() || std::find(axes.begin(), axes.end(), i) != axes.end();
    if (!reduced[i] || keepsDims) output.axes.push_back(reduced[i] ? -1 : i);
  }
  const Generic generic{from.shape, reduced, {broadcast(0, from.shape)}, output};
  const dtype computed = computeType(total.type);
  const Number first = ir::reduceInit(node().op, computed);
  printGeneric(own("total"), generic,
               [&](TextBuilder& b, const Values& values, const TextValue& before) {
                 // One element reduces no axis: MLIR takes that for a map, and fuses it into loops
                 // that would go on from what is there.
                 const TextValue x = rank == 0 ? b.constant(first) : b.cast(before, computed);
                 const TextValue y = b.cast(values[0], computed);
                 return b.cast(b.meaning(node().op, x, y, y), total.type);
               });
  printRounded(own("total"), total.type);
}

void GraphWriter::printCumsum() {
  const auto axis = static_cast<size_t>(node().attrs[0]);
  const ValueType total{sumType(type().type), type().shape};
  const std::string init = printFilled(own("zero"), total, Number::fromSigned(0, total.type));
  const auto visit = [&](TextBuilder& b, const Names& index, const std::string& carried) {
    Names previous = index;
    const std::string one = b.indexConstant(1), zero = b.indexConstant(0);
    previous[axis] = b.define("arith.subi " + index[axis] + ", " + one + " : index");
    previous[axis] = b.define("arith.maxsi " + previous[axis] + ", " + zero + " : index");
    // At the beginning of a line it is the element itself, which is still 0.
    const TextValue sum = extract(b, carried, total, previous);
    const TextValue element = b.cast(extract(b, operand(0), operandType(0), index), total.type);
    return Element{index, b.add(sum, element)};
  };
  printRounded(printLoops(own("sum"), type().shape, init, total, visit), total.type);
}

// The place of an element is how many of its line come before it; then each place looks for its
// element. Compares all pairs of a line.
void GraphWriter::printArgsort() {
  const int rank = type().shape.ndim(), axis = static_cast<int>(node().attrs[0]);
  const ValueType &from = operandType(0), places{dtype::s64, from.shape};
  const Dim length = from.shape[axis];
  const Number zero = Number::fromSigned(0, dtype::s64);
  std::vector<bool> reduced(rank + 1);
  reduced[0] = true;
  std::vector<int> itself = firstAxes(rank, 1), other = itself;
  other[axis] = 0;
  const auto indexOf = [&](TextBuilder& b, int spaceAxis) {
    return b.fromIndex(b.define(detail::concat("linalg.index ", rank - spaceAxis, " : index")));
  };
  const Generic rankOf{withAxis(length, from.shape),
                       reduced,
                       {{operand(0), from, itself}, {operand(0), from, other}},
                       {printFilled(own("zero"), places, zero), places, itself}};
  printGeneric(own("places"), rankOf,
               [&](TextBuilder& b, const Values& values, const TextValue& before) {
                 const TextValue x = b.cast(values[0], computeType(from.type));
                 const TextValue y = b.cast(values[1], computeType(from.type));
                 const auto less = [&](const TextValue& i, const TextValue& j) {
                   return b.maskOr(b.lt(i, j), b.maskAnd(b.eq(i, i), b.ne(j, j)));
                 };
                 const TextValue earlier = b.lt(indexOf(b, 0), indexOf(b, axis + 1));
                 const TextValue tied = b.maskAnd(b.maskNot(less(x, y)), earlier);
                 const TextValue one = b.integer(before, 1), none = b.integer(before, 0);
                 return b.add(before, b.select(b.maskOr(less(y, x), tied), one, none));
               });
  const Generic pick{withAxis(length, type().shape),
                     reduced,
                     {{own("places"), places, other}},
                     {printFilled(own("none"), type(), zero), type(), itself}};
  printGeneric(names_[node_], pick,
               [&](TextBuilder& b, const Values& values, const TextValue& before) {
                 const TextValue here = b.eq(values[0], indexOf(b, axis + 1));
                 return b.select(here, indexOf(b, 0), before);
               });
}

void GraphWriter::printContract() {
  const ValueType &x = operandType(0), &y = operandType(1);
  const ValueType total{sumType(type().type), type().shape};
  const std::string init = printFilled(own("zero"), total, Number::fromSigned(0, total.type));
  const Shape space = withAxis(x.shape[0], type().shape);  // K, M, N, batch
  if (space.elements() == 0) return printRounded(init, total.type);
  const Generic generic{space,
                        {true, false, false, false},
                        {{operand(0), x, {0, 1, 3}}, {operand(1), y, {0, 2, 3}}},
                        {init, total, {1, 2, 3}}};
  printGeneric(own("sum"), generic,
               [&](TextBuilder& b, const Values& values, const TextValue& before) {
                 const TextValue product =
                     b.mul(b.cast(values[0], total.type), b.cast(values[1], total.type));
                 return b.add(before, product);
               });
  printRounded(own("sum"), total.type);
}

}  // namespace fl::codegen::mlir
