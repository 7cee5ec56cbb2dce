// Residual blocks, forward and back, whose convolutions the layout pass moves to images with their
// channels last: the values of the reference interpreter, which never sees them. What a plan leaves
// for the next one lies so, too, and reads as it should.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <string>
#include <vector>

#include "fl/autograd/autograd.h"
#include "fl/base/Flags.h"
#include "fl/ir/Inference.h"
#include "fl/ir/Text.h"
#include "fl/lazy/Compile.h"
#include "fl/runtime/Counters.h"
#include "fl/tensor/tensor.h"
#include "tests/DumpedTexts.h"
#include "tests/FlagScope.h"

namespace fl::testing {
namespace {

constexpr Dim kChannels = 20;

struct Case {
  Dim images;
  int stride, groups;
  dtype type;
};

std::vector<float> numbers(const Shape& shape, uint32_t seed) {
  std::vector<float> values(shape.elements());
  for (float& value : values) {
    seed = seed * 1664525 + 1013904223;
    value = static_cast<float>(seed >> 8) / (1 << 23) - 1;
  }
  return values;
}

Variable variable(const Shape& shape, uint32_t seed, dtype type) {
  return {Tensor::fromVector(shape, numbers(shape, seed)).astype(type), true};
}

// relu(norm(conv(x))) + x, as often as there are filters; of a strided first one no + x.
Variable network(Variable x, const std::vector<Variable>& filters, const Case& c) {
  const dtype computed = c.type == dtype::f16 ? dtype::f32 : computeType(c.type);
  const Variable weight(full({kChannels}, 0.7, computed), false);
  const Variable bias(full({kChannels}, 0.1, computed), false);
  for (size_t i = 0; i < filters.size(); ++i) {
    const int stride = i == 0 ? c.stride : 1;
    const Variable y = conv2d(x, filters[i], stride, stride, 1, 1, 1, 1, i == 0 ? 1 : c.groups);
    Variable mean(full({kChannels}, 0.0, computed), false);
    Variable variance(full({kChannels}, 1.0, computed), false);
    const Variable z = max(batchnorm(y, weight, bias, mean, variance, {2}, true, 0.1, 1e-5), 0.0);
    x = i == 0 ? z : z + x;
  }
  return x;
}

// The gradients of the input and of every filter, and the result; the loss is read first, or in the
// end with all.
std::vector<std::vector<float>> run(const Case& c, const char* backend, const char* device,
                                    bool readsLoss) {
  const BackendScope scope(backend, device);
  const Variable x = variable({12, 10, 3, c.images}, 1, c.type);
  std::vector<Variable> filters = {variable({3, 3, 3, kChannels}, 2, c.type)};
  for (uint32_t i = 0; i < 3; ++i) {
    filters.push_back(variable({3, 3, kChannels / c.groups, kChannels}, 3 + i, c.type) * 0.2);
    filters.back() = Variable(filters.back().tensor(), true);
  }
  const Variable y = network(x, filters, c);
  Variable loss = sum(y * y, {0, 1, 2, 3});
  if (readsLoss) loss.tensor().asScalar<float>();
  loss.backward();
  std::vector<std::vector<float>> values;
  const auto add = [&](const Tensor& tensor) {
    values.push_back(tensor.astype(dtype::f32).toHostVector<float>());
  };
  add(x.grad().tensor());
  for (const Variable& filter : filters) {
    add(filter.grad().tensor());
  }
  add(y.tensor());
  return values;
}

// Calls of the library on images that lie so, and on others; transposes of images.
struct Calls {
  int moved = 0, plain = 0, copies = 0;
};
Calls callsOf(const ir::Graph& graph) {
  Calls calls;
  for (const ir::Node& node : graph.nodes()) {
    if (ir::isOnImages(node.op)) {
      ++(ir::imageAxes(node.attrs).channel == 0 ? calls.moved : calls.plain);
    }
    calls.copies += node.op == ir::Op::Transpose;
  }
  return calls;
}

class Dump {
 public:
  Dump() : folder_(::testing::TempDir() + "layout" + std::to_string(number_++)) {
    std::filesystem::remove_all(folder_);
  }
  // The final ones of its plans.
  std::vector<ir::Graph> graphs() const {
    std::vector<ir::Graph> graphs;
    for (const std::string& text : dumpedTexts(folder_, "dce"))
      graphs.push_back(ir::parseGraph(text));
    return graphs;
  }

