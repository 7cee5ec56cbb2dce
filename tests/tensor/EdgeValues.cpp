#include "tests/tensor/EdgeValues.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <sstream>

#include "fl/base/Flags.h"
#include "fl/runtime/Counters.h"

namespace fl::testing {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// An IEEE format: bits of the significand, exponents of the smallest and largest normal numbers.
struct Format {
  int digits, minExponent, maxExponent;

  double smallest() const { return std::ldexp(1, minExponent - digits + 1); }
  double smallestNormal() const { return std::ldexp(1, minExponent); }
  double largest() const { return std::ldexp(2 - std::ldexp(1, 1 - digits), maxExponent); }
  // The distance of neighbours at x, which is finite and not zero.
  double unit(double x) const {
    return std::ldexp(1, std::max(std::ilogb(x), minExponent) - digits + 1);
  }
};

Format formatOf(dtype type) {
  switch (type) {
    case dtype::f16:
      return {11, -14, 15};
    case dtype::bf16:
      return {8, -126, 127};
    case dtype::f32:
      return {24, -126, 127};
    default:
      return {53, -1022, 1023};
  }
}

double roundTo(const Format& format, double x) {
  if (!std::isfinite(x) || x == 0) {
    return x;
  }
  const double unit = format.unit(x);
  const double rounded = std::nearbyint(x / unit) * unit;
  return std::fabs(rounded) > format.largest() ? std::copysign(kInfinity, x) : rounded;
}

bool isNarrow(dtype type) { return type == dtype::f16 || type == dtype::bf16; }

void appendUnlessThere(std::vector<Scalar>& values, const Scalar& value) {
  const auto same = [&](const Scalar& other) { return encode(other) == encode(value); };
  if (std::none_of(values.begin(), values.end(), same)) {
    values.push_back(value);
  }
}

// Integers around which conversions round or saturate.
std::vector<Whole> castLandmarks() {
  std::vector<Whole> landmarks;
  for (dtype type : integerTypes()) {
    landmarks.push_back(smallestOf(type));
    landmarks.push_back(largestOf(type));
  }
  for (int power : {8, 11, 24, 25, 53, 54}) {
    landmarks.push_back(Whole{1} << power);
  }
  landmarks.push_back((Whole{1} << 30) + (Whole{1} << 22));
  // Ties of u64 and s64 as f32, f64 and bf16.
  for (int power : {39, 40, 10, 11, 55, 56}) {
    landmarks.push_back((Whole{1} << 63) + (Whole{1} << power));
    landmarks.push_back((Whole{1} << 62) + (Whole{1} << (power - 1)));
  }
  return landmarks;
}

}  // namespace

Scalar realScalar(double value, dtype type) {
  if (type == dtype::f64) {
    return {type, value};
  }
  const double single = static_cast<float>(value);
  return {type, type == dtype::f32 ? single : roundTo(formatOf(type), single)};
}

Scalar wholeScalar(Whole value, dtype type) {
  const int width = widthOf(type);
  const Whole modulus = Whole{1} << width;
  Whole wrapped = value & (modulus - 1);
  if (isSigned(type) && wrapped >= modulus / 2) {
    wrapped -= modulus;
  }
  return {type, 0, wrapped};
}

uint64_t encode(const Scalar& value) {
  switch (value.type) {
    case dtype::f64:
      return std::bit_cast<uint64_t>(value.real);
    case dtype::f32:
      return std::bit_cast<uint32_t>(static_cast<float>(value.real));
    case dtype::f16:
      return std::bit_cast<uint16_t>(static_cast<_Float16>(static_cast<float>(value.real)));
    case dtype::bf16:
      return std::bit_cast<uint32_t>(static_cast<float>(value.real)) >> 16;
    default:
      return static_cast<uint64_t>(value.whole & ((Whole{1} << widthOf(value.type)) - 1));
  }
}

