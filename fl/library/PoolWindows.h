// Pooling's windows. The file is built twice, for AVX2 and for AVX-512; both give the same bits.
// Private to this folder; Pool.cpp is the user.
#pragma once

#include <cstdint>

namespace fl::library {

// Windows over planes, `lanes` of which lie side by side, element by element. Extents are each y,
// then x; `before` is the padding in front of the elements. Every window holds elements.
struct PoolWindows {
  int64_t lanes;
  int64_t in[2], out[2], kernel[2], strides[2], before[2];
  bool isMaximum;      // or the mean
  bool countsPadding;  // as elements of a mean, which are 0

  int64_t inElements() const { return in[0] * in[1]; }
  int64_t outElements() const { return out[0] * out[1]; }
};

// pool(): a maximum is NaN if one is in its window. spread(), the gradient of the input: a mean's
// goes to all its elements, and the input is not read; a maximum's goes to the first that is the
// maximum or NaN, and to none where that is padding, which is -inf. What is in several windows is
// added up in their order.
namespace v3 {
void pool(const PoolWindows& windows, const float* input, float* output);
void spread(const PoolWindows& windows, const float* gradOutput, const float* input,
            float* gradInput);
}  // namespace v3
namespace v4 {
void pool(const PoolWindows& windows, const float* input, float* output);
void spread(const PoolWindows& windows, const float* gradOutput, const float* input,
            float* gradInput);
}  // namespace v4

}  // namespace fl::library
