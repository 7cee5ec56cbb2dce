// Who reads each value of a graph, as fusion asks it.
#pragma once

#include <algorithm>
#include <vector>

#include "fl/codegen/Fusion.h"

namespace fl::codegen {

// Users of each value, in one array.
class Uses {
 public:
  Uses(const ir::Graph& graph, const FusionPlan& plan)
      : plan_(plan), begin_(graph.valueCount() + 1, 0) {
    for (const ir::Node& node : graph.nodes()) {
      for (ir::ValueId operand : node.operands) ++begin_[operand + 1];
    }
    for (size_t i = 1; i < begin_.size(); ++i) begin_[i] += begin_[i - 1];
    users_.resize(begin_.back());
    std::vector<int> next(begin_.begin(), begin_.end() - 1);
    for (size_t i = 0; i < graph.nodes().size(); ++i) {
      for (ir::ValueId operand : graph.nodes()[i].operands) {
        users_[next[operand]++] = graph.idOfNode(i);
      }
    }
    isResult_.resize(graph.valueCount(), false);
    for (ir::ValueId result : graph.results()) isResult_[result] = true;
  }

  bool isResult(ir::ValueId id) const { return isResult_[id]; }

  template <class F>
  bool anyUser(ir::ValueId id, F&& wanted) const {
    return std::any_of(users_.begin() + begin_[id], users_.begin() + begin_[id + 1], wanted);
  }

  // True if every reader of `id` satisfies `inside` and it is no result. A view stands for its own
  // readers, unless it is known to be a copy.
  template <class F>
  bool allReaders(const ir::Graph& graph, ir::ValueId id, F&& inside) const {
    return all(graph, id, true, inside);
  }
  // The same, whether or not it is a result.
  template <class F>
  bool allUsers(const ir::Graph& graph, ir::ValueId id, F&& inside) const {
    return all(graph, id, false, inside);
  }

 private:
  template <class F>
  bool all(const ir::Graph& graph, ir::ValueId id, bool noResult, F&& inside) const {
    std::vector<ir::ValueId> pending = {id};
    while (!pending.empty()) {
      const ir::ValueId value = pending.back();
      pending.pop_back();
      if (noResult && isResult_[value]) return false;
      for (int i = begin_[value]; i < begin_[value + 1]; ++i) {
        const ir::ValueId user = users_[i];
        const bool copied = plan_.values[user].base == user;
        if (ir::opKind(graph.node(user).op) == ir::Kind::View && !copied) {
          pending.push_back(user);
        } else if (!inside(user)) {
          return false;
        }
      }
    }
    return true;
  }

  const FusionPlan& plan_;
  std::vector<int> begin_;
  std::vector<ir::ValueId> users_;
  std::vector<bool> isResult_;
};

}  // namespace fl::codegen
