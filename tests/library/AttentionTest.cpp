// Attention in blocks against loops in double, over odd shapes, masks and every dtype.
#include <cmath>
#include <limits>
#include <numeric>
#include <optional>

#include "fl/library/Functions.h"
#include "tests/library/LibraryHarness.h"

namespace fl::library {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

struct AttentionCase {
  Dim time, keys, features, heads, batch;
  std::optional<Shape> mask = {};
  bool featuresFirst = false;

  ir::ValueType query() const { return ofHeads(time); }
  ir::ValueType key() const { return ofHeads(keys); }
  LibraryCall forward() const { return withMask({Op::Attention, attrs(), {}, query()}); }
  LibraryCall backward() const {
    const Dim elements = query().shape.elements() + 2 * key().shape.elements();
    LibraryCall call = withMask({Op::AttentionBackward, attrs(), {}, f32({elements})});
    call.operands.insert(call.operands.begin(), query());
    return call;
  }

 private:
  ir::ValueType ofHeads(Dim positions) const {
    return featuresFirst ? f32({features, heads, positions, batch})
                         : f32({positions, features, heads, batch});
  }
  ir::Attrs attrs() const { return ir::Attrs({featuresFirst}); }
  LibraryCall withMask(LibraryCall call) const {
    call.operands = {query(), key(), key()};
    if (mask) {
      call.operands.push_back(f32(*mask));
    }
    return call;
  }
};

void PrintTo(const AttentionCase& c, std::ostream* os) {
  *os << c.query().toString() << " of " << c.keys << " keys"
      << (c.featuresFirst ? ", features first" : "");
  if (c.mask) {
    *os << " masked by " << *c.mask;
  }
}

// Results in double, with the magnitudes of what they are sums of.
class Loops {
 public:
  Loops(const AttentionCase& c, const std::vector<Floats>& operands, const Floats& gradOutput)
      : forward(c.query().shape.elements()),
        backward(c.query().shape.elements() + 2 * c.key().shape.elements()),
        c_(c),
        q_(operands[0]),
        k_(operands[1]),
        v_(operands[2]),
        mask_(c.mask ? &operands[3] : nullptr),
        dy_(gradOutput) {
    for (Dim head = 0; head < c.heads * c.batch; ++head) {
      for (Dim t = 0; t < c.time; ++t) {
        addQuery(t, head);
      }
    }
  }

  Reference forward, backward;

 private:
  size_t query(Dim t, Dim f, Dim head) const { return place(t, c_.time, f, head); }
  size_t key(Dim k, Dim f, Dim head) const { return place(k, c_.keys, f, head); }
  size_t place(Dim position, Dim positions, Dim f, Dim head) const {
    if (!c_.featuresFirst) return position + positions * (f + c_.features * head);
    const Dim row = position + positions * (head / c_.heads);
    return f + c_.features * (head % c_.heads + c_.heads * row);
  }

  double maskOf(Dim t, Dim k, Dim head) const {
    if (!mask_) {
      return 0;
    }
    const Dim place[] = {t, k, head % c_.heads, head / c_.heads};
    Dim offset = 0, step = 1;
    for (int i = 0; i < 4; step *= (*c_.mask)[i++]) {
      offset += (*c_.mask)[i] == 1 ? 0 : step * place[i];
    }
    return (*mask_)[offset];
  }

  std::vector<double> weightsOf(Dim t, Dim head) const {
    std::vector<double> weights(c_.keys);
    for (Dim k = 0; k < c_.keys; ++k) {
      double score = maskOf(t, k, head);
      for (Dim f = 0; f < c_.features; ++f) {
        score += static_cast<double>(q_[query(t, f, head)]) * k_[key(k, f, head)];
      }
      weights[k] = std::exp(score);
    }
    const double total = std::accumulate(weights.begin(), weights.end(), 0.0);
    for (double& weight : weights) {
      weight /= total;
    }
    return weights;
  }

  void addQuery(Dim t, Dim head) {
    const std::vector<double> weights = weightsOf(t, head);
    std::vector<double> gradients(c_.keys), sizes(c_.keys);
    double mean = 0, meanSize = 0;
    for (Dim k = 0; k < c_.keys; ++k) {
      for (Dim f = 0; f < c_.features; ++f) {
        const double value = v_[key(k, f, head)], dy = dy_[query(t, f, head)];
        forward.add(query(t, f, head), weights[k], value);
        backward.add(q_.size() + k_.size() + key(k, f, head), weights[k], dy);
        gradients[k] += dy * value;
        sizes[k] += std::fabs(dy * value);
      }
      mean += weights[k] * gradients[k];
      meanSize += weights[k] * sizes[k];
    }
    for (Dim k = 0; k < c_.keys; ++k) {
      const double gradient = weights[k] * (gradients[k] - mean);
      const double size = weights[k] * (sizes[k] + meanSize);
      for (Dim f = 0; f < c_.features; ++f) {
        const size_t i = query(t, f, head), j = key(k, f, head);
        backward.sum[i] += gradient * k_[j];
        backward.magnitude[i] += std::fabs(size * k_[j]);
        backward.sum[q_.size() + j] += gradient * q_[i];
        backward.magnitude[q_.size() + j] += std::fabs(size * q_[i]);
      }
    }
  }

