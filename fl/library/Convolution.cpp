// Convolution and its two gradients: blocks of images or rows (ConvolutionPlan.h), each reordered
// into the layout that oneDNN is fast in, computed, and reordered back, unless they lie in it.
//
// 16-bit floats are added up in f32 and rounded once. oneDNN multiplies bf16 itself, taking
// subnormal operands as 0; f16, and bf16 where it does not, is widened to f32 block by block.
#include <algorithm>
#include <optional>
#include <string_view>

#include "fl/base/Error.h"
#include "fl/library/ConvolutionPlan.h"
#include "fl/library/Functions.h"
#include "fl/library/OneDnn.h"
#include "fl/library/Widening.h"

namespace fl::library {

namespace {

using dnnl::memory;

// Filter elements that one call adds over the slots.
constexpr int64_t kSumGrain = 16384;

// The dtype of activations while they are computed with, and of filters. Their gradients are sums.
memory::data_type computedType(const ConvolutionShape& s) {
  const bool brain = s.type == dtype::bf16 && !s.widened;
  return brain ? memory::data_type::bf16 : memory::data_type::f32;
}
memory::data_type filterType(const ConvolutionShape& s) {
  return s.direction == Direction::Filter ? memory::data_type::f32 : computedType(s);
}

// The descriptors of one primitive.
struct Descs {
  Desc input, filter, bias, output;
};

Desc filterDesc(const ConvolutionShape& s, memory::data_type type, memory::format_tag tag) {
  const int64_t in = s.inChannels / s.groups;
  if (s.groups == 1) {
    return {{s.outChannels, in, s.y.kernel, s.x.kernel}, type, tag};
  }
  return {{s.groups, s.outChannels / s.groups, in, s.y.kernel, s.x.kernel}, type, tag};
}

Desc plainFilterDesc(const ConvolutionShape& s) {
  return filterDesc(s, filterType(s),
                    s.groups == 1 ? memory::format_tag::oihw : memory::format_tag::goihw);
}

// The activations of one side of a block, in memory.
struct Activations {
  int64_t images, channels, rows, width;
  int64_t height;  // rows of a whole plane

  int64_t elements() const { return images * channels * rows * width; }
};

// As they lie in memory, or one behind the other.
Desc memoryDesc(const Activations& a, Layout layout, memory::data_type type, bool dense) {
  const memory::dims dims = {a.images, a.channels, a.rows, a.width};
  if (layout == Layout::ChannelsLast) {
    return {dims, type, memory::format_tag::nhwc};  // a range of rows is of one image
  }
  const int64_t plane = (dense ? a.rows : a.height) * a.width;
  return {dims, type, memory::dims{a.channels * plane, plane, a.width, 1}};
}

Desc computedDesc(const Desc& inMemory, Layout operands, Layout layout) {
  if (layout == operands) return inMemory;
  constexpr memory::format_tag kTags[] = {memory::format_tag::nchw, memory::format_tag::any,
                                          memory::format_tag::nhwc};
  return {inMemory.dims(), inMemory.data_type(), kTags[static_cast<int>(layout)]};
}

// One side of a block, moved between memory and the layout in which it is computed.
class Side {
 public:
  Side() = default;
  Side(const ConvolutionShape& s, const Activations& activations) {
    if (s.widened) widening_.emplace(s.type);
    memory_ = memoryDesc(activations, s.operands, computedType(s), s.widened);
    const bool planes = s.operands == Layout::Plain;
    const int64_t pixel = planes ? 1 : activations.channels;
    runs_ = activations.images * (planes ? activations.channels : 1);
    runLength_ = activations.rows * activations.width * pixel;
    runStride_ = activations.height * activations.width * pixel;
  }

  const Desc& memory() const { return memory_; }
  size_t reorderBytes() const { return reorder_.scratchBytes(); }
  bool reorders() const { return reorder_.needed(); }

  void layOut(const Desc& computed, bool written, ScratchLayout* scratch) {
    reorder_ = written ? Reorder(computed, memory_) : Reorder(memory_, computed);
    computedOffset_ = scratch->add(reorder_.needed() ? computed.get_size() : 0);
    wideOffset_ = scratch->add(widening_ ? memory_.get_size() : 0);
  }

