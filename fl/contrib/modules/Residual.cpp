#include "fl/contrib/modules/Residual.h"

#include <sstream>

#include "fl/autograd/Functions.h"
#include "fl/base/CallSite.h"
#include "fl/base/Error.h"
#include "fl/nn/Serialization.h"
#include "fl/nn/Utils.h"

CEREAL_REGISTER_TYPE(fl::Residual)

namespace fl {

std::unordered_set<int> Residual::getProjectionsIndices() const {
  std::unordered_set<int> indices;
  for (const auto& [to, sources] : shortcuts_) {
    for (const auto& [from, projection] : sources) {
      if (projection >= 0) indices.insert(projection);
    }
  }
  return indices;
}

std::vector<int> Residual::layers() const {
  const std::unordered_set<int> projections = getProjectionsIndices();
  std::vector<int> ids;
  for (int id = 0; id < static_cast<int>(modules_.size()); ++id) {
    if (!projections.contains(id)) ids.push_back(id);
  }
  return ids;
}

void Residual::addScale(int beforeLayer, float scale) {
  FL_API_ENTRY();
  const auto count = static_cast<int>(layers().size());
  FL_USER_CHECK(beforeLayer >= 1 && beforeLayer <= count + 1, "Residual: no layer ", beforeLayer,
                " to scale the input of among ", count, " layers and the output ", count + 1);
  FL_USER_CHECK(scales_.emplace(beforeLayer, scale).second, "Residual: the input of layer ",
                beforeLayer, " has a scale already");
}

void Residual::checkShortcut(int fromLayer, int toLayer) const {
  FL_API_ENTRY();
  const auto count = static_cast<int>(layers().size());
  FL_USER_CHECK(fromLayer >= 0 && fromLayer + 1 < toLayer && toLayer <= count + 1,
                "Residual: no shortcut goes from layer ", fromLayer, " to ", toLayer,
                ": it must skip at least one of the ", count, " layers, from 0, the input, to ",
                count + 1, ", the output");
  const auto sources = shortcuts_.find(toLayer);
  FL_USER_CHECK(sources == shortcuts_.end() || !sources->second.contains(fromLayer),
                "Residual: the shortcut from layer ", fromLayer, " to ", toLayer,
                " is there already");
}

void Residual::addShortcut(int fromLayer, int toLayer) {
  checkShortcut(fromLayer, toLayer);
  shortcuts_[toLayer][fromLayer] = -1;
}

Variable Residual::inputOf(int layer, const std::vector<Variable>& outputs) {
  Variable input = outputs.back();
  const auto sources = shortcuts_.find(layer);
  if (sources != shortcuts_.end()) {
    for (const auto& [from, projection] : sources->second) {
      const Variable added = projection < 0 ? outputs[from] : apply(projection, outputs[from]);
      input = input + detail::toType(added, input.type());
    }
  }
  const auto scale = scales_.find(layer);
  return scale == scales_.end() ? input : input * scale->second;
}

std::vector<Variable> Residual::forward(const std::vector<Variable>& inputs) {
  FL_API_ENTRY();
  FL_USER_CHECK(inputs.size() == 1, "Residual: takes one input, not ", inputs.size());
  return {forward(inputs[0])};
}

Variable Residual::forward(const Variable& input) {
  FL_API_ENTRY();
  std::vector<Variable> outputs = {input};
  for (int id : layers()) {
    const auto layer = static_cast<int>(outputs.size());
    outputs.push_back(apply(id, inputOf(layer, outputs)));
  }
  return inputOf(static_cast<int>(outputs.size()), outputs);
}

std::string Residual::describe(int layer, const std::string& name) const {
  std::ostringstream text;
  text << "\n\tRes(" << layer << "): " << name;
  const auto scale = scales_.find(layer);
  if (scale != scales_.end()) {
    text << " with scale (before layer is applied) " << scale->second << ";";
  }
  const auto output = static_cast<int>(layers().size()) + 1;
  std::ostringstream targets;
  for (const auto& [to, sources] : shortcuts_) {
    const auto source = sources.find(layer);
    if (source == sources.end()) continue;
    targets << (to == output ? "output" : "layer Res(" + std::to_string(to) + ")");
    if (source->second >= 0) {
      targets << " with transformation: " << modules_[source->second]->prettyString() << ";";
    }
    targets << " ";
  }
  return text.str() + (targets.str().empty() ? "" : "; skip connection to " + targets.str());
}

std::string Residual::prettyString() const {
  std::string text = describe(0, "Input");
  int layer = 1;
  for (int id : layers()) text += describe(layer++, modules_[id]->prettyString());
  return text + describe(layer, "Output;");
}

}  // namespace fl
