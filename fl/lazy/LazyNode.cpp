#include "fl/lazy/LazyNode.h"

#include <utility>

#include "fl/lazy/Engine.h"
#include "fl/runtime/MemoryManager.h"
#include "fl/tensor/Capture.h"

namespace fl::lazy {

PendingList PendingList::laidOut;

void PendingList::append(LazyNode* node) {
  node->list_.store(this, std::memory_order_relaxed);
  node->previous_ = last_;
  (last_ ? last_->next_ : first_) = node;
  last_ = node;
}

void PendingList::remove(LazyNode* node) {
  (node->previous_ ? node->previous_->next_ : first_) = node->next_;
  (node->next_ ? node->next_->previous_ : last_) = node->previous_;
  node->previous_ = node->next_ = nullptr;
  node->list_.store(node->channel < 0 ? nullptr : &laidOut, std::memory_order_release);
}

LazyNode::LazyNode(TensorBackend& backend, Engine& engine, ir::Op op, LazyOperands&& operands,
                   const ir::Attrs& attrs, ir::ValueType type)
    : LazyTensor(backend, std::move(type)),
      op(op),
      attrs(attrs),
      site(currentCallSite()),
      operands(std::move(operands)),
      engine_(engine) {}

LazyNode::LazyNode(TensorBackend& backend, Engine& engine, ir::ValueType type,
                   MemoryBlockPtr buffer, int channel)
    : LazyTensor(backend, std::move(type)),
      buffer(std::move(buffer)),
      channel(channel),
      engine_(engine),
      list_(channel < 0 ? nullptr : &PendingList::laidOut) {}

LazyNode::LazyNode(TensorBackend& backend, Engine& engine, const Number& number)
    : LazyTensor(backend, {number.type(), Shape()}), engine_(engine), number_(number) {}

MemoryBlockPtr LazyNode::data() {
  if (detail::activeCapture) detail::activeCapture->onHostRead(*this);
  if (number_) {
    const uint64_t bits = number_->bits();
    return runtime::makeBlock(&bits, bytes());
  }
  if (MemoryBlockPtr ready = readyBuffer()) return ready;
  engine_.realize(this);
  return channel < 0 ? buffer : ordered;
}

// Lets go of nodes one at a time: the destructor of each leaves its operands to the first call.
// They are chained through themselves, as a destructor that asks for memory ends the program where
// there is none. (Of a node that two threads let go of at once, the last may destroy it in here.)
void LazyNode::release(LazyOperands* operands) noexcept {
  thread_local LazyNodePtr* chain = nullptr;
  LazyNodePtr mine;
  if (!chain) chain = &mine;
  for (LazyNodePtr& operand : *operands) {
    LazyNodePtr node = std::move(operand);
    if (!isHeldBy(1, node)) continue;
    node->nextReleased_ = std::move(*chain);
    *chain = std::move(node);
  }
  operands->clear();
  if (chain != &mine) return;
  while (mine) mine = std::move(mine->nextReleased_);  // the first dies when its next is in place
  chain = nullptr;
}

LazyNode::~LazyNode() {
  const PendingList* const isIn = list_.load(std::memory_order_acquire);
  if (isIn && isIn != &PendingList::laidOut) {
    std::lock_guard<std::recursive_mutex> lock(engineMutex());
    // Another thread may have realized it since.
    if (pending()) list_.load(std::memory_order_relaxed)->remove(this);
  }
  if (!operands.empty()) release(&operands);
}

void LazyNode::realize(MemoryBlockPtr result, int channelOfResult) noexcept {
  PendingList* const list = list_.load(std::memory_order_relaxed);
  buffer = std::move(result);
  channel = channelOfResult;
  olds.clear();
  release(&operands);
  list->remove(this);
}

LazyNodePtr makeValueNode(TensorBackend& backend, Engine& engine, TensorAdapterBase& value) {
  if (value.number()) return std::make_shared<LazyNode>(backend, engine, *value.number());
  return std::make_shared<LazyNode>(backend, engine, value.valueType(), value.data());
}

}  // namespace fl::lazy