  // Where the block is computed, if `data` is its first element in memory.
  void* computed(void* data, void* scratch) const {
    return reorder_.needed() ? at(scratch, computedOffset_) : dense(data, scratch);
  }

  void load(void* data, void* scratch, void* pad) const {
    if (widening_) {
      copyRuns(static_cast<float*>(dense(data, scratch)), runLength_, data, widening_, runs_,
               runLength_, runStride_);
    }
    if (reorder_.needed()) reorder_.run(dense(data, scratch), computed(data, scratch), pad);
  }

  void store(void* data, void* scratch, void* pad) const {
    if (reorder_.needed()) reorder_.run(computed(data, scratch), dense(data, scratch), pad);
    if (widening_) {
      widening_->narrowRuns(data, static_cast<float*>(dense(data, scratch)), runs_, runLength_,
                            runStride_);
    }
  }

 private:
  void* dense(void* data, void* scratch) const {
    return widening_ ? at(scratch, wideOffset_) : data;
  }

  std::optional<Widening> widening_;
  int64_t runs_ = 0, runLength_ = 0, runStride_ = 0;  // of neighbours in memory
  Desc memory_;
  Reorder reorder_;
  size_t computedOffset_ = 0, wideOffset_ = 0;
};

struct Windows {
  memory::dims strides, dilations, before, after;
};

Windows windows(const ConvolutionShape& s, const ConvolutionBlock& block) {
  const int64_t spanned = (s.x.out - 1) * s.x.stride + s.x.extent();
  const int64_t xAfter = std::max<int64_t>(0, spanned - s.x.in - s.x.pad);
  return {{s.y.stride, s.x.stride},
          {s.y.dilation - 1, s.x.dilation - 1},
          {block.padBefore, s.x.pad},
          {block.padAfter, xAfter}};
}

// One block's primitive and the reorders around it; serves all blocks of the same work.
class BlockFunction {
 public:
  // Null if oneDNN refuses the layout or has only a slow implementation for it.
  static std::optional<BlockFunction> make(const ConvolutionShape& shape, Layout layout,
                                           const ConvolutionBlock& block, const Desc& filter) {
    try {
      BlockFunction made(shape, layout, block, filter);
      const std::string& name = made.primitive_.name();
      const bool slow =
          isReference(name) || (layout != Layout::Plain && name.find("gemm") != std::string::npos);
      return slow ? std::nullopt : std::optional(std::move(made));
    } catch (const dnnl::error&) {
      return std::nullopt;
    }
  }

  const Desc& filter() const { return used_.filter; }
  const std::string& name() const { return primitive_.name(); }
  size_t scratchBytes() const { return scratch_.bytes(); }
  int imageReorders() const { return input_.reorders() + output_.reorders(); }

  // Pointers are to the block's first elements; the filter is in the layout of filter().
  void run(void* input, void* filter, void* bias, void* output, void* scratch) const {
    void* x = input_.computed(input, scratch);
    void* y = output_.computed(output, scratch);
    void* pad = at(scratch, padOffset_);
    if (direction_ != Direction::Data) input_.load(input, scratch, pad);
    if (direction_ != Direction::Forward) output_.load(output, scratch, pad);
    compute(x, filter, bias, y, pad);
    if (direction_ == Direction::Data) input_.store(input, scratch, pad);
    if (direction_ == Direction::Forward) output_.store(output, scratch, pad);
  }

 private:
  BlockFunction(const ConvolutionShape& s, Layout layout, const ConvolutionBlock& block,
                const Desc& filter)
      : direction_(s.direction),
        bias_(s.bias),
        input_(s, {block.images, s.inChannels, block.inRows, s.x.in, s.y.in}),
        output_(s, {block.images, s.outChannels, block.outRows, s.x.out, s.y.out}) {
    used_ = {computedDesc(input_.memory(), s.operands, layout),
             filter,
             {},
             computedDesc(output_.memory(), s.operands, layout)};
    if (bias_) {
      used_.bias = {{s.outChannels}, computedType(s), memory::format_tag::x};
    }
    makePrimitive(s, windows(s, block));
    input_.layOut(used_.input, direction_ == Direction::Data, &scratch_);
    output_.layOut(used_.output, direction_ == Direction::Forward, &scratch_);
    padOffset_ = scratch_.add(
        std::max({primitive_.scratchBytes(), input_.reorderBytes(), output_.reorderBytes()}));
  }

