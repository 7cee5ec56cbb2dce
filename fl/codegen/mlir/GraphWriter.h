// Prints one graph as one function of MLIR: one rule a kind of operator. Relies on TextBuilder.h
// for what is computed of elements.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "fl/codegen/mlir/Emitter.h"
#include "fl/codegen/mlir/TextBuilder.h"

namespace fl::codegen::mlir {

// "tensor<8x4xf32>" of f32[4,8].
std::string tensorType(const ir::ValueType& type);

class GraphWriter {
 public:
  GraphWriter(const NamedGraph& named, CodeText& code);
  void write();

 private:
  using Names = std::vector<std::string>;
  using Values = std::vector<TextValue>;

  // A tensor as it is seen under the index of a space: its dimension i along axis axes[i], or at 0
  // all along if that is -1; `map` stands in for axes that are no such thing.
  struct Seen {
    std::string name;
    ir::ValueType type;
    std::vector<int> axes;
    std::string map = "";
  };
  // A linalg.generic over a space, of which some axes are reduced.
  struct Generic {
    Shape space;
    std::vector<bool> reduced;
    std::vector<Seen> inputs;
    Seen output;  // its name is that of the tensor before
  };
  // The element of the output, of one of each input and the output's before.
  using Body =
      std::function<TextValue(TextBuilder&, const Values& inputs, const TextValue& before)>;
  void printGeneric(const std::string& result, const Generic& generic, const Body& body);
  // Loops over a space, axis 0 innermost, that carry a tensor and set one element each time; they
  // begin with `init`. Returns the name of what they end with, which is `result` unless there are
  // none.
  struct Element {
    Names place;
    TextValue value;
  };
  using Visit =
      std::function<Element(TextBuilder&, const Names& index, const std::string& carried)>;
  std::string printLoops(const std::string& result, const Shape& space, const std::string& init,
                         const ir::ValueType& type, const Visit& visit);

  // ---- One rule each ----
  void printNode(ir::ValueId id);
  void printElementwise();
  void printCast();
  void printIota();
  void printRandom();
  void printView();
  void printSlice();
  void printReshape();
  void printGather();
  void printJoin();
  void printUpdate();
  void printScatter();
  void printFold();
  void printReduce();
  void printCumsum();
  void printArgsort();
  void printContract();

  // ---- Parts of rules; `node_` is the one that is printed ----
  const ir::Node& node() const { return graph_.node(node_); }
  const ir::ValueType& type() const { return node().type; }
  const ir::ValueType& operandType(size_t i) const { return graph_.type(node().operands[i]); }
  const std::string& operand(size_t i) const { return names_[node().operands[i]]; }
  // A name of the node's own: "%n7.sum".
  std::string own(const std::string& part) const;
  // An operand seen under the index of a space that it broadcasts to.
  Seen broadcast(size_t i, const Shape& space) const;
  // A map from the result's elements, at their own places, to the node's value.
  void printMap(std::vector<Seen> inputs, const Body& body);
  std::string printEmpty(const std::string& name, const ir::ValueType& type);
  std::string printFilled(const std::string& name, const ir::ValueType& type, const Number& number);
  // The node's value is `name`, of its shape, cast from dtype `from`.
  void printRounded(const std::string& name, dtype from);
  // Loops that write the elements of an operand into `init`, at start + stride * index; an empty
  // start is 0.
  std::string printBox(const std::string& result, size_t source, const std::string& init,
                       const Names& starts, const std::vector<Dim>& strides);
  // The number that an operand is, as an index, outside of loops.
  std::string printStart(TextBuilder& b, size_t start);
  // Adds the result that tells of indices out of range. False if no element can be looked up.
  bool printLookupCheck();
  static std::string printInRange(TextBuilder& b, const TextValue& index, Dim bound);
  static std::string scaled(TextBuilder& b, const std::string& index, Dim factor);
  static std::string plus(TextBuilder& b, const std::string& x, const std::string& y);
  TextValue extract(TextBuilder& b, const std::string& name, const ir::ValueType& type,
                    const Names& place) const;

  const NamedGraph& named_;
  const ir::Graph& graph_;
  CodeText& code_;
  Names names_;  // by value
  Names bad_;    // results of lookups
  ir::ValueId node_ = 0;
};

}  // namespace fl::codegen::mlir
