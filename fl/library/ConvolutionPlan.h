// How a convolution is cut into blocks and in which layout it is computed: arithmetic on shapes
// alone, so that the same call gives the same bits on any number of threads. Convolution.cpp
// makes oneDNN primitives from it.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "fl/library/Library.h"

namespace fl::library {

enum class Direction { Forward, Data, Filter };

// The layout of activations inside a block. Operands are plain (W fastest, then H, C, N) or, for a
// channelsLast call, ChannelsLast; another layout is made in scratch memory block by block, while
// the data is in the cache, because oneDNN's direct kernels run at twice the speed of its plain
// path (im2col and GEMM) or more.
enum class Layout { Plain, Blocked, ChannelsLast };

// One spatial dimension.
struct ConvolutionAxis {
  int64_t in, out, kernel, stride, pad, dilation;
  // Input elements that one window spans.
  int64_t extent() const { return (kernel - 1) * dilation + 1; }
  // Whether a convolution makes `out` elements of `in`: a gradient's operands could disagree.
  bool consistent() const {
    return in + 2 * pad >= extent() && out == (in + 2 * pad - extent()) / stride + 1;
  }
};

struct ConvolutionShape {
  Direction direction;
  int64_t images, inChannels, outChannels, groups;
  ConvolutionAxis x, y;
  bool bias;
  dtype type;
  bool widened;     // computed in f32, though the operands are 16-bit floats
  Layout operands;  // Plain or ChannelsLast

  bool pointwise() const;
  bool depthwise() const { return groups == inChannels && groups == outChannels; }
  int64_t inputElements() const { return images * inChannels * x.in * y.in; }
  int64_t outputElements() const { return images * outChannels * x.out * y.out; }
  int64_t filterElements() const {
    return outChannels * (inChannels / groups) * x.kernel * y.kernel;
  }
};

// The shape of a call of Conv2d, Conv2dBackwardData or Conv2dBackwardFilter.
ConvolutionShape convolutionShape(const LibraryCall& call);

// Whole images, or a range of rows of one image: a convolution of its own.
struct ConvolutionBlock {
  int64_t firstImage, images;
  int64_t inBegin, inRows;
  int64_t outBegin, outRows;
  int64_t padBefore, padAfter;

  // The same work on other data: one primitive serves both.
  bool sameWork(const ConvolutionBlock& other) const;
};

// Blocks run in order within a slot; slots run in any order and at the same time, each with its
// own scratch area. The filter gradient is one partial sum a slot.
struct ConvolutionSplit {
  std::vector<ConvolutionBlock> blocks;
  int64_t slots;
  // The first block of slot s; s == slots gives the end.
  int64_t firstBlock(int64_t slot) const {
    return static_cast<int64_t>(blocks.size()) * slot / slots;
  }
};

ConvolutionSplit splitConvolution(const ConvolutionShape& shape, Layout layout);

// The three layouts, the one with the lowest estimated time first.
std::vector<Layout> layoutsByCost(const ConvolutionShape& shape);

// The convolution in one layout (Convolution.cpp); null if oneDNN refuses the layout or has
// only a slow implementation for it.
std::shared_ptr<LibraryFunction> makeConvolution(const ConvolutionShape& shape, Layout layout);

}  // namespace fl::library
