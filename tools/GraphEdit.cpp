#include "tools/GraphEdit.h"

#include <stdexcept>

#include "fl/ir/Inference.h"

namespace fl::tools {
namespace {

class Editor {
 public:
  Editor(const ir::Graph& graph, const GraphEdit& edit)
      : graph_(graph), edit_(edit), names_(graph.valueCount(), -1) {}

  ir::Graph run() {
    std::vector<ir::ValueId> results = this->results();
    const std::vector<bool> needed = findNeeded();
    for (ir::ValueId id = 0; id < graph_.valueCount(); ++id) {
      if (needed[id] && isInput(id)) {
        addInput(id);
      }
    }
    for (ir::ValueId id = 0; id < graph_.valueCount(); ++id) {
      if (needed[id] && !isInput(id)) {
        addNode(id);
      }
    }
    for (ir::ValueId& result : results) {
      result = names_[result];
      if (edited_.isNumber(result)) {
        throw std::invalid_argument("a number is no result");
      }
    }
    edited_.setResults(std::move(results));
    return std::move(edited_);
  }

  std::vector<bool> findNeeded() const {
    std::vector<bool> needed(graph_.valueCount(), false);
    for (ir::ValueId result : results()) {
      needed[result] = true;
    }
    if (edit_.keepsUnread) keepUnread(&needed);
    for (ir::ValueId id = graph_.valueCount(); id-- > 0;) {
      if (needed[id] && !isInput(id)) {
        for (ir::ValueId operand : graph_.node(id).operands) {
          needed[resolve(operand)] = true;
        }
      }
    }
    return needed;
  }

 private:
  void keepUnread(std::vector<bool>* needed) const {
    std::vector<bool> read(graph_.valueCount(), false);
    for (ir::ValueId result : graph_.results()) read[result] = true;
    for (const ir::Node& node : graph_.nodes()) {
      for (ir::ValueId operand : node.operands) read[operand] = true;
    }
    for (size_t i = 0; i < graph_.nodes().size(); ++i) {
      const ir::ValueId id = graph_.idOfNode(i);
      const bool isOther = edit_.inputs.contains(id) || edit_.replaced.contains(id);
      if (!read[id] && !isOther) (*needed)[id] = true;
    }
  }

  std::vector<ir::ValueId> results() const {
    std::vector<ir::ValueId> results = edit_.results.value_or(graph_.results());
    for (ir::ValueId& result : results) {
      result = resolve(result);
    }
    return results;
  }

  bool isInput(ir::ValueId id) const { return graph_.isParameter(id) || edit_.inputs.contains(id); }

  ir::ValueId resolve(ir::ValueId id) const {
    for (auto found = edit_.replaced.find(id); found != edit_.replaced.end();
         found = edit_.replaced.find(id)) {
      id = found->second;
    }
    return id;
  }

  void addInput(ir::ValueId id) {
    ir::Parameter parameter{graph_.type(id), graph_.isNumber(id)};
    for (int axis = 0; axis < parameter.type.shape.ndim(); ++axis) {
      const auto extent = edit_.extents.find({id, axis});
      if (extent != edit_.extents.end()) {
        parameter.type.shape[axis] = extent->second;
      }
    }
    const auto made = edit_.inputs.find(id);
    if (made != edit_.inputs.end() && made->second) {
      parameter = {{parameter.type.type, Shape{}}, true};
    }
    names_[id] = edited_.addParameter(std::move(parameter));
  }

  void addNode(ir::ValueId id) {
    const ir::Node& node = graph_.node(id);
    std::vector<ir::ValueId> operands;
    for (ir::ValueId operand : node.operands) {
      operands.push_back(names_[resolve(operand)]);
    }
    std::vector<Dim> attrs = node.attrs.values();
    for (size_t i = 0; i < attrs.size(); ++i) {
      const auto attr = edit_.attrs.find({id, i});
      attrs[i] = attr == edit_.attrs.end() ? attrs[i] : attr->second;
    }
    names_[id] = edited_.addNode(node.op, std::move(operands), ir::Attrs(std::move(attrs)));
  }

  const ir::Graph& graph_;
  const GraphEdit& edit_;
  ir::Graph edited_;
  std::vector<ir::ValueId> names_;  // of values in edited_
};

}  // namespace

std::vector<bool> neededValues(const ir::Graph& graph, const GraphEdit& edit) {
  return Editor(graph, edit).findNeeded();
}

std::optional<ir::Graph> applyEdit(const ir::Graph& graph, const GraphEdit& edit) {
  try {
    return Editor(graph, edit).run();
  } catch (const std::invalid_argument&) {
    return std::nullopt;
  }
}

GraphSize sizeOf(const ir::Graph& graph) {
  size_t buffers = 0;
  Dim elements = 0;
  for (ir::ValueId id = 0; id < graph.valueCount(); ++id) {
    buffers += graph.isParameter(id) && !graph.isNumber(id);
    elements += graph.type(id).shape.elements();
  }
  return {graph.nodes().size(), graph.results().size(), graph.parameters().size(), buffers,
          elements};
}

}  // namespace fl::tools
