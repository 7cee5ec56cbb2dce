#include "tests/tensor/Composites.h"

#include <tuple>
#include <type_traits>

namespace fl::testing {
namespace {

template <typename Parameter>
auto argumentFor(const CompositeArguments& arguments, size_t* used) {
  using T = std::remove_cvref_t<Parameter>;
  if constexpr (std::is_same_v<Parameter, Tensor&>) {
    return Tensor();  // a result
  } else if constexpr (std::is_same_v<T, Tensor>) {
    return arguments.operands[(*used)++ % arguments.operands.size()];
  } else if constexpr (std::is_same_v<T, Shape>) {
    return arguments.shape;
  } else if constexpr (std::is_same_v<T, dtype>) {
    return arguments.type;
  } else if constexpr (std::is_same_v<T, std::vector<int>>) {
    return std::vector<int>{1};
  } else if constexpr (std::is_enum_v<T>) {
    return T{};
  } else {
    return static_cast<T>(2);
  }
}

template <typename Parameter, typename T>
void addResult(const T& argument, std::vector<Tensor>* results) {
  if constexpr (std::is_same_v<Parameter, Tensor&>) results->push_back(argument);
}

template <typename Result, typename... Parameters>
std::vector<Tensor> call(Result (*function)(Parameters...), const CompositeArguments& arguments) {
  size_t used = 0;
  // Braces fix the order of what is in them.
  std::tuple<std::remove_cvref_t<Parameters>...> given{
      argumentFor<Parameters>(arguments, &used)...};
  std::vector<Tensor> results;
  std::apply(
      [&](auto&... argument) {
        if constexpr (std::is_void_v<Result>) {
          function(argument...);
        } else {
          results.push_back(function(argument...));
        }
        (addResult<Parameters>(argument, &results), ...);
      },
      given);
  return results;
}

using Call = std::vector<Tensor> (*)(const CompositeArguments& arguments);
constexpr Call kCalls[] = {
#define FL_CALL_Composite(Result, name, parameters)                       \
  [](const CompositeArguments& arguments) {                               \
    return call(static_cast<Result(*) parameters>(&fl::name), arguments); \
  },
#define FL_CALL_Primitive(Result, name, parameters)
#define FL_CALL_Library(Result, name, parameters)
#define FL_FUNCTION(Kind, Result, name, parameters, arguments) \
  FL_CALL_##Kind(Result, name, parameters)
#include "fl/tensor/Functions.def"
};

}  // namespace

std::vector<Tensor> callComposite(int composite, const CompositeArguments& arguments) {
  return kCalls[composite](arguments);
}

}  // namespace fl::testing
