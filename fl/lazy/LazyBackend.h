// Records operators and runs them when a value is needed: fused, planned, compiled. Registered as
// "lazy", the default; programs reach it by that name.
#pragma once

#include <memory>
#include <string>

#include "fl/tensor/TensorBackend.h"

namespace fl {

// `device` is a name that runtime::makeDevice knows. Values of the backend must not outlive it.
std::unique_ptr<TensorBackend> makeLazyBackend(const std::string& device);

// Waits until every kernel that was asked for is compiled (FL_JIT=async), for benchmarks and tests.
// Throws std::invalid_argument if `backend` is no lazy backend.
void waitForCompiler(TensorBackend& backend);

// What a read does that runs pending operators, and so ends their plan. fl::sync() is none.
enum class OnSync {
  Allow,
  Warn,   // once for each line
  Throw,  // std::invalid_argument; what is pending stays so
};

// For all threads, in place of FL_ON_SYNC.
void setOnSync(OnSync action);

}  // namespace fl
