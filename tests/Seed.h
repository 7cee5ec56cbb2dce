// The seed of a random test.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <iostream>

namespace fl::testing {

// `initial`, or FL_TEST_SEED, which replays a run; printed.
inline uint64_t testSeed(uint64_t initial) {
  const char* given = std::getenv("FL_TEST_SEED");
  const uint64_t seed = given != nullptr ? std::strtoull(given, nullptr, 10) : initial;
  std::cout << "replay with FL_TEST_SEED=" << seed << "\n";
  return seed;
}

}  // namespace fl::testing
