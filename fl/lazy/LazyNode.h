// A recorded operator. Nodes are immutable but for their result: a node is pending until a realize
// gives it a buffer, and then drops its operands.
#pragma once

#include <memory>
#include <optional>

#include "absl/container/inlined_vector.h"
#include "fl/base/MemoryBlock.h"
#include "fl/ir/Graph.h"

namespace fl::lazy {

class LazyNode;
using LazyNodePtr = std::shared_ptr<LazyNode>;
using LazyOperands = absl::InlinedVector<LazyNodePtr, 3>;

// The pending nodes of one segment in the order they were recorded. A node takes itself out when it
// is realized or destroyed. Guarded by the engine's mutex.
class PendingList {
 public:
  LazyNode* first() const { return first_; }
  bool empty() const { return !first_; }
  void append(LazyNode* node);
  void remove(LazyNode* node);

 private:
  LazyNode* first_ = nullptr;
  LazyNode* last_ = nullptr;
};

class LazyNode : public std::enable_shared_from_this<LazyNode> {
 public:
  // A pending operator.
  LazyNode(ir::Op op, LazyOperands operands, ir::Attrs attrs, ir::ValueType type);
  // A value that exists already.
  LazyNode(ir::ValueType type, MemoryBlockPtr buffer);
  explicit LazyNode(const Number& number);
  // Destroys chains of any length without recursion.
  ~LazyNode();
  LazyNode(const LazyNode&) = delete;
  LazyNode& operator=(const LazyNode&) = delete;

  bool pending() const { return !buffer && !number; }
  // Sets the result and lets go of the operands.
  void realize(MemoryBlockPtr result);

  ir::Op op = ir::Op::Reshape;
  ir::Attrs attrs;
  ir::ValueType type;
  CallSite site;
  LazyOperands operands;
  MemoryBlockPtr buffer;
  std::optional<Number> number;

  uint64_t id = 0;       // grows with recording; operands have smaller ones
  uint64_t segment = 0;  // of the recording thread
  // Scratch of the realize that runs.
  uint64_t visit = 0;
  ir::ValueId value = -1;
  long innerUses = 0;

  LazyNode* next() const { return next_; }

 private:
  friend class PendingList;
  PendingList* list_ = nullptr;
  LazyNode* previous_ = nullptr;
  LazyNode* next_ = nullptr;
};

}  // namespace fl::lazy
