#include "fl/nn/modules/MultiheadAttention.h"

#include "fl/autograd/Functions.h"
#include "fl/base/CallSite.h"
#include "fl/base/Error.h"
#include "fl/nn/Serialization.h"
#include "fl/nn/modules/Linear.h"

CEREAL_REGISTER_TYPE(fl::MultiheadAttention)

namespace fl {

MultiheadAttention::MultiheadAttention(int dim, int nHeads, double pDropout, bool bias)
    : dim_(dim), nHeads_(nHeads), pDropout_(pDropout) {
  FL_API_CONSTRUCTOR();
  FL_USER_CHECK(dim > 0 && nHeads > 0 && dim % nHeads == 0, "MultiheadAttention: ", nHeads,
                " heads do not divide ", dim, " features");
  FL_USER_CHECK(pDropout >= 0 && pDropout <= 1,
                "MultiheadAttention: the ratio must be in [0, 1], not ", pDropout);
  for (int layer = 0; layer < 4; ++layer) add(Linear(dim, dim, bias));
}

std::vector<Variable> MultiheadAttention::forward(const std::vector<Variable>& inputs) {
  FL_API_ENTRY();
  FL_USER_CHECK(inputs.size() == 1 || inputs.size() == 3 || inputs.size() == 4, prettyString(),
                ": takes one, three or four inputs, not ", inputs.size());
  if (inputs.size() == 1) {
    return {forward(inputs[0], inputs[0], inputs[0])};
  }
  return {forward(inputs[0], inputs[1], inputs[2], inputs.size() == 4 ? inputs[3] : Variable())};
}

Variable MultiheadAttention::project(int id, const Variable& input) const {
  FL_USER_CHECK(input.ndim() == 3 && input.dim(0) == dim_, prettyString(), ": an input must be (",
                dim_, ", T, N), not ", typeToString(input.type(), input.shape()));
  return transpose(modules_[id]->forward({input})[0], {1, 0, 2});
}

Variable MultiheadAttention::forward(const Variable& query, const Variable& key,
                                     const Variable& value, const Variable& mask) {
  FL_API_ENTRY();
  const Variable none;
  const Variable result =
      multiheadAttention(project(0, query), project(1, key), project(2, value), /*posEmb=*/none,
                         mask, /*padMask=*/none, nHeads_, train_ ? pDropout_ : 0);
  return modules_[3]->forward({transpose(result, {1, 0, 2})})[0];
}

std::string MultiheadAttention::prettyString() const {
  return detail::concat("MultiheadAttention (heads : ", nHeads_, ", dropout : ", pDropout_, ")",
                        Container::prettyString());
}

}  // namespace fl
