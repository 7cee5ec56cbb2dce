// Runs library functions on values of any dtype, checked for what all of them must hold: the same
// bits on any number of threads, and nothing written outside the result and the scratch memory.
#pragma once

#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <cstring>
#include <random>
#include <vector>

#include "fl/ir/ChannelOrder.h"
#include "fl/ir/Inference.h"
#include "fl/library/Library.h"

namespace fl::library {

using ir::Op;

inline constexpr int kGuard = 64;
inline constexpr double kTolerance = 2e-6;  // of the sum of the magnitudes of all terms
inline constexpr dtype kTypes[] = {dtype::f32, dtype::f16, dtype::bf16};

// A float array between guards, 64-byte aligned.
class Guarded {
 public:
  Guarded(size_t bytes, unsigned char fill) : bytes_(bytes) {
    memory_.assign(bytes + 4 * kGuard, kMark);
    const auto address = reinterpret_cast<uintptr_t>(memory_.data());
    offset_ = kGuard + (64 - (address + kGuard) % 64) % 64;
    std::memset(data(), fill, bytes);
  }
  void* data() { return memory_.data() + offset_; }
  bool guardsIntact() const {
    for (size_t i = 0; i < memory_.size(); ++i) {
      if ((i < offset_ || i >= offset_ + bytes_) && memory_[i] != kMark) {
        return false;
      }
    }
    return true;
  }

 private:
  static constexpr unsigned char kMark = 0xA5;
  size_t bytes_, offset_;
  std::vector<unsigned char> memory_;
};

using Floats = std::vector<float>;

inline ir::ValueType f32(Shape shape) { return {dtype::f32, std::move(shape)}; }

// The call with operands and result of another dtype.
inline LibraryCall ofType(LibraryCall call, dtype type) {
  for (ir::ValueType& operand : call.operands) {
    operand.type = type;
  }
  call.result.type = type;
  return call;
}

// Values as they lie in memory, and back.
inline std::vector<unsigned char> stored(const Floats& values, dtype type) {
  std::vector<unsigned char> bytes(values.size() * getTypeSize(type));
  dispatchType(type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    for (size_t i = 0; i < values.size(); ++i) {
      const T value(values[i]);
      std::memcpy(bytes.data() + i * sizeof(T), &value, sizeof(T));
    }
  });
  return bytes;
}
inline Floats loaded(const void* memory, size_t count, dtype type) {
  Floats values(count);
  dispatchType(type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    for (size_t i = 0; i < count; ++i) {
      T value;
      std::memcpy(&value, static_cast<const unsigned char*>(memory) + i * sizeof(T), sizeof(T));
      values[i] = static_cast<float>(value);
    }
  });
  return values;
}

// Runs a function; if it makes its result in parts, copies each when it is done. The copies must be
// the whole result, of parts that the function allows.
inline void runAndFollow(const LibraryFunction& function, const LibraryCall& call,
                         void* const* operands, Guarded& result, void* scratch,
                         host::ThreadPool& pool) {
  const auto* parted = dynamic_cast<const PartedFunction*>(&function);
  const int64_t unit = parted ? parted->partElements() : 0;
  if (unit == 0) {
    return function.run(operands, result.data(), scratch, pool);
  }
  const int64_t size = static_cast<int64_t>(getTypeSize(call.result.type));
  const int64_t elements = call.result.shape.elements();
  std::vector<char> copy(elements * size);
  std::atomic<int64_t> copied = 0;
  const auto* from = static_cast<const char*>(result.data());
  parted->runInParts(operands, result.data(), scratch, pool, [&](int64_t begin, int64_t end) {
    EXPECT_EQ(begin % unit, 0);
    EXPECT_EQ(end % unit, 0);
    EXPECT_TRUE(0 <= begin && begin < end && end <= elements) << begin << " " << end;
    std::copy(from + begin * size, from + end * size, copy.begin() + begin * size);
    copied += end - begin;
  });
  EXPECT_EQ(copied, elements);
  EXPECT_EQ(std::memcmp(copy.data(), result.data(), copy.size()), 0);
}

