// The values of a kernel's body, computed where they belong: each at the outermost loop in which
// all axes that it varies along have an index.
//
// The loop nest opens a Scope at each level and asks for what a stage needs; values computed in a
// scope are forgotten when it closes, because the code after it is not reached through it. Relies
// on KernelPlan.h, MemoryAccess.h and TableLookup.h; KernelEmitter.h builds the loop nest.
#pragma once

#include <utility>
#include <vector>

#include "fl/codegen/cpu/KernelPlan.h"
#include "fl/codegen/cpu/MemoryAccess.h"
#include "fl/codegen/cpu/TableLookup.h"

namespace fl::codegen::cpu {

// What a launch passes, as loaded at the function's entry.
struct KernelArguments {
  struct Operand {
    llvm::Value* base = nullptr;  // a pointer, or the first number of an Index operand
    // Bytes (for an Index operand: numbers) from one element to the next; null for class Zero.
    std::vector<llvm::Value*> strides;
  };
  std::vector<Operand> operands;
  std::vector<llvm::Value*> extents;
  llvm::Value* scalars = nullptr;  // address of the first
  llvm::Value* scratch = nullptr;
  llvm::Value* found = nullptr;  // null for code that finds no NaN
  std::vector<llvm::Value*> places;
};

class ValueScopes {
 public:
  ValueScopes(const ir::Kernel& kernel, const KernelPlan& plan, LlvmBuilder& math,
              MemoryAccess& memory, TableLookup* lookup, const KernelArguments& arguments);

  // Undoes, when it goes, all that was set or computed in its life.
  class Scope {
   public:
    explicit Scope(ValueScopes& values);
    ~Scope();
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    ValueScopes& values_;
    AxisSet axes_;
    std::vector<llvm::Value*> at_;
    std::vector<llvm::Value*> copies_;
    std::vector<llvm::Value*> indices_;
    std::vector<Lanes> lanes_;
    size_t mark_;
  };

  // Gives `axis` an index; where that leads to may have been computed further out.
  void moveTo(int axis, llvm::Value* index) { moveTo(axis, index, placesAt(axis, index)); }
  void moveTo(int axis, llvm::Value* index, std::vector<llvm::Value*> places);
  // Of operands.
  std::vector<llvm::Value*> placesAt(int axis, llvm::Value* index);
  // Gives axis 0 the indices of one or more vectors.
  void setLanes(std::vector<Lanes> lanes);
  const std::vector<Lanes>& lanes() const { return lanes_; }
  // The address of an operand's element at the indices of the axes that have one and 0 of others.
  llvm::Value* at(int operand) const { return at_[operand]; }
  // Makes an input be read from a copy: the elements of the current lanes, or a row in memory that
  // is contiguous along axis 0 and has whole vectors, by where the element at index 0 would be.
  void readCopy(int operand, llvm::Value* copy) { copies_[operand] = copy; }

  // Computes what the stage needs and what can be known here: values that do not vary along axis 0,
  // those of one vector, or all.
  void computeScalars(int stage);
  void computeVector(int stage, int vector);
  void compute(int stage);

  // `end` if all that vectors look up is in bounds (KernelPlan::checksLines), else `begin`.
  llvm::Value* endOfFound(llvm::Value* begin, llvm::Value* end);

  // A value that is known here, as a number or as a vector of numbers.
  LlvmValue scalar(int value) const;
  LlvmValue vector(int value, int vector) const;
  // Makes the result of a reduction known, one value a vector or, in row kernels, one number.
  void setTotal(int reduction, const std::vector<LlvmValue>& totals);

  void storeScalars(int stage);
  // Rounds what the stage's body left for its end, for one vector or two neighbours, and stores
  // what the stage stores of them.
  void storeVectors(int stage, int first, int count);

 private:
  // Table 0 holds scalars, table 1 scalars spread over the lanes, table 2 + u those of vector u.
  enum { kScalars = 0, kSpread = 1, kVectors = 2 };

  bool isKnown(int table, int value) const { return tables_[table][value].value != nullptr; }
  int tableOf(int value, int vector) const;
  void set(int table, int value, LlvmValue result);
  void setScalar(int value, LlvmValue result);
  // True if the value is not known and can be computed from what is.
  bool isDue(int value, int vector) const;
  bool loadsPair(int operand, int vector) const;
  // Random at the linear index of neighbours; makes one or two vectors known.
  bool isRandomRun(int value) const;
  void computeRandomRun(int value, int vector);
  ElementRow keptRow(size_t number) const;
  // Makes what waits for the stage known in a vector.
  void loadKept(int stage, int vector);
  LlvmValue scalarLoad(int operand);
  LlvmValue vectorLoad(int operand, const Lanes& lanes);
  bool isIndex(int value) const;
  LlvmValue indices(int operand, const Lanes& lanes, dtype type);
  // The first of integers that are known to follow one another; null of others.
  llvm::Value* firstOfRun(int value, int vector);
  // The value of an Apply or a Gather.
  LlvmValue applied(int value, int vector);
  // Notes where one of the values, which are known since a moment ago, makes NaN: FindNan.cpp.
  void findNan(const std::vector<int>& values, int vector);
  // Whether anything but loads of it can.
  bool mayMakeNan(int value) const;
  llvm::Value* isNan(LlvmValue value, bool orInfinite);
  llvm::Value* makesNan(int value, int vector);
  // Lowers the place of `value` to that of the first of the lanes, or here.
  void noteFound(int value, llvm::Value* lanes, int vector);
  // Makes a value of KernelPlan::rounded known; returns the vectors joined.
  LlvmValue roundVectors(int value, int first, int count);

  const ir::Kernel& kernel_;
  const KernelPlan& plan_;
  LlvmBuilder& math_;
  llvm::IRBuilder<>& builder_;
  MemoryAccess& memory_;
  TableLookup* lookup_;  // null if the kernel has no Gather
  const KernelArguments& arguments_;

  AxisSet axes_ = 0;                  // those with an index
  std::vector<llvm::Value*> at_;      // the operands' bases, moved by these indices except axis 0's
  std::vector<llvm::Value*> copies_;  // of operands; null where there is none
  std::vector<llvm::Value*> indices_;  // of axes but axis 0 in vectors; null where there is none
  std::vector<Lanes> lanes_;           // empty where axis 0 has no index
  std::vector<std::vector<LlvmValue>> tables_;
  std::vector<std::pair<int, int>> trail_;  // what was set: table and value, in order
};

}  // namespace fl::codegen::cpu
