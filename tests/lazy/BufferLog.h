// The buffers that a piece of a test makes.
#pragma once

#include <functional>
#include <sstream>
#include <string>
#include <vector>

#include "fl/runtime/MemoryManager.h"

namespace fl::testing {

// Their bytes, in order.
inline std::vector<size_t> buffersMade(const std::function<void()>& work) {
  std::stringstream log;
  runtime::setMemoryLogStream(&log);
  runtime::setMemoryLogging(true);
  work();
  runtime::setMemoryLogging(false);
  runtime::setMemoryLogStream(nullptr);
  std::vector<size_t> made;
  std::string event, address;
  for (size_t bytes = 0; log >> event >> address >> bytes;) {
    if (event == "alloc") {
      made.push_back(bytes);
    }
  }
  return made;
}

}  // namespace fl::testing
