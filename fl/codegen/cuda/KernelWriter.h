// The text of one kernel.
//
// A map's threads each take a pack: neighbours along axis 0, loaded first, computed in an unrolled
// loop and stored last. A sweep's body is a lambda, which the loops of a part call; what does not
// vary along reduced axes is computed before it. Each variant of a kernel (Launch.h) is written by
// the same code. Code for a group of launches (Group.h) has its block look for the launch that it
// is of. Every value of the kernel
// form is one line, v and its number. Relies on Functions.h and Prelude.h.
#pragma once

#include <bit>
#include <functional>
#include <string>
#include <vector>

#include "fl/codegen/cuda/CodeText.h"
#include "fl/codegen/cuda/Functions.h"
#include "fl/kernel/Kernel.h"
#include "fl/kernel/cuda/Group.h"
#include "fl/kernel/cuda/Launch.h"
#include "fl/kernel/cuda/SharedRows.h"

namespace fl::codegen::cuda {

using ir::cuda::kBlockThreads;
using ir::cuda::kBlockWarps;
using ir::cuda::kWarp;
using ir::cuda::Variant;

class KernelWriter {
 public:
  KernelWriter(const ir::Kernel& kernel, std::string name, int launches, Functions& functions);
  std::string write();

 private:
  using Reduce = ir::KernelStage::Reduce;
  // Forgets, at its end, the values that have been defined since.
  class Scope;

  void writeArguments();
  void writeMembers(const char* suffix);
  void writeFunction(Variant variant);
  // s64 index of each axis, of `rest`, which runs over them in column-major order.
  void writeIndices(const std::string& number, const std::vector<int>& axes,
                    const std::vector<std::string>& extents);
  std::string extent(int axis) const;
  std::string product(const std::vector<int>& axes) const;
  std::vector<int> axesWhere(bool reduced, int from = 0) const;
  int lowestReduced() const { return std::countr_zero(kernel_.reduced); }
  std::vector<int> turningAxes() const { return axesWhere(true, lowestReduced() + 1); }
  // Of axis 0, which is short where rows are kept.
  const char* indexType() const { return shared_ ? "int" : "s64"; }
  int64_t chunk() const { return kernel_.rows() ? ir::kRowChunk : ir::kColumnChunk; }
  // Of the operand's element from its data, in elements, where axis 0 stands at `index0`.
  std::string offset(int operand, const std::string& index0) const;
  std::string stride(int operand, int axis) const;

  // The values that a stage needs, in order of definition.
  const std::vector<int>& neededBy(const ir::KernelStage& stage) const {
    return (shared_ ? shared_->needed : needed_)[&stage - kernel_.stages.data()];
  }
  bool variesWithin(int value, uint32_t axes) const { return (varies_[value] & ~axes) == 0; }
  // Defines those not yet known that vary along no other axes; `exists` says whether the element
  // does.
  void defineValues(const std::vector<int>& needed, uint32_t axes, const std::string& index0,
                    const std::string& exists);
  std::string definition(int value, const std::string& index0, const std::string& exists);
  bool isIndex(int value) const;

  void writeMap();
  void loadPacks(const std::vector<int>& needed);
  void drawPacks(const std::vector<int>& needed);
  void storePacks();
  void accessPack(const char* function, const std::string& array, int operand, bool store);

  void writeReduction();
  void writeStages();
  void declareParts();
  void beginKept();
  // Whether threads have kept elements of their own, some perhaps a repeated one.
  bool isThreadEach() const { return isShort() || !kernel_.rows(); }
  bool isShort() const { return variant_ == Variant::Short; }
  // The row that the value has in the sweep that is written, before it or from then on; or null.
  const ir::cuda::SharedRow* findRow(int value, bool isReady) const;
  void declareRows();
  void fetchRows();
  void keepRows();
  // Of the element within its rows.
  std::string place() const;
  void writeStage(const ir::KernelStage& stage, bool isLast);
  void writeStores(const ir::KernelStage& stage);
  void writeSweep(const ir::KernelStage& stage, bool isLast);
  void writeVisit(const ir::KernelStage& stage);
  void writeRounds(const ir::KernelStage& stage);
  void declarePart(const char* number);
  void openTurns(const std::string& first, const std::string& last);
  void writePart(const ir::KernelStage& stage);
  // What a sweep reads from memory for each element.
  std::vector<int> sweptLoads(const ir::KernelStage& stage) const;
  int batchLength(const ir::KernelStage& stage) const;
  void writeLoops(const ir::KernelStage& stage);
  // Visits for j = 0, 1, ..., which `begin` makes indices of, and of sums what those are not yet,
  // all or where the condition holds. Their loads are put into `loaded`.
  struct Run {
    int length;
    std::string begin, condition = "";
    const char *sums = "sum", *loaded = "from";
  };
  void writeBatch(const ir::KernelStage& stage, const std::vector<Run>& runs);
  void openBatch(const Run& run);
  void loadBatch(const ir::KernelStage& stage, const Run& run);
  void visitBatch(const ir::KernelStage& stage, const Run& run);
  void foldRow(const Reduce& reduce);
  void writeShortSweep(const ir::KernelStage& stage);
  void declareFour(const ir::KernelStage& stage, const char* name);
  void addFour(const ir::KernelStage& stage, const char* to, const char* from);
  void addParts(const Reduce& reduce);
  void addSpreadParts(const ir::KernelStage& stage);
  void defineTotals(const Reduce& reduce);
  // Whether several blocks may share this sweep. Launches that keep rows do not.
  bool maySplit(const ir::KernelStage& stage) const {
    return variant_ == Variant::Usual &&
           &stage - kernel_.stages.data() == ir::cuda::sharedSweep(kernel_);
  }
  dtype typeOf(const Reduce& reduce) const { return kernel_.values[reduce.value].type; }
  dtype totalTypeOf(const Reduce& reduce) const { return totalType(reduce.op, typeOf(reduce)); }

  const ir::Kernel& kernel_;
  const std::string name_;
  const int launches_;
  // This block's number among those of its launch, and how many these are.
  const std::string block_, blocks_;
  Functions& functions_;
  const std::vector<uint32_t> varies_;
  const int pack_;
  CodeText text_;
  std::vector<std::string> names_;  // of values; empty where not defined
  const std::vector<std::vector<int>> needed_;
  const ir::cuda::SharedRows sharedRows_;
  Variant variant_ = Variant::Usual;              // that is written
  const ir::cuda::SharedRows* shared_ = nullptr;  // of a variant that keeps rows
  int stage_ = 0;                                 // that is written
};

}  // namespace fl::codegen::cuda
