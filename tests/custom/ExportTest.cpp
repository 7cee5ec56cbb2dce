// A dump as the way out: an operator of one's own is in it as the library's operators, forward and
// backward, and `fl run`, a process that knows nothing of it, computes the same from every stage.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "fl/base/Flags.h"
#include "fl/custom/Operator.h"
#include "fl/fl.h"
#include "fl/ir/Text.h"
#include "tools/npy/Npz.h"

namespace fl {
namespace {

namespace fs = std::filesystem;

using ::testing::HasSubstr;
using ::testing::StartsWith;

// Rows of values times the sigmoid of each row's gate, and 3.
const CustomOperator gated{
    .name = "gated",
    .type = [](const auto& operands) { return operands[0]; },
    .reference = [](const auto& operands) { return operands[0].values; },  // not used here
    .compute = [](const auto& x) { return x[0] * sigmoid(x[1]) * 3.0; },
    .gradient =
        [](const auto& x, const Tensor&, const Tensor& grad) {
          const Tensor open = sigmoid(x[1]) * 3.0, each = grad * open;
          return std::vector<Tensor>{each, sum(each * x[0] * (1 - open / 3.0), {0}, true)};
        }};

NpyArray arrayOf(const Tensor& tensor) {
  const std::vector<float> values = tensor.toHostVector<float>();
  NpyArray array{dtype::f32, tensor.shape(), std::vector<uint8_t>(values.size() * sizeof(float))};
  std::memcpy(array.bytes.data(), values.data(), array.bytes.size());
  return array;
}

std::string textOf(const fs::path& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

// The results of `fl run` of a file, by name.
std::map<std::string, NpyArray> run(const fs::path& path, const std::string& inputs) {
  const std::string output = ::testing::TempDir() + "/outputs.npz";
  const std::string command = "env -u BUILD_WORKING_DIRECTORY tools/fl run --inputs=" + inputs +
                              " --outputs=" + output + " " + path.string();
  EXPECT_EQ(std::system(command.c_str()), 0) << command;
  return readNpz(output);
}

TEST(Export, AnotherProcessComputesTheSame) {
  flags().jit = "sync";
  flags().cache = "off";
  const fs::path folder = fs::path(::testing::TempDir()) / "export";
  fs::remove_all(folder);
  const BackendScope scope("lazy", "cpu");
  Variable x(rand({7, 5}) - 0.5, true), gate(rand({1, 5}) - 0.5, true);
  sync();
  flags().dump = folder;
  const Variable result = gated(x, gate);
  Variable loss = result;
  loss.backward();
  sync();
  flags().dump.clear();
  const std::map<std::string, NpyArray> computed = {{"r0", arrayOf(result.tensor())},
                                                    {"r1", arrayOf(loss.grad().tensor())},
                                                    {"r2", arrayOf(x.grad().tensor())},
                                                    {"r3", arrayOf(gate.grad().tensor())}};

  const std::string recorded = textOf(folder / "plan0000/00_recorded.flir");
  EXPECT_THAT(recorded, StartsWith("// numbers: p"));
  EXPECT_THAT(recorded, HasSubstr("=3"));
  const ir::Graph graph = ir::parseGraph(recorded);
  std::map<std::string, NpyArray> inputs;
  for (size_t i = 0; i < graph.parameters().size(); ++i) {
    const ir::Parameter& parameter = graph.parameters()[i];
    if (parameter.number) continue;
    const Tensor& value = parameter.type.shape == x.shape() ? x.tensor() : gate.tensor();
    ASSERT_EQ(parameter.type.shape, value.shape());
    inputs["p" + std::to_string(i)] = arrayOf(value);
  }
  ASSERT_EQ(inputs.size(), 2u);
  const std::string file = ::testing::TempDir() + "/inputs.npz";
  writeNpz(file, inputs);
  int stages = 0;
  for (const auto& entry : fs::directory_iterator(folder / "plan0000")) {
    if (entry.path().extension() != ".flir") continue;
    EXPECT_EQ(run(entry.path(), file), computed) << entry.path();
    ++stages;
  }
  EXPECT_GT(stages, 10);
}

}  // namespace
}  // namespace fl