  // The first implementation that does not use AMX, if there is one. Those that do multiply
  // neighbours of a window by weights of 0, which is NaN if they are infinite.
  template <class PrimitiveDesc>
  static PrimitiveDesc exact(PrimitiveDesc desc) {
    while (std::string_view(desc.impl_info_str()).find("amx") != std::string_view::npos &&
           desc.next_impl()) {
    }
    return desc;
  }

  // Chooses the implementation and replaces `any` in used_ by what it wants.
  void makePrimitive(const ConvolutionShape& s, const Windows& w) {
    constexpr auto kDirect = dnnl::algorithm::convolution_direct;
    const dnnl::engine& engine = dnnlEngine();
    const dnnl::primitive_attr& attributes = callerScratchpad();
    constexpr auto kTraining = dnnl::prop_kind::forward_training;
    // For a gradient, a hint that the library asks for.
    const Desc filter = direction_ == Direction::Filter
                            ? filterDesc(s, computedType(s), memory::format_tag::any)
                            : used_.filter;
    const dnnl::convolution_forward::desc forwardDesc =
        bias_
            ? dnnl::convolution_forward::desc(kTraining, kDirect, used_.input, filter, used_.bias,
                                              used_.output, w.strides, w.dilations, w.before,
                                              w.after)
            : dnnl::convolution_forward::desc(kTraining, kDirect, used_.input, filter, used_.output,
                                              w.strides, w.dilations, w.before, w.after);
    const dnnl::convolution_forward::primitive_desc forward =
        exact(dnnl::convolution_forward::primitive_desc(forwardDesc, attributes, engine));
    const auto backwardOf = [&]<class Backward>(std::type_identity<Backward>) {
      return exact(
          typename Backward::primitive_desc({kDirect, used_.input, used_.filter, used_.output,
                                             w.strides, w.dilations, w.before, w.after},
                                            attributes, engine, forward));
    };
    if (direction_ == Direction::Forward) {
      primitive_ = Primitive(forward);
      used_ = {forward.src_desc(), forward.weights_desc(), used_.bias, forward.dst_desc()};
    } else if (direction_ == Direction::Data) {
      const auto backward = backwardOf(std::type_identity<dnnl::convolution_backward_data>());
      primitive_ = Primitive(backward);
      used_ = {backward.diff_src_desc(), backward.weights_desc(), {}, backward.diff_dst_desc()};
    } else {
      const auto backward = backwardOf(std::type_identity<dnnl::convolution_backward_weights>());
      primitive_ = Primitive(backward);
      used_ = {backward.src_desc(), backward.diff_weights_desc(), {}, backward.diff_dst_desc()};
    }
  }

  void compute(void* x, void* filter, void* bias, void* y, void* pad) const {
    if (direction_ == Direction::Data) {
      primitive_.run({{DNNL_ARG_DIFF_SRC, used_.input, x},
                      {DNNL_ARG_WEIGHTS, used_.filter, filter},
                      {DNNL_ARG_DIFF_DST, used_.output, y}},
                     pad);
    } else if (direction_ == Direction::Filter) {
      primitive_.run({{DNNL_ARG_SRC, used_.input, x},
                      {DNNL_ARG_DIFF_WEIGHTS, used_.filter, filter},
                      {DNNL_ARG_DIFF_DST, used_.output, y}},
                     pad);
    } else if (bias_) {
      primitive_.run({{DNNL_ARG_SRC, used_.input, x},
                      {DNNL_ARG_WEIGHTS, used_.filter, filter},
                      {DNNL_ARG_BIAS, used_.bias, bias},
                      {DNNL_ARG_DST, used_.output, y}},
                     pad);
    } else {
      primitive_.run({{DNNL_ARG_SRC, used_.input, x},
                      {DNNL_ARG_WEIGHTS, used_.filter, filter},
                      {DNNL_ARG_DST, used_.output, y}},
                     pad);
    }
  }

