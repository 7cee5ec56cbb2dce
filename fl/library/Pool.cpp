// Pooling and its gradient. Planes (one channel of one image) are independent, so the operands are
// taken as one image of C * N channels, cut into blocks of whole vectors of planes. A block is
// reordered to the blocked layout in scratch memory, which is 1.3 times faster than oneDNN's plain
// path, reorders included. Where channels are last, blocks are whole images, pooled as they lie.
//
// oneDNN's maximum passes over NaN and starts at the lowest finite number, so planes that hold NaN
// or -inf, which are looked for block by block, are pooled by loops of ours.
//
// 16-bit floats are widened to f32 block by block, added up there and rounded once.
#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

#include "fl/base/Error.h"
#include "fl/ir/Inference.h"
#include "fl/library/Functions.h"
#include "fl/library/OneDnn.h"
#include "fl/library/Widening.h"

namespace fl::library {

namespace {

using dnnl::memory;

constexpr auto kFloat = memory::data_type::f32;
constexpr int64_t kMaxSlots = 8;
// Bytes of operands that are worth a slot (about 20 us), and of scratch memory for one block.
constexpr int64_t kBytesPerSlot = 256 << 10;
constexpr int64_t kBlockBytes = 256 << 10;
// Planes side by side in a vector, at most.
constexpr int64_t kVector = 16;

struct PoolShape {
  bool backward;
  dnnl::algorithm algorithm;
  int64_t planes;
  int64_t step;  // elements from one of a plane to the next: the channels, if they are last, or 1
  // Each y, then x.
  memory::dims in, out, kernel, strides, before, after;

  bool maximum() const { return algorithm == dnnl::algorithm::pooling_max; }
  int64_t inElements() const { return in[0] * in[1]; }
  int64_t outElements() const { return out[0] * out[1]; }
  // Where a plane of so many elements begins.
  int64_t planeOffset(int64_t plane, int64_t elements) const {
    return plane / step * step * elements + plane % step;
  }
};

dnnl::algorithm algorithmOf(int64_t mode) {
  switch (mode) {
    case 0:
      return dnnl::algorithm::pooling_max;
    case 1:
      return dnnl::algorithm::pooling_avg_include_padding;
    default:
      FL_INTERNAL_CHECK(mode == 2, "pooling mode ", mode);
      return dnnl::algorithm::pooling_avg_exclude_padding;
  }
}

PoolShape poolShape(const LibraryCall& call) {
  const bool backward = call.op == ir::Op::Pool2dBackward;
  const Shape& in = call.operands[backward ? 1 : 0].shape;
  const Shape& out = backward ? call.operands[0].shape : call.result.shape;
  const ir::Attrs& a = call.attrs;
  const ir::ImageAxes axes = ir::imageAxes(a);
  const int64_t channels = in[axes.channel];
  PoolShape shape{backward,
                  algorithmOf(a[6]),
                  channels * in[ir::ImageAxes::image],
                  axes.channel == 0 ? channels : 1,
                  {in[axes.y], in[axes.x]},
                  {out[axes.y], out[axes.x]},
                  {a[1], a[0]},
                  {a[3], a[2]},
                  {a[5], a[4]},
                  {0, 0}};
  for (int i = 0; i < 2; ++i) {
    const int64_t spanned = (shape.out[i] - 1) * shape.strides[i] + shape.kernel[i];
    shape.after[i] = std::max<int64_t>(0, spanned - shape.in[i] - shape.before[i]);
  }
  return shape;
}

struct Pointers {
  const float* input;
  const float* gradOutput;  // null forward
  float* result;
};

// True if oneDNN's maximum of such an element is not the definition's.
bool isSpecial(float value) { return !(value >= std::numeric_limits<float>::lowest()); }

// Whether an element is special. Reads 100 GB/s and more, from
// memory that pooling reads next. Every processor that fl runs on has AVX2 (fl/tile/TileOps.h);
// without it this takes 2.5 times as long.
__attribute__((target("avx2"))) bool holdsNanOrMinusInfinity(const float* values, int64_t count) {
  constexpr int kStep = 64;
  int64_t i = 0;
  for (; i + kStep <= count; i += kStep) {
    int32_t special = 0;
    for (int k = 0; k < kStep; ++k) special |= isSpecial(values[i + k]);
    if (special) return true;
  }
  return std::any_of(values + i, values + count, isSpecial);
}

// The place in a plane of a window's first element that is the maximum or NaN; -1 if that is
// padding, which counts as -inf.
int64_t maximumOf(const PoolShape& s, const float* plane, int64_t outY, int64_t outX) {
  const int64_t top = outY * s.strides[0] - s.before[0], left = outX * s.strides[1] - s.before[1];
  int64_t place = -1;
  float maximum = -std::numeric_limits<float>::infinity();
  bool first = true;
  for (int64_t y = top; y < top + s.kernel[0]; ++y) {
    for (int64_t x = left; x < left + s.kernel[1]; ++x) {
      const bool inside = y >= 0 && y < s.in[0] && x >= 0 && x < s.in[1];
      const int64_t here = inside ? (y * s.in[1] + x) * s.step : -1;
      const float value = inside ? plane[here] : -std::numeric_limits<float>::infinity();
      if (std::isnan(value)) return here;
      if (first || value > maximum) {
        maximum = value;
        place = here;
      }
      first = false;
    }
  }
  return place;
}

// Pools one plane by its definition (fl/definitions/Definitions.cpp).
void poolMaximum(const PoolShape& s, const Pointers& p) {
  for (int64_t i = 0; s.backward && i < s.inElements(); ++i) p.result[i * s.step] = 0;
  for (int64_t i = 0; i < s.outElements(); ++i) {
    const int64_t place = maximumOf(s, p.input, i / s.out[1], i % s.out[1]), out = i * s.step;
    if (!s.backward) {
      p.result[out] = place < 0 ? -std::numeric_limits<float>::infinity() : p.input[place];
    } else if (place >= 0) {
      p.result[place] += p.gradOutput[out];
    }
  }
}

bool isPlaneSpecial(const PoolShape& s, const float* plane) {
  int64_t i = 0;
  while (i < s.inElements() && !isSpecial(plane[i * s.step])) ++i;
  return i < s.inElements();
}

// Pools one block of planes; serves all blocks with as many.
class BlockFunction {
 public:
  // Null if oneDNN refuses the layout or has only a slow implementation for it.
  static std::optional<BlockFunction> make(const PoolShape& shape, int64_t planes,
                                           memory::format_tag layout) {
    try {
      BlockFunction made(shape, planes, layout);
      const bool blocked = layout != memory::format_tag::nchw && layout != memory::format_tag::nhwc;
      const bool good = blocked ? made.name().starts_with("jit") : !isReference(made.name());
      return good ? std::optional(std::move(made)) : std::nullopt;
    } catch (const dnnl::error&) {
      return std::nullopt;
    }
  }

