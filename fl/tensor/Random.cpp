#include "fl/tensor/Random.h"

#include <mutex>

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

// One lock a number of the stream: setSeed() on another thread may come between two.
Tensor streamNumber(uint64_t (*take)(Stream&)) {
  return hostNumber([take] {
    const std::lock_guard lock(stream().mutex);
    return Number::of(take(stream()), dtype::u64);
  });
}

// Uniform numbers, or normal ones.
Tensor draw(const Shape& shape, dtype type, bool normal = false) {
  const auto next = [](Stream& stream) { return stream.offset++; };
  const Tensor seed = streamNumber([](Stream& stream) { return stream.seed; });
  const Tensor first = streamNumber(next);
  const ir::Attrs attrs({static_cast<Dim>(type)}, shape.get());
  return normal ? detail::applyOp(ir::Op::Random, {seed, first, streamNumber(next)}, attrs)
                : detail::applyOp(ir::Op::Random, {seed, first}, attrs);
}

// Every value of an integer type is as likely; 64-bit ones take two draws.
Tensor integers(const Shape& shape, dtype type) {
  bytesOf(type, shape);  // throws if they cannot be counted
  const Tensor word = draw(shape, dtype::u32);
  if (type == dtype::b8) return detail::castTo(word & 1, type);
  if (getTypeSize(type) < 8) return detail::castTo(word, type);
  const Tensor high = detail::castTo(word, dtype::u64) << 32;
  return detail::castTo(high | detail::castTo(draw(shape, dtype::u32), dtype::u64), type);
}

}  // namespace

void setSeed(const int seed) {
  FL_API_ENTRY();
  FL_USER_CHECK(!detail::activeCapture,
                "setSeed: replays of a function that fl::compile records "
                "would not repeat it; seed before the call");
  std::lock_guard lock(stream().mutex);
  stream().seed = static_cast<uint64_t>(seed);
  stream().offset = 0;
}

Tensor TensorBackend::rand(const Shape& shape, dtype type) {
  // 16-bit floats are drawn as f32 and rounded.
  return isFloating(type) ? detail::castTo(draw(shape, computeType(type)), type)
                          : integers(shape, type);
}

Tensor TensorBackend::randn(const Shape& shape, dtype type) {
  FL_USER_CHECK(isFloating(type), calledAs("randn"), ": ", type, " is no floating dtype");
  return detail::castTo(draw(shape, computeType(type), /*normal=*/true), type);
}

}  // namespace fl
