// Pooling and its gradient. Planes (one channel of one image) are independent, so the operands are
// taken as one image of C * N channels, cut into blocks of whole vectors of planes. A block is
// reordered to have these side by side in scratch memory. Where channels are last, blocks are whole
// images, pooled as they lie.
//
// The loops are ours (PoolWindows.h): oneDNN's maximum passes over NaN and starts at the lowest
// finite number, and its gradient pools again to find where the maxima are.
//
// 16-bit floats are widened to f32 block by block, added up there and rounded once.
#include <algorithm>
#include <optional>

#include "fl/ir/Inference.h"
#include "fl/library/Functions.h"
#include "fl/library/OneDnn.h"
#include "fl/library/PoolWindows.h"
#include "fl/library/Widening.h"
#include "fl/tile/HostTarget.h"

namespace fl::library {

namespace {

using dnnl::memory;

constexpr int64_t kMaxSlots = 8;
// Bytes of operands that are worth a slot (about 20 us), and of scratch memory for one block.
constexpr int64_t kBytesPerSlot = 256 << 10;
constexpr int64_t kBlockBytes = 256 << 10;
// Planes side by side.
constexpr int64_t kVector = 16;

struct PoolShape {
  bool isBackward;
  bool isLast;  // channels are
  int64_t planes;
  PoolWindows windows;

  // Elements of a plane.
  int64_t input() const { return windows.inElements(); }
  int64_t output() const { return windows.outElements(); }
  int64_t result() const { return isBackward ? input() : output(); }
};

PoolShape poolShape(const LibraryCall& call) {
  const bool isBackward = call.op == ir::Op::Pool2dBackward;
  const Shape& in = call.operands[isBackward].shape;
  const Shape& out = isBackward ? call.operands[0].shape : call.result.shape;
  const ir::Attrs& a = call.attrs;
  const ir::ImageAxes axes = ir::imageAxes(a);
  const int64_t channels = in[axes.channel], mode = a[6];
  const bool isLast = axes.channel == 0 && channels > 1;
  return {isBackward,
          isLast,
          channels * in[ir::ImageAxes::image],
          {isLast ? channels : kVector,
           {in[axes.y], in[axes.x]},
           {out[axes.y], out[axes.x]},
           {a[1], a[0]},
           {a[3], a[2]},
           {a[5], a[4]},
           mode == 0,
           mode == 1}};
}

// Of planes that lie one behind the other: to vectors of them, and from these.
struct Reorders {
  Reorder to, from;
};

Reorders reordersOf(int64_t planes, const int64_t (&extents)[2]) {
  const auto layout = [&](memory::format_tag tag) {
    return Desc({1, planes, extents[0], extents[1]}, memory::data_type::f32, tag);
  };
  const Desc plain = layout(memory::format_tag::nchw),
             vectors = layout(memory::format_tag::nChw16c);
  return {Reorder(plain, vectors), Reorder(vectors, plain)};
}

class Pool final : public LibraryFunction {
 public:
  Pool(const PoolShape& shape, dtype type) : shape_(shape), elementBytes_(getTypeSize(type)) {
    const int64_t planeBytes = 4 * (shape.input() + shape.output());
    slots_ = std::clamp<int64_t>(shape.planes * planeBytes / kBytesPerSlot, 1, kMaxSlots);
    const int64_t together = shape.windows.lanes;
    const int64_t perSlot = ceilDiv(ceilDiv(shape.planes, slots_), together);
    const int64_t most = std::max<int64_t>(1, kBlockBytes / planeBytes / together);
    planesPerBlock_ = std::min(shape.planes, together * ceilDiv(perSlot, ceilDiv(perSlot, most)));
    blocks_ = ceilDiv(shape.planes, planesPerBlock_);
    slots_ = ceilDiv(blocks_, ceilDiv(blocks_, slots_));
    if (!shape.isLast) {
      for (Block* block : {&whole_, &last_}) {
        const int64_t planes = planesOf(block == &whole_ ? 0 : blocks_ - 1);
        *block = {reordersOf(planes, shape.windows.in), reordersOf(planes, shape.windows.out)};
      }
    }
    if (type != dtype::f32) widening_.emplace(type);
    layOutScratch();
  }

  size_t scratchBytes() const override { return slotBytes_ * slots_; }
  int imageReorders() const override { return shape_.isLast ? 0 : 2 + shape_.isBackward; }
  std::string implementation() const override { return "routine"; }

