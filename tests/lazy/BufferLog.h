// The buffers that a piece of a test makes.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <sstream>
#include <string>
#include <vector>

#include "fl/runtime/MemoryManager.h"

namespace fl::testing {

// In order: the bytes of each that `work` makes, and less than 0 those of each that dies.
inline std::vector<int64_t> bufferChanges(const std::function<void()>& work) {
  std::stringstream log;
  runtime::setMemoryLogStream(&log);
  runtime::setMemoryLogging(true);
  work();
  runtime::setMemoryLogging(false);
  runtime::setMemoryLogStream(nullptr);
  std::vector<int64_t> changes;
  std::string line, event, address, lock;
  for (int64_t bytes = 0; std::getline(log, line);) {
    std::istringstream words(line);
    words >> event;
    if (event == "alloc" && words >> bytes) {
      changes.push_back(bytes);
    } else if (event == "unlock" && words >> address >> lock >> bytes) {
      changes.push_back(-bytes);
    }
  }
  return changes;
}

// Their bytes, in order.
inline std::vector<size_t> buffersMade(const std::function<void()>& work) {
  std::vector<size_t> made;
  for (const int64_t bytes : bufferChanges(work)) {
    if (bytes > 0) {
      made.push_back(static_cast<size_t>(bytes));
    }
  }
  return made;
}

// The most bytes alive at once in `work` beyond those alive before it.
inline size_t peakGrowth(const std::function<void()>& work) {
  int64_t alive = 0, most = 0;
  for (const int64_t bytes : bufferChanges(work)) {
    alive += bytes;
    most = std::max(most, alive);
  }
  return static_cast<size_t>(most);
}

}  // namespace fl::testing
