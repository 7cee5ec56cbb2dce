#include "fl/library/ConvolutionPlan.h"

#include <algorithm>
#include <array>

#include "fl/ir/Inference.h"
#include "fl/library/OneDnn.h"

namespace fl::library {

namespace {

// Slots bound the scratch memory and the number of partial sums.
constexpr int64_t kMaxSlots = 8;
// Floating-point operations that are worth a slot (about 16 us); a byte of activations counts as
// kWorkPerByte of them.
constexpr int64_t kWorkPerSlot = 4'000'000;
constexpr int64_t kWorkPerByte = 16;
// Reordered activations of one block; half of a common second-level cache.
constexpr int64_t kBlockBytes = 512 << 10;
// Partial sums of the filter gradient, all slots together.
constexpr int64_t kSumBytes = 32 << 20;
// Fewer rows in a block would mostly be spent on the rows shared with its neighbours.
constexpr int64_t kMinRows = 4;

double roundUpTo16(int64_t n) { return static_cast<double>(ceilDiv(n, 16) * 16); }

// Pairs of an output position and a kernel position whose input is no padding.
int64_t validTaps(const ConvolutionAxis& axis) {
  int64_t taps = 0;
  for (int64_t k = 0; k < axis.kernel; ++k) {
    const int64_t first = k * axis.dilation - axis.pad;
    const int64_t begin = first < 0 ? ceilDiv(-first, axis.stride) : 0;
    const int64_t end = first < axis.in ? (axis.in - 1 - first) / axis.stride + 1 : 0;
    taps += std::max<int64_t>(0, std::min(end, axis.out) - begin);
  }
  return taps;
}

double multiplications(const ConvolutionShape& s, int64_t xTaps, int64_t yTaps) {
  return static_cast<double>(s.images) * s.outChannels * (s.inChannels / s.groups) * xTaps * yTaps;
}

int64_t denseTaps(const ConvolutionAxis& axis) { return axis.out * axis.kernel; }

// Rows [begin, end) of what a block computes (input rows for Data, else output rows), with what
// they need of the other side.
ConvolutionBlock rowBlock(const ConvolutionShape& shape, int64_t image, int64_t begin,
                          int64_t end) {
  const ConvolutionAxis& y = shape.y;
  ConvolutionBlock block{};
  block.firstImage = image;
  block.images = 1;
  if (shape.direction == Direction::Data) {
    block.inBegin = begin;
    block.inRows = end - begin;
    block.outBegin = std::max<int64_t>(0, ceilDiv(begin + y.pad - y.extent() + 1, y.stride));
    block.outRows = std::min(y.out, (end - 1 + y.pad) / y.stride + 1) - block.outBegin;
    block.padBefore = begin + y.pad - block.outBegin * y.stride;
  } else {
    const int64_t first = begin * y.stride - y.pad;
    block.outBegin = begin;
    block.outRows = end - begin;
    block.inBegin = std::max<int64_t>(0, first);
    block.inRows = std::min(y.in, (end - 1) * y.stride - y.pad + y.extent()) - block.inBegin;
    block.padBefore = std::max<int64_t>(0, -first);
  }
  const int64_t spanned = (block.outRows - 1) * y.stride + y.extent();
  block.padAfter = std::max<int64_t>(0, spanned - block.inRows - block.padBefore);
  return block;
}

ConvolutionBlock imageBlock(const ConvolutionShape& shape, int64_t first, int64_t images) {
  const ConvolutionAxis& y = shape.y;
  const int64_t spanned = (y.out - 1) * y.stride + y.extent();
  return {first, images, 0, y.in, 0, y.out, y.pad, std::max<int64_t>(0, spanned - y.in - y.pad)};
}

int64_t wantedSlots(const ConvolutionShape& shape) {
  const double work =
      2 * multiplications(shape, denseTaps(shape.x), denseTaps(shape.y)) +
      static_cast<double>(kWorkPerByte) * 4 * (shape.inputElements() + shape.outputElements());
  return static_cast<int64_t>(std::clamp<double>(work / kWorkPerSlot, 1, kMaxSlots));
}

// Output positions that make adding a block's filter gradient to the slot's sum cheap beside
// computing it: the sum is one pass over the filter, in the second-level cache if it fits.
int64_t positionsPerSum(const ConvolutionShape& shape) {
  return shape.filterElements() * 4 <= (1 << 20) ? 128 : 512;
}

// Row blocks need rows on both sides and no more padding than a whole image. A stride within the
// window sees to it, if blocks of the data gradient have at least that many rows.
bool rowsCanBeSplit(const ConvolutionShape& shape, Layout layout) {
  return layout != Layout::Plain && shape.y.stride <= shape.y.extent() &&
         shape.y.pad < shape.y.extent();
}

// Cuts every image into `pieces` ranges of rows.
std::vector<ConvolutionBlock> splitRows(const ConvolutionShape& shape, int64_t pieces) {
  const int64_t rows = shape.direction == Direction::Data ? shape.y.in : shape.y.out;
  std::vector<ConvolutionBlock> blocks;
  for (int64_t image = 0; image < shape.images; ++image) {
    for (int64_t piece = 0; piece < pieces; ++piece)
      blocks.push_back(rowBlock(shape, image, rows * piece / pieces, rows * (piece + 1) / pieces));
  }
  return blocks;
}

std::vector<ConvolutionBlock> splitImages(const ConvolutionShape& shape, int64_t perBlock) {
  std::vector<ConvolutionBlock> blocks;
  for (int64_t first = 0; first < shape.images; first += perBlock)
    blocks.push_back(imageBlock(shape, first, std::min(perBlock, shape.images - first)));
  return blocks;
}

}  // namespace

bool ConvolutionShape::pointwise() const {
  const auto alone = [](const ConvolutionAxis& axis) {
    return axis.kernel == 1 && axis.stride == 1 && axis.pad == 0;
  };
  return alone(x) && alone(y);
}

bool ConvolutionBlock::sameWork(const ConvolutionBlock& other) const {
  return images == other.images && inRows == other.inRows && outRows == other.outRows &&
         padBefore == other.padBefore && padAfter == other.padAfter;
}

ConvolutionShape convolutionShape(const LibraryCall& call) {
  const ir::Attrs& attrs = call.attrs;
  const Shape& first = call.operands[0].shape;
  const Shape& second = call.operands[1].shape;
  const Shape& result = call.result.shape;
  const auto make = [&](Direction direction, const Shape& input, const Shape& filter,
                        const Shape& output) {
    const ir::ImageAxes axes = ir::imageAxes(attrs);
    ConvolutionShape shape{};
    shape.direction = direction;
    shape.images = input[ir::ImageAxes::image];
    shape.inChannels = input[axes.channel];
    shape.outChannels = output[axes.channel];
    shape.groups = attrs[6];
    shape.x = {input[axes.x], output[axes.x], filter[0], attrs[0], attrs[2], attrs[4]};
    shape.y = {input[axes.y], output[axes.y], filter[1], attrs[1], attrs[3], attrs[5]};
    shape.bias = call.op == ir::Op::Conv2d && call.operands.size() == 3;
    shape.type = call.result.type;
    shape.widened = shape.type == dtype::f16;
    shape.operands = axes.channel == 0 ? Layout::ChannelsLast : Layout::Plain;
    return shape;
  };
  switch (call.op) {
    case ir::Op::Conv2dBackwardData:
      return make(Direction::Data, result, second, first);
    case ir::Op::Conv2dBackwardFilter:
      return make(Direction::Filter, second, result, first);
    default:
      return make(Direction::Forward, first, second, result);
  }
}

ConvolutionSplit splitConvolution(const ConvolutionShape& shape, Layout layout) {
  const bool filter = shape.direction == Direction::Filter;
  const int64_t positions = shape.x.out * shape.y.out;
  const int64_t perSum = positionsPerSum(shape);
  int64_t slots = wantedSlots(shape);
  if (filter) {
    const int64_t sums = kSumBytes / (4 * shape.filterElements());
    slots = std::clamp<int64_t>(std::min(shape.images * positions / perSum, sums), 1, slots);
  }
  const bool copied = layout != shape.operands || shape.widened;
  const int64_t imageBytes =
      copied ? 4 * (shape.inputElements() + shape.outputElements()) / shape.images : 0;
  int64_t pieces = 1;
  if (rowsCanBeSplit(shape, layout)) {
    const bool data = shape.direction == Direction::Data;
    const int64_t most =
        data ? shape.y.in / std::max(kMinRows, shape.y.stride)
             : std::min(shape.y.out / kMinRows, filter ? positions / perSum : shape.y.out);
    const int64_t wanted = std::max(ceilDiv(slots, shape.images), ceilDiv(imageBytes, kBlockBytes));
    pieces = std::clamp<int64_t>(wanted, 1, std::max<int64_t>(1, most));
  }
  ConvolutionSplit split;
  if (pieces > 1) {
    split.blocks = splitRows(shape, pieces);
  } else {
    const int64_t perSlot = ceilDiv(shape.images, slots);
    int64_t most = imageBytes == 0 ? perSlot : std::max<int64_t>(1, kBlockBytes / imageBytes);
    if (filter) most = std::max(most, ceilDiv(perSum, positions));
    split.blocks = splitImages(shape, ceilDiv(perSlot, ceilDiv(perSlot, most)));
  }
  // As many slots as make their longest no longer.
  const auto count = static_cast<int64_t>(split.blocks.size());
  split.slots = ceilDiv(count, ceilDiv(count, slots));
  return split;
}

namespace {

// Nanoseconds on one core, fitted to oneDNN 2.6.3 on a Zen 5 core (AVX-512, 4.1 GHz). Only their
// order matters; on another processor a choice may be slower than the best, never wrong.
constexpr double kOperationsPerNs = 250;
constexpr std::array<double, 3> kChannelsLastOperationsPerNs = {250, 230, 240};  // by direction
constexpr double kGroupedOperationsPerNs = 60;  // groups that do not fill a vector
constexpr double kDepthwiseOperationsPerNs = 130;
constexpr double kBlockedBytesPerNs = 60;       // plain to blocked or back
constexpr double kChannelsLastBytesPerNs = 20;  // likewise, or channels last to any other
constexpr double kFilterBytesPerNs = 10;

// GEMM on the matrix of windows; building or folding that matrix dominates unless there are many
// output channels.
double activationBytes(const ConvolutionShape& s) {
  return 4.0 * static_cast<double>(s.inputElements() + s.outputElements());
}

double plainCost(const ConvolutionShape& s) {
  constexpr std::array<double, 3> kNsPerWindowElement = {0.3, 0.55, 0.6};
  const double compute = 2 * multiplications(s, denseTaps(s.x), denseTaps(s.y)) / kOperationsPerNs;
  const double windows =
      static_cast<double>(s.images) * s.inChannels * denseTaps(s.x) * denseTaps(s.y);
  const bool free = s.pointwise() && s.direction != Direction::Filter;
  const double reorders =
      s.operands == Layout::Plain ? 0 : activationBytes(s) / kChannelsLastBytesPerNs;
  return compute + reorders +
         (free ? 0 : windows * kNsPerWindowElement[static_cast<int>(s.direction)]);
}

// How much more is computed because channels are padded to whole vectors.
double channelPadding(const ConvolutionShape& s, Layout layout) {
  const int64_t in = s.inChannels / s.groups;
  const int64_t out = s.outChannels / s.groups;
  const double inPadding = roundUpTo16(in) / static_cast<double>(in);
  const double outPadding = roundUpTo16(out) / static_cast<double>(out);
  if (layout == Layout::ChannelsLast)
    return s.direction == Direction::Data ? inPadding : outPadding;
  // Kernels for a first layer read few channels as they are.
  const bool few = (s.direction == Direction::Forward && in < 16) ||
                   (s.direction == Direction::Filter && in < 4);
  return (few ? 1 : inPadding) * outPadding;
}

double directCost(const ConvolutionShape& s, Layout layout) {
  const bool last = layout == Layout::ChannelsLast;
  // Channels-last kernels skip padding in both dimensions, blocked ones in rows.
  const double operations =
      2 * multiplications(s, last ? validTaps(s.x) : denseTaps(s.x), validTaps(s.y));
  const bool partial =
      s.groups > 1 && (s.inChannels / s.groups % 16 != 0 || s.outChannels / s.groups % 16 != 0);
  const double speed =
      last ? kChannelsLastOperationsPerNs[static_cast<int>(s.direction)] : kOperationsPerNs;
  double compute = operations * channelPadding(s, layout) / speed;
  if (s.depthwise()) {
    compute = operations / kDepthwiseOperationsPerNs;
  } else if (partial) {
    compute = operations / kGroupedOperationsPerNs;
  }
  const bool plainToBlocked = !last && s.operands == Layout::Plain;
  const double reorders =
      layout == s.operands
          ? 0
          : activationBytes(s) / (plainToBlocked ? kBlockedBytesPerNs : kChannelsLastBytesPerNs);
  return compute + reorders + 4.0 * static_cast<double>(s.filterElements()) / kFilterBytesPerNs;
}

}  // namespace

std::vector<Layout> layoutsByCost(const ConvolutionShape& shape) {
  std::vector<std::pair<double, Layout>> costs = {
      {plainCost(shape), Layout::Plain},
      {directCost(shape, Layout::Blocked), Layout::Blocked},
      {directCost(shape, Layout::ChannelsLast), Layout::ChannelsLast}};
  std::sort(costs.begin(), costs.end());
  std::vector<Layout> layouts;
  for (const auto& [cost, layout] : costs) layouts.push_back(layout);
  return layouts;
}

}  // namespace fl::library