Scalar decode(uint64_t bits, dtype type) {
  const auto word = static_cast<uint32_t>(bits);
  switch (type) {
    case dtype::f64:
      return {type, std::bit_cast<double>(bits)};
    case dtype::f32:
      return {type, std::bit_cast<float>(word)};
    case dtype::f16:
      return {type, static_cast<float>(std::bit_cast<_Float16>(static_cast<uint16_t>(word)))};
    case dtype::bf16:
      return {type, std::bit_cast<float>(word << 16)};
    default:
      return wholeScalar(static_cast<Whole>(bits), type);
  }
}

std::string toString(const Scalar& value) {
  std::ostringstream text;
  if (isFloating(value.type)) {
    text << std::hexfloat << value.real;
  } else if (value.whole < 0) {
    text << static_cast<int64_t>(value.whole);
  } else {
    text << static_cast<uint64_t>(value.whole);
  }
  return text.str();
}

double unitOf(double x, dtype type) {
  const Format format = formatOf(type);
  return x == 0 ? format.smallest() : format.unit(x);
}

int widthOf(dtype type) { return 8 * static_cast<int>(getTypeSize(type)); }
Whole smallestOf(dtype type) { return isSigned(type) ? -(Whole{1} << (widthOf(type) - 1)) : 0; }
Whole largestOf(dtype type) { return (Whole{1} << (widthOf(type) - (isSigned(type) ? 1 : 0))) - 1; }

const std::vector<dtype>& floatTypes() {
  static const auto& types =
      *new std::vector<dtype>{dtype::f32, dtype::f64, dtype::f16, dtype::bf16};
  return types;
}
const std::vector<dtype>& integerTypes() {
  static const auto& types = *new std::vector<dtype>{
      dtype::b8, dtype::u8, dtype::s16, dtype::u16, dtype::s32, dtype::u32, dtype::s64, dtype::u64};
  return types;
}
const std::vector<dtype>& allTypes() {
  static const auto& types = *[] {
    auto* all = new std::vector<dtype>(floatTypes());
    all->insert(all->end(), integerTypes().begin(), integerTypes().end());
    return all;
  }();
  return types;
}

std::vector<Scalar> specialsOf(dtype type) {
  std::vector<Scalar> values;
  if (type == dtype::b8) {
    // Arithmetic makes more than 0 and 1.
    for (int value : {0, 1, 2, 127, -1, -128}) {
      values.push_back(wholeScalar(value, type));
    }
    return values;
  }
  if (!isFloating(type)) {
    const int width = widthOf(type);
    const Whole low = smallestOf(type), high = largestOf(type);
    for (Whole value : {Whole{0}, Whole{1}, Whole{2}, Whole{3}, Whole{7}, low, low + 1, high,
                        high - 1, high / 2, high / 3, Whole{width - 1}, Whole{width},
                        Whole{width + 1}, Whole{64}, Whole{127}, Whole{-1}, Whole{-2}, Whole{-7}}) {
      appendUnlessThere(values, wholeScalar(value, type));
    }
    return values;
  }
  const Format format = formatOf(type);
  const double normal = format.smallestNormal(), odd = std::ldexp(1, format.digits) - 1;
  for (double value :
       {0.0, 1.0, 0.5, 2.0, 3.0, 2.5, 88.0, 100.0, 709.0, 740.0, odd,
        1 - std::ldexp(1, -format.digits), format.smallest(), normal - format.smallest(), normal,
        format.largest(), kInfinity, std::numeric_limits<double>::quiet_NaN()}) {
    values.push_back(realScalar(value, type));
    values.push_back(realScalar(-value, type));
  }
  return values;
}

