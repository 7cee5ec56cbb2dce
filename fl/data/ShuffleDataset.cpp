#include "fl/data/ShuffleDataset.h"

#include <numeric>
#include <utility>

namespace fl {

ShuffleDataset::ShuffleDataset(std::shared_ptr<const Dataset> dataset, int seed)
    : ResampleDataset(std::move(dataset)), rng_(seed) {
  resample();
}

// R. Fisher and F. Yates by D. Knuth, "The Art of Computer Programming" 2, algorithm 3.4.2P. Not
// std::shuffle, whose draws depend on the library.
void ShuffleDataset::resample() {
  std::iota(resampleVec_.begin(), resampleVec_.end(), 0);
  for (uint64_t left = resampleVec_.size(); left > 1; --left) {
    std::swap(resampleVec_[left - 1], resampleVec_[rng_() % left]);
  }
}

void ShuffleDataset::setSeed(int seed) { rng_.seed(seed); }

}  // namespace fl
