// Products and convolutions by the library against loops in double, over odd shapes and for every
// dtype; and what the library takes.
#include "fl/base/Error.h"
#include "fl/library/ConvolutionPlan.h"
#include "tests/library/LibraryHarness.h"

namespace fl::library {
namespace {

// ---- matmul

struct MatmulCase {
  int64_t m, n, k, lhsBatch, rhsBatch;  // batch 0: two dimensions
};

void PrintTo(const MatmulCase& c, std::ostream* os) {
  *os << c.m << "x" << c.n << "x" << c.k << " batches " << c.lhsBatch << ", " << c.rhsBatch;
}

class MatmulTest : public testing::TestWithParam<std::tuple<MatmulCase, bool, bool, dtype>> {};

TEST_P(MatmulTest, AgreesWithLoops) {
  const auto [c, ta, tb, type] = GetParam();
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
      Op::Matmul, {ta, tb, 0}, {{type, lhs}, {type, rhs}}, {type, shape(c.m, c.n, false, batch)}};
  const Floats x = randomFloats(lhs.elements(), 1, type), y = randomFloats(rhs.elements(), 2, type);
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
  expectNear(run(call, {x, y}), want, type);
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
                                     MatmulCase{65, 33, 64, 0, 40}, MatmulCase{180, 190, 100, 3, 3},
                                     // Small ones, of which many are worth a thread.
                                     MatmulCase{8, 8, 8, 300, 300}, MatmulCase{4, 3, 5, 2000, 0},
                                     MatmulCase{1, 2, 9, 3000, 3000},
                                     MatmulCase{2, 2, 2, 3000, 3000}, MatmulCase{3, 3, 3, 900, 900},
                                     MatmulCase{5, 6, 4, 0, 900}, MatmulCase{9, 1, 2, 0, 3000},
                                     MatmulCase{1, 1, 2528, 9, 9}, MatmulCase{512, 1, 1, 30, 0},
                                     MatmulCase{7, 7, 9, 40, 40}, MatmulCase{15, 11, 6, 90, 90},
                                     // Cut into pieces where 16-bit floats are widened.
                                     MatmulCase{400, 260, 190, 0, 0},
                                     MatmulCase{150, 330, 170, 2, 2},
                                     MatmulCase{150, 330, 170, 2, 0},
                                     // Columns half a page apart.
                                     MatmulCase{512, 70, 40, 0, 0}, MatmulCase{70, 512, 40, 0, 0},
                                     MatmulCase{512, 512, 90, 0, 0}, MatmulCase{512, 64, 33, 2, 2},
                                     MatmulCase{64, 512, 33, 2, 0}, MatmulCase{64, 512, 33, 2, 2},
                                     MatmulCase{512, 65, 33, 0, 2}, MatmulCase{512, 512, 9, 2, 2},
                                     // Cut into long runs.
                                     MatmulCase{700, 5, 300, 0, 0}, MatmulCase{5, 700, 300, 0, 0}),
                     testing::Bool(), testing::Bool(), testing::ValuesIn(kTypes)));

// Numbers that two and four threads share evenly, of runs that are long where a matrix is read
// once.
TEST(Matmul, IsCutIntoPiecesWorthAThread) {
  const auto pieces = [](int64_t m, int64_t n, int64_t k) {
    const LibraryCall call{Op::Matmul, {0, 0, 0}, {f32({m, k}), f32({k, n})}, f32({m, n})};
    return prepareLibrary(call)->parted()->parts();
  };
  EXPECT_EQ(pieces(64, 64, 64), 1);
  EXPECT_EQ(pieces(128, 128, 128), 2);
  EXPECT_EQ(pieces(256, 256, 256), 4);
  EXPECT_EQ(pieces(1024, 1024, 1024), 8);
  EXPECT_EQ(pieces(512, 1, 512), 2);
  EXPECT_EQ(pieces(1024, 1, 1024), 2);
  EXPECT_EQ(pieces(1024, 4, 1024), 4);
}

TEST(Matmul, SmallOnesAreMadeByLoops) {
  const auto implementation = [](int64_t m, int64_t n, int64_t k) {
    return prepareLibrary(
               {Op::Matmul, {0, 0, 0}, {f32({m, k, 99}), f32({k, n, 99})}, f32({m, n, 99})})
        ->implementation();
  };
  EXPECT_EQ(implementation(16, 16, 36), "loops");
  EXPECT_EQ(implementation(16, 16, 37), "dnnl_sgemm");
  EXPECT_EQ(implementation(1, 1, 2528), "loops");
  EXPECT_EQ(implementation(1, 65, 1), "dnnl_sgemm");
}

