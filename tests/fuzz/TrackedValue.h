// Tensor operators that also say how far a correct result may be from another one: what the
// differential tests compare by. An exact value (integers, sums and products of floats element by
// element) is the same on every device; for others an absolute bound on the difference of two
// implementations is carried along, by first-order error propagation from measured magnitudes.
// Bounds cost host reads, so they are taken only on request. RandomProgram.h builds on this.
#pragma once

#include <string>
#include <vector>

#include "fl/tensor/tensor.h"

namespace fl::testing {

struct Value {
  Tensor tensor;
  bool exact = true;
  double error = 0;  // 0 if exact; infinite if nothing can be said
};

// What an operator does to errors.
enum class Accuracy {
  Rounded,       // correctly rounded and continuous
  Approximated,  // within a few units, continuous
  Step,          // jumps: defined for exact operands only
};

struct UnaryRow {
  const char* name;
  Tensor (*apply)(const Tensor&);
  Accuracy accuracy;
  double slope;  // the largest on its domain
  // The domain in which the slope holds: |x| <= clamp, or after |x| + away.
  double clamp = 0;
  double away = 0;
};
const std::vector<UnaryRow>& unaryRows();

struct BinaryRow {
  const char* name;
  Tensor (*apply)(const Tensor&, const Tensor&);
  enum class Rule { Add, Mul, Div, Select, Power, Step, Integer } rule;
};
const std::vector<BinaryRow>& binaryRows();

struct ReduceRow {
  const char* name;
  Tensor (*apply)(const Tensor&, const std::vector<int>&, bool);
  enum class Rule { Sum, Mean, Select, Step, Var, Std, Norm } rule;
  double number = 0;  // of a norm: its order; of a variance: how many fewer it divides by
};
const std::vector<ReduceRow>& reduceRows();

// The rows of these names.
const UnaryRow& unaryRow(const std::string& name);
const BinaryRow& binaryRow(const std::string& name);
const ReduceRow& reduceRow(const std::string& name);

// One unit in the last place at 1, for what is computed in `type`.
double unitOf(dtype type);

class Tracker {
 public:
  explicit Tracker(bool measures) : measures_(measures) {}

  Value unary(const UnaryRow& row, const Value& x) const;
  Value binary(const BinaryRow& row, const Value& x, const Value& y) const;
  Value reduce(const ReduceRow& row, const Value& x, const std::vector<int>& axes,
               bool keepDims) const;
  Value cast(const Value& x, dtype type) const;
  Value matmul(const Value& x, const Value& y, bool transposeX, bool transposeY) const;
  Value where(const Value& condition, const Value& x, const Value& y) const;
  // `result` holds sums of `inner` products of elements of x and y.
  Value products(Tensor result, const Value& x, const Value& y, double inner) const;
  // `result` holds sums of at most `inner` elements of x.
  Value sums(Tensor result, const Value& x, double inner) const;
  // `result` holds means of `inner` elements of x.
  Value means(Tensor result, const Value& x, double inner) const;
  // The same elements elsewhere.
  static Value moved(const Value& x, Tensor result);

 private:
  // The largest |element|; infinite if one is not finite. 0 where nothing is measured.
  double largest(const Tensor& tensor) const;
  double smallest(const Tensor& tensor) const;
  // How far two implementations of `value`, row's reduction of `count` elements of x, may be apart.
  double varianceError(const ReduceRow& row, const Value& x, const Tensor& value,
                       double count) const;
  double normError(const ReduceRow& row, const Value& x, const Tensor& value, double count) const;
  Value result(Tensor tensor, bool exact, double error) const;

  bool measures_;
};

}  // namespace fl::testing