  const std::string& name() const { return backward_ ? gradient_.name() : pool_.name(); }
  size_t scratchBytes() const { return scratch_.bytes(); }
  int imageReorders() const {
    return toIn_.needed() + fromOut_.needed() + (backward_ ? fromIn_.needed() : 0);
  }

  void run(const Pointers& p, void* scratch) const {
    void* pad = at(scratch, padOffset_);
    void* out = at(scratch, outOffset_);
    if (!backward_) {
      void* y = fromOut_.needed() ? out : p.result;
      pool(p.input, y, scratch);
      if (fromOut_.needed()) fromOut_.run(y, p.result, pad);
      return;
    }
    if (maximum_) {
      // Finds the positions of the maxima; what it pools is not wanted.
      pool(p.input, out, scratch);
    }
    void* dy = const_cast<float*>(p.gradOutput);
    if (toOut_.needed()) {
      toOut_.run(p.gradOutput, out, pad);
      dy = out;
    }
    void* dx = fromIn_.needed() ? at(scratch, inOffset_) : p.result;
    if (maximum_) {
      gradient_.run({{DNNL_ARG_DIFF_SRC, in_, dx},
                     {DNNL_ARG_DIFF_DST, out_, dy},
                     {DNNL_ARG_WORKSPACE, workspace_, at(scratch, workspaceOffset_)}},
                    pad);
    } else {
      gradient_.run({{DNNL_ARG_DIFF_SRC, in_, dx}, {DNNL_ARG_DIFF_DST, out_, dy}}, pad);
    }
    if (fromIn_.needed()) fromIn_.run(dx, p.result, pad);
  }

 private:
  BlockFunction(const PoolShape& s, int64_t planes, memory::format_tag layout)
      : backward_(s.backward), maximum_(s.maximum()) {
    const bool last = s.step > 1;
    const int64_t images = last ? planes / s.step : 1;
    const memory::dims inDims = {images, planes / images, s.in[0], s.in[1]};
    const memory::dims outDims = {images, planes / images, s.out[0], s.out[1]};
    const auto given = last ? memory::format_tag::nhwc : memory::format_tag::nchw;
    const Desc givenIn(inDims, kFloat, given), givenOut(outDims, kFloat, given);
    in_ = Desc(inDims, kFloat, layout);
    out_ = Desc(outDims, kFloat, layout);
    makePrimitives(s);
    toIn_ = Reorder(givenIn, in_);
    toOut_ = Reorder(givenOut, out_);
    fromIn_ = Reorder(in_, givenIn);
    fromOut_ = Reorder(out_, givenOut);
    layOutScratch();
  }

