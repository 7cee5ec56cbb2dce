// The graph: an immutable-by-convention list of nodes in topological order, the form that passes
// read and rewrite. Text form in Text.h, type rules in Inference.h, invariants in verify().
#pragma once

#include <cstdint>
#include <deque>
#include <initializer_list>
#include <string>
#include <vector>

#include "fl/base/CallSite.h"
#include "fl/base/Shape.h"
#include "fl/ir/Op.h"

namespace fl::ir {

// A node's integer attributes in the order of its op's `attrs`; the last may be a list.
class Attrs {
 public:
  Attrs() = default;
  Attrs(std::initializer_list<Dim> values) : values_(values) {}
  explicit Attrs(std::vector<Dim> values) : values_(std::move(values)) {}
  // `head` followed by the list `tail`.
  Attrs(std::initializer_list<Dim> head, const std::vector<Dim>& tail) : values_(head) {
    values_.insert(values_.end(), tail.begin(), tail.end());
  }

  Dim operator[](size_t i) const { return values_[i]; }
  size_t size() const { return values_.size(); }
  // The values from `first` on.
  std::vector<Dim> list(size_t first) const {
    return {values_.begin() + static_cast<ptrdiff_t>(first), values_.end()};
  }
  const std::vector<Dim>& values() const { return values_; }
  bool operator==(const Attrs&) const = default;

 private:
  std::vector<Dim> values_;
};

struct ValueType {
  dtype type = dtype::f32;
  Shape shape;
  bool operator==(const ValueType&) const = default;
  std::string toString() const { return typeToString(type, shape); }
};

// Adds what tells a type from others to the words of a key.
template <typename Words>
void addWords(Words* words, const ValueType& type) {
  const std::vector<Dim>& dims = type.shape.get();
  words->push_back(static_cast<int64_t>(type.type));
  words->push_back(static_cast<int64_t>(dims.size()));
  words->insert(words->end(), dims.begin(), dims.end());
}

// A value's number: parameters first, then nodes.
using ValueId = int32_t;

struct Node {
  Op op = Op::Add;
  std::vector<ValueId> operands;
  Attrs attrs;
  ValueType type;
  CallSite site;  // not part of a plan's key
  // The number of the recorded operator that it stands for, by which an error finds its call; -1
  // for none.
  int origin = -1;
};

// A parameter is a buffer or, if `number`, a scalar that is known on the host at run time.
struct Parameter {
  ValueType type;
  bool number = false;
  bool operator==(const Parameter&) const = default;
};

// Whether the starts of a Slice of `rank` dimensions are attributes, from 1 + 2 * rank on, rather
// than operands.
inline bool statesStarts(const Attrs& attrs, int rank) {
  return attrs.size() > 1 + 2 * static_cast<size_t>(rank);
}

class Graph {
 public:
  ValueId addParameter(Parameter parameter);
  // Infers the type. Operands must exist already. Parameters are added before nodes.
  ValueId addNode(Op op, std::vector<ValueId> operands, Attrs attrs, CallSite site = {},
                  int origin = -1);
  // For callers that have inferred the type already.
  ValueId addNode(Node node);
  void setResults(std::vector<ValueId> results) { results_ = std::move(results); }

  const std::vector<Parameter>& parameters() const { return parameters_; }
  // A reference to one stays valid while others are added.
  const std::deque<Node>& nodes() const { return nodes_; }
  const std::vector<ValueId>& results() const { return results_; }
  int valueCount() const { return static_cast<int>(parameters_.size() + nodes_.size()); }

  bool isParameter(ValueId id) const { return id < static_cast<ValueId>(parameters_.size()); }
  bool isNumber(ValueId id) const { return isParameter(id) && parameters_[id].number; }
  const Parameter& parameter(ValueId id) const { return parameters_[id]; }
  const Node& node(ValueId id) const { return nodes_[id - parameters_.size()]; }
  const ValueType& type(ValueId id) const {
    return isParameter(id) ? parameters_[id].type : node(id).type;
  }
  ValueId idOfNode(size_t index) const { return static_cast<ValueId>(parameters_.size() + index); }

  // Parameters, ops, operands, attributes, types and results; not call sites.
  bool sameStructure(const Graph& other) const;

 private:
  std::vector<Parameter> parameters_;
  std::deque<Node> nodes_;
  std::vector<ValueId> results_;
};

// What sameStructure() compares, as the words of a key.
std::vector<int64_t> wordsOf(const Graph& graph);

// Adds the nodes of `called`, of operands in place of its parameters, as operators recorded at
// `site`. By how much their numbers are larger than in `called`.
ValueId addCall(Graph* graph, const Graph& called, const std::vector<ValueId>& operands,
                const CallSite& site);

// Those that no result depends on; parameters stay.
void removeDeadNodes(Graph* graph);

// Throws InternalError unless operands precede their users and every type is the inferred one.
void verify(const Graph& graph);

// The types of the parameters, then of the results.
std::vector<ValueType> interfaceOf(const Graph& graph);

// How often each value is used as an operand or result.
std::vector<int> useCounts(const Graph& graph);

}  // namespace fl::ir
