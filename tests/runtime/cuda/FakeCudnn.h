// cuDNN for a GPU that is none (FakeGpu.h): convolutions and their gradients are made on the host,
// in double, when the stream gets to them. With it come no engines until it is told to offer them.
#pragma once

namespace fl::testing {

void installFakeCudnn();
void offerConvolutions(bool does);

}  // namespace fl::testing
