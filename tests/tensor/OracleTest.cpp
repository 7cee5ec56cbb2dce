// Every row of the op table x device x dtype x layout against the oracle, the interpreter in
// double: values within the row's ulp, types, text, and the same bits fused and alone.
//
// A cell of the table is a small graph around one operator: views that lay the operands out, then
// the operator (OracleGraphs.h). OracleCases.h says what it is made of and which cells there are
// none of; the table is printed, and a cell that neither runs nor is skipped for a stated reason
// fails. Special values of the elementwise rows and reductions are EdgeTest.cpp's; here they go
// through all others.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <iomanip>
#include <map>

#include "fl/ir/Text.h"
#include "fl/runtime/Counters.h"
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
      if (!std::isfinite(special.real) && finiteReason(op_, case_)) {
        continue;
      }
      checkValues(alone, draw.all(alone, &special));
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
        if (takesSpecials(op, layout)) {
          cell.checkSpecials();
        }
      }
      ++ran;
    }
    if (isFloating(type) && ran > ranBefore) {
      const double bound = boundOf(op, type);
      std::cout << ir::opName(op) << " of " << type << ": worst " << worst << " of " << bound
                << " ulp\n";
      EXPECT_GE(worst, bound / 3) << "the bound of " << ir::opName(op) << " is too large";
    }
  }
  EXPECT_GT(ran, 0);
}

// What was compiled for some extents serves all of their class (1, up to 16, larger), and is right
// there.
TEST_P(Oracle, KernelsServeOtherExtents) {
  const Op op = GetParam();
  const bool takesF32 = !skipReason(op, dtype::f32, Layout::Contiguous);
  const dtype type = takesF32 ? dtype::f32 : dtype::s32;
  ASSERT_FALSE(skipReason(op, type, Layout::Contiguous));
  constexpr Extents kExtents[] = {{37, 5, 3, 9, 7, 4, 2},
                                  {38, 6, 4, 10, 8, 6, 3},
                                  {53, 7, 5, 11, 9, 8, 4},
                                  {64, 9, 3, 12, 5, 2, 5},
                                  {41, 11, 13, 13, 11, 10, 6}};
  uint64_t compiled = 0;
  for (const Extents& extents : kExtents) {
    double worst = 0;
    for (const OracleCase& c : casesOf(op, type, extents)) {
      Cell(op, type, Layout::Contiguous, c, &worst).check();
    }
    const uint64_t now = runtime::counters().kernelsCompiled;
    EXPECT_TRUE(&extents == kExtents || now == compiled)
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

// Of the cases of a cell that would take special values.
std::vector<const char*> finiteReasons(Op op, dtype type, Layout layout) {
  std::vector<const char*> reasons;
  if (takesSpecials(op, layout) && isFloating(type)) {
    for (const OracleCase& c : casesOf(op, type, extentsOf(layout))) {
      if (const char* reason = finiteReason(op, c)) {
        reasons.push_back(reason);
      }
    }
  }
  return reasons;
}

// Prints the table: cells that run and cells that are skipped, by row and reason, and the cases
// that no infinity goes through.
TEST(OracleTable, EveryCellRunsOrIsSkippedForAReason) {
  const auto devices =
      static_cast<int>(std::count_if(std::begin(kDevices), std::end(kDevices), computes));
  const int dtypes = static_cast<int>(allTypes().size());
  const int layouts = std::size(kLayouts);
  int allRun = 0, allSkipped = 0, allFinite = 0;
  std::map<std::string, int> reasons;
  for (Op op : allOps()) {
    int run = 0;
    std::map<std::string, int> skipped, finite, near;
    for (dtype type : allTypes()) {
      for (Layout layout : kLayouts) {
        const char* reason = skipReason(op, type, layout);
        reason ? ++skipped[reason] : ++run;
        if (const char* bits = reason ? nullptr : bitsReason(op, layout)) {
          near[bits] += devices;
        }
        for (const char* each : finiteReasons(op, type, layout)) {
          finite[each] += devices;
          allFinite += devices;
        }
      }
    }
    std::cout << std::setw(22) << ir::opName(op) << std::setw(5) << run * devices << " cells";
    for (const auto& [reason, count] : skipped) {
      std::cout << "; " << count * devices << " skipped: " << reason;
      reasons[reason] += count * devices;
      allSkipped += count * devices;
    }
    for (const auto& [reason, count] : finite) {
      std::cout << "; " << count << " cases of finite numbers alone: " << reason;
    }
    for (const auto& [reason, count] : near) {
      std::cout << "; " << count << " cells without the same bits everywhere: " << reason;
    }
    std::cout << "\n";
    allRun += run * devices;
    EXPECT_GT(run, 0) << ir::opName(op);
    EXPECT_FALSE(casesOf(op, dtype::f32, extentsOf(Layout::One)).empty()) << ir::opName(op);
  }
  std::cout << allRun << " cells run, " << allSkipped << " are skipped, " << allFinite
            << " cases take finite numbers alone; " << allRun / devices
            << " more cells check nothing but types, on the device null\n";
  EXPECT_EQ(allRun + allSkipped, ir::kOpCount * devices * dtypes * layouts);
  EXPECT_EQ(reasons.size(), skipReasons().size()) << "a reason that skips nothing";
  EXPECT_LT(allSkipped, allRun);
}

}  // namespace
}  // namespace fl::testing
