// What the stages of a kernel compute, and which values of a row kernel wait in memory of their own
// for later sweeps, as emitters decide. Relies on the kernel form alone.
#pragma once

#include <functional>
#include <vector>

#include "fl/kernel/Kernel.h"

namespace fl::ir {

// A value that sweeps read, from stage `firstRead` on, where stage `writer` leaves it.
struct KeptRow {
  int value;
  int writer;
  int firstRead;
};

struct StageValues {
  // The values that each stage needs, in order of definition; Totals and what is kept among them.
  std::vector<std::vector<int>> needed;
  std::vector<KeptRow> keptRows;  // at most kMaxKeptRows
};

// The values that those marked depend on, and these; nothing of what those `given` depend on.
std::vector<int> neededBy(const Kernel& kernel, std::vector<bool> marked,
                          const std::vector<bool>& given);

// Marks what a stage stores or reduces.
void addUsed(const KernelStage& stage, std::vector<bool>* used);

// Which values to read again rather than to compute from those that are given, which are read.
using WorthKeeping = std::function<std::vector<bool>(const std::vector<bool>& given)>;

// Without `worth` nothing is kept. With it each sweep keeps, of the values that an earlier one has
// computed, those worth it that it stores, reduces or reads for a value that it computes itself.
StageValues valuesOfStages(const Kernel& kernel, const WorthKeeping& worth = {});

// Instructions of a value in units of an exponential's 20; 0 for fewer than ten.
int costOf(const KernelValue& value);

// Values along axis 0 that take longer to compute from those given than to write and read.
std::vector<bool> longValues(const Kernel& kernel, const std::vector<bool>& given);

}  // namespace fl::ir
