// Every library op against loops in double, over odd shapes; the same bits on any number of
// threads; nothing written outside the result and the scratch memory.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include "fl/base/Error.h"
#include "fl/runtime/cpu/ConvolutionPlan.h"
#include "fl/runtime/cpu/Library.h"

namespace fl::runtime::cpu {
namespace {

using ir::Op;

constexpr int kGuard = 64;
constexpr double kTolerance = 2e-6;  // of the sum of the magnitudes of all terms

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

ir::ValueType f32(Shape shape) { return {dtype::f32, std::move(shape)}; }

// Runs with 1, 2 and 3 threads, checks guards and equality, and returns the result. Result and
// scratch start as NaN: a value not written or read too early shows.
Floats runFunction(const LibraryFunction& function, const LibraryCall& call,
                   const std::vector<Floats>& operands) {
  static ThreadPool* pools[] = {new ThreadPool(1), new ThreadPool(2), new ThreadPool(3)};
  const size_t bytes = call.result.shape.elements() * sizeof(float);
  Floats first;
  for (ThreadPool* pool : pools) {
    std::vector<Floats> copies = operands;
    std::vector<void*> pointers;
    for (Floats& copy : copies) {
      pointers.push_back(copy.data());
    }
    Guarded result(bytes, 0xFF), scratch(function.scratchBytes(), 0xFF);
    function.run(pointers.data(), result.data(), scratch.data(), *pool);
    EXPECT_TRUE(result.guardsIntact());
    EXPECT_TRUE(scratch.guardsIntact());
    for (size_t i = 0; i < operands.size(); ++i) {
      EXPECT_EQ(std::memcmp(copies[i].data(), operands[i].data(), operands[i].size() * 4), 0)
          << "operand " << i << " was written";
    }
    Floats values(call.result.shape.elements());
    std::memcpy(values.data(), result.data(), bytes);
    if (first.empty()) {
      first = values;
    }
    EXPECT_EQ(std::memcmp(first.data(), values.data(), bytes), 0) << pool->threads() << " threads";
  }
  return first;
}

Floats run(const LibraryCall& call, const std::vector<Floats>& operands) {
  EXPECT_TRUE(librarySupports(call));
  return runFunction(*prepareLibrary(call), call, operands);
}

Floats randomFloats(int64_t count, unsigned seed) {
  std::mt19937 generator(seed);
  std::uniform_real_distribution<float> uniform(-1, 1);
  Floats values(count);
  for (float& value : values) {
    value = uniform(generator);
  }
  return values;
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

void expectNear(const Floats& got, const Reference& want) {
  ASSERT_EQ(got.size(), want.sum.size());
  int wrong = 0;
  for (size_t i = 0; i < got.size() && wrong < 3; ++i) {
    // Not "greater": a NaN must fail.
    if (!(std::fabs(got[i] - want.sum[i]) <= kTolerance * want.magnitude[i] + 1e-30)) {
      ADD_FAILURE() << "element " << i << " is " << got[i] << ", not " << want.sum[i];
      ++wrong;
    }
  }
}

// ---- matmul

struct MatmulCase {
  int64_t m, n, k, lhsBatch, rhsBatch;  // batch 0: two dimensions
};

void PrintTo(const MatmulCase& c, std::ostream* os) {
  *os << c.m << "x" << c.n << "x" << c.k << " batches " << c.lhsBatch << ", " << c.rhsBatch;
}

class MatmulTest : public testing::TestWithParam<std::tuple<MatmulCase, bool, bool>> {};

TEST_P(MatmulTest, AgreesWithLoops) {
  const auto [c, ta, tb] = GetParam();
  const auto shape = [](int64_t rows, int64_t columns, bool transposed, int64_t batch) {
    Shape made = transposed ? Shape{columns, rows} : Shape{rows, columns};
    if (batch > 0) {
      made.get().push_back(batch);
    }
    return made;
  };
  const Shape lhs = shape(c.m, c.k, ta, c.lhsBatch), rhs = shape(c.k, c.n, tb, c.rhsBatch);
  const int64_t batch = std::max(c.lhsBatch, c.rhsBatch);
  const LibraryCall call{
      Op::Matmul, {ta, tb}, {f32(lhs), f32(rhs)}, f32(shape(c.m, c.n, false, batch))};
  const Floats x = randomFloats(lhs.elements(), 1), y = randomFloats(rhs.elements(), 2);
  Reference want(call.result.shape.elements());
  for (int64_t b = 0; b < std::max<int64_t>(batch, 1); ++b) {
    const float* xb = x.data() + (c.lhsBatch > 0 ? b * c.m * c.k : 0);
    const float* yb = y.data() + (c.rhsBatch > 0 ? b * c.k * c.n : 0);
    for (int64_t j = 0; j < c.n; ++j) {
      for (int64_t k = 0; k < c.k; ++k) {
        for (int64_t i = 0; i < c.m; ++i) {
          want.add(i + c.m * (j + c.n * b), xb[ta ? k + c.k * i : i + c.m * k],
                   yb[tb ? j + c.n * k : k + c.k * j]);
        }
      }
    }
  }
  expectNear(run(call, {x, y}), want);
}

INSTANTIATE_TEST_SUITE_P(
    Shapes, MatmulTest,
    testing::Combine(testing::Values(MatmulCase{1, 1, 1, 0, 0}, MatmulCase{3, 5, 7, 0, 0},
                                     MatmulCase{1, 33, 40, 0, 0}, MatmulCase{33, 1, 40, 0, 0},
                                     MatmulCase{17, 19, 1, 0, 0}, MatmulCase{300, 130, 257, 0, 0},
                                     MatmulCase{130, 301, 200, 0, 0}, MatmulCase{900, 1, 700, 0, 0},
                                     MatmulCase{1, 900, 700, 0, 0}, MatmulCase{5, 6, 7, 4, 4},
                                     MatmulCase{5, 6, 7, 4, 0}, MatmulCase{5, 6, 7, 0, 4},
                                     MatmulCase{5, 6, 7, 1, 1}, MatmulCase{65, 33, 64, 40, 40},
                                     MatmulCase{65, 33, 64, 0, 40},
                                     MatmulCase{180, 190, 100, 3, 3}),
                     testing::Bool(), testing::Bool()));

// ---- convolution

struct ConvolutionCase {
  int64_t w, h, c, n, kw, kh, o;
  int64_t sx = 1, sy = 1, px = 0, py = 0, dx = 1, dy = 1, groups = 1;

  int64_t outW() const { return (w + 2 * px - (kw - 1) * dx - 1) / sx + 1; }
  int64_t outH() const { return (h + 2 * py - (kh - 1) * dy - 1) / sy + 1; }
  ir::ValueType input() const { return f32({w, h, c, n}); }
  ir::ValueType filter() const { return f32({kw, kh, c / groups, o}); }
  ir::ValueType output() const { return f32({outW(), outH(), o, n}); }
  ir::Attrs attrs(const std::vector<Dim>& sizes) const {
    return {{sx, sy, px, py, dx, dy, groups}, sizes};
  }
  LibraryCall forward() const { return {Op::Conv2d, attrs({}), {input(), filter()}, output()}; }
  LibraryCall biased() const {
    return {Op::Conv2d, attrs({}), {input(), filter(), f32({1, 1, o, 1})}, output()};
  }
  LibraryCall data() const {
    return {Op::Conv2dBackwardData, attrs({w, h}), {output(), filter()}, input()};
  }
  LibraryCall filterGradient() const {
    return {Op::Conv2dBackwardFilter, attrs({kw, kh}), {output(), input()}, filter()};
  }
};

void PrintTo(const ConvolutionCase& c, std::ostream* os) {
  *os << c.input().toString() << " * " << c.filter().toString() << " stride " << c.sx << "," << c.sy
      << " pad " << c.px << "," << c.py << " dilation " << c.dx << "," << c.dy << " groups "
      << c.groups;
}

// Calls f(input index, filter index, output index) for every product of the convolution.
template <class F>
void forEachProduct(const ConvolutionCase& c, F f) {
  const int64_t ow = c.outW(), oh = c.outH(), in = c.c / c.groups, out = c.o / c.groups;
  for (int64_t n = 0; n < c.n; ++n)
    for (int64_t o = 0; o < c.o; ++o)
      for (int64_t i = 0; i < in; ++i)
        for (int64_t ky = 0; ky < c.kh; ++ky)
          for (int64_t kx = 0; kx < c.kw; ++kx)
            for (int64_t oy = 0; oy < oh; ++oy)
              for (int64_t ox = 0; ox < ow; ++ox) {
                const int64_t x = ox * c.sx - c.px + kx * c.dx;
                const int64_t y = oy * c.sy - c.py + ky * c.dy;
                if (x >= 0 && x < c.w && y >= 0 && y < c.h) {
                  f(x + c.w * (y + c.h * (i + o / out * in + c.c * n)),
                    kx + c.kw * (ky + c.kh * (i + in * o)), ox + ow * (oy + oh * (o + c.o * n)));
                }
              }
}

struct ConvolutionData {
  explicit ConvolutionData(const ConvolutionCase& c)
      : input(randomFloats(c.input().shape.elements(), 3)),
        filter(randomFloats(c.filter().shape.elements(), 4)),
        output(randomFloats(c.output().shape.elements(), 5)),
        bias(randomFloats(c.o, 6)) {}
  Floats input, filter, output, bias;
};

void addBias(const ConvolutionCase& c, const Floats& bias, Reference* want) {
  const int64_t plane = c.outW() * c.outH();
  for (size_t i = 0; i < want->sum.size(); ++i) {
    want->add(i, bias[i / plane % c.o], 1);
  }
}

// Checks what is chosen, and every layout there is: another machine may choose another.
void checkLayouts(const LibraryCall& call, const std::vector<Floats>& operands,
                  const Reference& want) {
  expectNear(run(call, operands), want);
  for (const Layout layout : {Layout::Plain, Layout::Blocked, Layout::ChannelsLast}) {
    SCOPED_TRACE(static_cast<int>(layout));
    if (const auto function = makeConvolution(convolutionShape(call), layout)) {
      expectNear(runFunction(*function, call, operands), want);
    }
  }
}

class ConvolutionTest : public testing::TestWithParam<ConvolutionCase> {};

TEST_P(ConvolutionTest, ForwardAgreesWithLoops) {
  const ConvolutionCase& c = GetParam();
  const ConvolutionData d(c);
  Reference want(c.output().shape.elements());
  forEachProduct(c, [&](int64_t i, int64_t k, int64_t o) { want.add(o, d.input[i], d.filter[k]); });
  checkLayouts(c.forward(), {d.input, d.filter}, want);
  addBias(c, d.bias, &want);
  checkLayouts(c.biased(), {d.input, d.filter, d.bias}, want);
}

TEST_P(ConvolutionTest, DataGradientAgreesWithLoops) {
  const ConvolutionCase& c = GetParam();
  const ConvolutionData d(c);
  Reference want(c.input().shape.elements());
  forEachProduct(c,
                 [&](int64_t i, int64_t k, int64_t o) { want.add(i, d.output[o], d.filter[k]); });
  checkLayouts(c.data(), {d.output, d.filter}, want);
}

TEST_P(ConvolutionTest, FilterGradientAgreesWithLoops) {
  const ConvolutionCase& c = GetParam();
  const ConvolutionData d(c);
  Reference want(c.filter().shape.elements());
  forEachProduct(c, [&](int64_t i, int64_t k, int64_t o) { want.add(k, d.output[o], d.input[i]); });
  checkLayouts(c.filterGradient(), {d.output, d.input}, want);
}

INSTANTIATE_TEST_SUITE_P(
    Shapes, ConvolutionTest,
    testing::Values(
        ConvolutionCase{1, 1, 1, 1, 1, 1, 1}, ConvolutionCase{7, 5, 3, 2, 3, 2, 4},
        ConvolutionCase{9, 8, 2, 3, 3, 3, 5, 2, 3, 1, 1},
        ConvolutionCase{11, 10, 4, 1, 3, 2, 6, 1, 2, 2, 1, 2, 3, 2},
        // "Same" padding of an even kernel: one output more than input.
        ConvolutionCase{8, 9, 3, 1, 4, 4, 16, 1, 1, 2, 2}, ConvolutionCase{13, 7, 6, 3, 1, 1, 10},
        ConvolutionCase{12, 12, 16, 2, 1, 1, 32, 2, 2},
        // A stride above the kernel's size: inputs that nothing reads.
        ConvolutionCase{17, 19, 5, 2, 2, 2, 7, 3, 4},
        ConvolutionCase{10, 9, 12, 3, 3, 3, 12, 1, 1, 1, 1, 1, 1, 12},
        ConvolutionCase{10, 9, 6, 1, 3, 3, 12, 2, 1, 1, 1, 1, 1, 6},
        ConvolutionCase{6, 6, 10, 2, 3, 3, 15, 1, 1, 1, 1, 1, 1, 5},
        // More padding than the kernel reaches.
        ConvolutionCase{5, 6, 3, 2, 2, 2, 4, 1, 1, 3, 2},
        ConvolutionCase{28, 28, 1, 3, 5, 5, 32, 1, 1, 2, 2},
        ConvolutionCase{14, 14, 32, 2, 5, 5, 64, 1, 1, 2, 2},
        ConvolutionCase{4, 4, 32, 19, 5, 5, 64, 1, 1, 2, 2},
        // Large enough to be cut by images, the last block shorter.
        ConvolutionCase{16, 15, 24, 19, 3, 3, 20, 1, 1, 1, 1},
        // One large image, cut by rows: unit stride, stride, dilation, no padding, groups.
        ConvolutionCase{40, 37, 32, 1, 3, 3, 32, 1, 1, 1, 1},
        ConvolutionCase{41, 50, 16, 1, 5, 5, 32, 2, 2, 2, 2},
        ConvolutionCase{30, 45, 20, 1, 3, 3, 33, 1, 1, 2, 3, 2, 3},
        ConvolutionCase{33, 44, 32, 1, 3, 4, 32, 1, 3, 0, 0},
        ConvolutionCase{40, 44, 32, 1, 3, 3, 64, 1, 1, 1, 1, 1, 1, 2},
        // The last six rows are read by nothing.
        ConvolutionCase{700, 20, 32, 1, 7, 7, 32, 7, 7},
        ConvolutionCase{64, 70, 3, 1, 7, 7, 32, 2, 2, 3, 3}));

TEST(Convolution, BlocksCoverEveryRowOnce) {
  for (const int64_t images : {1, 3, 64}) {
    for (const int64_t height : {5, 37, 224}) {
      const ConvolutionCase c{50, height, 32, images, 3, 5, 48, 1, 2, 1, 2};
      for (const LibraryCall& call : {c.forward(), c.data(), c.filterGradient()}) {
        const ConvolutionShape shape = convolutionShape(call);
        for (const Layout layout : {Layout::Plain, Layout::Blocked}) {
          const ConvolutionSplit split = splitConvolution(shape, layout);
          const bool data = shape.direction == Direction::Data;
          std::vector<int> seen(images * (data ? shape.y.in : shape.y.out));
          for (const ConvolutionBlock& b : split.blocks) {
            for (int64_t n = b.firstImage; n < b.firstImage + b.images; ++n) {
              const int64_t begin = data ? b.inBegin : b.outBegin;
              for (int64_t y = begin; y < begin + (data ? b.inRows : b.outRows); ++y) {
                ++seen[n * (data ? shape.y.in : shape.y.out) + y];
              }
            }
          }
          EXPECT_EQ(seen, std::vector<int>(seen.size(), 1));
          EXPECT_GE(split.slots, 1);
          EXPECT_LE(split.slots, static_cast<int64_t>(split.blocks.size()));
        }
      }
    }
  }
}

// ---- pooling

struct PoolCase {
  int64_t w, h, c, n, kw, kh;
  int64_t sx = 1, sy = 1, px = 0, py = 0;

  int64_t outW() const { return (w + 2 * px - kw) / sx + 1; }
  int64_t outH() const { return (h + 2 * py - kh) / sy + 1; }
  ir::ValueType input() const { return f32({w, h, c, n}); }
  ir::ValueType output() const { return f32({outW(), outH(), c, n}); }
  ir::Attrs attrs(int mode) const { return {kw, kh, sx, sy, px, py, mode}; }
  LibraryCall forward(int mode) const { return {Op::Pool2d, attrs(mode), {input()}, output()}; }
  LibraryCall backward(int mode) const {
    return {Op::Pool2dBackward, attrs(mode), {output(), input()}, input()};
  }
};

void PrintTo(const PoolCase& c, std::ostream* os) {
  *os << c.input().toString() << " window " << c.kw << "," << c.kh << " stride " << c.sx << ","
      << c.sy << " pad " << c.px << "," << c.py;
}

enum Mode { kMax = 0, kIncludePadding = 1, kExcludePadding = 2 };

// Forward, and the gradient of the input for `gradient`.
struct PoolReference {
  PoolReference(const PoolCase& c, int mode, const Floats& input, const Floats& gradient)
      : forward(c.output().shape.elements()), backward(c.input().shape.elements()) {
    const int64_t ow = c.outW(), oh = c.outH();
    for (int64_t out = 0; out < static_cast<int64_t>(forward.sum.size()); ++out) {
      const int64_t ox = out % ow, oy = out / ow % oh, plane = out / ow / oh * c.w * c.h;
      std::vector<int64_t> window;  // x fastest
      for (int64_t y = oy * c.sy - c.py; y < oy * c.sy - c.py + c.kh; ++y) {
        for (int64_t x = ox * c.sx - c.px; x < ox * c.sx - c.px + c.kw; ++x) {
          if (x >= 0 && x < c.w && y >= 0 && y < c.h) {
            window.push_back(plane + x + c.w * y);
          }
        }
      }
      pool(mode, c.kw * c.kh, window, out, input, gradient);
    }
  }

  void pool(int mode, int64_t windowSize, const std::vector<int64_t>& window, int64_t out,
            const Floats& input, const Floats& gradient) {
    if (mode == kMax) {
      int64_t best = window.front();
      for (const int64_t i : window) {
        best = input[i] > input[best] ? i : best;
      }
      forward.add(out, input[best], 1);
      backward.add(best, gradient[out], 1);
      return;
    }
    const double weight =
        1.0 / static_cast<double>(mode == kIncludePadding ? windowSize : window.size());
    for (const int64_t i : window) {
      forward.add(out, input[i], weight);
      backward.add(i, gradient[out], weight);
    }
  }

  Reference forward, backward;
};

class PoolTest : public testing::TestWithParam<std::tuple<PoolCase, int>> {};

TEST_P(PoolTest, AgreesWithLoops) {
  const auto& [c, mode] = GetParam();
  const Floats input = randomFloats(c.input().shape.elements(), 7);
  const Floats gradient = randomFloats(c.output().shape.elements(), 8);
  const PoolReference want(c, mode, input, gradient);
  expectNear(run(c.forward(mode), {input}), want.forward);
  expectNear(run(c.backward(mode), {gradient, input}), want.backward);
}

TEST_P(PoolTest, TheFirstOfEqualMaximaGetsTheGradient) {
  const auto& [c, mode] = GetParam();
  if (mode != kMax) {
    return;
  }
  Floats input = randomFloats(c.input().shape.elements(), 9);
  for (float& value : input) {
    value = std::round(value);  // -1, 0 or 1
  }
  const Floats gradient = randomFloats(c.output().shape.elements(), 10);
  const PoolReference want(c, mode, input, gradient);
  expectNear(run(c.backward(mode), {gradient, input}), want.backward);
}

INSTANTIATE_TEST_SUITE_P(
    Shapes, PoolTest,
    testing::Combine(testing::Values(PoolCase{1, 1, 1, 1, 1, 1}, PoolCase{6, 4, 3, 2, 2, 2, 2, 2},
                                     PoolCase{9, 7, 5, 3, 3, 2, 1, 2, 1, 1},
                                     PoolCase{7, 7, 17, 1, 3, 3, 2, 2, 1, 1},
                                     PoolCase{8, 5, 2, 3, 2, 3, 3, 4}, PoolCase{6, 6, 20, 4, 6, 6},
                                     PoolCase{5, 9, 33, 3, 4, 4, 1, 1, 2, 2},
                                     PoolCase{28, 28, 32, 13, 2, 2, 2, 2},
                                     PoolCase{31, 30, 16, 6, 3, 3, 2, 2, 1, 1}),
                     testing::Values(kMax, kIncludePadding, kExcludePadding)));

// Of some planes only, so that others of their block stay with oneDNN. The gradient goes to the
// first element that is the maximum or NaN, and to none if that is padding, which is -inf.
TEST(Pool, MaximumKeepsNanAndMinusInfinity) {
  const float infinity = std::numeric_limits<float>::infinity();
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const PoolCase c{6, 1, 20, 2, 2, 1, 2, 1};
  const Floats special = {nan, 1, -infinity, -infinity, infinity, nan};
  Floats input = randomFloats(c.input().shape.elements(), 11);
  const Floats gradient = randomFloats(c.output().shape.elements(), 12);
  const PoolReference clean(c, kMax, input, gradient);
  for (const int64_t plane : {0, 7, 39}) {
    std::copy(special.begin(), special.end(), input.begin() + 6 * plane);
  }
  const Floats pooled = run(c.forward(kMax), {input});
  const Floats spread = run(c.backward(kMax), {gradient, input});
  for (int64_t plane = 0; plane < 40; ++plane) {
    SCOPED_TRACE(plane);
    const float* y = pooled.data() + 3 * plane;
    const float* dy = gradient.data() + 3 * plane;
    const Floats dx(spread.begin() + 6 * plane, spread.begin() + 6 * (plane + 1));
    if (plane == 0 || plane == 7 || plane == 39) {
      EXPECT_TRUE(std::isnan(y[0]));
      EXPECT_EQ(y[1], -infinity);
      EXPECT_TRUE(std::isnan(y[2]));
      EXPECT_EQ(dx, (Floats{dy[0], 0, dy[1], 0, 0, dy[2]}));
      continue;
    }
    for (int64_t i = 0; i < 3; ++i) {
      EXPECT_EQ(y[i], clean.forward.sum[3 * plane + i]);
    }
    for (int64_t i = 0; i < 6; ++i) {
      EXPECT_EQ(dx[i], clean.backward.sum[6 * plane + i]);
    }
  }
}

TEST(Pool, PaddingIsTheFirstOfMinusInfinities) {
  const float infinity = std::numeric_limits<float>::infinity();
  const PoolCase c{3, 1, 1, 1, 2, 1, 1, 1, 1, 0};
  EXPECT_EQ(run(c.forward(kMax), {{-infinity, -infinity, 5}}),
            (Floats{-infinity, -infinity, 5, 5}));
  EXPECT_EQ(run(c.backward(kMax), {{1, 2, 4, 8}, {-infinity, -infinity, 5}}), (Floats{2, 0, 12}));
}

// ---- what is supported

TEST(Library, MnistShapesHaveFastImplementations) {
  std::vector<LibraryCall> calls;
  for (const auto& [size, images] : {std::pair{28, 64}, {8, 32}}) {
    const int64_t half = size / 2;
    const ConvolutionCase first{size, size, 1, images, 5, 5, 32, 1, 1, 2, 2};
    const ConvolutionCase second{half, half, 32, images, 5, 5, 64, 1, 1, 2, 2};
    for (const ConvolutionCase& c : {first, second}) {
      calls.insert(calls.end(), {c.forward(), c.biased(), c.data(), c.filterGradient()});
    }
    const PoolCase pool{size, size, 32, images, 2, 2, 2, 2};
    calls.insert(calls.end(), {pool.forward(kMax), pool.backward(kMax)});
  }
  calls.push_back({Op::Matmul, {0, 0}, {f32({128, 3136}), f32({3136, 64})}, f32({128, 64})});
  calls.push_back({Op::Matmul, {1, 0}, {f32({128, 3136}), f32({128, 64})}, f32({3136, 64})});
  for (const LibraryCall& call : calls) {
    ASSERT_TRUE(librarySupports(call)) << ir::opName(call.op);
    EXPECT_FALSE(prepareLibrary(call)->implementation().starts_with("ref"))
        << ir::opName(call.op) << " of " << call.operands[0].toString();
  }
}

TEST(Library, RefusesWhatTheDefinitionMustDo) {
  const LibraryCall good{Op::Matmul, {0, 0}, {f32({2, 3}), f32({3, 4})}, f32({2, 4})};
  EXPECT_TRUE(librarySupports(good));
  LibraryCall call = good;
  call.operands[0].type = call.operands[1].type = call.result.type = dtype::f64;
  EXPECT_FALSE(librarySupports(call));
  EXPECT_EQ(cachedLibrary(call), nullptr);
  EXPECT_THROW(prepareLibrary(call), InternalError);
  EXPECT_FALSE(librarySupports({Op::Matmul, {0, 0}, {f32({2, 0}), f32({0, 4})}, f32({2, 4})}));
  EXPECT_FALSE(librarySupports({Op::Add, {}, {f32({2}), f32({2})}, f32({2})}));
  // A gradient whose size belongs to another stride.
  ConvolutionCase c{8, 8, 2, 1, 3, 3, 4};
  LibraryCall data = c.data();
  data.operands[0] = f32({3, 6, 4, 1});
  EXPECT_FALSE(librarySupports(data));
}

TEST(Library, EqualCallsShareAFunction) {
  const ConvolutionCase c{9, 9, 4, 2, 3, 3, 8};
  EXPECT_EQ(cachedLibrary(c.forward()), cachedLibrary(c.forward()));
  EXPECT_NE(cachedLibrary(c.forward()), cachedLibrary(c.biased()));
  EXPECT_NE(cachedLibrary(c.forward()), cachedLibrary(c.data()));
}

}  // namespace
}  // namespace fl::runtime::cpu
