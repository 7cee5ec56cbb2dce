// An engine for one scope, with flags as they are then, that has no plan or kernel of earlier ones.
#pragma once

#include <string>

#include "fl/lazy/LazyBackend.h"
#include "fl/tensor/tensor.h"

namespace fl::testing {

class FreshEngine {
 public:
  FreshEngine()
      : name_("fresh" + std::to_string(next_++)),
        registration_(name_, makeLazyBackend),
        scope_(name_, "cpu") {}

 private:
  static inline int next_ = 0;
  const std::string name_;
  const BackendRegistration registration_;
  const BackendScope scope_;
};

}  // namespace fl::testing
