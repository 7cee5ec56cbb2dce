// cuBLASLt for a GPU that is none (FakeGpu.h): products are made on the host, in double, when the
// stream gets to them. With it come no algorithms until it is told to offer them.
#pragma once

namespace fl::testing {

void installFakeCublasLt();
void offerProducts(bool does);

}  // namespace fl::testing
