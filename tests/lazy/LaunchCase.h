// Programs that lazy mode runs in a known number of launches, with the bits of eager mode.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "fl/tensor/tensor.h"
#include "tests/lazy/Counts.h"

namespace fl::testing {

using Inputs = std::vector<Tensor>;

struct LaunchCase {
  std::string name;
  std::vector<Shape> shapes;
  std::function<Tensor(const Inputs&)> compute;
  uint64_t launches;  // lazily
  dtype type = dtype::f32;
};

inline Inputs makeInputs(const LaunchCase& c) {
  setSeed(7);
  Inputs inputs;
  for (const Shape& shape : c.shapes) {
    inputs.push_back((rand(shape) - 0.5).astype(c.type));
    eval(inputs.back());
  }
  return inputs;
}

inline std::vector<float> bits(const Tensor& x) {
  return x.astype(dtype::f32).toHostVector<float>();
}

inline void expectBitsAndLaunches(const LaunchCase& c, bool areLaunchesKnown = true) {
  SCOPED_TRACE(c.name);
  std::vector<float> want;
  {
    const BackendScope scope("eager");
    want = bits(c.compute(makeInputs(c)));
  }
  const BackendScope scope("lazy");
  const Inputs inputs = makeInputs(c);
  sync();
  const Counts counts;
  const Tensor got = c.compute(inputs);
  sync();
  if (areLaunchesKnown) {
    EXPECT_EQ(counts.launches(), c.launches);
  }
  EXPECT_EQ(counts.fallbacks(), 0u);
  EXPECT_EQ(bits(got), want);
}

}  // namespace fl::testing
