// Cells of the oracle tests: graphs around one operator, the numbers that go through them, and
// what may come out by the oracle, the interpreter in double. OracleCases.h says what there is,
// OracleTest.cpp runs it on every device.
#pragma once

#include <random>
#include <string>
#include <vector>

#include "tests/tensor/EdgeValues.h"
#include "tests/tensor/OracleCases.h"

namespace fl::testing {

using Elements = std::vector<Scalar>;

// A graph, and what each of its parameters holds.
struct Recorded {
  ir::Graph graph;
  std::vector<CaseOperand> sources;
};
// Views that lay the operands out, then the operator; if it is `fused`, neighbours that change
// nothing stand around it.
Recorded recordCell(ir::Op op, const OracleCase& c, dtype type, Layout layout, bool fused = false);

class Draw {
 public:
  Draw(ir::Op op, dtype type) : info_(ir::opInfo(op)), type_(type), random_(29) {}

  // Elements of every parameter; `special` is put among the first one's.
  std::vector<Elements> all(const Recorded& recorded, const Scalar* special = nullptr);

 private:
  Scalar one(const CaseOperand& source);
  Scalar value();

  const ir::OpInfo& info_;
  const dtype type_;
  std::mt19937_64 random_;
};

// The stored elements of a parameter, of their magnitudes if that is asked for.
std::vector<uint64_t> bitsOf(const Elements& elements, dtype type, bool magnitudes = false);

struct Device {
  const char *backend, *name;
};
Elements run(const Recorded& recorded, const std::vector<Elements>& inputs, const Device& device,
             bool magnitudes = false);

bool sameElement(const Scalar& x, const Scalar& y);

// How far a row's results of a floating dtype may be from the oracle, in ulps; 0 for what is exact.
double boundOf(ir::Op op, dtype type);

// What a cell gives for inputs, by the oracle.
class Expected {
 public:
  Expected(ir::Op op, dtype type, Layout layout, const OracleCase& c,
           const std::vector<Elements>& inputs);

  size_t size() const { return want_.size(); }
  // "", or how element i is wrong: it is no exact one's, or further from it than the row's ulp.
  // Raises *worst, unless it is null, to its error in ulps. `slack` is what an executor with sums
  // in an order of its own may be off more.
  std::string wrong(size_t i, const Scalar& got, double* worst, double slack = 0) const;

 private:
  Elements inDouble(const std::vector<Elements>& inputs, bool magnitudes) const;
  Elements scaleOf(const std::vector<Elements>& inputs) const;
  double error(const Scalar& got, double want, double scale) const;

  const ir::Op op_;
  const dtype type_;
  const Layout layout_;
  const OracleCase& case_;
  const bool exact_;
  Elements want_;   // rounded if exact, else in double
  Elements scale_;  // what errors are measured against; of no elements: want_
};

}  // namespace fl::testing
