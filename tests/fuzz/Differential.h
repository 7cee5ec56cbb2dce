// Differential fuzzing: random programs give the same bits compiled, on tier 0 and eagerly, with
// one thread and with two, on memory that is poisoned, and where plans compute values again rather
// than keep them; and nearly the same values on the reference device, those that are exact alone
// where a program is not tame. Where convolutions take images with the channels last they add in
// another order: such a program has eager's bits without the pass that chooses layouts, its own
// with it. No program may throw or fail in the compiler (a fallback), and a second run with other
// numbers builds no plan. Relies on RandomProgram.h; FuzzTest.cpp and Fuzz.cpp run it.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "fl/base/Types.h"
#include "fl/ir/Op.h"
#include "tests/fuzz/RandomProgram.h"
#include "tests/tensor/Composites.h"

namespace fl::testing {

// "" or where the first difference is. Floats are the same bits, or NaN both; `near` allows zeros
// of either sign, and what the error of `expected` explains, if it is not exact.
std::string difference(const HostValue& actual, const HostValue& expected, bool near);
// Runs what is left of a program everywhere; what is wrong with it, or "".
std::string checkProgram(uint64_t seed, const Cut& cut = {});
// What differs in a run on this backend, for the device cpu, from one on the reference device, or
// ""; nothing for a program that is not tame (RandomProgram.h).
std::optional<std::string> compareWithReference(uint64_t seed, const char* backend);
// What the programs so far were held to on the reference device.
struct HeldCounts {
  uint64_t programs = 0, wild = 0;  // that are tame, and that are not
  // Those whose plans computed something again within a budget.
  uint64_t withinBudget = 0;
  // Values that tame programs read there, by how near to them those of other devices must be.
  uint64_t exact = 0, bounded = 0, unbounded = 0;
  // Those of other programs: exact, or of the same dtype and shape.
  uint64_t wildExact = 0, wildTyped = 0;

  void add(const std::vector<HostValue>& values, bool tame);
};
HeldCounts& heldCounts();
// What differs in a run on poisoned memory (FL_POISON=1) from the same run on memory that is not,
// or
// ""; NaN is compared by its bits.
std::string comparePoisoned(uint64_t seed);
// What is enough of a program that is wrong: no statement of it can go.
Cut shrinkProgram(uint64_t seed);
// Writes every stage of the program's plans into the folder, as FL_DUMP does.
void dumpProgram(uint64_t seed, const Cut& cut, const std::string& folder);
// Rows of the op table, then Composites (tests/tensor/Composites.h).
inline constexpr int kCalledCount = ir::kOpCount + kCompositeCount;
std::string calledName(int called);
// How often the programs so far called each of them, by the dtype of its first operand, or of its
// result if there is none.
using CallCounts = std::array<std::array<uint64_t, kDtypeCount>, kCalledCount>;
CallCounts& callCounts();
// A line each.
std::string describe(const CallCounts& counts);
// "name dtype calls" of what the API can ask for and programs called fewer than `fewest` times.
std::vector<std::string> thinCells(const CallCounts& counts, uint64_t fewest);

}  // namespace fl::testing
