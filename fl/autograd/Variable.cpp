#include "fl/autograd/Variable.h"

#include <algorithm>
#include <stdexcept>
#include <unordered_set>
#include <utility>

#include "fl/base/CallSite.h"
#include "fl/base/Error.h"
#include "fl/tensor/Compute.h"

namespace fl {
namespace {

[[noreturn]] void throwLogicError(const std::string& message) {
  throw std::logic_error(detail::withCallSite(message));
}

void checkGrad(const char* function, const Variable& variable, const Variable& grad) {
  FL_USER_CHECK(grad.type() == variable.type() && grad.shape() == variable.shape(), function,
                ": a gradient of type ", typeToString(grad.type(), grad.shape()),
                " for a Variable of type ", typeToString(variable.type(), variable.shape()));
}

// The gradient of elements that `place` takes from a tensor like `input`: zeros elsewhere. Where
// `mayRepeat`, an element may have been taken often: 16 bits would round the sum.
template <class Place>
Tensor gradientOfElements(const Variable& input, const Tensor& grad, bool mayRepeat,
                          const Place& place) {
  const dtype type = mayRepeat ? computeType(input.type()) : input.type();
  Tensor sum = full(input.shape(), 0.0, type);
  place(sum) += grad.astype(type);
  return sum.astype(input.type());
}

// A mask of `size` elements is read here, once for forward and backward: the places where it holds.
Index withoutMask(const Index& index, Dim size) {
  const Tensor* mask = index.type() == detail::IndexType::Tensor ? &index.get<Tensor>() : nullptr;
  const bool isMask =
      mask && mask->type() == dtype::b8 && static_cast<Dim>(mask->elements()) == size;
  return isMask ? Index(nonzero(*mask)) : index;
}

bool mayRepeat(const Index& index) { return index.type() == detail::IndexType::Tensor; }

}  // namespace

Variable::Variable()
    : data_(std::make_shared<SharedData>()), grad_(std::make_shared<SharedGrad>()) {}

Variable::Variable(Tensor data, bool calcGrad) : Variable() {
  FL_API_ENTRY();
  data_->data = std::move(data);  // an assignment: a view is read, it does not stay one
  grad_->calcGrad = calcGrad;
}

Variable::Variable(Tensor data, std::vector<Variable> inputs, GradFunc gradFunc)
    : Variable(std::move(data), false) {
  for (const Variable& input : inputs) grad_->calcGrad |= input.isCalcGrad();
  if (!grad_->calcGrad) return;
  for (Variable& input : inputs) {
    // gradFunc kept nothing for it, whatever it wants when backward() runs.
    if (!input.isCalcGrad()) input.grad_ = std::make_shared<SharedGrad>();
  }
  grad_->history.reset(new SharedGrad::History{std::move(inputs), std::move(gradFunc)});
}

Tensor& Variable::SharedData::tensor() {
  if (!hasData) {
    data = Tensor(shape, type);
    hasData = true;
  }
  return data;
}

Tensor& Variable::tensor() const { return data_->tensor(); }

Shape Variable::shape() const { return data_->hasData ? data_->data.shape() : data_->shape; }

dtype Variable::type() const { return data_->hasData ? data_->data.type() : data_->type; }

bool Variable::isEmpty() const { return elements() == 0; }

bool Variable::isContiguous() const { return !data_->hasData || data_->data.isContiguous(); }

Dim Variable::elements() const { return shape().elements(); }

size_t Variable::bytes() const { return elements() * getTypeSize(type()); }

unsigned Variable::ndim() const { return shape().ndim(); }

Dim Variable::dim(unsigned dim) const {
  FL_API_ENTRY();
  return shape().dim(dim);
}

void Variable::eval() const {
  FL_API_ENTRY();
  fl::eval(tensor());
}

Variable Variable::copy() const {
  FL_API_ENTRY();
  Variable result(tensor().copy(), isCalcGrad());
  result.grad_->frozen = grad_->frozen;
  return result;
}

Variable Variable::asContiguous() const {
  FL_API_ENTRY();
  if (!isContiguous()) tensor() = tensor().asContiguousTensor();
  return *this;
}

Variable Variable::withoutData() const {
  Variable edge = *this;
  edge.data_ = std::make_shared<SharedData>();
  edge.data_->hasData = false;
  edge.data_->shape = shape();
  edge.data_->type = type();
  return edge;
}

Variable Variable::astype(dtype newType) const {
  FL_API_ENTRY();
  return Variable(tensor().astype(newType), {withoutData()},
                  [](std::vector<Variable>& inputs, const Variable& gradOutput) {
                    Tensor grad = gradOutput.tensor().astype(inputs[0].type());
                    inputs[0].addGrad(Variable(std::move(grad), false));
                  });
}

Variable Variable::operator()(const std::vector<Index>& given) const {
  FL_API_ENTRY();
  std::vector<Index> indices;
  for (const Index& index : given) {
    const auto axis = indices.size();
    indices.push_back(withoutMask(index, axis < ndim() ? dim(axis) : 1));
  }
  return Variable(tensor()(indices), {withoutData()},
                  [indices](std::vector<Variable>& inputs, const Variable& gradOutput) {
                    Tensor grad =
                        gradientOfElements(inputs[0], gradOutput.tensor(),
                                           std::any_of(indices.begin(), indices.end(), mayRepeat),
                                           [&](Tensor& sum) { return sum(indices); });
                    inputs[0].addGrad(Variable(std::move(grad), false));
                  });
}

Variable Variable::flat(const Index& given) const {
  FL_API_ENTRY();
  const Index index = withoutMask(given, elements());
  return Variable(tensor().flat(index), {withoutData()},
                  [index](std::vector<Variable>& inputs, const Variable& gradOutput) {
                    Tensor grad =
                        gradientOfElements(inputs[0], gradOutput.tensor(), mayRepeat(index),
                                           [&](Tensor& sum) { return sum.flat(index); });
                    inputs[0].addGrad(Variable(std::move(grad), false));
                  });
}

bool Variable::isCalcGrad() const { return grad_->calcGrad; }

bool Variable::isGradAvailable() const { return grad_->calcGrad && grad_->grad != nullptr; }

Variable& Variable::grad() const {
  FL_API_ENTRY();
  if (!grad_->calcGrad) {
    throwLogicError("grad: no gradient is computed for this Variable (calcGrad is false)");
  }
  if (!grad_->grad) {
    throwLogicError("grad: the gradient of this Variable is not available; backward() makes it");
  }
  return *grad_->grad;
}

void Variable::zeroGrad() { grad_->grad.reset(); }

void Variable::setCalcGrad(bool calcGrad) {
  grad_->calcGrad = calcGrad && !grad_->frozen;
  if (!grad_->calcGrad) {
    grad_->release();
    grad_->released = false;
    grad_->grad.reset();
  }
}

void Variable::freeze() {
  grad_->frozen = true;
  setCalcGrad(false);
}

void Variable::addGrad(const Variable& childGrad) {
  if (!grad_->calcGrad) return;
  FL_API_ENTRY();
  checkGrad("addGrad", *this, childGrad);
  Tensor sum = grad_->grad ? grad_->grad->tensor() + childGrad.tensor() : childGrad.tensor();
  grad_->grad = std::make_unique<Variable>(std::move(sum), false);
}

void Variable::registerGradHook(const GradHook& hook) { grad_->hook = hook; }

void Variable::clearGradHook() { grad_->hook = nullptr; }

void Variable::SharedGrad::release() {
  released = true;
  history = nullptr;
}

// What a node owns of its history is handed to the outermost destructor on this thread, which frees
// it piece by piece: the stack stays flat however long the history is.
Variable::SharedGrad::~SharedGrad() {
  static thread_local History* dying = nullptr;
  static thread_local bool isFreeing = false;
  if (!history) return;
  history->next = std::exchange(dying, history.get());
  history.release();
  if (std::exchange(isFreeing, true)) return;
  while (dying) {
    const std::unique_ptr<History> last(dying);
    dying = last->next;
  }
  isFreeing = false;
}

void Variable::backward(bool retainGraph) {
  FL_API_ENTRY();
  backward(Variable(full(shape(), 1.0, type()), false), retainGraph);
}

void Variable::backward(const Variable& grad, bool retainGraph) {
  if (!grad_->calcGrad) return;
  FL_API_ENTRY();
  checkGrad("backward", *this, grad);  // before gradients are dropped
  Tape tape = buildTape();
  for (const auto& node : tape) {
    if (node->passesOn) node->grad.reset();
    node->passesOn = node->history != nullptr;
  }
  addGrad(grad);
  runTape(tape, retainGraph);
}

// Depth first, with a stack of our own.
Variable::Tape Variable::buildTape() const {
  struct Visit {
    std::shared_ptr<SharedGrad> node;
    size_t next = 0;
  };
  Tape tape;
  std::unordered_set<const SharedGrad*> seen;
  std::vector<Visit> stack;
  const auto enter = [&](const std::shared_ptr<SharedGrad>& node) {
    if (!node->calcGrad || !seen.insert(node.get()).second) return;
    if (node->released) {
      throwLogicError(
          "backward: an earlier backward() has released this history; call that one with "
          "retainGraph = true");
    }
    stack.push_back({node});
  };
  enter(grad_);
  while (!stack.empty()) {
    Visit& top = stack.back();
    const SharedGrad::History* history = top.node->history.get();
    if (history && top.next < history->inputs.size()) {
      enter(history->inputs[top.next++].grad_);
    } else {
      tape.push_back(std::move(top.node));
      stack.pop_back();
    }
  }
  return tape;
}

void Variable::runTape(Tape& tape, bool retainGraph) {
  for (auto node = tape.rbegin(); node != tape.rend(); ++node) {
    SharedGrad& current = **node;
    if (current.history) {
      if (!current.grad) {
        throwLogicError("backward: no gradient was propagated to a Variable of the history");
      }
      current.history->gradFunc(current.history->inputs, *current.grad);
    }
    if (current.hook && current.grad) current.hook(*current.grad);
    if (!retainGraph) {
      if (current.history) current.release();
      // The last owner frees the node's gradient and values here, not at the end.
      node->reset();
    }
  }
}

}  // namespace fl
