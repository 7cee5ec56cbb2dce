// A packer of one's own: which temporary of a plan lies where in its memory. It competes with those
// of the library; the smallest result is taken, after it was verified.
#include <algorithm>
#include <iostream>
#include <numeric>
#include <vector>

#include "fl/fl.h"
#include "fl/research.h"

using fl::planner::Interval;

bool liveTogether(const Interval& a, const Interval& b) {
  return a.first <= b.last && b.first <= a.last;
}

// In the order of their ends, each as low as those that live with it allow.
std::vector<size_t> packByEnd(const std::vector<Interval>& intervals) {
  std::vector<size_t> order(intervals.size()), offsets(intervals.size()), placed;
  std::iota(order.begin(), order.end(), 0);
  std::ranges::stable_sort(order, {}, [&](size_t i) { return intervals[i].last; });
  for (const size_t i : order) {
    std::vector<size_t> taken;
    std::ranges::copy_if(placed, std::back_inserter(taken),
                         [&](size_t k) { return liveTogether(intervals[i], intervals[k]); });
    std::ranges::sort(taken, {}, [&](size_t k) { return offsets[k]; });
    size_t low = 0;
    for (const size_t k : taken) {
      if (offsets[k] >= low + intervals[i].bytes) {
        break;  // it fits below
      }
      low = std::max(low, offsets[k] + intervals[k].bytes);
    }
    offsets[i] = low;  // bytes are multiples of 64, and so is this
    placed.push_back(i);
  }
  return offsets;
}

size_t arenaOf(const std::vector<Interval>& intervals, const std::vector<size_t>& offsets) {
  size_t bytes = 0;
  for (size_t i = 0; i < intervals.size(); ++i) {
    bytes = std::max(bytes, offsets[i] + intervals[i].bytes);
  }
  return bytes;
}

// A step of training, whose plan is packed on the way.
float step() {
  fl::setSeed(1);
  fl::Sequential model;
  for (int layer = 0; layer < 6; ++layer) {
    model.add(fl::Linear(64, 64));
    model.add(fl::Tanh());
  }
  auto loss = fl::MeanSquaredError()(model(fl::noGrad(fl::rand({64, 128}))),
                                     fl::noGrad(fl::rand({64, 128})));
  loss.backward();
  fl::SGDOptimizer(model.params(), /*learningRate=*/0.1).step();
  return loss.scalar<float>();
}

int main() {
  const float before = step();
  int calls = 0;
  fl::planner::packers().add({.name = "by_end", .pack = [&](const std::vector<Interval>& all) {
                                std::vector<size_t> offsets = packByEnd(all);
                                std::cout << all.size() << " temporaries, at least "
                                          << fl::planner::lowerBound(all)
                                          << " bytes, by their ends " << arenaOf(all, offsets)
                                          << '\n';
                                ++calls;
                                return offsets;
                              }});
  const float after = step();
  std::cout << calls << " plans; loss " << before << ", then " << after << '\n';
  return calls > 0 && before == after ? 0 : 1;
}