  const AttentionCase& c_;
  const Floats &q_, &k_, &v_, *mask_, &dy_;
};

std::vector<Floats> operandsOf(const AttentionCase& c, dtype type) {
  std::vector<Floats> operands;
  for (const ir::ValueType& operand : c.forward().operands) {
    operands.push_back(
        randomFloats(operand.shape.elements(), static_cast<unsigned>(operands.size()), type));
  }
  if (c.mask && (*c.mask)[1] > 1) {  // no query is left without a key
    for (size_t i = 1; i < operands[3].size(); i += 3) {
      operands[3][i] = -kInfinity;
    }
  }
  return operands;
}

Floats runBlocks(const LibraryCall& call, const std::vector<Floats>& operands) {
  return runFunction(*prepareAttention(call), call, operands);
}

class AttentionTest : public testing::TestWithParam<std::tuple<AttentionCase, dtype, bool>> {};

TEST_P(AttentionTest, AgreesWithLoops) {
  const auto& [shape, type, featuresFirst] = GetParam();
  AttentionCase c = shape;
  c.featuresFirst = featuresFirst;
  std::vector<Floats> operands = operandsOf(c, type);
  const Floats gradient = randomFloats(c.query().shape.elements(), 9, type);
  const Loops want(c, operands, gradient);
  expectNear(runBlocks(ofType(c.forward(), type), operands), want.forward, type);
  operands.insert(operands.begin(), gradient);
  expectNear(runBlocks(ofType(c.backward(), type), operands), want.backward, type);
}

// One query and one key; a block and a bit; whole groups; rows of every length of a tile; masks
// that broadcast along each dimension; rows half a page apart, of positions and of features.
INSTANTIATE_TEST_SUITE_P(
    Shapes, AttentionTest,
    testing::Combine(testing::Values(AttentionCase{1, 1, 1, 1, 1}, AttentionCase{129, 3, 5, 2, 1},
                                     AttentionCase{64, 64, 8, 1, 2},
                                     AttentionCase{300, 517, 7, 3, 1},
                                     AttentionCase{70, 41, 16, 2, 3, Shape({70, 41, 1, 1})},
                                     AttentionCase{131, 9, 3, 2, 3, Shape({1, 9, 1, 3})},
                                     AttentionCase{65, 10, 2, 2, 2, Shape({65, 10, 2, 2})},
                                     AttentionCase{33, 20, 4, 2, 2, Shape({33, 1, 2, 1})},
                                     AttentionCase{512, 150, 3, 1, 2},
                                     AttentionCase{150, 512, 3, 2, 1},
                                     AttentionCase{140, 70, 4, 128, 1}),
                     testing::ValuesIn(kTypes), testing::Bool()));

// Blocks of 64 queries, whose scores are what fits.
TEST(Attention, OfManyKeys) {
  const AttentionCase c{100, 5000, 2, 1, 1};
  const std::vector<Floats> operands = operandsOf(c, dtype::f32);
  const Floats gradient = randomFloats(200, 9);
  expectNear(runBlocks(c.forward(), operands), Loops(c, operands, gradient).forward);
}

// Twice as many queries and keys take about twice the memory, not four times as much.
TEST(Attention, MemoryGrowsWithTheLength) {
  const AttentionCase half{2048, 2048, 64, 8, 1}, whole{4096, 4096, 64, 8, 1};
  for (const auto call : {&AttentionCase::forward, &AttentionCase::backward}) {
    const size_t bytes = prepareAttention((half.*call)())->scratchBytes();
    EXPECT_LE(prepareAttention((whole.*call)())->scratchBytes(), 2 * bytes);
    EXPECT_LT(bytes, 4u * 2048 * 2048 * 8 / 2);
  }
}

// A query that may look at nothing has no mean: NaN, as from 0 / 0, and only there.
TEST(Attention, OfNothing) {
  const AttentionCase c{3, 2, 4, 1, 1, Shape({3, 2, 1, 1})};
  std::vector<Floats> operands = operandsOf(c, dtype::f32);
  operands[3] = {0, -kInfinity, 0, 0, -kInfinity, 0};
  const Floats result = runBlocks(c.forward(), operands);
  for (size_t i = 0; i < result.size(); ++i) {
    EXPECT_EQ(std::isnan(result[i]), i % 3 == 1) << i;
  }
}

// The choice between the two ways is by length: as measured by //benchmarks:attention.
TEST(Attention, IsChosenByLength) {
  EXPECT_FALSE(librarySupports(AttentionCase{127, 128, 8, 64, 64}.forward()));
  EXPECT_TRUE(librarySupports(AttentionCase{128, 128, 8, 1, 1}.forward()));
  EXPECT_TRUE(librarySupports(AttentionCase{128, 128, 8, 1, 1}.backward()));
  EXPECT_FALSE(librarySupports(AttentionCase{63, 100000, 8, 1, 1}.backward()));
}

}  // namespace
}  // namespace fl::library
