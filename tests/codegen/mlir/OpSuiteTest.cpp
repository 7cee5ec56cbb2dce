// Every row of the op table x dtype x layout through MLIR against the oracle, as OracleTest.cpp
// runs our own executors, and its text through mlir-opt. What moves elements or computes them one
// by one has the bits of the tile interpreter: both expand one meaning.
#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <fstream>
#include <map>

#include "fl/ir/Text.h"
#include "tests/tensor/OracleGraphs.h"
#include "tools/mlir/GraphJit.h"

namespace fl::testing {
namespace {

using ir::Kind;
using ir::Op;

constexpr int kShownFailures = 5;
constexpr int kLevel = 0;  // there is much code, which runs for a moment

struct Cell {
  dtype type;
  Layout layout;
  OracleCase oracle;
  Recorded recorded;
};

const char* skipReasonHere(Op op, dtype type, Layout layout) {
  return ir::opKind(op) == Kind::Library && isView(layout)
             ? "a view is a node of its own here, and other rows have it"
             : skipReason(op, type, layout);
}

// All cells of a row.
std::vector<Cell> cellsOf(Op op) {
  std::vector<Cell> cells;
  for (dtype type : allTypes()) {
    for (Layout layout : kLayouts) {
      if (skipReasonHere(op, type, layout)) {
        continue;
      }
      for (const OracleCase& c : casesOf(op, type, extentsOf(layout))) {
        cells.push_back({type, layout, c, recordCell(op, c, type, layout)});
      }
    }
  }
  return cells;
}

std::vector<ir::Graph> graphsOf(const std::vector<Cell>& cells) {
  std::vector<ir::Graph> graphs;
  for (const Cell& cell : cells) {
    graphs.push_back(cell.recorded.graph);
  }
  return graphs;
}

// The elements of a parameter as they are stored.
std::string stored(const Elements& elements, dtype type) {
  std::string bytes;
  for (uint64_t bits : bitsOf(elements, type)) {
    bytes.append(reinterpret_cast<const char*>(&bits), getTypeSize(type));
  }
  return bytes;
}

Elements run(const tools::GraphJit& jit, size_t number, const ir::Graph& graph,
             const std::vector<Elements>& inputs) {
  std::vector<std::string> bytes;
  for (size_t i = 0; i < inputs.size(); ++i) {
    bytes.push_back(stored(inputs[i], graph.parameters()[i].type.type));
  }
  const std::vector<std::string> before = bytes;
  std::vector<const void*> parameters;
  for (const std::string& each : bytes) {
    parameters.push_back(each.data());
  }
  const std::vector<uint8_t> result = jit.run(number, parameters)[0];
  EXPECT_EQ(bytes, before) << "parameters are not written";
  const dtype type = graph.type(graph.results()[0]).type;
  Elements elements;
  for (size_t at = 0; at < result.size(); at += getTypeSize(type)) {
    uint64_t bits = 0;
    std::memcpy(&bits, &result[at], getTypeSize(type));
    elements.push_back(decode(bits, type));
  }
  return elements;
}

// What adds up does so in another order here.
bool hasOurBits(Op op) { return !isAccumulating(op); }

class MlirRow : public ::testing::TestWithParam<Op> {
 protected:
  // Runs a cell on numbers as they are drawn; how often it was wrong.
  void check(const tools::GraphJit& jit, size_t number, const Cell& cell,
             const std::vector<Elements>& inputs) {
    const Op op = GetParam();
    const Expected expected(op, cell.type, cell.layout, cell.oracle, inputs);
    const Elements got = run(jit, number, cell.recorded.graph, inputs);
    const Elements ours =
        hasOurBits(op) ? testing::run(cell.recorded, inputs, {"eager", "cpu"}) : got;
    ASSERT_EQ(got.size(), expected.size());
    ASSERT_EQ(got.size(), ours.size());
    // The oracle's own sums round, in f64 as much as these do.
    const double slack = cell.type == dtype::f64 && !hasOurBits(op) ? 16 : 0;
    double* worst = cell.type == dtype::f32 ? &worst_ : nullptr;
    for (size_t i = 0; i < got.size(); ++i) {
      std::string wrong = expected.wrong(i, got[i], worst, slack);
      if (!sameElement(got[i], ours[i])) {
        wrong += toString(got[i]) + " differs from " + toString(ours[i]) + " of our own";
      }
      if (!wrong.empty() && ++failures_ <= kShownFailures) {
        ADD_FAILURE() << ir::opName(op) << " of " << cell.type << ", " << layoutName(cell.layout)
                      << ", element " << i << ": " << wrong << "\n"
                      << ir::printGraph(cell.recorded.graph, "f");
      }
    }
  }

  double worst_ = 0;
  int failures_ = 0;
};

TEST_P(MlirRow, AgreesWithTheOracle) {
  const Op op = GetParam();
  const std::vector<Cell> cells = cellsOf(op);
  const tools::GraphJit jit(graphsOf(cells), "", kLevel);
  for (size_t i = 0; i < cells.size(); ++i) {
    Draw draw(op, cells[i].type);
    check(jit, i, cells[i], draw.all(cells[i].recorded));
    for (const Scalar& special : specialsOf(cells[i].type)) {
      if (!specialReason(op, cells[i].layout, cells[i].oracle, special)) {
        check(jit, i, cells[i], draw.all(cells[i].recorded, &special));
      }
    }
  }
  EXPECT_EQ(failures_, 0);
  std::cout << ir::opName(op) << ": " << cells.size() << " graphs, worst " << worst_ << " of "
            << ir::opInfo(op).ulp << " ulp\n";
}

TEST_P(MlirRow, IsTextThatMlirOptVerifies) {
  const std::string path = ::testing::TempDir() + "/" + ir::opName(GetParam()) + ".mlir";
  std::ofstream(path) << tools::printMlir(graphsOf(cellsOf(GetParam())));
  EXPECT_EQ(std::system(("mlir-opt-19 -o /dev/null " + path).c_str()), 0) << path;
}

std::vector<Op> allOps() {
  std::vector<Op> ops;
  for (int i = 0; i < ir::kOpCount; ++i) {
    ops.push_back(static_cast<Op>(i));
  }
  return ops;
}
INSTANTIATE_TEST_SUITE_P(Rows, MlirRow, ::testing::ValuesIn(allOps()),
                         [](const auto& info) { return std::string(ir::opName(info.param)); });

// No row and no cell of one is refused: what the table holds, runs.
TEST(MlirTable, EveryCellRunsOrIsSkippedForAReason) {
  size_t all = 0, graphs = 0, skipped = 0;
  for (Op op : allOps()) {
    std::map<std::pair<dtype, Layout>, int> ran;
    for (const Cell& cell : cellsOf(op)) {
      ++ran[{cell.type, cell.layout}];
      ++graphs;
    }
    for (dtype type : allTypes()) {
      for (Layout layout : kLayouts) {
        skipped += skipReasonHere(op, type, layout) != nullptr;
      }
    }
    all += ran.size();
  }
  std::cout << all << " cells in " << graphs << " graphs, " << skipped << " skipped\n";
  EXPECT_EQ(all + skipped, ir::kOpCount * allTypes().size() * std::size(kLayouts));
  EXPECT_LT(skipped, all);
}

}  // namespace
}  // namespace fl::testing
