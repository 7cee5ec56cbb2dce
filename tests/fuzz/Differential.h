// Differential fuzzing: random programs give the same bits compiled, on tier 0 and eagerly, with
// one thread and with two, and on memory that is poisoned; and nearly the same values on the
// reference device. No program may fail in the compiler (a fallback), and a second run with other
// numbers builds no plan. Relies on RandomProgram.h; FuzzTest.cpp and Fuzz.cpp run it.
#pragma once

#include <cstdint>
#include <limits>
#include <string>

namespace fl::testing {

inline constexpr int kAllStatements = std::numeric_limits<int>::max();

// Runs the first statements of a program everywhere; what is wrong with it, or "".
std::string checkProgram(uint64_t seed, int statements = kAllStatements);
// How many statements of a program that is wrong are enough for it to be.
int shrinkProgram(uint64_t seed);
// Writes every stage of the program's plans into the folder, as FL_DUMP does.
void dumpProgram(uint64_t seed, int statements, const std::string& folder);
// What the programs so far called, a line an op: calls by the dtype of its first operand, those
// with fewer calls than `fewest` marked.
std::string describeCalls(uint64_t fewest);

}  // namespace fl::testing
