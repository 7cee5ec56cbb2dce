// Every row of the op table x device x dtype x layout against the oracle, the interpreter in
// double: values within the row's ulp, types, text, and the same bits fused and alone.
//
// A cell of the table is a small graph around one operator: views that lay the operands out, then
// the operator (OracleGraphs.h). OracleCases.h says what it is made of and which cells there are
// none of; the table is printed, and a cell that neither runs nor is skipped for a stated reason
// fails. Special values go through the rows that EdgeTest.cpp has none of; those that do not are
// counted by reason.
#include <gtest/gtest.h>

#include <algorithm>
#include <iomanip>
#include <map>
#include <random>

#include "fl/ir/Text.h"
#include "fl/runtime/Counters.h"
#include "tests/ErrorOf.h"
#include "tests/tensor/Composites.h"
#include "tests/tensor/OracleGraphs.h"

namespace fl::testing {
namespace {

using ir::Kind;
using ir::Op;

constexpr Device kDevices[] = {
    {"lazy", "cpu"}, {"eager", "cpu"}, {"lazy", "ref"}, {"lazy", "null"}};
// The device null computes nothing: of it types alone are checked.
bool computes(const Device& device) { return std::string(device.name) != "null"; }
constexpr int kShownFailures = 5;

// print(parse(print(g))) is print(g), and the parsed graph is the graph.
void checkText(const ir::Graph& graph) {
  const std::string text = ir::printGraph(graph, "f");
  const ir::Graph parsed = ir::parseGraph(text);
  EXPECT_EQ(ir::printGraph(parsed, "f"), text);
  EXPECT_TRUE(parsed.sameStructure(graph)) << text;
}

// ---- Cells ----

class Cell {
 public:
  Cell(Op op, dtype type, Layout layout, const OracleCase& c, double* worst)
      : op_(op), type_(type), layout_(layout), case_(c), worst_(worst) {}

  // Text, ordinary numbers on every device, the same bits fused and alone.
  void check() {
    const Recorded alone = record(false), fused = record(true);
    checkText(alone.graph);
    checkText(fused.graph);
    // The same numbers are drawn for both: what fusion adds comes last and is not drawn.
    const Elements computed = checkValues(alone, Draw(op_, type_).all(alone));
    compareRuns(run(fused, Draw(op_, type_).all(fused), kDevices[0]), computed, kDevices[0],
                "alone");
  }

  void checkSpecials() {
    const Recorded alone = record(false);
    Draw draw(op_, type_);
    for (const Scalar& special : specialsOf(type_)) {
      if (!specialReason(op_, layout_, case_, special)) {
        checkValues(alone, draw.all(alone, &special));
      }
    }
  }

 private:
  Recorded record(bool fused) const { return recordCell(op_, case_, type_, layout_, fused); }

  // Returns what the first device gave.
  Elements checkValues(const Recorded& alone, const std::vector<Elements>& inputs) {
    const Expected expected(op_, type_, layout_, case_, inputs);
    Elements first;
    for (const Device& device : kDevices) {
      const Elements got = run(alone, inputs, device);
      if (!computes(device)) {
        continue;
      }
      compare(got, expected, device);
      if (std::string(device.name) == "cpu") {
        first.empty() ? void(first = got) : compareRuns(got, first, device, "lazy");
      }
    }
    return first;
  }

  void compareRuns(const Elements& got, const Elements& want, const Device& device,
                   const char* other) {
    if (!bitsReason(op_, layout_)) {
      compareBits(got, want, device, other);
    }
  }

  void compareBits(const Elements& got, const Elements& want, const Device& device,
                   const char* other) {
    ASSERT_EQ(got.size(), want.size());
    for (size_t i = 0; i < got.size(); ++i) {
      if (!sameElement(got[i], want[i])) {
        fail(i, device, toString(got[i]) + " differs from " + toString(want[i]) + " of " + other);
      }
    }
  }

