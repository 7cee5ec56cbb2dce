// Sparse matrices in their three storages against NumPy: the dense matrix each stands for, and
// products.
#include <gtest/gtest.h>

#include "tests/reference/References.h"

namespace fl::test {
namespace {

StorageType storage(const ReferenceCase& c) {
  const std::string& name = c.text("storage");
  return name == "CSR" ? StorageType::CSR : name == "CSC" ? StorageType::CSC : StorageType::COO;
}

Tensor matrix(const ReferenceCase& c) {
  const std::vector<int> shape = c.integers("shape");
  return Tensor(shape[0], shape[1], c.tensor("x"), c.tensor("rows"), c.tensor("columns"),
                storage(c));
}

void product(ReferenceCase& c) {
  const auto property = [&](const char* key) {
    return c.integer(key) ? MatrixProperty::Transpose : MatrixProperty::None;
  };
  c.expect("y", matmul(matrix(c), c.tensor("y"), property("tx"), property("ty")));
}

// All sums are exact, those of 16-bit floats until they are rounded.
TEST(Reference, Sparse) {
  runReferences("sparse", {
                              {"dense", [](auto& c) { c.expect("y", matrix(c)); }},
                              {"matmul", product},
                          });
}

}  // namespace
}  // namespace fl::test
