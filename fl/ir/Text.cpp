#include "fl/ir/Text.h"

#include <algorithm>
#include <optional>
#include <unordered_map>

#include "fl/base/Text.h"
#include "fl/ir/Inference.h"

namespace fl::ir {
namespace {

std::string valueName(const Graph& graph, ValueId id) {
  return graph.isParameter(id)
             ? "%p" + std::to_string(id)
             : "%" + std::to_string(id - static_cast<ValueId>(graph.parameters().size()));
}

std::string join(const Graph& graph, const std::vector<ValueId>& values) {
  std::string text;
  for (ValueId value : values) text += (text.empty() ? "" : ", ") + valueName(graph, value);
  return text;
}

class GraphParser {
 public:
  explicit GraphParser(const std::string& text) : lexer_(text) {}

  Graph parse() {
    lexer_.expect("graph");
    lexer_.takeSigil('@', "the graph's name");
    parseParameters();
    lexer_.expect("{");
    while (!lexer_.accept("return")) parseNode();
    const size_t position = lexer_.position();
    std::vector<ValueId> results = parseValues("}");
    for (ValueId result : results) {
      if (graph_.isNumber(result)) lexer_.failAt(position, "a number is no result");
    }
    graph_.setResults(std::move(results));
    if (!lexer_.atEnd()) lexer_.fail("expected the end");
    return std::move(graph_);
  }

 private:
  void define(const std::string& name, ValueId id, size_t position) {
    if (!values_.emplace(name, id).second) {
      lexer_.failAt(position, "%" + name + " is defined twice");
    }
  }

  void parseParameters() {
    lexer_.expect("(");
    while (!lexer_.accept(")")) {
      const size_t position = lexer_.position();
      const std::string name = lexer_.takeSigil('%', "a parameter");
      lexer_.expect(":");
      Parameter parameter;
      parameter.number = lexer_.accept("number");
      if (parameter.number) {
        parameter.type.type = lexer_.takeDtype();
      } else {
        lexer_.takeType(&parameter.type.type, &parameter.type.shape);
      }
      define(name, graph_.addParameter(std::move(parameter)), position);
      if (lexer_.peek() != ")") lexer_.expect(",");
    }
  }

  std::vector<ValueId> parseValues(const std::string& close) {
    std::vector<ValueId> values;
    while (lexer_.peek() != close) {
      if (!values.empty()) lexer_.expect(",");
      values.push_back(takeDefined());
    }
    lexer_.expect(close);
    return values;
  }

  ValueId takeDefined() {
    const size_t position = lexer_.position();
    const std::string name = lexer_.takeSigil('%', "a value");
    const auto found = values_.find(name);
    if (found == values_.end()) lexer_.failAt(position, "%" + name + " is not defined");
    return found->second;
  }

  void parseNode() {
    const size_t begin = lexer_.position();
    const std::string name = lexer_.takeSigil('%', "a value or \"return\"");
    lexer_.expect("=");
    Node node;
    const size_t position = lexer_.position();
    const std::string opText = lexer_.takeName("an op");
    if (!findOp(opText, &node.op)) lexer_.failAt(position, "\"" + opText + "\" is no op");
    while (lexer_.peek().size() > 1 && lexer_.peek()[0] == '%') {
      node.operands.push_back(takeDefined());
      lexer_.accept(",");
    }
    node.attrs = parseAttrs(lexer_, node.op);
    lexer_.expect(":");
    ValueType written;
    lexer_.takeType(&written.type, &written.shape);
    define(name, addChecked(std::move(node), written, position), begin);
  }

  ValueId addChecked(Node node, const ValueType& written, size_t position) {
    std::vector<const ValueType*> types;
    for (ValueId operand : node.operands) types.push_back(&graph_.type(operand));
    const int arity = opInfo(node.op).arity, count = static_cast<int>(types.size());
    if (arity < 0 ? count < -arity : count != arity) {
      lexer_.failAt(position,
                    std::string(opName(node.op)) + " has " + std::to_string(count) + " operands");
    }
    try {
      node.type = inferType(node.op, types, node.attrs);
    } catch (const std::invalid_argument& error) {
      lexer_.failAt(position, error.what());
    }
    if (!(node.type == written)) {
      lexer_.failAt(position,
                    "the type is " + node.type.toString() + ", not " + written.toString());
    }
    return graph_.addNode(std::move(node));
  }

