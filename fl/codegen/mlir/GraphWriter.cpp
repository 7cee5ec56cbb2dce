#include "fl/codegen/mlir/GraphWriter.h"

#include <cctype>

#include "fl/codegen/mlir/Spaces.h"

namespace fl::codegen::mlir {
namespace {

using ir::Kind;
using ir::Op;
using ir::ValueType;

bool takesIndices(Op op) {
  return ir::opKind(op) == Kind::Index || op == Op::Scatter || op == Op::ScatterAdd;
}

}  // namespace

std::vector<Lookup> lookups(const ir::Graph& graph) {
  std::vector<Lookup> result;
  for (size_t i = 0; i < graph.nodes().size(); ++i) {
    const ir::Node& node = graph.nodes()[i];
    if (!takesIndices(node.op)) continue;
    result.push_back({graph.idOfNode(i), graph.type(node.operands[0]).shape[node.attrs[0]]});
  }
  return result;
}

std::string tensorType(const ValueType& type) {
  std::string text = "tensor<";
  for (int i = type.shape.ndim() - 1; i >= 0; --i) text += std::to_string(type.shape[i]) + "x";
  return text + typeName(type.type) + ">";
}

GraphWriter::GraphWriter(const NamedGraph& named, CodeText& code)
    : named_(named), graph_(*named.graph), code_(code) {
  for (ir::ValueId id = 0; id < graph_.valueCount(); ++id) {
    const bool isParameter = graph_.isParameter(id);
    const int first = isParameter ? 0 : static_cast<int>(graph_.parameters().size());
    names_.push_back((isParameter ? "%p" : "%") + std::to_string(id - first));
  }
}

void GraphWriter::write() {
  const size_t given = graph_.parameters().size() - named_.constants.size();
  Names parameters, results, types;
  for (size_t i = 0; i < given; ++i) {
    // Lowered to buffers, they are the caller's.
    parameters.push_back(names_[i] + ": " + tensorType(graph_.parameters()[i].type) +
                         " {bufferization.writable = false}");
  }
  for (ir::ValueId result : graph_.results()) types.push_back(tensorType(graph_.type(result)));
  types.resize(types.size() + lookups(graph_).size(), "tensor<i64>");
  code_.open("func.func @", named_.name, "(", join(parameters), ") -> (", join(types), ")");
  for (size_t i = 0; i < named_.constants.size(); ++i) {
    const Number& number = named_.constants[i];
    const std::string attribute = literal(number), value = attribute.substr(0, attribute.find(' '));
    code_.line(names_[given + i], " = arith.constant dense<", value,
               "> : ", tensorType({number.type(), Shape()}));
  }
  for (size_t i = 0; i < graph_.nodes().size(); ++i) printNode(graph_.idOfNode(i));
  for (ir::ValueId result : graph_.results()) results.push_back(names_[result]);
  results.insert(results.end(), bad_.begin(), bad_.end());
  code_.line("return ", join(results), results.empty() ? "" : " : ", join(types));
  code_.close();
}

void GraphWriter::printNode(ir::ValueId id) {
  node_ = id;
  code_.line("// ", ir::opName(node().op), " : ", type().toString());
  const bool looksUp = !takesIndices(node().op) || printLookupCheck();
  if (!looksUp || type().shape.elements() == 0) {
    printEmpty(names_[id], type());
    return;
  }
  switch (ir::opKind(node().op)) {
    case Kind::Source:
      return printIota();
    case Kind::Random:
      return printRandom();
    case Kind::Unary:
    case Kind::Binary:
    case Kind::Select:
      return printElementwise();
    case Kind::Cast:
      return printCast();
    case Kind::View:
      return printView();
    case Kind::Index:
      return printGather();
    case Kind::Join:
      return printJoin();
    case Kind::Update:
      return node().op == Op::Update ? printUpdate()
             : node().op == Op::Fold ? printFold()
                                     : printScatter();
    case Kind::Reduce:
      return printReduce();
    case Kind::Scan:
      return printCumsum();
    case Kind::Order:
      return printArgsort();
    case Kind::Contract:
      return printContract();
    case Kind::Library:
      FL_INTERNAL_CHECK(false, ir::opName(node().op), " is not primitive");
  }
}

// ---- Forms ----

void GraphWriter::printGeneric(const std::string& result, const Generic& generic,
                               const Body& body) {
  const int rank = generic.space.ndim();
  const auto mapOf = [&](const Seen& seen) {
    if (!seen.map.empty()) return seen.map;
    Names dimensions;
    for (int axis : seen.axes) dimensions.push_back(axis < 0 ? "0" : loopName(axis, rank));
    return affineMap(dimensions, rank);
  };
  Names maps, inputs, inputTypes, arguments, kinds;
  Values values;
  for (const Seen& input : generic.inputs) {
    maps.push_back(mapOf(input));
    inputs.push_back(input.name);
    inputTypes.push_back(tensorType(input.type));
    values.push_back({"%x" + std::to_string(values.size()), input.type.type});
    arguments.push_back(values.back().name + ": " + typeName(input.type.type));
  }
  maps.push_back(mapOf(generic.output));
  const TextValue before{"%before", generic.output.type.type};
  arguments.push_back(before.name + ": " + typeName(before.type));
  for (int axis = rank - 1; axis >= 0; --axis) {
    kinds.push_back(generic.reduced[axis] ? "\"reduction\"" : "\"parallel\"");
  }
  code_.line(result, " = linalg.generic {indexing_maps = [", join(maps), "],");
  code_.line("    iterator_types = [", join(kinds), "]}");
  if (!inputs.empty()) code_.line("    ins(", join(inputs), " : ", join(inputTypes), ")");
  const std::string outputType = tensorType(generic.output.type);
  code_.open("    outs(", generic.output.name, " : ", outputType, ")");
  code_.label("^bb0(", join(arguments), "):");
  CodeText lines(code_.depth());
  TextBuilder builder(lines);
  const TextValue element = builder.bytes(body(builder, values, before));
  code_.append(builder.constants(code_.depth()));
  code_.append(lines.take());
  code_.line("linalg.yield ", element.name, " : ", typeName(element.type));
  code_.close(("} -> " + outputType).c_str());
}

std::string GraphWriter::printLoops(const std::string& result, const Shape& space,
                                    const std::string& init, const ValueType& type,
                                    const Visit& visit) {
  const std::string carriedType = tensorType(type);
  const int rank = space.ndim();
  // The name of a value does not begin with its number.
  const std::string prefix = (std::isdigit(result[1]) ? "n" : "") + result.substr(1) + ".";
  CodeText lines(code_.depth());
  TextBuilder b(lines, prefix);
  std::string carried = init;
  Names index(rank), results(rank);
  for (int axis = rank - 1; axis >= 0; --axis) {
    const std::string number = std::to_string(axis);
    index[axis] = "%" + prefix + "i" + number;
    results[axis] = axis == rank - 1 ? result : "%" + prefix + "r" + number;
    const std::string next = "%" + prefix + "a" + number;
    lines.open(results[axis], " = scf.for ", index[axis], " = ", b.indexConstant(0), " to ",
               b.indexConstant(space[axis]), " step ", b.indexConstant(1), " iter_args(", next,
               " = ", carried, ") -> (", carriedType, ")");
    carried = next;
  }
  const auto [place, element] = visit(b, index, carried);
  const TextValue value = b.bytes(element);
  std::string next = b.define(detail::concat("tensor.insert ", value.name, " into ", carried, "[",
                                             reversed(place), "] : ", carriedType));
  for (int axis = 0; axis < rank; ++axis) {
    lines.line("scf.yield ", next, " : ", carriedType);
    lines.close();
    next = results[axis];
  }
  code_.append(b.constants(code_.depth()));
  code_.append(lines.take());
  return next;
}

// ---- Parts of rules ----

std::string GraphWriter::own(const std::string& part) const {
  return "%n" + names_[node_].substr(1) + "." + part;
}

GraphWriter::Seen GraphWriter::broadcast(size_t i, const Shape& space) const {
  Seen seen{operand(i), operandType(i), firstAxes(operandType(i).shape.ndim())};
  for (int& axis : seen.axes) {
    if (seen.type.shape[axis] != space[axis]) axis = -1;
  }
  return seen;
}

std::string GraphWriter::printEmpty(const std::string& name, const ValueType& type) {
  code_.line(name, " = tensor.empty() : ", tensorType(type));
  return name;
}

std::string GraphWriter::printFilled(const std::string& name, const ValueType& type,
                                     const Number& number) {
  printEmpty(name + ".e", type);
  code_.line(name, ".c = arith.constant ", literal(number));
  code_.line(name, " = linalg.fill ins(", name, ".c : ", typeName(type.type), ") outs(", name,
             ".e : ", tensorType(type), ") -> ", tensorType(type));
  return name;
}

void GraphWriter::printMap(std::vector<Seen> inputs, const Body& body) {
  const int rank = type().shape.ndim();
  const Seen output{printEmpty(own("e"), type()), type(), firstAxes(rank)};
  printGeneric(names_[node_], {type().shape, std::vector<bool>(rank), std::move(inputs), output},
               [&](TextBuilder& b, const Values& values, const TextValue& before) {
                 return b.cast(body(b, values, before), type().type);
               });
}

void GraphWriter::printRounded(const std::string& name, dtype from) {
  if (from == type().type) {
    names_[node_] = name;
    return;
  }
  const Seen input{name, {from, type().shape}, firstAxes(type().shape.ndim())};
  printMap({input}, [](TextBuilder&, const Values& values, const TextValue&) { return values[0]; });
}

std::string GraphWriter::scaled(TextBuilder& b, const std::string& index, Dim factor) {
  if (factor == 1) return index;
  return b.define("arith.muli " + index + ", " + b.indexConstant(factor) + " : index");
}

std::string GraphWriter::plus(TextBuilder& b, const std::string& x, const std::string& y) {
  return b.define("arith.addi " + x + ", " + y + " : index");
}

TextValue GraphWriter::extract(TextBuilder& b, const std::string& name, const ValueType& type,
                               const Names& place) const {
  return {b.define(detail::concat("tensor.extract ", name, "[", reversed(place),
                                  "] : ", tensorType(type))),
          type.type};
}

std::string GraphWriter::printStart(TextBuilder& b, size_t start) {
  return b.toIndex(extract(b, operand(start), operandType(start), {}));
}

std::string GraphWriter::printInRange(TextBuilder& b, const TextValue& index, Dim bound) {
  return b.toIndex(
      b.min(b.max(index, b.integer(index, 0)), b.integer(index, std::max<Dim>(bound - 1, 0))));
}

bool GraphWriter::printLookupCheck() {
  const ValueType number{dtype::s64, Shape()};
  const Dim bound = operandType(0).shape[node().attrs[0]];
  const bool isGather = ir::opKind(node().op) == Kind::Index;
  const Shape& visited = isGather ? type().shape : operandType(2).shape;
  const bool looksUp = visited.elements() > 0, finds = bound > 0;
  const Number before = Number::fromSigned(looksUp && !finds ? -1 : 0, dtype::s64);
  const std::string none = printFilled(own("none"), number, before);
  bad_.push_back(looksUp && finds ? own("bad") : none);
  if (bad_.back() == none) return !looksUp;
  const Shape& space = operandType(1).shape;
  const Generic generic{
      space, std::vector<bool>(space.ndim(), true), {broadcast(1, space)}, {none, number, {}}};
  printGeneric(
      bad_.back(), generic, [&](TextBuilder& b, const Values& values, const TextValue& before) {
        const TextValue& index = values[0];
        const TextValue good =
            b.maskAnd(b.le(b.integer(index, 0), index), b.lt(index, b.integer(index, bound)));
        return b.select(good, before, index);
      });
  return true;
}

std::string emitMlir(const std::vector<NamedGraph>& graphs) {
  CodeText code;
  for (const NamedGraph& graph : graphs) GraphWriter(graph, code).write();
  return code.take();
}

}  // namespace fl::codegen::mlir