  void makePrimitives(const PoolShape& s) {
    const auto kind =
        s.backward ? dnnl::prop_kind::forward_training : dnnl::prop_kind::forward_inference;
    const dnnl::pooling_forward::primitive_desc forward(
        {kind, s.algorithm, in_, out_, s.strides, s.kernel, s.before, s.after}, callerScratchpad(),
        dnnlEngine());
    pool_ = Primitive(forward);
    workspace_ = forward.workspace_desc();
    if (s.backward) {
      gradient_ = Primitive(dnnl::pooling_backward::primitive_desc(
          {s.algorithm, in_, out_, s.strides, s.kernel, s.before, s.after}, callerScratchpad(),
          dnnlEngine(), forward));
    }
  }

  void layOutScratch() {
    inOffset_ = scratch_.add(toIn_.needed() ? in_.get_size() : 0);
    outOffset_ = scratch_.add(toOut_.needed() || (backward_ && maximum_) ? out_.get_size() : 0);
    workspaceOffset_ = scratch_.add(workspace_.get_size());
    size_t pad = std::max(pool_.scratchBytes(), backward_ ? gradient_.scratchBytes() : 0);
    for (const Reorder* reorder : {&toIn_, &toOut_, &fromIn_, &fromOut_}) {
      pad = std::max(pad, reorder->scratchBytes());
    }
    padOffset_ = scratch_.add(pad);
  }

  void pool(const float* input, void* out, void* scratch) const {
    void* pad = at(scratch, padOffset_);
    void* x = const_cast<float*>(input);
    if (toIn_.needed()) {
      x = at(scratch, inOffset_);
      toIn_.run(input, x, pad);
    }
    if (workspace_.get_size() > 0) {
      pool_.run({{DNNL_ARG_SRC, in_, x},
                 {DNNL_ARG_DST, out_, out},
                 {DNNL_ARG_WORKSPACE, workspace_, at(scratch, workspaceOffset_)}},
                pad);
    } else {
      pool_.run({{DNNL_ARG_SRC, in_, x}, {DNNL_ARG_DST, out_, out}}, pad);
    }
  }

  bool backward_, maximum_;
  Desc in_, out_, workspace_;
  Primitive pool_, gradient_;
  Reorder toIn_, toOut_, fromIn_, fromOut_;
  ScratchLayout scratch_;
  size_t inOffset_ = 0, outOffset_ = 0, workspaceOffset_ = 0, padOffset_ = 0;
};

class Pool final : public LibraryFunction {
 public:
  static std::shared_ptr<Pool> make(const PoolShape& shape, dtype type, memory::format_tag layout) {
    std::shared_ptr<Pool> made(new Pool(shape));
    const int64_t rest = shape.planes - (made->blocks_ - 1) * made->planesPerBlock_;
    if (type != dtype::f32) made->widening_.emplace(type);
    auto whole = BlockFunction::make(shape, made->planesPerBlock_, layout);
    auto last = whole ? BlockFunction::make(shape, rest, layout) : std::nullopt;
    if (!last) return nullptr;
    made->whole_ = std::move(*whole);
    made->last_ = std::move(*last);
    made->layOutScratch();
    return made;
  }

  size_t scratchBytes() const override { return slotBytes_ * slots_; }

  int imageReorders() const override { return whole_->imageReorders(); }

  std::string implementation() const override { return whole_->name(); }

  void run(void* const* operands, void* result, void* scratch,
           host::ThreadPool& pool) const override {
    pool.parallelFor(slots_, 1, [&](int64_t slot, int64_t) {
      SingleThread single;
      for (int64_t i = blocks_ * slot / slots_; i < blocks_ * (slot + 1) / slots_; ++i) {
        runBlock(i, operands, result, at(scratch, slotBytes_ * slot));
      }
    });
  }

