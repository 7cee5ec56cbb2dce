// Variable: a Tensor that remembers how it was computed, so that gradients can be propagated back.
//
// A Variable is a handle on (data, history): copies share both. The functions of Functions.h make
// new Variables that hold edges to their inputs and a function that turns the gradient of the
// result into gradients of the inputs; backward() runs these functions in reverse order. Forward
// and backward only record tensor operators: nothing here reads an element on the host.
//
// Nothing recurses over the depth of the history (ordering, running, destroying it), so a history
// of a million steps fits any stack. A Variable must not be used by two threads at once. Relies on
// fl/tensor; see Functions.h for the functions, Serialization.h for saving.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "fl/base/CallSite.h"
#include "fl/base/Shape.h"
#include "fl/tensor/Index.h"
#include "fl/tensor/TensorBase.h"

namespace cereal {
class access;
}

namespace fl {

class Variable {
 public:
  // Adds to the gradients of `inputs` (Variable::addGrad) what `gradOutput`, the gradient of the
  // result, contributes to them.
  using GradFunc = std::function<void(std::vector<Variable>& inputs, const Variable& gradOutput)>;
  using GradHook = std::function<void(Variable& grad)>;

  // An empty f32 tensor without gradient.
  Variable();
  // A leaf. With calcGrad, backward() accumulates its gradient.
  Variable(Tensor data, bool calcGrad);
  // The result of a function of `inputs`. Without an input that wants a gradient, inputs and
  // gradFunc are dropped and the result wants none either.
  Variable(Tensor data, std::vector<Variable> inputs, GradFunc gradFunc);

  // Indexes like Tensor's operator(); the result is a value, not a view. Its gradient adds up where
  // elements were chosen more than once.
  Variable operator()(const std::vector<Index>& indices) const;
  template <typename... Ts>
  [[gnu::noinline]] Variable operator()(const Ts&... args) const {
    FL_API_ENTRY();
    return (*this)(std::vector<Index>{Index(args)...});
  }
  // Indexes the column-major flattening.
  Variable flat(const Index& index) const;

  // The data; assigning to it leaves the history as it is. Values that gradients need were taken
  // when the functions were called, so a later assignment or update in place does not change them.
  Tensor& tensor() const;
  // A leaf with a copy of the tensor, that wants a gradient if this one does.
  Variable copy() const;
  // Differentiable: the gradient is cast back.
  Variable astype(dtype newType) const;

  // Throws std::logic_error if the Variable wants no gradient or has none yet.
  Variable& grad() const;
  bool isCalcGrad() const;
  bool isGradAvailable() const;

  Shape shape() const;
  bool isEmpty() const;
  bool isContiguous() const;
  Variable asContiguous() const;
  dtype type() const;
  Dim elements() const;
  size_t bytes() const;
  unsigned ndim() const;
  // Throws std::invalid_argument unless dim < ndim().
  Dim dim(unsigned dim) const;

  // Ends the pending segment of recorded operators (see fl/tensor/Compute.h).
  void eval() const;
  // Copies the elements to memory that the caller frees with free(), or to `ptr`.
  template <typename T>
  [[gnu::noinline]] T* host() const {
    FL_API_ENTRY();
    return tensor().template host<T>();
  }
  template <typename T>
  [[gnu::noinline]] void host(T* ptr) const {
    FL_API_ENTRY();
    tensor().host(ptr);
  }
  // The first element.
  template <typename T>
  [[gnu::noinline]] T scalar() const {
    FL_API_ENTRY();
    return tensor().template scalar<T>();
  }

  // Drops the gradient.
  void zeroGrad();
  // With false also drops the gradient and the history.
  void setCalcGrad(bool calcGrad);
  // setCalcGrad(false) for good, in all handles: true is passed over from now on. Copies are frozen
  // too; what is loaded from a file is not.
  void freeze();
  // Adds `childGrad` to the gradient, out of place: a gradient that was handed out never changes.
  // Does nothing if no gradient is wanted. Throws std::invalid_argument unless shape and dtype are
  // those of the Variable.
  void addGrad(const Variable& childGrad);
  // `hook` is called by backward() with the gradient, once it is final.
  void registerGradHook(const GradHook& hook);
  void clearGradHook();

  // Propagates `grad` (ones in the other form) back through the history. Leaves accumulate: two
  // calls add up. Variables in between hold the gradient of the latest call, and what addGrad()
  // gave them since the one before. Unless retainGraph, history and the values it holds are
  // released on the way; a second backward() through them throws std::logic_error before anything
  // is computed. A function that leaves out the gradient of a computed input throws it too. Does
  // nothing if no gradient is wanted.
  void backward(const Variable& grad, bool retainGraph = false);
  void backward(bool retainGraph = false);

  // The same history without the data: an edge for the inputs of a function whose gradient needs
  // shape and dtype alone. tensor() of it is uninitialised memory.
  Variable withoutData() const;

 private:
  friend class cereal::access;
  // Defined in Serialization.h: tensor and calcGrad, no history.
  template <typename Archive>
  void save(Archive& archive, uint32_t version) const;
  template <typename Archive>
  void load(Archive& archive, uint32_t version);

  struct SharedData {
    // Nothing until it is asked for, if made by withoutData().
    Tensor& tensor();

    bool hasData = true;
    Tensor data;
    Shape shape;
    dtype type = dtype::f32;

    template <typename Archive>
    void save(Archive& archive, uint32_t version) const;
    template <typename Archive>
    void load(Archive& archive, uint32_t version);
  };

  struct SharedGrad {
    // What backward() follows, and a link for the destructor, which may not allocate.
    struct History {
      std::vector<Variable> inputs;
      GradFunc gradFunc;
      History* next = nullptr;
    };

    ~SharedGrad();
    void release();

    bool calcGrad = false;
    bool frozen = false;
    // backward() has dropped the history.
    bool released = false;
    // backward() gives grad to the inputs, and owns it even if it throws: the next one starts anew.
    bool passesOn = false;
    std::unique_ptr<History> history;  // null for a leaf
    std::unique_ptr<Variable> grad;
    GradHook hook;

    template <typename Archive>
    void save(Archive& archive, uint32_t version) const;
    template <typename Archive>
    void load(Archive& archive, uint32_t version);
  };

  using Tape = std::vector<std::shared_ptr<SharedGrad>>;
  // What the gradient of this Variable reaches, inputs before results.
  Tape buildTape() const;
  static void runTape(Tape& tape, bool retainGraph);

  std::shared_ptr<SharedData> data_;
  std::shared_ptr<SharedGrad> grad_;
};

}  // namespace fl
