#include "fl/kernel/cuda/Group.h"

#include <algorithm>
#include <bit>

namespace fl::ir::cuda {

int mostLaunches(size_t words) {
  const size_t fitting = (kParameterBytes / sizeof(uint64_t) - 1) / (words + 1);
  return static_cast<int>(std::bit_floor(std::max<size_t>(fitting, 1)));
}

PackedLaunch packGroup(const std::vector<PackedLaunch>& launches, int most) {
  PackedLaunch group{{0, {}}, {}};
  std::ranges::copy(launches[0].shape.threads, group.shape.threads);
  for (const PackedLaunch& each : launches) {
    group.words.push_back(static_cast<uint64_t>(group.shape.blocks));
    group.shape.blocks += each.shape.blocks;
  }
  group.words.resize(most + 1, static_cast<uint64_t>(group.shape.blocks));
  for (const PackedLaunch& each : launches)
    group.words.insert(group.words.end(), each.words.begin(), each.words.end());
  group.words.resize(most + 1 + most * launches[0].words.size());
  return group;
}

}  // namespace fl::ir::cuda