  void compare(const Elements& got, const Expected& expected, const Device& device) {
    ASSERT_EQ(got.size(), expected.size());
    for (size_t i = 0; i < got.size(); ++i) {
      const std::string wrong = expected.wrong(i, got[i], worst_);
      if (!wrong.empty()) {
        fail(i, device, wrong);
      }
    }
  }

  void fail(size_t place, const Device& device, const std::string& what) {
    if (++failures_ <= kShownFailures) {
      ADD_FAILURE() << ir::opName(op_) << " of " << type_ << ", " << layoutName(layout_) << ", "
                    << device.backend << " on " << device.name << ", element " << place << ": "
                    << what << "\n"
                    << ir::printGraph(record(false).graph, "f");
    }
  }

  const Op op_;
  const dtype type_;
  const Layout layout_;
  const OracleCase& case_;
  double* worst_;  // in ulps
  int failures_ = 0;
};

class Oracle : public ::testing::TestWithParam<Op> {};

TEST_P(Oracle, EveryCell) {
  const Op op = GetParam();
  int ran = 0;
  for (dtype type : allTypes()) {
    double worst = 0;  // of the dtype's cells, in ulps
    int ranBefore = ran;
    for (Layout layout : kLayouts) {
      if (skipReason(op, type, layout)) {
        continue;
      }
      Extents extents = extentsOf(layout);
      if (ir::isElementwise(op) && isFloating(type) && layout == Layout::Contiguous) {
        extents.a = 1001;  // a sample in which the worst is not far from the bound
      }
      const std::vector<OracleCase> cases = casesOf(op, type, extents);
      ASSERT_FALSE(cases.empty()) << "add a case of " << ir::opName(op) << " to OracleCases.cpp";
      for (const OracleCase& c : cases) {
        Cell cell(op, type, layout, c, &worst);
        cell.check();
        cell.checkSpecials();
      }
      ++ran;
    }
    if (isFloating(type) && ran > ranBefore) {
      const double bound = boundOf(op, type);
      std::cout << ir::opName(op) << " of " << type << ": worst " << worst << " of " << bound
                << " ulp\n";
      // With AVX2 alone oneDNN adds up in another order, which is more exact.
      const bool isMoreExact =
          ir::opInfo(op).kind == ir::Kind::Library && !__builtin_cpu_supports("x86-64-v4");
      const double tightness = isMoreExact ? 4 : 3;
      EXPECT_GE(worst, bound / tightness) << "the bound of " << ir::opName(op) << " is too large";
    }
  }
  EXPECT_GT(ran, 0);
}

// Of one class: 1, up to 16, larger.
constexpr Extents kAlike[] = {{37, 5, 3, 9, 7, 4, 2},
                              {38, 6, 4, 10, 8, 6, 3},
                              {53, 7, 5, 11, 9, 8, 4},
                              {64, 9, 3, 12, 5, 2, 5},
                              {41, 11, 13, 13, 11, 10, 6}};

// What was compiled for some extents serves all of their class, and is right there.
TEST_P(Oracle, KernelsServeOtherExtents) {
  const Op op = GetParam();
  const bool takesF32 = !skipReason(op, dtype::f32, Layout::Contiguous);
  const dtype type = takesF32 ? dtype::f32 : dtype::s32;
  ASSERT_FALSE(skipReason(op, type, Layout::Contiguous));
  uint64_t compiled = 0;
  for (const Extents& extents : kAlike) {
    double worst = 0;
    for (const OracleCase& c : casesOf(op, type, extents)) {
      Cell(op, type, Layout::Contiguous, c, &worst).check();
    }
    const uint64_t now = runtime::counters().kernelsCompiled;
    EXPECT_TRUE(&extents == kAlike || now == compiled)
        << now - compiled << " kernels compiled for extents of the same class";
    compiled = now;
  }
}

std::vector<Op> allOps() {
  std::vector<Op> ops;
  for (int i = 0; i < ir::kOpCount; ++i) {
    ops.push_back(static_cast<Op>(i));
  }
  return ops;
}
std::string nameOf(const ::testing::TestParamInfo<Op>& info) { return ir::opName(info.param); }
INSTANTIATE_TEST_SUITE_P(Rows, Oracle, ::testing::ValuesIn(allOps()), nameOf);

// ---- Composites ----

// Whole numbers and halves, many of them equal.
Tensor drawn(const Shape& shape, std::mt19937_64* random) {
  std::vector<float> elements(shape.elements());
  for (float& element : elements) {
    element = static_cast<float>((*random)() % 41) / 2 - 10;
  }
  return Tensor::fromVector(shape, elements);
}

// The median of an even count is that of two elements, which are another class than one.
Shape shapeOf(const Extents& e) { return {e.a, e.b | 1, e.c}; }

// A tensor of shapeOf(extents) in a layout, of memory that holds more or is in another order.
Tensor laidOut(const Extents& e, Layout layout, dtype type, std::mt19937_64* random) {
  const Shape shape = shapeOf(e);
  switch (layout) {
    case Layout::Transposed:
      return transpose(drawn({shape[2], shape[0], shape[1]}, random).astype(type), {1, 2, 0});
    case Layout::Broadcast:
      return tile(drawn({shape[0], 1, shape[2]}, random).astype(type), {1, shape[1], 1});
    case Layout::Sliced:
      return drawn({2 * shape[0] + 1, shape[1], shape[2]}, random)
          .astype(type)(range(1, 2 * shape[0] + 1, 2));
    default:
      return drawn(shape, random).astype(type);
  }
}

std::vector<Tensor> resultsOf(int composite, const Extents& e, Layout layout, dtype type,
                              const Device& device) {
  const BackendScope scope(device.backend, device.name);
  std::mt19937_64 random(31);
  setSeed(31);
  CompositeArguments arguments;
  for (int i = 0; i < 3; ++i) {
    arguments.operands.push_back(laidOut(e, layout, type, &random));
  }
  arguments.shape = {e.b, e.c};
  arguments.type = type;
  std::vector<Tensor> results = callComposite(composite, arguments);
  for (Tensor& result : results) {
    eval(result);
  }
  return results;
}

// In shape, dtype and, if `bits`, elements.
void expectSame(const std::vector<Tensor>& got, const std::vector<Tensor>& want, bool bits = true) {
  ASSERT_EQ(got.size(), want.size());
  for (size_t i = 0; i < got.size(); ++i) {
    EXPECT_EQ(got[i].shape(), want[i].shape());
    EXPECT_EQ(got[i].type(), want[i].type());
    if (bits) {
      EXPECT_EQ(bitsOf(got[i]), bitsOf(want[i])) << "result " << i;
    }
  }
}

class Composite : public ::testing::TestWithParam<int> {};

// As rows' do; eager's values are those of the rows.
TEST_P(Composite, KernelsServeOtherExtents) {
  uint64_t compiled = 0;
  for (const Extents& extents : kAlike) {
    const auto results = [&](const Device& device) {
      return resultsOf(GetParam(), extents, Layout::Contiguous, dtype::f32, device);
    };
    expectSame(results(kDevices[0]), results(kDevices[1]));
    const uint64_t now = runtime::counters().kernelsCompiled;
    EXPECT_TRUE(&extents == kAlike || now == compiled)
        << now - compiled << " kernels compiled for extents of the same class";
    compiled = now;
  }
}

// Lazily the bits of eager mode, or its error; of integers also the oracle's.
TEST_P(Composite, OfEveryTypeAndLayout) {
  int ran = 0;
  for (dtype type : allTypes()) {
    for (Layout layout : kLayouts) {
      SCOPED_TRACE(::testing::Message() << type << ", " << layoutName(layout));
      std::vector<Tensor> results[3];
      std::string errors[3];
      for (int i = 0; i < 3; ++i) {
        errors[i] = test::errorOf<std::exception>([&] {
          results[i] = resultsOf(GetParam(), extentsOf(layout), layout, type, kDevices[i]);
        });
        EXPECT_EQ(errors[i], errors[0]) << kDevices[i].backend << " on " << kDevices[i].name;
      }
      expectSame(results[0], results[1]);
      const bool isExact =
          std::ranges::none_of(results[0], [](const Tensor& x) { return isFloating(x.type()); });
      expectSame(results[2], results[1], isExact);
      ran += errors[0].empty();
    }
  }
  EXPECT_GE(ran, std::ssize(kLayouts)) << "calls that are no error";
}

std::string compositeName(const ::testing::TestParamInfo<int>& info) {
  const std::string name = kComposites[info.param];
  return name.substr(0, name.find('(')) + std::to_string(info.param);
}
INSTANTIATE_TEST_SUITE_P(Functions, Composite, ::testing::Range(0, kCompositeCount), compositeName);

using Reasons = std::map<std::string, int>;

// How many special values go through the cases of a cell; raises the counts of those left out.
int countSpecials(Op op, dtype type, Layout layout, Reasons* left) {
  int taken = 0;
  for (const OracleCase& c : casesOf(op, type, extentsOf(layout))) {
    for (const Scalar& special : specialsOf(type)) {
      const char* reason = specialReason(op, layout, c, special);
      ++(reason ? (*left)[reason] : taken);
    }
  }
  return taken;
}

void printReasons(const Reasons& counts, const char* what) {
  for (const auto& [reason, count] : counts) {
    std::cout << "; " << count << what << ": " << reason;
  }
}

void addTo(Reasons* all, const Reasons& counts) {
  for (const auto& [reason, count] : counts) {
    (*all)[reason] += count;
  }
}

int sumOf(const Reasons& counts) {
  int sum = 0;
  for (const auto& [reason, count] : counts) {
    sum += count;
  }
  return sum;
}

// Prints the table: cells that run and cells that are skipped, and special values of their cases
// that are left out, by row and reason.
TEST(OracleTable, EveryCellRunsOrIsSkippedForAReason) {
  const auto devices =
      static_cast<int>(std::count_if(std::begin(kDevices), std::end(kDevices), computes));
  const int dtypes = static_cast<int>(allTypes().size());
  const int layouts = std::size(kLayouts);
  int allRun = 0, allTaken = 0;
  Reasons allSkipped, allLeft;
  for (Op op : allOps()) {
    int run = 0;
    Reasons skipped, left, near;
    for (dtype type : allTypes()) {
      for (Layout layout : kLayouts) {
        if (const char* reason = skipReason(op, type, layout)) {
          skipped[reason] += devices;
          continue;
        }
        run += devices;
        if (const char* bits = bitsReason(op, layout)) {
          near[bits] += devices;
        }
        allTaken += countSpecials(op, type, layout, &left);
      }
    }
    std::cout << std::setw(22) << ir::opName(op) << std::setw(5) << run << " cells";
    printReasons(skipped, " skipped");
    printReasons(left, " special values left out");
    printReasons(near, " cells without the same bits everywhere");
    std::cout << "\n";
    allRun += run;
    addTo(&allSkipped, skipped);
    addTo(&allLeft, left);
    EXPECT_GT(run, 0) << ir::opName(op);
    EXPECT_FALSE(casesOf(op, dtype::f32, extentsOf(Layout::One)).empty()) << ir::opName(op);
  }
  std::cout << allRun << " cells run, " << sumOf(allSkipped) << " are skipped; " << allTaken
            << " special values go through their cases on each device, " << sumOf(allLeft)
            << " are left out; " << allRun / devices
            << " more cells check nothing but types, on the device null\n";
  EXPECT_EQ(allRun + sumOf(allSkipped), ir::kOpCount * devices * dtypes * layouts);
  EXPECT_EQ(allSkipped.size(), skipReasons().size()) << "a reason that skips nothing";
  EXPECT_EQ(allLeft.size(), specialReasons().size()) << "a reason that leaves nothing out";
  EXPECT_LT(sumOf(allSkipped), allRun);
}

}  // namespace
}  // namespace fl::testing