  Direction direction_;
  bool bias_;
  Descs used_;
  Primitive primitive_;
  Side input_, output_;
  ScratchLayout scratch_;
  size_t padOffset_ = 0;
};

class Convolution final : public PartedFunction {
 public:
  // Null where BlockFunction::make is for a block of the split.
  static std::shared_ptr<Convolution> make(const ConvolutionShape& shape, Layout layout) {
    std::shared_ptr<Convolution> made(new Convolution(shape, splitConvolution(shape, layout)));
    if (!made->makeFunctions(layout)) return nullptr;
    made->layOutScratch();
    made->offerPacking();
    return made;
  }

  size_t scratchBytes() const override { return scratch_.bytes(); }

  int imageReorders() const override { return functions_.front().imageReorders(); }

  std::string implementation() const override { return functions_.front().name(); }

  // Whole images.
  int64_t partElements() const override {
    const bool whole = std::ranges::none_of(split_.blocks, [&](const ConvolutionBlock& block) {
      return block.outRows != shape_.y.out || block.inRows != shape_.y.in;
    });
    return filterGradient() || !whole ? 0 : resultElements() / shape_.images;
  }

  int64_t parts() const override { return split_.slots; }

  const Packing* packing() const override { return packing_ ? &*packing_ : nullptr; }

  void pack(const void* filter, void* packed, void* scratch) const override {
    const bool reorders = filterReorder_.needed();
    if (widening_) {
      filter = widened(filter, shape_.filterElements(),
                       reorders ? at(scratch, wideFilterOffset_) : packed);
    }
    if (reorders) {
      SingleThread single;
      filterReorder_.run(filter, packed, slotArea(scratch, 0));
    }
  }

  void runInParts(void* const* operands, void* result, void* scratch, host::ThreadPool& pool,
                  PartDone done) const override {
    switch (shape_.direction) {
      case Direction::Forward:
        runMap(operands[0], operands[1], shape_.bias ? operands[2] : nullptr, result, scratch, pool,
               done);
        break;
      case Direction::Data:
        runMap(result, operands[1], nullptr, operands[0], scratch, pool, done);
        break;
      case Direction::Filter:
        runFilter(operands[1], result, operands[0], scratch, pool);
        break;
    }
  }

 private:
  Convolution(const ConvolutionShape& shape, ConvolutionSplit split)
      : shape_(shape), split_(std::move(split)) {
    if (shape.widened) widening_.emplace(shape.type);
  }

  bool filterGradient() const { return shape_.direction == Direction::Filter; }

  bool makeFunctions(Layout layout) {
    const Desc plain = plainFilterDesc(shape_);
    // The first block chooses the filter's layout, the others follow.
    Desc filter = layout == Layout::Plain
                      ? plain
                      : filterDesc(shape_, filterType(shape_), memory::format_tag::any);
    std::vector<ConvolutionBlock> works;
    for (const ConvolutionBlock& block : split_.blocks) {
      const auto same = std::find_if(works.begin(), works.end(),
                                     [&](const auto& work) { return block.sameWork(work); });
      functionOfBlock_.push_back(same - works.begin());
      if (same != works.end()) continue;
      works.push_back(block);
      std::optional<BlockFunction> function = BlockFunction::make(shape_, layout, block, filter);
      if (!function) return false;
      filter = function->filter();
      functions_.push_back(std::move(*function));
    }
    filterReorder_ = filterGradient() ? Reorder(filter, plain) : Reorder(plain, filter);
    filterBytes_ = filter.get_size();
    plainFilterBytes_ = plain.get_size();
    return true;
  }

