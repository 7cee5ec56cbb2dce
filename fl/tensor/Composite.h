// Composites: functions of tensors made of several operators, which a backend is offered as one.
// Eager mode runs one as a plan of its own, so that softmax reads its input once; lazy mode records
// one node and fuses its operators like any others.
#pragma once

#include <bit>
#include <tuple>
#include <type_traits>
#include <typeinfo>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/functional/function_ref.h"
#include "fl/tensor/TensorBase.h"

namespace fl {

// One call. `words` tell it from calls that compute something else of operands of the same types;
// `run` computes it, of these operands or others of their types, operator by operator.
struct CompositeCall {
  const char* name;
  absl::InlinedVector<Dim, 8> words;
  absl::InlinedVector<TensorValue, 4> operands;
  absl::FunctionRef<std::vector<Tensor>(const std::vector<Tensor>&)> run;

  void add(const Tensor& operand) { operands.push_back(operand.value()); }
  void add(const Shape& shape) { add(shape.get()); }
  template <typename T>
  void add(const std::vector<T>& list) {
    add(list.size());
    for (const T& item : list) add(item);
  }
  template <typename T>
    requires std::is_arithmetic_v<T> || std::is_enum_v<T>
  void add(T number) {
    constexpr bool kIsFloat = std::is_floating_point_v<T>;
    words.push_back(kIsFloat ? std::bit_cast<Dim>(static_cast<double>(number))
                             : static_cast<Dim>(number));
  }
};

// definition(arguments...), a Tensor or a vector of them, where the arguments are tensors, numbers,
// enumerators, shapes and lists of numbers. A number that changes from call to call is a tensor:
// others are part of the plan. Operators run one by one where the definition captures anything,
// which could decide what it computes, reads elements or draws random numbers.
template <typename Definition, typename... Arguments>
auto composite(const char* name, Definition definition, const Arguments&... arguments) {
  using Result = decltype(definition(arguments...));
  TensorBackend& backend = defaultTensorBackend();
  if (!std::is_empty_v<Definition> || !backend.runsComposites()) return definition(arguments...);
  const auto run = [&](const std::vector<Tensor>& operands) {
    size_t next = 0;
    const auto argument = [&]<typename T>(const T& given) -> const T& {
      if constexpr (std::is_same_v<T, Tensor>) {
        return operands[next++];
      } else {
        return given;
      }
    };
    // Braces fix the order of what is in them.
    return std::vector<Tensor>{
        std::apply(definition, std::tuple<const Arguments&...>{argument(arguments)...})};
  };
  CompositeCall call{
      name, {reinterpret_cast<intptr_t>(&typeid(std::tuple<Definition, Arguments...>))}, {}, run};
  (call.add(arguments), ...);
  std::vector<Tensor> results = backend.applyComposite(call);
  if constexpr (std::is_same_v<Result, Tensor>) {
    return std::move(results[0]);
  } else {
    return results;
  }
}

}  // namespace fl
