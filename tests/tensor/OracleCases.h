// What the oracle test asks of each row of the op table: operands and attributes at given extents,
// the layouts in which operands stand, and the cells of the table and special values that are
// skipped, with a reason.
// A new row needs a case in casesOf(); everything else comes from the table.
#pragma once

#include <vector>

#include "fl/ir/Graph.h"
#include "tests/tensor/EdgeValues.h"

namespace fl::testing {

enum class Layout { Contiguous, Transposed, Broadcast, Sliced, Empty, One };
inline constexpr Layout kLayouts[] = {Layout::Contiguous, Layout::Transposed, Layout::Broadcast,
                                      Layout::Sliced,     Layout::Empty,      Layout::One};
const char* layoutName(Layout layout);
// True if an operand reads other memory than its elements in order.
bool isView(Layout layout);

struct CaseOperand {
  enum class Role {
    Values,     // of the row's dtype, in the cell's layout
    Condition,  // b8, in the cell's layout
    Indices,    // s64 below `number`, in the cell's layout
    Start,      // the s64 number `number`
    Seed,       // the u64 number `number`
    Fill,       // the number `number` in the row's dtype
  };
  Role role = Role::Values;
  Shape shape;
  Dim number = 0;
};

struct OracleCase {
  std::vector<CaseOperand> operands;
  ir::Attrs attrs;
};

// Three dimensions and a batch of images that cases are made of.
struct Extents {
  Dim a, b, c;
  Dim width, height, channels, images;
};
Extents extentsOf(Layout layout);

bool isAttention(ir::Op op);
bool isAccumulating(ir::Op op);

// None for an op that nobody has written a case for.
std::vector<OracleCase> casesOf(ir::Op op, dtype type, const Extents& extents);

// nullptr if the cell runs.
const char* skipReason(ir::Op op, dtype type, Layout layout);
// Why `special` does not go through a case; nullptr if it does. Those that do are taken one at a
// time.
const char* specialReason(ir::Op op, Layout layout, const OracleCase& c, const Scalar& special);
// Why the bits of a cell may be others run lazily, eagerly and fused, where all are near the
// oracle; nullptr if they are the same.
const char* bitsReason(ir::Op op, Layout layout);
// All that skipReason() and specialReason() may give.
std::vector<const char*> skipReasons();
std::vector<const char*> specialReasons();

}  // namespace fl::testing
