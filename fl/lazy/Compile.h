// fl::compile: a function of tensors becomes one plan, which later calls replay without running the
// function.
//
//   auto step = fl::compile([&](const Tensor& x, const Tensor& y) {
//     optimizer.zeroGrad();
//     Variable loss = lossOf(model.forward(noGrad(x)), noGrad(y));
//     loss.backward();
//     optimizer.step();
//     return loss.tensor();
//   });
//   Tensor loss = step(x, y);
//   loss = step.run(100, x, y);  // a hundred steps, the last one's loss
//
// The function runs while it is recorded: until two calls in a row recorded the same, so at least
// twice for each set of argument types and backend. A replay then takes
// - its arguments as they are at the call;
// - tensors that the function reads but does not make (parameters, tables) as they are at the call;
// - numbers of fl::hostNumber, among them optimizers' rates and the place in the stream of random
//   numbers, as they are at the call;
// - everything else, all other numbers among it, as it was recorded.
// It gives new values to what the function returns, never views, and to the tensors outside it
// that it assigns to (parameters, statistics, an optimizer's state). Not to those that it makes
// anew and leaves behind: gradients keep the values of the last recorded call. What else the
// function does, it does only while it is recorded, or while a view shows a tensor that it gives
// another storage (x = y, not x += y), which has to go on to show the old value: then calls run it.
//
// A replay cannot repeat what the function does with elements that it reads on the host, by
// scalar(), host(), an `if`, nonzero() or in eager mode. So it may not read there what it computes
// from arguments, from fl::hostNumber or from tensors that it assigns to: return that and read it
// after the call, or choose with where(). Other tensors it may read: when one of these is assigned
// another value, the next call records anew; so it does when one whose shape or dtype the function
// asks for has another, and when a view outside that it uses is another, or one of another tensor.
//
// Errors, std::invalid_argument: a number that differs between two calls, with the line that reads
// it; calls that never record the same, with the first difference; such a read on the host, with
// its line and that of fl::compile. The read of a tensor that the function assigns to is told when
// the function has returned; what it has assigned by then stays. Replays throw those of indices
// that are out of range in data, and then no tensor has changed. On backends that record nothing a
// call runs the function.
//
// A replay costs about a microsecond and what its kernels take; memory for what it returns
// included. State that nobody else holds is updated in place, call after call. Of the plans for
// different argument types the 64 used last are kept. Calls of one function, or of its copies, may
// not overlap.
#pragma once

#include <array>
#include <functional>
#include <memory>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include "fl/base/CallSite.h"
#include "fl/tensor/Capture.h"
#include "fl/tensor/TensorBase.h"

namespace fl {

namespace lazy {

using TensorList = std::span<const Tensor* const>;

// What is behind Compiled, whatever the function's type.
class CompiledFunction {
 public:
  using Function = std::function<std::vector<Tensor>(TensorList)>;
  explicit CompiledFunction(Function function);

  std::vector<Tensor> run(int64_t times, TensorList arguments);
  size_t plans() const;

 private:
  class Calls;
  std::shared_ptr<Calls> calls_;
};

}  // namespace lazy

template <typename Signature>
class Compiled;

template <typename Result, typename... Arguments>
class Compiled<Result(Arguments...)> {
  static_assert((std::is_same_v<std::remove_cvref_t<Arguments>, Tensor> && ...),
                "fl::compile: arguments are tensors");
  static_assert(std::is_void_v<Result> || std::is_same_v<Result, Tensor> ||
                    std::is_same_v<Result, std::vector<Tensor>>,
                "fl::compile: a function returns nothing, a Tensor or a std::vector<Tensor>");

  template <typename>
  using AsTensor = const Tensor&;

 public:
  explicit Compiled(std::function<Result(Arguments...)> function)
      : function_([function = std::move(function)](lazy::TensorList tensors) {
          return call(function, tensors, std::index_sequence_for<Arguments...>());
        }) {}

  Result operator()(AsTensor<Arguments>... arguments) { return run(1, arguments...); }

  // The last of `times` calls' results. Throws std::invalid_argument if `times` is below 1.
  Result run(int64_t times, AsTensor<Arguments>... arguments) {
    const std::array<const Tensor*, sizeof...(Arguments)> tensors = {&arguments...};
    std::vector<Tensor> results = function_.run(times, tensors);
    if constexpr (std::is_same_v<Result, Tensor>)
      return std::move(results[0]);
    else if constexpr (!std::is_void_v<Result>)
      return results;
  }

  // Recorded ones that replays use: one for each set of argument types, backend and memory budget.
  size_t plans() const { return function_.plans(); }

 private:
  template <size_t... I>
  static std::vector<Tensor> call(const std::function<Result(Arguments...)>& function,
                                  lazy::TensorList tensors, std::index_sequence<I...>) {
    if constexpr (std::is_void_v<Result>) {
      function(Tensor(*tensors[I])...);
      return {};
    } else if constexpr (std::is_same_v<Result, Tensor>) {
      std::vector<Tensor> results;
      results.push_back(function(Tensor(*tensors[I])...));
      return results;
    } else {
      return function(Tensor(*tensors[I])...);
    }
  }

  lazy::CompiledFunction function_;
};

// `function` takes any number of tensors and returns nothing, a Tensor or a std::vector<Tensor>.
template <typename Function>
[[gnu::noinline]] auto compile(Function function) {
  FL_API_ENTRY();
  std::function erased(std::move(function));
  return [&]<typename Result, typename... Arguments>(std::function<Result(Arguments...)>& typed) {
    return Compiled<Result(Arguments...)>(std::move(typed));
  }(erased);
}

}  // namespace fl
