// What the CPU emitter decides about a kernel before it writes code: along which axes each value
// varies, which values a stage needs, and how many vectors a loop body handles.
// Relies on the kernel form only; KernelEmitter.h turns the plan into LLVM IR.
#pragma once

#include <cstdint>
#include <vector>

#include "fl/kernel/Artifact.h"
#include "fl/kernel/KeptRows.h"
#include "fl/kernel/Kernel.h"

namespace fl::codegen::cpu {

using ir::KernelOperand;
using ir::KernelValue;

// Bit a stands for axis a.
using AxisSet = uint32_t;

struct KernelPlan {
  // Along which axes each value varies. A value without axis 0 is computed once for all lanes.
  std::vector<AxisSet> varies;
  // The values that each stage needs, in order of definition; Totals among them.
  std::vector<std::vector<int>> needed;
  // Those of them that are left for the end of the stage's body: vectors rounded from f32 to bf16
  // that no other value needs, where the target has an instruction for two vectors at once.
  std::vector<std::vector<int>> rounded;
  // In the order of their rows in KernelArgs::scratch.
  std::vector<ir::KeptRow> keptRows;
  // Values without axis 0 that vector code reads, so that they are spread over the lanes once.
  std::vector<bool> spread;
  // Neighbouring vectors of bf16 are loaded as one (AVX-512).
  bool loadsPairs = false;
  // Of row kernels, by stage: two vectors of a sweep are every second element of what is loaded
  // for both, which widens bf16 by one instruction each.
  std::vector<bool> everySecond;
  // Elements of a vector along axis 0: kLanes, which the trees of reductions are stated for, or
  // what fills a register where all are bytes, whose reductions any tree gives the same result.
  int lanes = ir::kLanes;
  // Bytes from what is loaded to what code for more than the caches hold asks for: far where rows
  // of memory are only read; 0 where rows are not left but passed from one to the next, so that the
  // loop nest asks for those that follow.
  int64_t ahead = 0;
  // Vectors handled by one turn of an inner loop without masks. In row kernels 1 or 2.
  int unroll = 1;
  // Elements of axis 0 that a column kernel has sums for at most, a multiple of unrolled vectors,
  // and whether several sweeps read them.
  int64_t columnTile = 0;
  bool columnsStay = false;
  // Rows of a column kernel whose loads stand one behind the other in its code: processors guess by
  // a load's place there which line it wants next. 0: one load goes from row to row.
  int64_t rowsTogether = 0;
  // A column kernel whose columns are short rows, whose elements follow the tree of rows.
  bool sideBySide = false;
  // A map that walks along memory and takes as many whole runs of axis 0, and of axis 1, at a time
  // as it can: they may be short.
  bool nested = false;
  // What full turns leave of a run is first handled in full vectors, and then under masks.
  bool rest = false;
  // A map that crosses memory (fl/kernel/Kernel.h) is walked in tiles of axes 0 and 1.
  bool tiled = false;
  // A tile's elements along axis 0 and along axis 1: multiples of kLanes.
  int64_t tileLength = 0, tileRuns = 0;
  // Of a tiled map that moves its one input and does nothing else: of how many indices of axis 0 it
  // stores that from registers. 0: of other maps, which take it from a copy.
  int64_t movedRows = 0;
  // The inputs that cross memory.
  std::vector<int> crossing;
  // Gathers of a nested map whose index is one for all of axis 0, so that they look up whole lines.
  std::vector<int> lineGathers;
  // A nested map none of whose vectors are looked up by an index or a bound that varies along axis
  // 0, so that they are checked once for all of it.
  bool checksLines = false;

  bool isVector(int value) const { return varies[value] & 1; }
};

// `findsNan`: the code notes at which elements. If `stores` is Across, `kernel` has its rows as
// columns.
KernelPlan planKernel(const ir::Kernel& kernel, const ir::Target& target, ir::Stores stores,
                      bool findsNan = false);
// The plan of computing no more than where `plan`'s gathers of lines begin, as its one stage.
KernelPlan planLines(const ir::Kernel& kernel, const KernelPlan& plan);

// Whether the target has AVX512_BF16, which rounds f32 to bf16 but takes denormals as 0.
bool roundsBfloat16(const ir::Target& target);

}  // namespace fl::codegen::cpu
