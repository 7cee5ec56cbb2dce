// Element types: the dtype enum, its C++ types, promotion, and run-time numbers.
// Relies on nothing; Shape.h is the other half of a value's type.
#pragma once

#include <cstdint>
#include <ostream>
#include <string>
#include <type_traits>

namespace fl {

// X(name, value, the C++ type that stores it, rank): of two dtypes, that of the larger rank holds
// both, but for f16 with bf16. Values are stable: they are written to disk by serialization.
#define FL_FOR_EACH_DTYPE(X) \
  X(f16, 0, half, 10)        \
  X(f32, 1, float, 12)       \
  X(f64, 2, double, 13)      \
  X(b8, 3, char, 1)          \
  X(s16, 4, int16_t, 3)      \
  X(s32, 5, int32_t, 5)      \
  X(s64, 6, int64_t, 7)      \
  X(u8, 7, uint8_t, 2)       \
  X(u16, 8, uint16_t, 4)     \
  X(u32, 9, uint32_t, 6)     \
  X(u64, 10, uint64_t, 8)    \
  X(bf16, 11, bfloat16, 11)

#define FL_DTYPE(name, value, T, rank) name = value,
enum class dtype { FL_FOR_EACH_DTYPE(FL_DTYPE) };
#undef FL_DTYPE
inline constexpr int kDtypeCount = 12;

using Dim = long long;

// IEEE binary16, as the compiler provides it.
using half = _Float16;

// The upper half of an IEEE binary32; conversion rounds to nearest even and keeps NaN.
struct bfloat16 {
  uint16_t bits = 0;
  bfloat16() = default;
  explicit bfloat16(float value);
  explicit operator float() const;
};

// Bytes of one element.
size_t getTypeSize(dtype type);
const std::string& dtypeToString(dtype type);
// Throws std::invalid_argument for a name that is no dtype.
dtype stringToDtype(const std::string& name);
std::ostream& operator<<(std::ostream& os, const dtype& type);

bool isFloating(dtype type);
bool isSigned(dtype type);
// f64 > f32 > f16 (with bf16: f32) > u64 > s64 > u32 > s32 > u16 > s16 > u8 > b8.
dtype promote(dtype lhs, dtype rhs);
// The dtype in which an operator on `type` is computed: f32 for 16-bit floats, else `type`.
dtype computeType(dtype type);

// fl_type: how a C++ type is stored; ctype: what `full` makes of a C++ number by default.
template <typename T>
struct dtype_traits;

#define FL_DTYPE_TRAITS(T, STORED, DEFAULT, NAME)   \
  template <>                                       \
  struct dtype_traits<T> {                          \
    static constexpr dtype fl_type = dtype::STORED; \
    static constexpr dtype ctype = dtype::DEFAULT;  \
    using base_type = T;                            \
    static const char* getName() { return NAME; }   \
  };
FL_DTYPE_TRAITS(float, f32, f32, "float")
FL_DTYPE_TRAITS(double, f64, f32, "double")
FL_DTYPE_TRAITS(int, s32, s32, "int")
FL_DTYPE_TRAITS(unsigned, u32, u32, "unsigned int")
FL_DTYPE_TRAITS(char, b8, s32, "char")
FL_DTYPE_TRAITS(unsigned char, u8, u32, "unsigned char")
FL_DTYPE_TRAITS(long, s64, s32, "long int")
FL_DTYPE_TRAITS(unsigned long, u64, u32, "unsigned long")
FL_DTYPE_TRAITS(long long, s64, s64, "long long")
FL_DTYPE_TRAITS(unsigned long long, u64, u64, "unsigned long long")
FL_DTYPE_TRAITS(bool, u8, u8, "bool")
FL_DTYPE_TRAITS(short, s16, s16, "short")
FL_DTYPE_TRAITS(unsigned short, u16, u16, "unsigned short")
#undef FL_DTYPE_TRAITS

// X(T, more...) for the 13 scalar types of the public API; all but bool are read on the host.
#define FL_FOR_EACH_SCALAR_TYPE(X, ...) \
  X(bool __VA_OPT__(, ) __VA_ARGS__)    \
  FL_FOR_EACH_HOST_TYPE(X __VA_OPT__(, ) __VA_ARGS__)
#define FL_FOR_EACH_HOST_TYPE(X, ...)              \
  X(int __VA_OPT__(, ) __VA_ARGS__)                \
  X(unsigned __VA_OPT__(, ) __VA_ARGS__)           \
  X(char __VA_OPT__(, ) __VA_ARGS__)               \
  X(unsigned char __VA_OPT__(, ) __VA_ARGS__)      \
  X(long __VA_OPT__(, ) __VA_ARGS__)               \
  X(unsigned long __VA_OPT__(, ) __VA_ARGS__)      \
  X(long long __VA_OPT__(, ) __VA_ARGS__)          \
  X(unsigned long long __VA_OPT__(, ) __VA_ARGS__) \
  X(double __VA_OPT__(, ) __VA_ARGS__)             \
  X(float __VA_OPT__(, ) __VA_ARGS__)              \
  X(short __VA_OPT__(, ) __VA_ARGS__)              \
  X(unsigned short __VA_OPT__(, ) __VA_ARGS__)

template <typename T>
struct TypeTag {
  using type = T;
};

// Calls f(TypeTag<T>{}) with the C++ type that stores `type`.
template <typename F>
decltype(auto) dispatchType(dtype type, F&& f) {
  switch (type) {
#define FL_DTYPE(name, value, T, rank) \
  case dtype::name:                    \
    return f(TypeTag<T>{});
    FL_FOR_EACH_DTYPE(FL_DTYPE)
#undef FL_DTYPE
  }
  __builtin_unreachable();
}

// A number known on the host: a run-time argument of operators, never part of a plan's key.
class Number {
 public:
  Number() = default;
  Number(dtype type, uint64_t bits) : type_(type), bits_(bits) {}
  // Exact for every C++ arithmetic type, so a char keeps its value in b8; `type` says how it is
  // stored.
  template <typename T>
  static Number of(T value, dtype type = dtype_traits<T>::fl_type) {
    static_assert(std::is_arithmetic_v<T>);
    if constexpr (std::is_same_v<T, char>) {
      return type == dtype::b8 ? Number(type, static_cast<unsigned char>(value))
                               : fromSigned(value, type);
    } else if constexpr (std::is_floating_point_v<T>) {
      return fromDouble(value, type);
    } else if constexpr (std::is_signed_v<T>) {
      return fromSigned(value, type);
    } else {
      return fromUnsigned(value, type);
    }
  }
  static Number fromDouble(double value, dtype type);
  static Number fromSigned(int64_t value, dtype type);
  static Number fromUnsigned(uint64_t value, dtype type);

  dtype type() const { return type_; }
  // The stored element in the low bytes, the rest zero.
  uint64_t bits() const { return bits_; }
  double toDouble() const;
  int64_t toInt() const;
  // The rules of Cast: float to integer truncates and saturates, anything to b8 is `!= 0`.
  Number cast(dtype type) const;

 private:
  dtype type_ = dtype::f32;
  uint64_t bits_ = 0;
};

}  // namespace fl
