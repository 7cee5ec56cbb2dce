// Assertions at compile time that functions, methods and constructors have exactly the types that
// a program written for Flashlight relies on. Nothing runs.
#pragma once

#include <concepts>
#include <cstddef>
#include <tuple>
#include <type_traits>
#include <utility>

namespace fl::test {

// The address of the function of exactly this type. A static method is a function.
#define FL_SIGNATURE(name, ...) \
  static_assert(                \
      std::is_function_v<std::remove_pointer_t<decltype(static_cast<__VA_ARGS__>(&name))>>)

// The address of the method of exactly this type.
#define FL_METHOD(name, ...) \
  static_assert(std::is_member_function_pointer_v<decltype(static_cast<__VA_ARGS__>(&name))>)

// The call compiles, and makes what `...` says.
#define FL_CALL(call, ...) static_assert(std::is_same_v<decltype(call), __VA_ARGS__>)

// An argument that fits a parameter of type T, or const T&, and no other: nothing is converted.
template <typename T>
struct Is {
  template <std::same_as<T> U>
  operator U() const;
};

template <typename Class, typename... Ts, size_t... N>
constexpr bool isMadeOf(std::index_sequence<N...>) {
  return std::is_constructible_v<Class, Is<std::tuple_element_t<N, std::tuple<Ts...>>>...>;
}

// True if Class has a constructor with parameters of these types, of which those behind the first
// `required` have defaults.
template <typename Class, size_t required, typename... Ts>
constexpr bool kTakes = []<size_t... N>(std::index_sequence<N...>) {
  return (isMadeOf<Class, Ts...>(std::make_index_sequence<required + N>()) && ...);
}(std::make_index_sequence<sizeof...(Ts) - required + 1>());

#define FL_TAKES(...) static_assert(::fl::test::kTakes<__VA_ARGS__>)

// The checks see a difference.
namespace exact {
struct Sample {
  Sample(int, const double&, bool = true);
};
static_assert(kTakes<Sample, 2, int, double, bool>);
static_assert(!kTakes<Sample, 1, int, double, bool>);
static_assert(!kTakes<Sample, 2, double, int, bool>);
static_assert(!kTakes<Sample, 2, int, float, bool>);
static_assert(!kTakes<Sample, 2, int, double, int>);
}  // namespace exact

}  // namespace fl::test
