// The memory of this process that is in the machine's.
#pragma once

#include <unistd.h>

#include <cstddef>
#include <fstream>

namespace fl::testing {

inline size_t residentBytes() {
  size_t pages = 0, resident = 0;
  std::ifstream("/proc/self/statm") >> pages >> resident;
  return resident * static_cast<size_t>(sysconf(_SC_PAGESIZE));
}

}  // namespace fl::testing