  void layOutScratch() {
    size_t area = filterReorder_.scratchBytes();
    for (const BlockFunction& function : functions_) area = std::max(area, function.scratchBytes());
    ScratchLayout slot;
    areaOffset_ = slot.add(area);
    if (filterGradient()) {
      const bool manyBlocks = static_cast<int64_t>(split_.blocks.size()) > split_.slots;
      sumOffset_ = slot.add(oneSumIsResult() ? 0 : filterBytes_);
      partOffset_ = slot.add(manyBlocks ? filterBytes_ : 0);
    }
    slotBytes_ = slot.bytes();
    slotsOffset_ = scratch_.add(slotBytes_ * split_.slots);
    filterOffset_ = scratch_.add(packsFilter() ? packedBytes() : 0);
    const bool widensApart = widening_ && (filterGradient() || filterReorder_.needed());
    wideFilterOffset_ = scratch_.add(widensApart ? plainFilterBytes_ : 0);
    wideBiasOffset_ = scratch_.add(widening_ && shape_.bias ? 4 * shape_.outChannels : 0);
  }

  bool packsFilter() const { return !filterGradient() && (filterReorder_.needed() || widening_); }
  size_t packedBytes() const { return filterReorder_.needed() ? filterBytes_ : plainFilterBytes_; }

  void offerPacking() {
    if (packsFilter()) {
      const dnnl_memory_desc_t& layout = functions_.front().filter().data;
      packing_ = {1, packedBytes(),
                  std::string(reinterpret_cast<const char*>(&layout), sizeof(layout)),
                  std::shared_ptr<Convolution>(new Convolution(*this))};
    }
  }

  void* slotArea(void* scratch, int64_t slot) const {
    return at(scratch, slotsOffset_ + slotBytes_ * slot);
  }

  void runBlock(int64_t index, void* input, void* filter, void* bias, void* output,
                void* area) const {
    const ConvolutionBlock& block = split_.blocks[index];
    const bool planes = shape_.operands == Layout::Plain;
    const auto offset = [&](int64_t channels, int64_t rows, int64_t width, int64_t first) {
      const int64_t firstRow = first * (planes ? 1 : channels);
      return (block.firstImage * channels * rows + firstRow) * width * getTypeSize(shape_.type);
    };
    void* x = at(input, offset(shape_.inChannels, shape_.y.in, shape_.x.in, block.inBegin));
    void* y = at(output, offset(shape_.outChannels, shape_.y.out, shape_.x.out, block.outBegin));
    functions_[functionOfBlock_[index]].run(x, filter, bias, y, at(area, areaOffset_));
  }

  // Of the image that runMap() makes.
  int64_t resultElements() const {
    return shape_.direction == Direction::Forward ? shape_.outputElements()
                                                  : shape_.inputElements();
  }

  void runMap(void* input, void* filter, void* bias, void* output, void* scratch,
              host::ThreadPool& pool, PartDone done) const {
    if (packing_) {
      void* const packed = at(scratch, filterOffset_);
      pack(filter, packed, scratch);
      filter = packed;
    }
    if (widening_ && shape_.bias)
      bias = widened(bias, shape_.outChannels, at(scratch, wideBiasOffset_));
    pool.parallelFor(split_.slots, 1, [&](int64_t begin, int64_t end) {
      SingleThread single;
      for (int64_t i = split_.firstBlock(begin); i < split_.firstBlock(end); ++i) {
        runBlock(i, input, filter, bias, output, slotArea(scratch, begin));
        const ConvolutionBlock& block = split_.blocks[i];
        const int64_t image = resultElements() / shape_.images;
        done(block.firstImage * image, (block.firstImage + block.images) * image);
      }
    });
  }

