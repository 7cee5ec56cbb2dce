// Residual blocks, forward and back, whose convolutions the layout pass moves to images with their
// channels last: the values of the reference interpreter, which never sees them.
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "fl/autograd/autograd.h"
#include "fl/base/Flags.h"
#include "fl/tensor/tensor.h"

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

// The result, and the gradients of the input and of every filter.
std::vector<std::vector<float>> run(const Case& c, const char* backend, const char* device) {
  const BackendScope scope(backend, device);
  const Variable x = variable({12, 10, 3, c.images}, 1, c.type);
  std::vector<Variable> filters = {variable({3, 3, 3, kChannels}, 2, c.type)};
  for (uint32_t i = 0; i < 3; ++i) {
    filters.push_back(variable({3, 3, kChannels / c.groups, kChannels}, 3 + i, c.type) * 0.2);
    filters.back() = Variable(filters.back().tensor(), true);
  }
  const Variable y = network(x, filters, c);
  Variable loss = sum(y * y, {0, 1, 2, 3});
  loss.backward();
  std::vector<std::vector<float>> values;
  const auto add = [&](const Tensor& tensor) {
    values.push_back(tensor.astype(dtype::f32).toHostVector<float>());
  };
  add(y.tensor());
  add(x.grad().tensor());
  for (const Variable& filter : filters) {
    add(filter.grad().tensor());
  }
  return values;
}

// Whether a plan in the folder calls the library on images with their channels last.
bool isMoved(const std::string& folder) {
  bool found = false;
  for (const auto& stage : std::filesystem::recursive_directory_iterator(folder)) {
    if (!stage.path().string().ends_with("_dce.flir")) continue;
    std::ifstream file(stage.path());
    const std::string text(std::istreambuf_iterator<char>(file), {});
    found = found || text.find("channelsLast=1") != std::string::npos;
  }
  return found;
}

class Layout : public ::testing::TestWithParam<Case> {};

TEST_P(Layout, IsSeenInNoValue) {
  static int number = 0;
  const std::string folder = ::testing::TempDir() + "layout" + std::to_string(number++);
  std::filesystem::remove_all(folder);
  flags().dump = folder;
  const auto got = run(GetParam(), "lazy", "cpu");
  flags().dump.clear();
  EXPECT_TRUE(isMoved(folder));
  const auto want = run(GetParam(), "eager", "ref");
  const double tolerance = GetParam().type == dtype::f32   ? 2e-6
                           : GetParam().type == dtype::f16 ? 2e-3
                                                           : 2e-2;
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

INSTANTIATE_TEST_SUITE_P(Blocks, Layout,
                         ::testing::Values(Case{4, 1, 1, dtype::f32}, Case{1, 1, 1, dtype::f32},
                                           Case{3, 2, 1, dtype::f32}, Case{2, 1, 5, dtype::f32},
                                           Case{4, 1, 1, dtype::f16}, Case{4, 2, 1, dtype::bf16}));

}  // namespace
}  // namespace fl::testing