  void run(void* const* operands, void* result, void* scratch,
           host::ThreadPool& pool) const override {
    pool.parallelFor(slots_, 1, [&](int64_t slot, int64_t) {
      SingleThread single;
      for (int64_t i = blocks_ * slot / slots_; i < blocks_ * (slot + 1) / slots_; ++i)
        runBlock(i, operands, result, at(scratch, slotBytes_ * slot));
    });
  }

 private:
  // Of the input and the output, or their gradients.
  struct Block {
    Reorders in, out;
  };
  // Where a block of an operand or the result is in f32, and where as vectors.
  struct Area {
    size_t wide, vectors;
  };

  int64_t planesOf(int64_t block) const {
    return std::min(planesPerBlock_, shape_.planes - block * planesPerBlock_);
  }
  int64_t groupsOf(int64_t planes) const { return ceilDiv(planes, shape_.windows.lanes); }

  void layOutScratch() {
    ScratchLayout slot;
    const auto add = [&](int64_t elements) -> Area {
      const int64_t lanes = groupsOf(planesPerBlock_) * shape_.windows.lanes;
      return {slot.add(widening_ ? 4 * planesPerBlock_ * elements : 0),
              slot.add(shape_.isLast ? 0 : 4 * lanes * elements)};
    };
    in_ = add(shape_.input());
    out_ = add(shape_.output());
    if (shape_.isBackward) gradIn_ = add(shape_.input());
    size_t pad = 0;
    for (const Block* block : {&whole_, &last_}) {
      for (const Reorders* reorders : {&block->in, &block->out})
        pad = std::max({pad, reorders->to.scratchBytes(), reorders->from.scratchBytes()});
    }
    padOffset_ = slot.add(pad);
    slotBytes_ = slot.bytes();
  }

  void runBlock(int64_t index, void* const* operands, void* result, void* area) const {
    const int64_t first = index * planesPerBlock_, planes = planesOf(index);
    const Block& block = index + 1 < blocks_ ? whole_ : last_;
    void* const pad = at(area, padOffset_);
    const auto read = [&](void* operand, int64_t elements, Area place, const Reorder& reorder) {
      void* data = at(operand, first * elements * elementBytes_);
      if (widening_) {
        auto* const wide = static_cast<float*>(at(area, place.wide));
        widening_->widen(wide, data, planes * elements);
        data = wide;
      }
      if (reorder.needed()) reorder.run(data, at(area, place.vectors), pad);
      return static_cast<const float*>(reorder.needed() ? at(area, place.vectors) : data);
    };
    const bool isBackward = shape_.isBackward, reads = shape_.windows.isMaximum || !isBackward;
    const float* const in =
        reads ? read(operands[isBackward], shape_.input(), in_, block.in.to) : nullptr;
    const float* const gradOut =
        isBackward ? read(operands[0], shape_.output(), out_, block.out.to) : nullptr;
    const int64_t elements = shape_.result();
    const Area place = isBackward ? gradIn_ : out_;
    const Reorder& reorder = isBackward ? block.in.from : block.out.from;
    void* const to = at(result, first * elements * elementBytes_);
    void* const wide = widening_ ? at(area, place.wide) : to;
    void* const pooled = reorder.needed() ? at(area, place.vectors) : wide;
    poolGroups(groupsOf(planes), in, gradOut, static_cast<float*>(pooled));
    if (reorder.needed()) reorder.run(pooled, wide, pad);
    if (widening_) widening_->narrow(to, static_cast<float*>(wide), planes * elements);
  }

  // Of lanes.
  void poolGroups(int64_t groups, const float* in, const float* gradOut, float* result) const {
    const auto pool = isWide_ ? v4::pool : v3::pool;
    const auto spread = isWide_ ? v4::spread : v3::spread;
    const PoolWindows& windows = shape_.windows;
    for (int64_t i = 0; i < groups; ++i) {
      const int64_t input = i * windows.lanes * shape_.input();
      const int64_t output = i * windows.lanes * shape_.output();
      if (shape_.isBackward) {
        spread(windows, gradOut + output, in ? in + input : nullptr, result + input);
      } else {
        pool(windows, in + input, result + output);
      }
    }
  }

  const PoolShape shape_;
  const int64_t elementBytes_;
  const bool isWide_ = tile::hostTarget().vectorBits >= 512;
  int64_t slots_, blocks_, planesPerBlock_;
  Block whole_, last_;
  std::optional<Widening> widening_;  // of 16-bit floats
  // Of a slot.
  Area in_, out_, gradIn_;
  size_t padOffset_, slotBytes_;
};

}  // namespace

std::shared_ptr<LibraryFunction> preparePool(const LibraryCall& call) {
  SingleThread single;
  return std::make_shared<Pool>(poolShape(call), call.result.type);
}

}  // namespace fl::library
