// cuDNN for a GPU that is none (FakeGpu.h): convolutions, their gradients, and graphs of products,
// sums and what is done element by element are made on the host, in double, when the stream gets to
// them. With it come no engines until it is told to offer them.
#pragma once

#include <cstdint>
#include <vector>

namespace fl::testing {

void installFakeCudnn();

struct FakePlan {
  int64_t number;           // ten times the engine's, with the value of its only knob
  double milliseconds = 1;  // by the GPU's events
  bool isExact = true;
  bool isMade = true;  // or the library refuses to make it
  bool runs = true;    // or it fails then
  bool isFallback = false;
};
// In the order in which the library thinks well of them, by each of its other heuristics.
void offerPlans(std::vector<FakePlan> plans);
// One, or none.
void offerConvolutions(bool does);
// Whether graphs are refused when they are described.
void refuseGraphs(bool does);
// The numbers of those that were put into the stream.
std::vector<int64_t> takePlansRun();

}  // namespace fl::testing
