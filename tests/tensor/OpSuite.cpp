#include "tests/tensor/OpSuite.h"

#include <exception>

#include "fl/base/Error.h"
#include "fl/tensor/tensor.h"
#include "tests/tensor/OracleGraphs.h"

namespace fl::testing {
namespace {

using ir::Op;

// What is wrong first, or "".
std::string checkInputs(Op op, dtype type, Layout layout, const OracleCase& c,
                        const Recorded& recorded, const std::vector<Elements>& inputs,
                        const Device& device) {
  const Expected expected(op, type, layout, c, inputs);
  const Elements got = run(recorded, inputs, device);
  if (got.size() != expected.size()) {
    return detail::concat(got.size(), " elements, and not ", expected.size());
  }
  // Sums may be in an order of its own: in f64 the oracle's round as much.
  const double slack = type == dtype::f64 && isAccumulating(op) ? 16 : 0;
  for (size_t i = 0; i < got.size(); ++i) {
    const std::string wrong = expected.wrong(i, got[i], nullptr, slack);
    if (!wrong.empty()) return detail::concat("element ", i, ": ", wrong);
  }
  return "";
}

std::string checkCell(Op op, dtype type, Layout layout, const Device& device) {
  try {
    for (const OracleCase& c : casesOf(op, type, extentsOf(layout))) {
      const Recorded recorded = recordCell(op, c, type, layout);
      Draw draw(op, type);
      std::vector<std::vector<Elements>> all = {draw.all(recorded)};
      for (const Scalar& special : specialsOf(type)) {
        if (specialReason(op, layout, c, special)) continue;
        all.push_back(draw.all(recorded, &special));
      }
      for (const std::vector<Elements>& inputs : all) {
        const std::string wrong = checkInputs(op, type, layout, c, recorded, inputs, device);
        if (!wrong.empty()) return wrong;
      }
    }
  } catch (const std::exception& error) {
    return std::string("throws: ") + error.what();
  }
  return "";
}

}  // namespace

BackendReport checkBackend(const std::string& backend, const std::string& device) {
  BackendReport report;
  const TensorBackend& checked = getBackend(backend, device);
  for (int i = 0; i < ir::kOpCount; ++i) {
    const Op op = static_cast<Op>(i);
    for (const dtype type : allTypes()) {
      for (const Layout layout : kLayouts) {
        if (!checked.supportsDataType(type) || skipReason(op, type, layout)) continue;
        ++report.cells;
        const std::string wrong = checkCell(op, type, layout, {backend.c_str(), device.c_str()});
        if (wrong.empty()) continue;
        report.wrong.push_back(
            detail::concat(ir::opName(op), " of ", type, ", ", layoutName(layout), ": ", wrong));
      }
    }
  }
  return report;
}

}  // namespace fl::testing
