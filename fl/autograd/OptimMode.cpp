#include "fl/autograd/OptimMode.h"

#include "fl/base/CallSite.h"
#include "fl/base/Error.h"

namespace fl {

const std::unordered_map<std::string, OptimLevel> OptimMode::kStringToOptimLevel = {
    {"DEFAULT", OptimLevel::DEFAULT},
    {"O1", OptimLevel::O1},
    {"O2", OptimLevel::O2},
    {"O3", OptimLevel::O3},
};

OptimMode& OptimMode::get() {
  static OptimMode instance;
  return instance;
}

OptimLevel OptimMode::getOptimLevel() { return optimLevel_; }

void OptimMode::setOptimLevel(OptimLevel level) { optimLevel_ = level; }

dtype OptimMode::getType() { return type_; }

void OptimMode::setType(dtype type) {
  FL_API_ENTRY();
  FL_USER_CHECK(type == dtype::f16 || type == dtype::bf16,
                "OptimMode::setType: the type must be f16 or bf16, not ", type);
  type_ = type;
}

OptimLevel OptimMode::toOptimLevel(const std::string& in) {
  FL_API_ENTRY();
  const auto found = kStringToOptimLevel.find(in);
  FL_USER_CHECK(found != kStringToOptimLevel.end(), "OptimMode::toOptimLevel: no level '", in,
                "'; there are DEFAULT, O1, O2 and O3");
  return found->second;
}

namespace detail {

const std::unordered_map<OptimLevel, std::unordered_set<std::string>>
    kOptimLevelTypeExclusionMappings = {
        {OptimLevel::DEFAULT, {}},
        {OptimLevel::O1,
         {"batchnorm", "categoricalCrossEntropy", "erf", "exactGelu", "exp", "gelu", "log", "log1p",
          "logSoftmax", "mean", "norm", "normalize", "pow", "reciprocal", "softmax", "sum", "var"}},
        {OptimLevel::O2, {"batchnorm"}},
        {OptimLevel::O3, {}},
};

dtype adjustedType(dtype type, const char* funcname) {
  const OptimLevel level = OptimMode::get().getOptimLevel();
  if (level == OptimLevel::DEFAULT || !isFloating(type)) return type;
  const bool excluded = kOptimLevelTypeExclusionMappings.at(level).contains(funcname);
  return excluded ? computeType(type) : OptimMode::get().getType();
}

}  // namespace detail
}  // namespace fl
