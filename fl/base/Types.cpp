#include "fl/base/Types.h"

#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "fl/base/CallSite.h"
#include "fl/base/Error.h"

namespace fl {
namespace {

struct TypeInfo {
  const char* name;
  size_t size;
  bool floating;
  bool isSigned;
  int rank;
};

#define FL_DTYPE(name, value, T, rank) \
  {#name, sizeof(T), !std::is_integral_v<T>, !std::is_unsigned_v<T>, rank},
constexpr std::array<TypeInfo, kDtypeCount> kTypes = {{FL_FOR_EACH_DTYPE(FL_DTYPE)}};
#undef FL_DTYPE

// Of what `function` was given, at `caller`, if that may be the user's own call.
const TypeInfo& info(dtype type, const void* caller = nullptr, const char* function = nullptr) {
  const auto index = static_cast<size_t>(type);
  if (index < kTypes.size()) return kTypes[index];
  const detail::CallSiteScope site(caller, function);
  throwUser(calledAs(""), static_cast<int>(type), " is no dtype");
}

template <typename T>
Number store(T value, dtype type) {
  uint64_t bits = 0;
  std::memcpy(&bits, &value, sizeof(value));
  return Number(type, bits);
}

// The conversion rules of the Cast operator: to b8 is != 0, float to integer saturates, NaN is 0.
template <typename T, typename From>
T castValue(From value) {
  if constexpr (std::is_floating_point_v<From> && std::is_integral_v<T>) {
    constexpr auto low = static_cast<From>(std::numeric_limits<T>::min());
    constexpr auto high = static_cast<From>(std::numeric_limits<T>::max());
    return std::isnan(value) ? T(0)
           : value <= low    ? std::numeric_limits<T>::min()
           : value >= high   ? std::numeric_limits<T>::max()
                             : static_cast<T>(value);
  } else if constexpr (std::is_same_v<T, bfloat16> || std::is_same_v<T, half>) {
    return T(static_cast<float>(value));
  } else {
    return static_cast<T>(value);
  }
}

template <typename From>
Number convert(From value, dtype type) {
  info(type);  // throws for what dispatchType() takes no account of
  if (type == dtype::b8) return store<char>(value != From(0), type);
  return dispatchType(
      type, [&](auto tag) { return store(castValue<typename decltype(tag)::type>(value), type); });
}

}  // namespace

bfloat16::bfloat16(float value) {
  uint32_t word;
  std::memcpy(&word, &value, 4);
  bits = static_cast<uint16_t>(std::isnan(value) ? (word >> 16) | 0x40
                                                 : (word + 0x7fff + ((word >> 16) & 1)) >> 16);
}

bfloat16::operator float() const {
  const uint32_t word = static_cast<uint32_t>(bits) << 16;
  float value;
  std::memcpy(&value, &word, 4);
  return value;
}

size_t getTypeSize(dtype type) { return info(type, __builtin_return_address(0), __func__).size; }

const std::string& dtypeToString(dtype type) {
#define FL_DTYPE(name, value, T, rank) #name,
  static const auto& names = *new std::vector<std::string>{FL_FOR_EACH_DTYPE(FL_DTYPE)};
#undef FL_DTYPE
  info(type, __builtin_return_address(0), __func__);
  return names[static_cast<size_t>(type)];
}

dtype stringToDtype(const std::string& name) {
  for (int i = 0; i < kDtypeCount; ++i)
    if (kTypes[i].name == name) return static_cast<dtype>(i);
  FL_API_ENTRY();
  throwUser("stringToDtype: \"", name, "\" is no dtype");
}

std::ostream& operator<<(std::ostream& os, const dtype& type) { return os << info(type).name; }

bool isFloating(dtype type) { return info(type).floating; }
bool isSigned(dtype type) { return info(type).isSigned; }

dtype promote(dtype lhs, dtype rhs) {
  const bool mixed16 =
      (lhs == dtype::f16 && rhs == dtype::bf16) || (lhs == dtype::bf16 && rhs == dtype::f16);
  if (mixed16) return dtype::f32;
  return info(lhs).rank >= info(rhs).rank ? lhs : rhs;
}

dtype computeType(dtype type) {
  return type == dtype::f16 || type == dtype::bf16 ? dtype::f32 : type;
}

Number Number::fromDouble(double value, dtype type) { return convert(value, type); }
Number Number::fromSigned(int64_t value, dtype type) { return convert(value, type); }
Number Number::fromUnsigned(uint64_t value, dtype type) { return convert(value, type); }

double Number::toDouble() const {
  return dispatchType(type_, [&](auto tag) {
    typename decltype(tag)::type value;
    std::memcpy(static_cast<void*>(&value), &bits_, sizeof(value));
    if constexpr (sizeof(value) == 2 && !std::is_integral_v<decltype(value)>) {
      return static_cast<double>(static_cast<float>(value));
    } else {
      return static_cast<double>(value);
    }
  });
}

int64_t Number::toInt() const {
  if (isFloating(type_)) return castValue<int64_t>(toDouble());
  return dispatchType(type_, [&](auto tag) -> int64_t {
    using T = typename decltype(tag)::type;
    if constexpr (std::is_integral_v<T>) {
      T value;
      std::memcpy(&value, &bits_, sizeof(value));
      return static_cast<int64_t>(value);
    }
    return 0;
  });
}

Number Number::cast(dtype type) const {
  if (type == type_) return *this;
  if (isFloating(type_)) return fromDouble(toDouble(), type);
  return type_ == dtype::u64 ? fromUnsigned(bits_, type) : fromSigned(toInt(), type);
}

}  // namespace fl
