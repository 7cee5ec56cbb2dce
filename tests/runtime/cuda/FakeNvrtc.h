// NVRTC as the fake GPU has it: what it makes of a program is the program's text, which FakeGpu.cpp
// compiles for the CPU when it is loaded, and PTX that is a comment.
#pragma once

namespace fl::testing {

void installFakeNvrtc();

}  // namespace fl::testing
