// Sweeps of a thread along a row of its own, of at most kLanes elements a turn (Launch.h).
//
// Such a row is one part of the tree in fl/kernel/Kernel.h and has tails alone: element i is added
// to t[i], over all turns, and the other lanes are neutral. Once something has been added to a
// neutral element the sum of it and another is the same to the bit, so that those are left out.
// Lanes are four at a time, each adding to what is four times as few, in the tree's order:
//   leaf[j] = t[at + j];  half[j] = t[j'] + t[j' + 8] of j' = j and j + 4;  all[j] = both of
//   them
#include "fl/codegen/cuda/KernelWriter.h"

namespace fl::codegen::cuda {
namespace {

constexpr int kFour = 4;

}  // namespace

using ir::KernelStage;

void KernelWriter::declareFour(const KernelStage& stage, const char* name) {
  for (const Reduce& reduce : stage.reduces) {
    const dtype type = typeOf(reduce);
    const std::string init = literal(reduceInit(reduce.op, type));
    std::string four = init;
    for (int j = 1; j < kFour; ++j) four += ", " + init;
    text_.line(type, " ", name, reduce.index, "[", kFour, "] = {", four, "};");
  }
}

void KernelWriter::addFour(const KernelStage& stage, const char* to, const char* from) {
  for (const Reduce& reduce : stage.reduces) {
    const std::string sum = detail::concat(to, reduce.index, "[j]");
    text_.line("#pragma unroll");
    text_.line("for (int j = 0; j < ", kFour, "; ++j) ", sum, " = ",
               functions_.ofReduce(reduce.op, typeOf(reduce)), "(", sum, ", ", from, reduce.index,
               "[j]);");
  }
}

void KernelWriter::writeShortSweep(const KernelStage& stage) {
  static_assert(ir::kLanes == 4 * kFour);
  text_.line("const int length = int(", extent(0), ");");
  declareFour(stage, "all");
  text_.line("#pragma unroll 1");
  text_.open("for (int begin = 0; begin < ", 2 * kFour, " && begin < length; begin += ", kFour,
             ")");
  declareFour(stage, "half");
  text_.line("#pragma unroll 1");
  text_.open("for (int at = begin; at < length; at += ", 2 * kFour, ")");
  declareFour(stage, "leaf");
  openTurns("0", product(turningAxes()));
  std::string each = "const s64 i0 = at + j";
  for (const Reduce& reduce : stage.reduces) {
    each +=
        detail::concat("; ", typeOf(reduce), "& sum", reduce.index, " = leaf", reduce.index, "[j]");
  }
  writeBatch(stage, {{kFour, each, "i0 < length"}});
  if (!turningAxes().empty()) text_.close();
  addFour(stage, "half", "leaf");
  text_.close();
  addFour(stage, "all", "half");
  text_.close();
  for (const Reduce& reduce : stage.reduces) {
    const dtype type = typeOf(reduce), total = totalTypeOf(reduce);
    const std::string add = functions_.ofReduce(reduce.op, type);
    const auto at = [&](int j) { return detail::concat("all", reduce.index, "[", j, "]"); };
    std::string sum = detail::concat(add, "(", add, "(", at(0), ", ", at(2), "), ", add, "(", at(1),
                                     ", ", at(3), "))");
    if (type != total) sum = functions_.ofCast(type, total) + "(" + sum + ")";
    text_.line("total", reduce.index, " = ", functions_.ofReduce(reduce.op, total), "(total",
               reduce.index, ", ", sum, ");");
  }
}

}  // namespace fl::codegen::cuda
