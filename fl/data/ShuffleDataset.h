// A dataset in random order.
#pragma once

#include <random>

#include "fl/data/ResampleDataset.h"

namespace fl {

// A random permutation of `dataset`, drawn at construction and by each resample(). The order
// depends on the seed and the number of draws alone, on every machine; it is apart from
// fl::setSeed.
class ShuffleDataset : public ResampleDataset {
 public:
  explicit ShuffleDataset(std::shared_ptr<const Dataset> dataset, int seed = 0);
  // Draws another permutation.
  void resample();
  // Takes effect with the next resample().
  void setSeed(int seed);

 private:
  std::mt19937_64 rng_;
};

}  // namespace fl
