#include "benchmarks/Report.h"

#include <algorithm>
#include <fstream>
#include <stdexcept>

#include "fl/base/Flags.h"
#include "fl/host/ThreadPool.h"

namespace fl::bench {

double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

double spread(std::vector<double> values) {
  std::ranges::sort(values);
  const size_t quarter = values.size() / 4;
  return (values[values.size() - 1 - quarter] - values[quarter]) / values[values.size() / 2];
}

double millisecondsSince(Clock::time_point start) {
  return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
}

void prepare(int threads) {
  if (threads > 0) {
    host::setNumThreads(threads);
  }
  if (flags().jit == "async") {
    flags().jit = "sync";
  }
}

void writeRows(const std::vector<Json>& rows, const std::string& path) {
  std::ofstream stream(path);
  for (const Json& row : rows) {
    stream << row.dump() << '\n';
  }
  stream.close();
  if (!stream) {
    throw std::runtime_error(path + ": cannot be written");
  }
}

}  // namespace fl::bench