std::vector<Scalar> castOperandsOf(dtype type) {
  std::vector<Scalar> values = specialsOf(type);
  if (type == dtype::b8) {
    return values;
  }
  for (Whole landmark : castLandmarks()) {
    for (int offset = -3; offset <= 3; ++offset) {
      if (!isFloating(type)) {
        appendUnlessThere(values, wholeScalar(landmark + offset, type));
        continue;
      }
      // Halves around the landmark, and floats that are its near neighbours.
      const double near = static_cast<double>(landmark);
      const double unit = landmark == 0 ? 0 : formatOf(type).unit(near);
      for (double value : {near + 0.5 * offset, near + 0.5 * unit * offset, near + unit * offset}) {
        appendUnlessThere(values, realScalar(value, type));
        appendUnlessThere(values, realScalar(-value, type));
      }
    }
  }
  // Where f64 and f32 become subnormal, overflow or tie in narrower formats.
  for (dtype narrow : isFloating(type) ? floatTypes() : std::vector<dtype>()) {
    const Format format = formatOf(narrow);
    const double smallest = format.smallest(), top = format.unit(format.largest());
    for (double value : {0.5 * smallest, 0.75 * smallest, 1.5 * smallest, 2.5 * smallest,
                         format.smallestNormal() - 0.5 * smallest, format.largest() + 0.25 * top,
                         format.largest() + 0.5 * top, 1 + std::ldexp(1, -format.digits),
                         1 + std::ldexp(1, -format.digits) + std::ldexp(1, -30),
                         1 + 3 * std::ldexp(1, -format.digits)}) {
      appendUnlessThere(values, realScalar(value, type));
      appendUnlessThere(values, realScalar(-value, type));
    }
  }
  return values;
}

bool matches(const Scalar& got, const Scalar& want, bool approximated) {
  if (got.type != want.type) {
    return false;
  }
  if (!isFloating(want.type)) {
    return got.whole == want.whole;
  }
  if (std::isnan(want.real)) {
    return std::isnan(got.real);
  }
  if (std::signbit(got.real) != std::signbit(want.real)) {
    return false;
  }
  if (!approximated || want.real == 0 || std::isinf(want.real)) {
    return got.real == want.real;
  }
  const Format format = formatOf(want.type);
  const bool close = isNarrow(want.type) || std::fabs(want.real) < format.smallestNormal();
  const double units = close ? 1 : 3;
  return got.real != 0 && std::isfinite(got.real) &&
         std::fabs(got.real - want.real) <= units * format.unit(want.real);
}

Tensor makeTensor(const std::vector<uint64_t>& bits, dtype type, size_t first, size_t count) {
  const size_t size = getTypeSize(type);
  std::vector<uint8_t> bytes(count * size);
  for (size_t i = 0; i < count; ++i) {
    std::memcpy(bytes.data() + i * size, &bits[(first + i) % bits.size()], size);
  }
  return Tensor::fromBuffer({static_cast<Dim>(count)}, type, bytes.data(), Location::Host);
}

Tensor makeTensor(const Shape& shape, const std::vector<uint64_t>& bits, dtype type) {
  return reshape(makeTensor(bits, type, 0, bits.size()), shape);
}

std::vector<uint64_t> bitsOf(const Tensor& tensor) {
  const size_t size = getTypeSize(tensor.type());
  std::vector<uint8_t> bytes(tensor.bytes());
  tensor.host(static_cast<void*>(bytes.data()));
  std::vector<uint64_t> bits(tensor.elements());
  for (size_t i = 0; i < bits.size(); ++i) {
    std::memcpy(&bits[i], bytes.data() + i * size, size);
  }
  return bits;
}

Tensor timesOne(const Tensor& x) {
  const Scalar one = isFloating(x.type()) ? realScalar(1, x.type()) : wholeScalar(1, x.type());
  return x * makeTensor({encode(one)}, x.type(), 0, 1);
}

Tensor whereTrue(const Tensor& x) {
  return where(makeTensor({1}, dtype::b8, 0, 1), x, makeTensor({0}, x.type(), 0, 1));
}

void expectOneKernel(uint64_t launchesBefore) {
  if (flags().backend == "lazy" && flags().device != "ref") {
    EXPECT_EQ(runtime::counters().kernelLaunches - launchesBefore, 1u);
  }
}

}  // namespace fl::testing
