// Element types: the dtype enum, its C++ types, promotion, and run-time numbers.
// Relies on nothing; Shape.h is the other half of a value's type.
#pragma once

#include <cstdint>
#include <ostream>
#include <string>
#include <type_traits>

namespace fl {

// Values are stable: they are written to disk by serialization.
enum class dtype {
  f16 = 0,
  f32 = 1,
  f64 = 2,
  b8 = 3,
  s16 = 4,
  s32 = 5,
  s64 = 6,
  u8 = 7,
  u16 = 8,
  u32 = 9,
  u64 = 10,
  bf16 = 11,
};
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

// The 13 scalar types of the public API.
#define FL_FOR_EACH_SCALAR_TYPE(X) \
  X(bool)                          \
  X(int)                           \
  X(unsigned)                      \
  X(char)                          \
  X(unsigned char)                 \
  X(long)                          \
  X(unsigned long)                 \
  X(long long)                     \
  X(unsigned long long)            \
  X(double)                        \
  X(float)                         \
  X(short)                         \
  X(unsigned short)

template <typename T>
struct TypeTag {
  using type = T;
};

// Calls f(TypeTag<T>{}) with the C++ type that stores `type`.
template <typename F>
decltype(auto) dispatchType(dtype type, F&& f) {
  switch (type) {
    case dtype::f16:
      return f(TypeTag<half>{});
    case dtype::f32:
      return f(TypeTag<float>{});
    case dtype::f64:
      return f(TypeTag<double>{});
    case dtype::b8:
      return f(TypeTag<char>{});
    case dtype::s16:
      return f(TypeTag<int16_t>{});
    case dtype::s32:
      return f(TypeTag<int32_t>{});
    case dtype::s64:
      return f(TypeTag<int64_t>{});
    case dtype::u8:
      return f(TypeTag<uint8_t>{});
    case dtype::u16:
      return f(TypeTag<uint16_t>{});
    case dtype::u32:
      return f(TypeTag<uint32_t>{});
    case dtype::u64:
      return f(TypeTag<uint64_t>{});
    case dtype::bf16:
      return f(TypeTag<bfloat16>{});
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