// For a few vectors, a matrix whose columns lie a multiple of a page apart; the same for any number
// of them.
TEST(Matmul, PacksAWeightWhoseColumnsLiePagesApart) {
  const auto packing = [](int64_t m, int64_t n, int64_t k, bool transposed = false) {
    const LibraryCall call{Op::Matmul,
                           {transposed, 0, 0},
                           {transposed ? f32({k, m}) : f32({m, k}), f32({k, n})},
                           f32({m, n})};
    const auto function = prepareLibrary(call);
    return function->packing() ? *function->packing() : Packing{.operand = -1};
  };
  const Packing two = packing(1024, 2, 300), all = packing(1024, 32, 300);
  EXPECT_EQ(two.operand, 0);
  EXPECT_EQ(two.bytes, 4u * (1024 + 16) * 300);
  EXPECT_EQ(two.form, all.form);
  EXPECT_EQ(two.function->packing(), nullptr);
  for (const Packing& none : {packing(1024, 1, 300), packing(1024, 33, 300), packing(1000, 4, 300),
                              packing(1024, 4, 200), packing(1024, 4, 1024, true)})
    EXPECT_EQ(none.operand, -1);
}

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
    std::vector<Dim> tail = sizes;
    tail.insert(tail.end(), {0, 0});
    return {{sx, sy, px, py, dx, dy, groups}, tail};
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
  ConvolutionData(const ConvolutionCase& c, dtype type)
      : input(randomFloats(c.input().shape.elements(), 3, type)),
        filter(randomFloats(c.filter().shape.elements(), 4, type)),
        output(randomFloats(c.output().shape.elements(), 5, type)),
        bias(randomFloats(c.o, 6, type)) {}
  Floats input, filter, output, bias;
};

void addBias(const ConvolutionCase& c, const Floats& bias, Reference* want) {
  const int64_t plane = c.outW() * c.outH();
  for (size_t i = 0; i < want->sum.size(); ++i) {
    want->add(i, bias[i / plane % c.o], 1);
  }
}

// Checks what is chosen, and every layout there is, of operands as they are and widened: another
// machine may choose another.
void checkLayouts(const LibraryCall& call, const std::vector<Floats>& operands,
                  const Reference& want) {
  const dtype type = call.result.type;
  expectNear(run(call, operands), want, type);
  expectNear(runLast(call, operands), want, type);
  ConvolutionShape shape = convolutionShape(call), last = convolutionShape(channelsLast(call));
  for (const bool widened : {false, true}) {
    shape.widened = last.widened = widened;
    for (const Layout layout : {Layout::Plain, Layout::Blocked, Layout::ChannelsLast}) {
      SCOPED_TRACE(testing::Message() << "layout " << static_cast<int>(layout) << ", " << widened);
      const bool possible = widened ? type != dtype::f32 : type != dtype::f16;
      if (const auto function = possible ? makeConvolution(shape, layout) : nullptr) {
        expectNear(runFunction(*function, call, operands), want, type);
      }
      if (const auto function = possible ? makeConvolution(last, layout) : nullptr) {
        expectNear(runLast(*function, call, operands), want, type);
      }
    }
  }
}

class ConvolutionTest : public testing::TestWithParam<ConvolutionCase> {};

TEST_P(ConvolutionTest, ForwardAgreesWithLoops) {
  const ConvolutionCase& c = GetParam();
  for (const dtype type : kTypes) {
    SCOPED_TRACE(type);
    const ConvolutionData d(c, type);
    Reference want(c.output().shape.elements());
    forEachProduct(c,
                   [&](int64_t i, int64_t k, int64_t o) { want.add(o, d.input[i], d.filter[k]); });
    checkLayouts(ofType(c.forward(), type), {d.input, d.filter}, want);
    addBias(c, d.bias, &want);
    checkLayouts(ofType(c.biased(), type), {d.input, d.filter, d.bias}, want);
  }
}

TEST_P(ConvolutionTest, DataGradientAgreesWithLoops) {
  const ConvolutionCase& c = GetParam();
  for (const dtype type : kTypes) {
    SCOPED_TRACE(type);
    const ConvolutionData d(c, type);
    Reference want(c.input().shape.elements());
    forEachProduct(c,
                   [&](int64_t i, int64_t k, int64_t o) { want.add(i, d.output[o], d.filter[k]); });
    checkLayouts(ofType(c.data(), type), {d.output, d.filter}, want);
  }
}