 private:
  static inline int number_ = 0;
  const std::string folder_;
  const FlagScope dump_{&Flags::dump, folder_};
};

void expectClose(const std::vector<std::vector<float>>& got,
                 const std::vector<std::vector<float>>& want, double tolerance) {
  ASSERT_EQ(got.size(), want.size());
  for (size_t k = 0; k < got.size(); ++k) {
    double most = 0;
    for (const float value : want[k]) {
      most = std::max(most, std::fabs(double{value}));
    }
    EXPECT_GT(most, 0);
    int wrong = 0;
    for (size_t i = 0; i < want[k].size(); ++i) {
      wrong += !(std::fabs(double{got[k][i]} - want[k][i]) <= tolerance * most);
    }
    EXPECT_EQ(wrong, 0) << "of value " << k;
  }
}

class Layout : public ::testing::TestWithParam<Case> {
 protected:
  static double tolerance() {
    return GetParam().type == dtype::f32 ? 2e-6 : GetParam().type == dtype::f16 ? 2e-3 : 2e-2;
  }
};

TEST_P(Layout, IsSeenInNoValue) {
  const Dump dump;
  const auto got = run(GetParam(), "lazy", "cpu", false);
  int moved = 0;
  for (const ir::Graph& graph : dump.graphs()) moved += callsOf(graph).moved;
  EXPECT_GT(moved, 0);
  expectClose(got, run(GetParam(), "eager", "ref", false), tolerance());
}

// The way back finds the images as the way there has left them, and leaves the input's gradient so.
// Both copy the input; column sums of the last block read it in another order.
TEST_P(Layout, StaysFromPlanToPlan) {
  const Dump dump;
  const auto got = run(GetParam(), "lazy", "cpu", true);
  std::vector<Calls> calls;
  for (const ir::Graph& graph : dump.graphs())
    if (const Calls of = callsOf(graph); of.moved + of.plain > 0) calls.push_back(of);
  ASSERT_EQ(calls.size(), 2);
  const int convolutions = 4, columnSums = GetParam().type == dtype::f32 ? 2 : 4;
  EXPECT_EQ(calls[0].moved, convolutions);
  EXPECT_EQ(calls[0].copies, 1);
  EXPECT_EQ(calls[1].moved, 2 * convolutions);
  EXPECT_EQ(calls[1].copies, 1 + columnSums);
  expectClose(got, run(GetParam(), "eager", "ref", true), tolerance());
}

INSTANTIATE_TEST_SUITE_P(Blocks, Layout,
                         ::testing::Values(Case{4, 1, 1, dtype::f32}, Case{1, 1, 1, dtype::f32},
                                           Case{3, 2, 1, dtype::f32}, Case{2, 1, 5, dtype::f32},
                                           Case{4, 1, 1, dtype::f16}, Case{4, 2, 1, dtype::bf16}));

// Two convolutions of which a read runs the second, and the first's result, which is kept.
class KeptImage : public ::testing::Test {
 protected:
  static Tensor make(const char* backend, const char* device) {
    const BackendScope scope(backend, device);
    const auto values = [](const Shape& shape, uint32_t seed) {
      return Tensor::fromVector(shape, numbers(shape, seed));
    };
    const Tensor x = values({12, 10, 3, 2}, 1), w = values({3, 3, 3, 20}, 2),
                 v = values({3, 3, 20, 8}, 3);
    const Tensor image = maximum(conv2d(x, w, 1, 1, 1, 1, 1, 1), 0.0);
    sum(conv2d(image, v, 1, 1, 1, 1, 1, 1)).asScalar<float>();
    return image;
  }
  void expectImage(const Tensor& got, double added = 0) const {
    EXPECT_EQ(got.shape(), want_.shape());
    EXPECT_TRUE(allClose(got, want_ + added, 1e-4));
  }
  const BackendScope lazy_{"lazy", "cpu"};
  const Tensor want_ =
      Tensor::fromVector({12, 10, 20, 2}, make("eager", "ref").toHostVector<float>());
};

// One launch puts its elements in order, once.
TEST_F(KeptImage, IsReadAsItIs) {
  const Tensor image = make("lazy", "cpu");
  const uint64_t before = runtime::counters().kernelLaunches;
  const auto got = image.toHostVector<float>();
  EXPECT_EQ(runtime::counters().kernelLaunches, before + 1);
  EXPECT_EQ(image.toHostVector<float>(), got);
  EXPECT_EQ(runtime::counters().kernelLaunches, before + 1);
  expectImage(Tensor::fromVector(want_.shape(), got));
}

// Whether it was read is seen in no bit of what follows.
TEST_F(KeptImage, IsReadWithoutATrace) {
  const auto convolved = [](bool reads) {
    const Tensor image = make("lazy", "cpu");
    if (reads) image.toHostVector<float>();
    const Tensor w = Tensor::fromVector({3, 3, 20, 1}, numbers({3, 3, 20, 1}, 4));
    return conv2d(tanh(image), w, 1, 1, 1, 1, 1, 1).toHostVector<float>();
  };
  EXPECT_EQ(convolved(true), convolved(false));
}

// Plans without images read it in order, which is made once.
TEST_F(KeptImage, IsPutInOrderOnce) {
  const Tensor image = make("lazy", "cpu");
  const auto launches = [&] {
    const uint64_t before = runtime::counters().kernelLaunches;
    amax(image, {0}).toHostVector<float>();
    return runtime::counters().kernelLaunches - before;
  };
  const uint64_t first = launches();
  EXPECT_EQ(launches(), first - 1);
}

TEST_F(KeptImage, IsWrittenInPlace) {
  Tensor image = make("lazy", "cpu");
  const Tensor before = image;
  image += 1.0;
  expectImage(image, 1);
  expectImage(before);
  image(fl::span, fl::range(2, 5)) = 7.0;
  EXPECT_EQ(image(0, 3, 0, 0).asScalar<float>(), 7);
  EXPECT_NE(image(0, 1, 0, 0).asScalar<float>(), 7);
}

// To read it runs nothing that was recorded.
TEST_F(KeptImage, IsNotPending) {
  const Tensor image = make("lazy", "cpu");
  const uint64_t reads = runtime::counters().reads;
  const auto read = [&] {
    const FlagScope onSync(&Flags::onSync, "throw");
    return image.toHostVector<float>();
  };
  const auto got = read();
  EXPECT_EQ(runtime::counters().reads, reads);
  expectImage(Tensor::fromVector(want_.shape(), got));
}

// What nobody asks for lies as it did.
TEST_F(KeptImage, IsLeftBySync) {
  const Tensor image = make("lazy", "cpu");
  const uint64_t before = runtime::counters().kernelLaunches;
  fl::sync();
  EXPECT_EQ(runtime::counters().kernelLaunches, before);
  expectImage(image);
}

TEST_F(KeptImage, IsWhatACompiledFunctionReads) {
  const Tensor image = make("lazy", "cpu");
  auto twice = compile([&](const Tensor& x) { return image * 2.0 + x; });
  const Tensor none = fl::full(image.shape(), 0.0);
  for (int call = 0; call < 3; ++call) EXPECT_TRUE(allClose(twice(none), want_ * 2.0, 1e-4));
  expectImage(image);
}

// Elsewhere and in other orders.
TEST_F(KeptImage, IsAnImageOfItsShape) {
  const Tensor image = make("lazy", "cpu");
  EXPECT_TRUE(
      allClose(fl::transpose(image, {2, 0, 1, 3}), fl::transpose(want_, {2, 0, 1, 3}), 1e-4));
  EXPECT_TRUE(allClose(fl::sum(image, {0, 1, 3}), fl::sum(want_, {0, 1, 3}), 1e-3));
  EXPECT_TRUE(allClose(image(fl::span, 3), want_(fl::span, 3), 1e-4));
  const BackendScope scope("eager", "cpu");
  EXPECT_TRUE(allClose(Tensor::fromVector(want_.shape(), image.toHostVector<float>()),
                       Tensor::fromVector(want_.shape(), want_.toHostVector<float>()), 1e-4));
}

}  // namespace
}  // namespace fl::testing
