#include "fl/nn/modules/Padding.h"

#include <cereal/types/utility.hpp>
#include <sstream>

#include "fl/autograd/Functions.h"
#include "fl/base/CallSite.h"
#include "fl/nn/Serialization.h"

CEREAL_REGISTER_TYPE(fl::Padding)

namespace fl {

Variable Padding::forward(const Variable& input) {
  FL_API_ENTRY();
  return padding(input, m_pad, m_val);
}

std::string Padding::prettyString() const {
  std::ostringstream text;
  text << "Padding (" << m_val << ", { ";
  for (const auto& [before, behind] : m_pad) text << "(" << before << ", " << behind << "), ";
  text << "})";
  return text.str();
}

}  // namespace fl