TEST_P(ConvolutionTest, FilterGradientAgreesWithLoops) {
  const ConvolutionCase& c = GetParam();
  for (const dtype type : kTypes) {
    SCOPED_TRACE(type);
    const ConvolutionData d(c, type);
    Reference want(c.filter().shape.elements());
    forEachProduct(c,
                   [&](int64_t i, int64_t k, int64_t o) { want.add(k, d.output[o], d.input[i]); });
    checkLayouts(ofType(c.filterGradient(), type), {d.output, d.input}, want);
  }
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

TEST(Convolution, ReordersNoImageWhoseChannelsAreLast) {
  for (const ConvolutionCase& c : {ConvolutionCase{32, 32, 32, 32, 3, 3, 32, 1, 1, 1, 1},
                                   // Cut by rows.
                                   ConvolutionCase{32, 32, 32, 1, 3, 3, 32, 1, 1, 1, 1},
                                   ConvolutionCase{16, 16, 64, 32, 3, 3, 128, 2, 2, 1, 1},
                                   ConvolutionCase{16, 16, 64, 32, 1, 1, 128, 2, 2},
                                   ConvolutionCase{14, 14, 32, 64, 5, 5, 64, 1, 1, 2, 2}}) {
    for (const LibraryCall& call : {c.forward(), c.data(), c.filterGradient()}) {
      EXPECT_EQ(prepareLibrary(channelsLast(call))->imageReorders(), 0)
          << ir::opName(call.op) << " of " << call.operands[0].toString();
    }
  }
}

// The filter of a layer that is applied to several sizes is packed once for all of them.
TEST(Convolution, PacksAFilterTheSameForAnyBatch) {
  const auto packing = [](int64_t images, dtype type) {
    const ConvolutionCase c{16, 16, 32, images, 3, 3, 64, 1, 1, 1, 1};
    const auto function = prepareLibrary(ofType(c.forward(), type));
    return function->packing() ? *function->packing() : Packing();
  };
  for (const dtype type : kTypes) {
    const Packing one = packing(1, type), many = packing(32, type);
    EXPECT_EQ(one.operand, 1);
    EXPECT_GE(one.bytes, 9u * 32 * 64 * (type == dtype::bf16 ? 2 : 4));
    EXPECT_EQ(one.form, many.form);
    EXPECT_EQ(one.function->packing(), nullptr);
  }
  // Nothing of a filter's gradient is packed.
  const ConvolutionCase c{16, 16, 32, 4, 3, 3, 64, 1, 1, 1, 1};
  EXPECT_EQ(prepareLibrary(c.filterGradient())->packing(), nullptr);
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
  calls.push_back({Op::Matmul, {0, 0, 0}, {f32({128, 3136}), f32({3136, 64})}, f32({128, 64})});
  calls.push_back({Op::Matmul, {1, 0, 0}, {f32({128, 3136}), f32({128, 64})}, f32({3136, 64})});
  for (const LibraryCall& call : calls) {
    ASSERT_TRUE(librarySupports(call)) << ir::opName(call.op);
    EXPECT_FALSE(prepareLibrary(call)->implementation().starts_with("ref"))
        << ir::opName(call.op) << " of " << call.operands[0].toString();
  }
}

TEST(Library, RefusesWhatTheDefinitionMustDo) {
  const LibraryCall good{Op::Matmul, {0, 0, 0}, {f32({2, 3}), f32({3, 4})}, f32({2, 4})};
  EXPECT_TRUE(librarySupports(good));
  EXPECT_TRUE(librarySupports(ofType(good, dtype::f64)));
  ConvolutionCase c{8, 8, 2, 1, 3, 3, 4};
  const LibraryCall call = ofType(c.forward(), dtype::f64);
  EXPECT_FALSE(librarySupports(call));
  EXPECT_EQ(cachedLibrary(call), nullptr);
  EXPECT_THROW(prepareLibrary(call), InternalError);
  EXPECT_FALSE(librarySupports({Op::Matmul, {0, 0, 0}, {f32({2, 0}), f32({0, 4})}, f32({2, 4})}));
  EXPECT_FALSE(librarySupports({Op::Add, {}, {f32({2}), f32({2})}, f32({2})}));
  EXPECT_FALSE(librarySupports(
      ofType({Op::Matmul, {0, 0, 0}, {f32({2, 0}), f32({0, 4})}, f32({2, 4})}, dtype::f64)));
  // A gradient whose size belongs to another stride.
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
}  // namespace fl::library