// An operand that is packed before gives the bits that it gives as it lies.
inline void expectSamePacked(const LibraryFunction& function, std::vector<void*> operands,
                             const void* want, size_t bytes, host::ThreadPool& pool) {
  const Packing* packing = function.packing();
  if (!packing) {
    return;
  }
  Guarded packed(packing->bytes, 0xFF), scratch(function.scratchBytes(), 0xFF);
  function.pack(operands[packing->operand], packed.data(), scratch.data());
  EXPECT_TRUE(packed.guardsIntact());
  EXPECT_TRUE(scratch.guardsIntact());
  operands[packing->operand] = packed.data();
  Guarded result(bytes, 0xFF), again(packing->function->scratchBytes(), 0xFF);
  packing->function->run(operands.data(), result.data(), again.data(), pool);
  EXPECT_TRUE(again.guardsIntact());
  EXPECT_EQ(std::memcmp(result.data(), want, bytes), 0);
}

// Runs with 1, 2 and 3 threads, checks guards and equality, and returns the result. Result and
// scratch start as NaN: a value not written or read too early shows.
inline Floats runFunction(const LibraryFunction& function, const LibraryCall& call,
                          const std::vector<Floats>& operands) {
  static host::ThreadPool* pools[] = {new host::ThreadPool(1), new host::ThreadPool(2),
                                      new host::ThreadPool(3)};
  const dtype type = call.result.type;
  const size_t bytes = call.result.shape.elements() * getTypeSize(type);
  std::vector<unsigned char> first;
  for (host::ThreadPool* pool : pools) {
    std::vector<Guarded> copies;
    std::vector<void*> pointers;
    for (const Floats& operand : operands) {
      const std::vector<unsigned char> values = stored(operand, type);
      copies.emplace_back(values.size(), 0xFF);
      std::memcpy(copies.back().data(), values.data(), values.size());
    }
    for (Guarded& copy : copies) {
      pointers.push_back(copy.data());
    }
    Guarded result(bytes, 0xFF), scratch(function.scratchBytes(), 0xFF);
    runAndFollow(function, call, pointers.data(), result, scratch.data(), *pool);
    EXPECT_TRUE(result.guardsIntact());
    EXPECT_TRUE(scratch.guardsIntact());
    for (size_t i = 0; i < operands.size(); ++i) {
      const std::vector<unsigned char> values = stored(operands[i], type);
      EXPECT_EQ(std::memcmp(copies[i].data(), values.data(), values.size()), 0)
          << "operand " << i << " was written";
    }
    expectSamePacked(function, pointers, result.data(), bytes, *pool);
    const auto* computed = static_cast<const unsigned char*>(result.data());
    if (first.empty()) {
      first.assign(computed, computed + bytes);
    }
    EXPECT_EQ(std::memcmp(first.data(), computed, bytes), 0) << pool->threads() << " threads";
  }
  return loaded(first.data(), call.result.shape.elements(), type);
}

inline Floats run(const LibraryCall& call, const std::vector<Floats>& operands) {
  EXPECT_TRUE(librarySupports(call));
  return runFunction(*prepareLibrary(call), call, operands);
}

// Between -1 and 1, of values of the dtype.
inline Floats randomFloats(int64_t count, unsigned seed, dtype type = dtype::f32) {
  std::mt19937 generator(seed);
  std::uniform_real_distribution<float> uniform(-1, 1);
  Floats values(count);
  for (float& value : values) {
    value = uniform(generator);
  }
  const std::vector<unsigned char> memory = stored(values, type);
  return loaded(memory.data(), values.size(), type);
}

// Sums of products in double, with the sum of their magnitudes.
struct Reference {
  explicit Reference(int64_t count) : sum(count), magnitude(count) {}
  void add(int64_t i, double x, double y) {
    sum[i] += x * y;
    magnitude[i] += std::fabs(x * y);
  }
  std::vector<double> sum, magnitude;
};

// Half a unit in the last place of 1.
inline double roundingOf(dtype type) {
  return type == dtype::f32 ? 0 : type == dtype::f16 ? 0x1p-11 : 0x1p-8;
}

