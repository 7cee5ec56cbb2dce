// Pairs of programs that differ in one thing: an operand, an operator, an axis, a shape, a dtype,
// what is held. Each gives its own results, computed here on plain integers, whichever plan it
// finds. FL_TEST_PAIRS=N makes it N pairs.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdlib>
#include <random>

#include "fl/tensor/tensor.h"
#include "tests/lazy/Counts.h"

namespace fl::testing {
namespace {

constexpr int kInputs = 3, kOps = 10;

// Row-major in the API's order: element (i, j) is at i + rows * j.
struct Matrix {
  int rows, columns;
  std::array<int64_t, 6> at;
};

struct Step {
  int op, x, y;  // operands by number: inputs first
  bool held;
};

struct Program {
  bool isTall, isWide;  // 3x2, else 2x3; s64, else s32
  std::vector<Step> steps;
};

Matrix mapped(const Matrix& x, auto&& f) {
  Matrix result = x;
  for (int j = 0; j < x.columns; ++j) {
    for (int i = 0; i < x.rows; ++i) {
      result.at[i + x.rows * j] = f(i, j);
    }
  }
  return result;
}

Matrix expectedOf(int op, const Matrix& x, const Matrix& y) {
  const auto get = [](const Matrix& m, int i, int j) { return m.at[i + m.rows * j]; };
  return mapped(x, [&](int i, int j) -> int64_t {
    const int64_t a = get(x, i, j), b = get(y, i, j);
    int64_t sums[2] = {0, 0}, running[2] = {0, 0};
    for (int k = 0; k < x.rows; ++k) {
      sums[0] += get(x, k, j);
      running[0] += k <= i ? get(x, k, j) : 0;
    }
    for (int k = 0; k < x.columns; ++k) {
      sums[1] += get(x, i, k);
      running[1] += k <= j ? get(x, i, k) : 0;
    }
    switch (op) {
      case 0:
        return a + b;
      case 1:
        return a - b;
      case 2:
        return std::max(a, b);
      case 3:
        return -a;
      case 4:
        return get(x, x.rows - 1 - i, j);
      case 5:
        return get(x, i, x.columns - 1 - j);
      case 6:
      case 7:
        return running[op - 6];
      default:
        return b - sums[op - 8];
    }
  });
}

Tensor resultOf(int op, const Tensor& x, const Tensor& y) {
  switch (op) {
    case 0:
      return x + y;
    case 1:
      return x - y;
    case 2:
      return maximum(x, y);
    case 3:
      return -x;
    case 4:
    case 5:
      return flip(x, op - 4);
    case 6:
    case 7:
      return cumsum(x, op - 6);
    default:
      return y - sum(x, {op - 8}, true);
  }
}

class Random {
 public:
  explicit Random(uint32_t seed) : engine_(seed) {}
  int below(int bound) { return static_cast<int>(engine_() % static_cast<uint32_t>(bound)); }

  Program program() {
    Program result{below(2) == 0, below(2) == 0, {}};
    const int length = 3 + below(4);
    for (int i = 0; i < length; ++i) {
      result.steps.push_back({below(kOps), below(kInputs + i), below(kInputs + i), below(3) == 0});
    }
    result.steps.back().held = true;
    return result;
  }

  Program nearTo(Program program) {
    const int place = below(static_cast<int>(program.steps.size()));
    Step& step = program.steps[place];
    switch (below(7)) {
      case 0:
        std::swap(step.x, step.y);
        break;
      case 1:
        step.x = below(kInputs + place);
        break;
      case 2:
        step.y = below(kInputs + place);
        break;
      case 3:
        step.op = below(kOps);
        break;
      case 4:
        program.isTall = !program.isTall;
        break;
      case 5:
        program.isWide = !program.isWide;
        break;
      default:
        step.held = !step.held;
        program.steps.back().held = true;
    }
    return program;
  }

  Matrix matrix(bool isTall) {
    Matrix result{isTall ? 3 : 2, isTall ? 2 : 3, {}};
    for (int64_t& element : result.at) {
      element = below(19) - 9;
    }
    return result;
  }

 private:
  std::mt19937 engine_;
};

void expectValues(const Program& program, Random& random) {
  const dtype type = program.isWide ? dtype::s64 : dtype::s32;
  std::vector<Matrix> want;
  std::vector<Tensor> have;
  for (int i = 0; i < kInputs; ++i) {
    want.push_back(random.matrix(program.isTall));
    const Matrix& m = want.back();
    have.push_back(Tensor::fromVector(Shape({m.rows, m.columns}),
                                      std::vector<int64_t>(m.at.begin(), m.at.end()))
                       .astype(type));
    have.back().value()->data();
  }
  for (const Step& step : program.steps) {
    want.push_back(expectedOf(step.op, want[step.x], want[step.y]));
    have.push_back(resultOf(step.op, have[step.x], have[step.y]));
  }
  for (size_t i = 0; i < program.steps.size(); ++i) {
    if (!program.steps[i].held) {
      have[kInputs + i] = Tensor();
    }
  }
  for (size_t i = 0; i < program.steps.size(); ++i) {
    if (program.steps[i].held) {
      const Matrix& m = want[kInputs + i];
      const Tensor& tensor = have[kInputs + i];
      ASSERT_EQ(tensor.shape(), Shape({m.rows, m.columns}));
      ASSERT_EQ(tensor.type(), type);
      ASSERT_EQ(tensor.astype(dtype::s64).toHostVector<int64_t>(),
                std::vector<int64_t>(m.at.begin(), m.at.end()));
    }
  }
}

TEST(PlanKey, TellsProgramsApart) {
  const char* asked = std::getenv("FL_TEST_PAIRS");
  const uint32_t pairs = asked ? static_cast<uint32_t>(std::strtoul(asked, nullptr, 10)) : 10000;
  const Counts counts;
  for (uint32_t seed = 1; seed <= pairs; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    const Program program = random.program(), other = random.nearTo(program);
    ASSERT_NO_FATAL_FAILURE(expectValues(program, random));
    ASSERT_NO_FATAL_FAILURE(expectValues(other, random));
    const Counts again;
    ASSERT_NO_FATAL_FAILURE(expectValues(program, random));
    ASSERT_EQ(again.plansBuilt(), 0u);
  }
  EXPECT_GT(counts.plansBuilt(), pairs / 2) << "many programs are new";
}

}  // namespace
}  // namespace fl::testing
