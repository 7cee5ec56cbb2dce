// The suite of operators for a backend of one's own: every row of the op table x dtype x layout of
// the operands, special values among them, against the oracle, the interpreter in double.
//
//   fl::registerBackend("mine", ...);
//   for (const std::string& line : fl::testing::checkBackend("mine").wrong) std::cout << line;
#pragma once

#include <string>
#include <vector>

namespace fl::testing {

struct BackendReport {
  int cells = 0;                   // operators x dtypes x layouts that ran
  std::vector<std::string> wrong;  // a line a cell that differs or throws: "div of f32, ...: ..."
};

// Of a backend that is registered. Dtypes that it does not support are left out. Rows are reached
// by apply(): an operator's virtual that is overridden is not.
BackendReport checkBackend(const std::string& backend, const std::string& device = "cpu");

}  // namespace fl::testing
