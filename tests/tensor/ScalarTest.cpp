// Every operator and its function of a tensor and a number, for all dtypes and types of numbers and
// with the number on either side: dtype and elements against a computation on the host, in the
// dtype in which the two meet.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <map>
#include <stdexcept>

#include "fl/tensor/tensor.h"

namespace fl {
namespace {

using Wide = __int128;

// The dtype of a number on the host: its own, and what an array of another dtype meets.
struct Meeting {
  dtype own, other;
};
const std::map<std::string, Meeting>& meetings() {
  using enum dtype;
  static const auto& all = *new std::map<std::string, Meeting>{{"bool", {b8, b8}},
                                                               {"int", {s32, s32}},
                                                               {"unsigned", {u32, u32}},
                                                               {"char", {b8, b8}},
                                                               {"unsigned char", {u8, u32}},
                                                               {"long", {s64, s32}},
                                                               {"unsigned long", {u64, u32}},
                                                               {"long long", {s64, s64}},
                                                               {"unsigned long long", {u64, u64}},
                                                               {"double", {f64, f32}},
                                                               {"float", {f32, f32}},
                                                               {"short", {s16, s16}},
                                                               {"unsigned short", {u16, u16}}};
  return all;
}

// From the dtype that every other becomes to the one that becomes every other.
constexpr dtype kByRank[] = {dtype::f64, dtype::f32, dtype::bf16, dtype::f16,
                             dtype::u64, dtype::s64, dtype::u32,  dtype::s32,
                             dtype::u16, dtype::s16, dtype::u8,   dtype::b8};

dtype commonType(dtype array, const std::string& number) {
  const Meeting& meeting = meetings().at(number);
  if (isFloating(meeting.own)) return isFloating(array) ? array : dtype::f32;
  if (array == meeting.own) return array;
  for (const dtype type : kByRank) {
    if (type == array || type == meeting.other) return type;
  }
  throw std::logic_error("no such dtype");
}

// ---- On the host ----

// What an integer of `type` keeps of a value.
Wide wrapped(Wide value, dtype type) {
  const int bits = 8 * static_cast<int>(getTypeSize(type));
  const Wide low = value & ((Wide{1} << bits) - 1);
  const bool isSignedType = type == dtype::b8 || isSigned(type);
  return isSignedType && low >> (bits - 1) ? low - (Wide{1} << bits) : low;
}

template <typename T>
T ofBoth(const std::string& op, T a, T b) {
  if (op == "add") return a + b;
  if (op == "sub") return a - b;
  if (op == "mul") return a * b;
  if (op == "div") return a / b;
  if (op == "eq") return a == b;
  if (op == "neq") return a != b;
  if (op == "lessThan") return a < b;
  if (op == "lessThanEqual") return a <= b;
  if (op == "greaterThan") return a > b;
  if (op == "greaterThanEqual") return a >= b;
  if (op == "logicalOr") return a != 0 || b != 0;
  if (op == "logicalAnd") return a != 0 && b != 0;
  throw std::logic_error(op);
}

double ofFloats(const std::string& op, double a, double b) {
  return op == "mod" ? std::fmod(a, b) : ofBoth(op, a, b);
}

Wide ofIntegers(const std::string& op, Wide a, Wide b, dtype type) {
  if (op == "mod") return a % b;
  if (op == "bitwiseAnd") return a & b;
  if (op == "bitwiseOr") return a | b;
  if (op == "bitwiseXor") return a ^ b;
  if (op != "lShift" && op != "rShift") return ofBoth(op, a, b);
  const bool isAll = b < 0 || b >= static_cast<Wide>(8 * getTypeSize(type));
  if (op == "lShift") return isAll ? 0 : a << static_cast<int>(b);
  return isAll ? (a < 0 ? -1 : 0) : a >> static_cast<int>(b);
}

bool isOfBits(const std::string& op) { return op.starts_with("bitwise") || op.ends_with("Shift"); }

bool isOfTruth(const std::string& op) {
  return op.starts_with("logical") || op.starts_with("less") || op.starts_with("greater") ||
         op.ends_with("eq");
}

// The element's bits.
uint64_t expected(const std::string& op, double a, double b, dtype type) {
  const dtype result = isOfTruth(op) ? dtype::b8 : type;
  if (isFloating(type)) {
    const double value = ofFloats(op, a, b);
    return isFloating(result) ? Number::fromDouble(value, result).bits() : value != 0;
  }
  const auto kept = [&](double x) { return wrapped(static_cast<Wide>(x), type); };
  const Wide low = (Wide{1} << (8 * getTypeSize(result))) - 1;
  return static_cast<uint64_t>(ofIntegers(op, kept(a), kept(b), type) & low);
}

// ---- By the library ----

template <typename N>
struct Form {
  const char* op;
  Tensor (*apply)(const Tensor&, N);
  bool reversed;
};

template <typename N>
const std::vector<Form<N>>& forms() {
#define FL_FORMS(f, op)                                             \
  {#f, [](const Tensor& t, N n) { return fl::f(t, n); }, false},    \
      {#f, [](const Tensor& t, N n) { return fl::f(n, t); }, true}, \
      {#f, [](const Tensor& t, N n) { return t op n; }, false},     \
      {#f, [](const Tensor& t, N n) { return n op t; }, true},
  static const auto& all = *new std::vector<Form<N>>{FL_FOR_EACH_BINARY_OPERATOR(FL_FORMS)};
#undef FL_FORMS
  return all;
}

uint64_t elementAt(const std::string& bytes, size_t place, size_t size) {
  uint64_t bits = 0;
  std::memcpy(&bits, &bytes[place * size], size);
  return bits;
}

// Powers of two, of which floats of 16 bits hold every result too.
const std::vector<char> kElements = {1, 2, 4, 64};

template <typename N>
void check(const std::string& name, N number, dtype array) {
  const Tensor chars = Tensor::fromVector(kElements);
  const Tensor x = array == dtype::b8 ? chars : chars.astype(dtype::s32).astype(array);
  const dtype type = commonType(array, name);
  for (const Form<N>& form : forms<N>()) {
    const std::string what = std::string(form.op) + " of " + dtypeToString(array) + " and " + name +
                             " " + std::to_string(number) + (form.reversed ? ", reversed" : "");
    if (isFloating(type) && isOfBits(form.op)) {
      EXPECT_THROW(form.apply(x, number), std::invalid_argument) << what;
      continue;
    }
    const Tensor result = form.apply(x, number);
    ASSERT_EQ(result.type(), isOfTruth(form.op) ? dtype::b8 : type) << what;
    std::string bytes(result.bytes(), '\0');
    result.host(static_cast<void*>(bytes.data()));
    for (size_t i = 0; i < kElements.size(); ++i) {
      const double a = kElements[i], b = static_cast<double>(number);
      const uint64_t want =
          form.reversed ? expected(form.op, b, a, type) : expected(form.op, a, b, type);
      EXPECT_EQ(elementAt(bytes, i, getTypeSize(result.type())), want) << what << ", element " << i;
    }
  }
}

template <typename N>
void checkAll(const std::string& name) {
  for (const dtype array : kByRank) {
    check<N>(name, N(2), array);
    if constexpr (std::is_signed_v<N>) check<N>(name, N(-2), array);
    if constexpr (std::is_floating_point_v<N>) check<N>(name, N(0.5), array);
  }
}

using Check = void (*)(const std::string&);

const std::map<std::string, Check>& checks() {
#define FL_CHECK_OF(N) {#N, &checkAll<N>},
  static const auto& all = *new std::map<std::string, Check>{FL_FOR_EACH_SCALAR_TYPE(FL_CHECK_OF)};
#undef FL_CHECK_OF
  return all;
}

TEST(Scalars, OnEitherSideOfEveryOperator) {
  ASSERT_EQ(checks().size(), meetings().size());
  for (const auto& [name, check] : checks()) {
    check(name);
  }
}

}  // namespace
}  // namespace fl
