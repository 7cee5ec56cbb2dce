// Who reads each value of a graph, as fusion asks it.
#pragma once

#include <algorithm>
#include <vector>

#include "fl/codegen/Fusion.h"

namespace fl::codegen {

class Uses {
 public:
  Uses(const ir::Graph& graph, const FusionPlan& plan)
      : plan_(plan), users_(graph.valueCount()), isResult_(graph.valueCount(), false) {
    for (size_t i = 0; i < graph.nodes().size(); ++i) {
      for (ir::ValueId operand : graph.nodes()[i].operands)
        users_[operand].push_back(graph.idOfNode(i));
    }
    for (ir::ValueId result : graph.results()) isResult_[result] = true;
  }

  bool isResult(ir::ValueId id) const { return isResult_[id]; }

  template <class F>
  bool anyUser(ir::ValueId id, F&& wanted) const {
    return std::ranges::any_of(users_[id], wanted);
  }

  // True if every reader of `id` satisfies `inside` and it is no result, unless it may be one. A
  // view stands for its own readers, unless it is known to be a copy.
  template <class F>
  bool allReaders(const ir::Graph& graph, ir::ValueId id, F&& inside, bool orResult = false) const {
    std::vector<ir::ValueId> pending = {id};
    while (!pending.empty()) {
      const ir::ValueId value = pending.back();
      pending.pop_back();
      if (!orResult && isResult_[value]) return false;
      for (const ir::ValueId user : users_[value]) {
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

 private:
  const FusionPlan& plan_;
  std::vector<std::vector<ir::ValueId>> users_;  // of each value
  std::vector<bool> isResult_;
};

}  // namespace fl::codegen