  void runFilter(void* input, void* result, void* output, void* scratch,
                 host::ThreadPool& pool) const {
    const auto sumOf = [&](int64_t slot) {
      return static_cast<float*>(oneSumIsResult() ? result
                                                  : at(slotArea(scratch, slot), sumOffset_));
    };
    pool.parallelFor(split_.slots, 1, [&](int64_t slot, int64_t) {
      SingleThread single;
      sumBlocks(slot, input, sumOf(slot), output, slotArea(scratch, slot));
    });
    if (oneSumIsResult()) return;
    pool.parallelFor(filterElements(), kSumGrain, [&](int64_t begin, int64_t end) {
      for (int64_t slot = 1; slot < split_.slots; ++slot) addTo(sumOf(0), sumOf(slot), begin, end);
    });
    float* plain = widening_ ? static_cast<float*>(at(scratch, wideFilterOffset_))
                             : static_cast<float*>(result);
    if (filterReorder_.needed()) {
      SingleThread single;
      filterReorder_.run(sumOf(0), plain, slotArea(scratch, 0));
    } else if (!widening_) {
      std::copy_n(sumOf(0), filterElements(), plain);
    }
    if (widening_) {
      widening_->narrow(result, filterReorder_.needed() ? plain : sumOf(0),
                        shape_.filterElements());
    }
  }

  void* widened(const void* values, int64_t count, void* wide) const {
    widening_->widen(static_cast<float*>(wide), values, count);
    return wide;
  }

  // A single slot sums in place, unless the layouts or the dtypes differ.
  bool oneSumIsResult() const {
    return split_.slots == 1 && !filterReorder_.needed() && !widening_;
  }

  // Adds the filter gradients of a slot's blocks, in order.
  void sumBlocks(int64_t slot, void* input, float* sum, void* output, void* area) const {
    float* part = static_cast<float*>(at(area, partOffset_));
    const int64_t first = split_.firstBlock(slot);
    runBlock(first, input, sum, nullptr, output, area);
    for (int64_t i = first + 1; i < split_.firstBlock(slot + 1); ++i) {
      runBlock(i, input, part, nullptr, output, area);
      addTo(sum, part, 0, filterElements());
    }
  }

  static void addTo(float* __restrict sum, const float* __restrict part, int64_t begin,
                    int64_t end) {
    int64_t i = begin;
    // Compilers vectorise this form at -O2 already.
    for (; i + 16 <= end; i += 16)
      for (int64_t j = 0; j < 16; ++j) sum[i + j] += part[i + j];
    for (; i < end; ++i) sum[i] += part[i];
  }

  // With the padding of the layout.
  int64_t filterElements() const { return static_cast<int64_t>(filterBytes_ / sizeof(float)); }

  ConvolutionShape shape_;
  ConvolutionSplit split_;
  std::optional<Packing> packing_;  // none where filters lie as the blocks want them
  std::vector<BlockFunction> functions_;
  std::vector<size_t> functionOfBlock_;
  Reorder filterReorder_;
  std::optional<Widening> widening_;  // of the filter and the bias, or of the filter's gradient
  size_t filterBytes_ = 0, plainFilterBytes_ = 0;
  // Slots, each an area of BlockFunction and two filter gradients; then the packed filter, the
  // plain one in f32, and the bias in f32.
  ScratchLayout scratch_;
  size_t slotsOffset_ = 0, slotBytes_ = 0, filterOffset_ = 0;
  size_t wideFilterOffset_ = 0, wideBiasOffset_ = 0;
  size_t areaOffset_ = 0, sumOffset_ = 0, partOffset_ = 0;
};

}  // namespace

std::shared_ptr<LibraryFunction> makeConvolution(const ConvolutionShape& shape, Layout layout) {
  // oneDNN 2.6 reads scratch memory here that it has not written, which may hold NaN.
  if (shape.direction == Direction::Filter && computedType(shape) == memory::data_type::bf16)
    return nullptr;
  SingleThread single;
  return Convolution::make(shape, layout);
}

std::shared_ptr<LibraryFunction> prepareConvolution(const LibraryCall& call) {
  ConvolutionShape shape = convolutionShape(call);
  if (!shape.x.consistent() || !shape.y.consistent()) return nullptr;
  const bool single = shape.type == dtype::f32;
  for (const bool widened : {false, true}) {
    shape.widened = widened;
    if (widened ? single : shape.type == dtype::f16 || (!single && isBrainSlow())) continue;
    for (const Layout layout : layoutsByCost(shape))
      if (auto made = makeConvolution(shape, layout)) return made;
  }
  return nullptr;
}

}  // namespace fl::library
