// One count for each of a number of categories.
#pragma once

#include <cstdint>
#include <vector>

namespace fl {

class CountMeter {
 public:
  explicit CountMeter(int num) : counts_(num) {}
  // Throws std::out_of_range unless 0 <= id < num.
  void add(int id, int64_t val);
  std::vector<int64_t> value() const { return counts_; }
  void reset();

 private:
  std::vector<int64_t> counts_;
};

}  // namespace fl
