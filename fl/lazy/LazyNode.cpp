#include "fl/lazy/LazyNode.h"

#include <mutex>
#include <vector>

#include "fl/lazy/Engine.h"

namespace fl::lazy {

void PendingList::append(LazyNode* node) {
  node->list_ = this;
  node->previous_ = last_;
  (last_ ? last_->next_ : first_) = node;
  last_ = node;
}

void PendingList::remove(LazyNode* node) {
  (node->previous_ ? node->previous_->next_ : first_) = node->next_;
  (node->next_ ? node->next_->previous_ : last_) = node->previous_;
  node->list_ = nullptr;
  node->previous_ = node->next_ = nullptr;
}

LazyNode::LazyNode(ir::Op op, LazyOperands operands, ir::Attrs attrs, ir::ValueType type)
    : op(op),
      attrs(std::move(attrs)),
      type(std::move(type)),
      site(currentCallSite()),
      operands(std::move(operands)) {}

LazyNode::LazyNode(ir::ValueType type, MemoryBlockPtr buffer)
    : type(std::move(type)), buffer(std::move(buffer)) {}

LazyNode::LazyNode(const Number& number) : type{number.type(), Shape()}, number(number) {}

namespace {

// Lets go of nodes one at a time: the destructor of each adds its operands to the list.
void release(LazyOperands operands) {
  thread_local std::vector<LazyNodePtr>* draining = nullptr;
  if (draining) {
    for (LazyNodePtr& node : operands) {
      draining->push_back(std::move(node));
    }
    return;
  }
  // The list has memory only if a node goes with this.
  std::vector<LazyNodePtr> nodes;
  draining = &nodes;
  operands.clear();
  while (!nodes.empty()) {
    LazyNodePtr last = std::move(nodes.back());
    nodes.pop_back();
    last.reset();
  }
  draining = nullptr;
}

}  // namespace

LazyNode::~LazyNode() {
  if (list_) {
    std::lock_guard<std::recursive_mutex> lock(engineMutex());
    list_->remove(this);
  }
  if (!operands.empty()) {
    release(std::move(operands));
  }
}

void LazyNode::realize(MemoryBlockPtr result) {
  buffer = std::move(result);
  if (list_) {
    list_->remove(this);
  }
  release(std::move(operands));
  operands.clear();
}

}  // namespace fl::lazy
