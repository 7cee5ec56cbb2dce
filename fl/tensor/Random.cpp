#include "fl/tensor/Random.h"

#include <mutex>
#include <numbers>

#include "fl/base/CallSite.h"
#include "fl/base/Error.h"
#include "fl/base/ForkSafeMutex.h"
#include "fl/tensor/Capture.h"
#include "fl/tensor/Detail.h"

namespace fl {
namespace {

struct Stream {
  ForkSafeMutex mutex;
  uint64_t seed = 0;
  uint64_t offset = 0;
};

Stream& stream() {
  static auto& instance = *new Stream();
  return instance;
}

Tensor uniform(const Shape& shape, dtype type) {
  // One lock a number: setSeed() on another thread may come between the two.
  const Tensor seed = hostNumber([] {
    const std::lock_guard lock(stream().mutex);
    return Number::of(stream().seed, dtype::u64);
  });
  const Tensor offset = hostNumber([] {
    const std::lock_guard lock(stream().mutex);
    return Number::of(stream().offset++, dtype::u64);
  });
  return detail::applyOp(ir::Op::RandomUniform, {seed, offset},
                         ir::Attrs({static_cast<Dim>(type)}, shape.get()));
}

// Every value of an integer type is as likely; 64-bit ones take two draws.
Tensor integers(const Shape& shape, dtype type) {
  const Tensor word = uniform(shape, dtype::u32);
  if (type == dtype::b8) {
    return detail::castTo(word & 1, type);
  }
  if (getTypeSize(type) < 8) {
    return detail::castTo(word, type);
  }
  const Tensor high = detail::castTo(word, dtype::u64) << 32;
  return detail::castTo(high | detail::castTo(uniform(shape, dtype::u32), dtype::u64), type);
}

}  // namespace

void setSeed(const int seed) {
  std::lock_guard lock(stream().mutex);
  stream().seed = static_cast<uint64_t>(seed);
  stream().offset = 0;
}

Tensor TensorBackend::rand(const Shape& shape, dtype type) {
  // 16-bit floats are drawn as f32 and rounded.
  return isFloating(type) ? detail::castTo(uniform(shape, computeType(type)), type)
                          : integers(shape, type);
}

// G. Box and M. Muller, "A note on the generation of random normal deviates", 1958.
Tensor TensorBackend::randn(const Shape& shape, dtype type) {
  FL_USER_CHECK(isFloating(type), calledAs("randn"), ": ", type, " is no floating dtype");
  const dtype drawn = computeType(type);
  const Tensor radius = sqrt(-2.0 * log(uniform(shape, drawn)));
  return detail::castTo(radius * cos(2 * std::numbers::pi * uniform(shape, drawn)), type);
}

}  // namespace fl
