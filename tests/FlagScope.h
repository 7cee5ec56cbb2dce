// A flag's value for one scope.
#pragma once

#include <string>
#include <utility>

#include "fl/base/Flags.h"

namespace fl::testing {

class FlagScope {
 public:
  FlagScope(std::string Flags::* flag, std::string value)
      : flag_(flag), before_(std::exchange(flags().*flag, std::move(value))) {}
  ~FlagScope() { flags().*flag_ = before_; }
  FlagScope(const FlagScope&) = delete;
  FlagScope& operator=(const FlagScope&) = delete;

 private:
  std::string Flags::* const flag_;
  const std::string before_;
};

}  // namespace fl::testing
