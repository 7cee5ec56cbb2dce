// Layers with shortcuts.
#pragma once

#include <map>
#include <memory>
#include <unordered_set>

#include "fl/contrib/modules/Block.h"

namespace fl {

// A sequence of layers with shortcuts between them: He et al., "Deep residual learning for image
// recognition", 2015. Layers count from 1 in the order of add(); 0 is the input, the number of
// layers + 1 the output.
//
//   Residual block;
//   block.add(Linear(8, 8));
//   block.add(ReLU());
//   block.addShortcut(0, 3);  // x + relu(linear(x))
// Shapes: the first layer's to the last one's
class Residual : public detail::Block {
 public:
  Residual() = default;
  FL_BASIC_CONTAINER_CLONING(Residual)

  // Scales what goes into layer beforeLayer, shortcuts included. Throws std::invalid_argument
  // unless that is a layer, or the output, and has no scale yet.
  void addScale(int beforeLayer, float scale);
  // Adds what comes out of layer fromLayer to what goes into toLayer, through a module of its own
  // if one is given. Throws std::invalid_argument unless fromLayer is the input or a layer, toLayer
  // a layer or the output, more than one behind it, and there is no such shortcut yet.
  void addShortcut(int fromLayer, int toLayer);
  template <typename T>
  void addShortcut(int fromLayer, int toLayer, std::shared_ptr<T> module) {
    checkShortcut(fromLayer, toLayer);
    add(std::move(module));
    shortcuts_[toLayer][fromLayer] = static_cast<int>(modules_.size()) - 1;
  }
  template <typename T>
  void addShortcut(int fromLayer, int toLayer, const T& module) {
    addShortcut(fromLayer, toLayer, std::make_shared<T>(module));
  }
  // Which of modules() stand in shortcuts.
  std::unordered_set<int> getProjectionsIndices() const;

  std::vector<Variable> forward(const std::vector<Variable>& inputs) override;
  Variable forward(const Variable& input);
  std::string prettyString() const override;

 private:
  FL_SAVE_LOAD_WITH_BASE(detail::Block, shortcuts_, scales_)
  std::vector<int> layers() const;
  void checkShortcut(int fromLayer, int toLayer) const;
  Variable inputOf(int layer, const std::vector<Variable>& outputs);
  std::string describe(int layer, const std::string& name) const;

  // By layer that the shortcut goes to, then by layer that it comes from: its module, or -1.
  std::map<int, std::map<int, int>> shortcuts_;
  std::map<int, float> scales_;
};

}  // namespace fl
