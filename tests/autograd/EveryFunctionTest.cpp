// The gradient of every function of fl/autograd/Functions.h: one that is added there fails here
// until it has a case.
#include <fstream>
#include <map>
#include <set>
#include <string>

#include "fl/autograd/Functions.h"
#include "tests/autograd/GradientCalls.h"

namespace fl::test {
namespace {

// By name: what has no gradient.
std::map<std::string, Variable> constants(const Variable& x) {
  return {{"operator>", x > 0.5},
          {"operator<", x < 0.5},
          {"operator>=", x >= 0.5},
          {"operator<=", x <= 0.5},
          {"operator&&", (x > x) && (x < x)},
          {"operator!", !(x > x)}};
}

// The names of what the header declares to give Variables.
std::set<std::string> declared() {
  std::ifstream header("fl/autograd/Functions.h");
  std::set<std::string> names;
  for (std::string line; std::getline(header, line);) {
    for (const std::string result :
         {"Variable ", "std::vector<Variable> ", "std::tuple<Variable, Variable, Variable> "}) {
      if (line.starts_with(result)) {
        names.insert(line.substr(result.size(), line.find('(') - result.size()));
      }
    }
  }
  return names;
}

TEST(EveryFunction, HasItsGradient) {
  std::set<std::string> names;
  for (const GradientCall& call : gradientCalls()) {
    SCOPED_TRACE(call.text);
    names.insert(call.name());
    expectGradients(call, call.inputs);
  }
  for (const auto& [name, result] : constants(Variable(spreadTensor({3}), true))) {
    names.insert(name);
    EXPECT_FALSE(result.isCalcGrad()) << name;
  }
  EXPECT_EQ(names, declared());
}

}  // namespace
}  // namespace fl::test
