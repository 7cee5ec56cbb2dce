// A recorded operator, or a composite's call as one, which is the backend's value of its result.
// Nodes are immutable but for that: a node is pending until a realize gives it a buffer, and then
// drops its operands.
#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "fl/base/MemoryBlock.h"
#include "fl/definitions/RecordedComposite.h"
#include "fl/ir/Graph.h"
#include "fl/tensor/DefaultTensorType.h"

namespace fl::lazy {

class Engine;
class LazyNode;
using LazyNodePtr = std::shared_ptr<LazyNode>;
using LazyOperands = absl::InlinedVector<LazyNodePtr, 3>;

// The pending nodes of one segment in the order they were recorded. A node takes itself out when it
// is realized or destroyed. Guarded by the engine's mutex.
class PendingList {
 public:
  LazyNode* first() const { return first_; }
  LazyNode* last() const { return last_; }
  bool empty() const { return !first_; }
  void append(LazyNode* node);
  void remove(LazyNode* node);
  // That of what lies in another order (LazyNode::channel), which it does not hold.
  static PendingList laidOut;

  // Tensors that were written in place, in order. Nothing is kept alive: the operators that wait
  // hold an old value that they read, or its elements in another shape.
  struct Update {
    std::weak_ptr<detail::TensorStorage> tensor;
    std::weak_ptr<TensorAdapterBase> old;
    std::weak_ptr<MemoryBlock> oldElements;
    int oldChannel;
    std::weak_ptr<LazyNode> value;
  };
  std::vector<Update> updates;
  bool isRecorded = false;  // for a function, which is not done: only its reads run any of it
  uint64_t thread = 0;      // that recorded it

 private:
  LazyNode* first_ = nullptr;
  LazyNode* last_ = nullptr;
};

class LazyNode final : public LazyTensor {
 public:
  // A pending operator, which Engine::record() has to see before it is used.
  LazyNode(TensorBackend& backend, Engine& engine, ir::Op op, LazyOperands&& operands,
           const ir::Attrs& attrs, ir::ValueType type);
  // A value that exists already.
  LazyNode(TensorBackend& backend, Engine& engine, ir::ValueType type, MemoryBlockPtr buffer,
           int channel = -1);
  LazyNode(TensorBackend& backend, Engine& engine, const Number& number);
  // Destroys chains of any length without recursion.
  ~LazyNode() override;

  MemoryBlockPtr data() override;
  bool ownsData() const override {
    return !list_.load(std::memory_order_acquire) && isHeldBy(1, buffer);
  }
  const Number* number() const override { return number_ ? &*number_ : nullptr; }

  bool pending() const { return !buffer && !number_; }
  // The elements, if they are there already, and in order: on any thread, without waiting.
  MemoryBlockPtr readyBuffer() const {
    return list_.load(std::memory_order_acquire) == nullptr ? buffer : nullptr;
  }
  // Nobody's value, but operand of those of its results.
  bool hasParts() const { return composite && composite->graph.results().size() > 1; }
  bool isPart() const { return !operands.empty() && operands[0]->hasParts(); }
  // How many operators it stands for.
  size_t operators() const { return composite ? composite->graph.nodes().size() : !isPart(); }
  // Sets the result and lets go of the operands.
  void realize(MemoryBlockPtr result, int channel) noexcept;

  ir::Op op = ir::Op::Reshape;
  ir::Attrs attrs;  // of a part, its number among the results
  CallSite site;
  RecordedCompositePtr composite;  // instead of `op` and `attrs`
  LazyOperands operands;
  MemoryBlockPtr buffer;
  // Of an image whose buffer has this dimension, of its channels, before all others; -1 of what
  // lies in order. What reads it in order has a copy made, which stays beside it, so that other
  // plans find the same whatever was read. Guarded by the engine's mutex.
  int channel = -1;
  MemoryBlockPtr ordered;

  uint64_t id = 0;       // grows with recording; operands have smaller ones
  uint64_t segment = 0;  // of the recording thread; of a value, that which read it last
  // What tensors that had it were written with, as far as that is pending; and what it has from
  // such tensors for an error to give back, once nobody else holds it.
  std::vector<std::weak_ptr<LazyNode>> writers;
  std::vector<LazyNodePtr> olds;
  // Whether an index that it looks up was found to be out of range, and told to a reader.
  enum class Fault : uint8_t { None, Found, Told } fault = Fault::None;
  bool isHeldUp = false;  // it or what it reads has one
  // Scratch of the realize that runs.
  uint64_t visit = 0;
  ir::ValueId value = -1, place = -1;
  int innerUses = 0;
  int holders = 0;  // all of them, if there are inner ones

  LazyNode* next() const { return next_; }

 private:
  friend class PendingList;
  static void release(LazyOperands* operands) noexcept;

  Engine& engine_;
  const std::optional<Number> number_;
  // Whoever finds null finds all that realize() wrote, too.
  std::atomic<PendingList*> list_ = nullptr;
  LazyNode* previous_ = nullptr;
  LazyNode* next_ = nullptr;
  LazyNodePtr nextReleased_;
};

// The number, or the elements, of a value that is computed or another backend's.
LazyNodePtr makeValueNode(TensorBackend& backend, Engine& engine, TensorAdapterBase& value);

}  // namespace fl::lazy
