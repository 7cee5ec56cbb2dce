// Cases of the .npz files that make_*_references.py write: inputs of operators and modules and what
// NumPy or PyTorch makes of them, steps of optimizers. A case's name holds its operator and
// arguments, "sort x=ties axis=1 mode=up"; its results stand under "<case>/<result>". Relies on
// tools/npy; tests/tensor/Reference*Test.cpp, tests/autograd, tests/nn and tests/optim use it.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "fl/tensor/tensor.h"
#include "tools/npy/Npz.h"

namespace fl::test {

// Where `actual`, of the same dtype and shape, differs first from what ReferenceCase::expect()
// allows, or "".
std::string difference(const Tensor& actual, const NpyArray& expected, double ulps);

class ReferenceCase {
 public:
  ReferenceCase(const std::map<std::string, NpyArray>& arrays, const std::string& name);

  const std::string& op() const { return op_; }
  bool has(const std::string& key) const { return arguments_.contains(key); }
  const std::string& text(const std::string& key) const { return arguments_.at(key); }
  int integer(const std::string& key) const { return std::stoi(text(key)); }
  double number(const std::string& key) const { return std::stod(text(key)); }
  // "1,2"; "" is no integer.
  std::vector<int> integers(const std::string& key) const;
  // The inputs that the argument names, separated by commas.
  Tensor tensor(const std::string& key) const;
  std::vector<Tensor> tensors(const std::string& key) const;
  // The input of this name.
  Tensor input(const std::string& name) const;
  // "at=A|B" and "flat=A": where a part of a tensor is, level by level.
  std::vector<std::vector<Index>> levels() const;
  // x(A)(B), or x.flat(A); `x` is what the levels before `level` show.
  Tensor part(const Tensor& x, size_t level = 0) const;

  // Expects dtype, shape and elements of the result, and counts it as compared. Elements are equal,
  // the sign of zero included and NaN for NaN, or, of floats, differ by at most `ulps` times the
  // dtype's epsilon, relative to the expected one.
  void expect(const std::string& result, const Tensor& actual, double ulps = 0);
  // The same with the result's shape replaced by one of as many elements.
  void expectAs(const Shape& shape, const std::string& result, const Tensor& actual,
                double ulps = 0);
  // Expects dtype and shape of the result, and elements that differ from its own by at most
  // `tolerance` relative to each; where an element is smaller, to a tenth of the largest, as terms
  // of that size may have cancelled there (of 1e-5 that leaves eight roundings of f32), or to
  // `floor` if that is more. Counts the result as compared.
  void expectNear(const std::string& result, const Tensor& actual, double tolerance,
                  double floor = 0);
  // Fails the test for results that were not compared.
  void expectAllCompared() const;

 private:
  const std::map<std::string, NpyArray>& arrays_;
  std::string name_, op_;
  std::map<std::string, std::string> arguments_;
  std::map<std::string, int> comparisons_;  // by result
};

// What is left of `shape` after a reduction over `axes`; no axes mean all.
Shape shapeWithout(const Shape& shape, const std::vector<int>& axes);

using ReferenceHandlers = std::map<std::string, std::function<void(ReferenceCase&)>>;

// Hands each case of tests/reference/<file>.npz to the handler of its operator. Fails the test for
// a case without a handler, a handler without a case, and results that no handler compared.
void runReferences(const std::string& file, const ReferenceHandlers& handlers);

// How many cases of an operator the files hold for each dtype: that of "x", or "type".
using ReferenceCounts = std::map<std::string, std::map<dtype, int>>;
ReferenceCounts countReferences(const std::vector<std::string>& files);

}  // namespace fl::test