 private:
  explicit Pool(const PoolShape& shape) : shape_(shape) {
    const int64_t planeBytes = 4 * (shape.inElements() + shape.outElements());
    slots_ = std::clamp<int64_t>(shape.planes * planeBytes / kBytesPerSlot, 1, kMaxSlots);
    const int64_t together = shape.step > 1 ? shape.step : kVector;
    const int64_t perSlot = ceilDiv(ceilDiv(shape.planes, slots_), together);
    const int64_t most = std::max<int64_t>(1, kBlockBytes / planeBytes / together);
    planesPerBlock_ = std::min(shape.planes, together * ceilDiv(perSlot, ceilDiv(perSlot, most)));
    blocks_ = ceilDiv(shape.planes, planesPerBlock_);
    slots_ = ceilDiv(blocks_, ceilDiv(blocks_, slots_));
  }

  void layOutScratch() {
    const int64_t planes = widening_ ? planesPerBlock_ : 0;
    ScratchLayout slot;
    slot.add(std::max(whole_->scratchBytes(), last_->scratchBytes()));
    inOffset_ = slot.add(4 * planes * shape_.inElements());
    outOffset_ = slot.add(4 * planes * shape_.outElements());
    gradInOffset_ = slot.add(shape_.backward ? 4 * planes * shape_.inElements() : 0);
    slotBytes_ = slot.bytes();
  }

  // Elements of a plane of the result.
  int64_t resultElements() const {
    return shape_.backward ? shape_.inElements() : shape_.outElements();
  }

  // `count` planes from `first` on, in memory or widened.
  Pointers load(int64_t first, int64_t count, void* const* operands, void* result,
                void* area) const {
    const int64_t in = shape_.inElements(), out = shape_.outElements();
    const void* input = operands[shape_.backward];
    const void* gradOutput = shape_.backward ? operands[0] : nullptr;
    if (!widening_) {
      return from(first, {static_cast<const float*>(input), static_cast<const float*>(gradOutput),
                          static_cast<float*>(result)});
    }
    auto* wideIn = static_cast<float*>(at(area, inOffset_));
    auto* wideOut = static_cast<float*>(at(area, outOffset_));
    if (!shape_.backward || shape_.maximum()) {
      widening_->widen(wideIn, static_cast<const uint16_t*>(input) + first * in, count * in);
    }
    if (!shape_.backward) {
      return {wideIn, nullptr, wideOut};
    }
    widening_->widen(wideOut, static_cast<const uint16_t*>(gradOutput) + first * out, count * out);
    return {wideIn, wideOut, static_cast<float*>(at(area, gradInOffset_))};
  }

  // Those of the planes from `first` on.
  Pointers from(int64_t first, const Pointers& all) const {
    const int64_t in = shape_.planeOffset(first, shape_.inElements());
    const int64_t out = shape_.planeOffset(first, shape_.outElements());
    return {all.input + in, shape_.backward ? all.gradOutput + out : nullptr,
            all.result + (shape_.backward ? in : out)};
  }

  void runBlock(int64_t index, void* const* operands, void* result, void* area) const {
    const int64_t first = index * planesPerBlock_;
    const int64_t count = std::min(planesPerBlock_, shape_.planes - first);
    const int64_t size = shape_.inElements();
    const Pointers block = load(first, count, operands, result, area);
    // Looked for first, which also fetches what the library reads.
    const bool special = shape_.maximum() && holdsNanOrMinusInfinity(block.input, count * size);
    (index + 1 < blocks_ ? whole_ : last_)->run(block, area);
    for (int64_t i = 0; special && i < count; ++i) {
      const Pointers plane = from(i, block);
      if (isPlaneSpecial(shape_, plane.input)) poolMaximum(shape_, plane);
    }
    if (widening_) {
      widening_->narrow(static_cast<uint16_t*>(result) + first * resultElements(), block.result,
                        count * resultElements());
    }
  }

  PoolShape shape_;
  int64_t slots_, blocks_, planesPerBlock_;
  std::optional<BlockFunction> whole_, last_;
  std::optional<Widening> widening_;  // of 16-bit floats
  // A slot: the area of a block's function, then its planes in f32.
  size_t slotBytes_ = 0, inOffset_ = 0, outOffset_ = 0, gradInOffset_ = 0;
};

}  // namespace

std::shared_ptr<LibraryFunction> preparePool(const LibraryCall& call) {
  SingleThread single;
  const PoolShape shape = poolShape(call);
  using Tag = memory::format_tag;
  for (const Tag layout : {Tag::nhwc, Tag::nChw16c, Tag::nChw8c, Tag::nchw}) {
    const bool tried = layout != Tag::nhwc || shape.step > 1;
    if (auto made = tried ? Pool::make(shape, call.result.type, layout) : nullptr) return made;
  }
  return nullptr;
}

}  // namespace fl::library