// About half the distance between the smallest values.
inline double smallestOf(dtype type) { return type == dtype::f16 ? 0x1p-25 : 1e-30; }

// Of a dtype whose values are rounded once, after the sum.
inline void expectNear(const Floats& got, const Reference& want, dtype type = dtype::f32) {
  ASSERT_EQ(got.size(), want.sum.size());
  int wrong = 0;
  for (size_t i = 0; i < got.size() && wrong < 3; ++i) {
    // Not "greater": a NaN must fail.
    const double rounding = 1.001 * roundingOf(type) * std::fabs(want.sum[i]);
    const double bound = kTolerance * want.magnitude[i] + rounding + smallestOf(type);
    if (!(std::fabs(got[i] - want.sum[i]) <= bound)) {
      ADD_FAILURE() << "element " << i << " is " << got[i] << ", not " << want.sum[i];
      ++wrong;
    }
  }
}

// A call and its values with images (C,W,H,N) for (W,H,C,N).
inline LibraryCall channelsLast(LibraryCall call) {
  std::vector<Dim> attrs = call.attrs.values();
  attrs.back() = 1;
  call.attrs = ir::Attrs(attrs);
  for (size_t i = 0; i < call.operands.size(); ++i) {
    if (ir::isImage(call.op, i)) {
      call.operands[i].shape = ir::inFront(call.operands[i].shape, 2);
    }
  }
  if (ir::resultIsImage(call.op)) {
    call.result.shape = ir::inFront(call.result.shape, 2);
  }
  return call;
}

// Between the two orders of an image of (W,H,C,N).
inline Floats reordered(const Floats& values, const Shape& shape, bool toLast) {
  Floats result(values.size());
  const int64_t plane = shape[0] * shape[1], channels = shape[2];
  for (int64_t i = 0; i < static_cast<int64_t>(values.size()); ++i) {
    const int64_t c = i / plane % channels, n = i / plane / channels;
    const int64_t last = c + channels * (i % plane + plane * n);
    (toLast ? result[last] : result[i]) = values[toLast ? i : last];
  }
  return result;
}

// The plain result of a plain call, computed by `function`, that of channelsLast(call).
inline Floats runLast(const LibraryFunction& function, const LibraryCall& call,
                      std::vector<Floats> operands) {
  for (size_t i = 0; i < operands.size(); ++i) {
    if (ir::isImage(call.op, i)) {
      operands[i] = reordered(operands[i], call.operands[i].shape, true);
    }
  }
  const Floats result = runFunction(function, channelsLast(call), operands);
  return ir::resultIsImage(call.op) ? reordered(result, call.result.shape, false) : result;
}

inline Floats runLast(const LibraryCall& call, const std::vector<Floats>& operands) {
  EXPECT_TRUE(librarySupports(channelsLast(call)));
  return runLast(*prepareLibrary(channelsLast(call)), call, operands);
}

struct PoolCase {
  int64_t w, h, c, n, kw, kh;
  int64_t sx = 1, sy = 1, px = 0, py = 0;

  int64_t outW() const { return (w + 2 * px - kw) / sx + 1; }
  int64_t outH() const { return (h + 2 * py - kh) / sy + 1; }
  ir::ValueType input() const { return f32({w, h, c, n}); }
  ir::ValueType output() const { return f32({outW(), outH(), c, n}); }
  ir::Attrs attrs(int mode) const { return {kw, kh, sx, sy, px, py, mode, 0}; }
  LibraryCall forward(int mode) const { return {Op::Pool2d, attrs(mode), {input()}, output()}; }
  LibraryCall backward(int mode) const {
    return {Op::Pool2dBackward, attrs(mode), {output(), input()}, input()};
  }
};

inline void PrintTo(const PoolCase& c, std::ostream* os) {
  *os << c.input().toString() << " window " << c.kw << "," << c.kh << " stride " << c.sx << ","
      << c.sy << " pad " << c.px << "," << c.py;
}

enum Mode { kMax = 0, kIncludePadding = 1, kExcludePadding = 2 };

}  // namespace fl::library