  Lexer lexer_;
  Graph graph_;
  std::unordered_map<std::string, ValueId> values_;
};

// Of a name in attrNames().
bool isList(const std::string& name) { return name.back() == '*'; }
std::string withoutMark(const std::string& name) {
  return name.substr(0, name.find_first_of("*?"));
}

// Takes "name=value" of any attribute that is not given yet.
void takeAttr(Lexer& lexer, Op op, std::vector<std::optional<std::vector<Dim>>>* given) {
  const std::vector<std::string>& names = attrNames(op);
  const size_t position = lexer.position();
  const std::string name = lexer.takeName("an attribute");
  const auto found = std::find_if(names.begin(), names.end(), [&](const std::string& known) {
    return withoutMark(known) == name;
  });
  if (found == names.end()) {
    lexer.failAt(position, std::string(opName(op)) + " has no attribute \"" + name + "\"");
  }
  auto& values = (*given)[found - names.begin()];
  if (values) lexer.failAt(position, "\"" + name + "\" is given twice");
  lexer.expect("=");
  values = isList(*found)    ? lexer.takeList()
           : name == "dtype" ? std::vector<Dim>{static_cast<Dim>(lexer.takeDtype())}
                             : std::vector<Dim>{lexer.takeInteger()};
  if (found->back() == '?' && values->front() >> 1 != 0)
    lexer.failAt(position, "\"" + name + "\" is 0 or 1");
}

}  // namespace

std::string printAttrs(Op op, const Attrs& attrs) {
  const std::vector<std::string>& names = attrNames(op);
  std::string text;
  for (size_t i = 0; i < names.size(); ++i) {
    if (names[i].back() == '?' && attrs[i] == 0) continue;
    const std::string name = withoutMark(names[i]);
    text += (text.empty() ? " {" : ", ") + name + "=";
    text += isList(names[i])  ? listToString(attrs.list(i))
            : name == "dtype" ? dtypeToString(static_cast<dtype>(attrs[i]))
                              : std::to_string(attrs[i]);
  }
  return text.empty() ? "" : text + "}";
}

Attrs parseAttrs(Lexer& lexer, Op op) {
  const std::vector<std::string>& names = attrNames(op);
  std::vector<std::optional<std::vector<Dim>>> given(names.size());
  size_t position = lexer.position();
  if (!names.empty() && lexer.accept("{")) {
    position = lexer.position();
    while (!lexer.accept("}")) {
      takeAttr(lexer, op, &given);
      position = lexer.position();
      if (!lexer.accept(",")) {
        lexer.expect("}");
        break;
      }
    }
  }
  std::vector<Dim> values;
  for (size_t i = 0; i < names.size(); ++i) {
    if (!given[i] && names[i].back() != '?') {
      lexer.failAt(position, std::string(opName(op)) + " needs the attribute \"" +
                                 withoutMark(names[i]) + "\"");
    }
    const std::vector<Dim> none = {0}, &all = given[i] ? *given[i] : none;
    values.insert(values.end(), all.begin(), all.end());
  }
  return Attrs(std::move(values));
}

std::string printGraph(const Graph& graph, const std::string& name, const PrintOptions& options) {
  std::string text = "graph @" + name + "(";
  for (size_t i = 0; i < graph.parameters().size(); ++i) {
    const Parameter& parameter = graph.parameters()[i];
    text += (i ? ", " : "") + valueName(graph, static_cast<ValueId>(i)) + ": ";
    text += parameter.number ? "number " + dtypeToString(parameter.type.type)
                             : parameter.type.toString();
  }
  text += ") {\n";
  for (size_t i = 0; i < graph.nodes().size(); ++i) {
    const Node& node = graph.nodes()[i];
    const std::string operands = join(graph, node.operands);
    text.append("  ").append(valueName(graph, graph.idOfNode(i))).append(" = ");
    text.append(opName(node.op)).append(operands.empty() ? "" : " ").append(operands);
    text.append(printAttrs(node.op, node.attrs)).append(" : ").append(node.type.toString());
    const std::string site = options.callSites ? node.site.toString() : "";
    text.append(site.empty() ? "" : "  // ").append(site).append("\n");
  }
  const std::string results = join(graph, graph.results());
  return text + "  return" + (results.empty() ? "" : " ") + results + "\n}\n";
}

Graph parseGraph(const std::string& text) { return GraphParser(text).parse(); }

}  // namespace fl::ir
