// cuBLASLt for a GPU that is none (FakeGpu.h): products are made on the host, in double, when the
// stream gets to them. With it come no algorithms until it is told to offer them.
#pragma once

#include <cstdint>
#include <vector>

namespace fl::testing {

void installFakeCublasLt();

struct FakeAlgorithm {
  uint64_t number;
  double milliseconds = 1;  // by the GPU's events
  bool runs = true;         // or the library refuses it then
  bool isWide = true;       // or adds up parts of sums in the result's dtype
};
// In the order in which the library thinks well of them.
void offerAlgorithms(std::vector<FakeAlgorithm> algorithms);
// One, or none.
void offerProducts(bool does);
// The numbers of those that products were put into the stream with.
std::vector<uint64_t> takeAlgorithmsRun();

}  // namespace fl::testing
