// Convolution and its two gradients: blocks of images or rows (ConvolutionPlan.h), each reordered
// into the layout that oneDNN is fast in, computed, and reordered back.
#include <algorithm>
#include <optional>

#include "fl/base/Error.h"
#include "fl/runtime/cpu/ConvolutionPlan.h"
#include "fl/runtime/cpu/LibraryFunctions.h"
#include "fl/runtime/cpu/OneDnn.h"

namespace fl::runtime::cpu {

namespace {

using dnnl::memory;

constexpr auto kFloat = memory::data_type::f32;
// Filter elements that one call adds over the slots.
constexpr int64_t kSumGrain = 16384;

// The descriptors of one primitive.
struct Descs {
  Desc input, filter, bias, output;
};

Desc filterDesc(const ConvolutionShape& s, memory::format_tag tag) {
  const int64_t in = s.inChannels / s.groups;
  if (s.groups == 1) {
    return {{s.outChannels, in, s.y.kernel, s.x.kernel}, kFloat, tag};
  }
  return {{s.groups, s.outChannels / s.groups, in, s.y.kernel, s.x.kernel}, kFloat, tag};
}

Desc plainFilterDesc(const ConvolutionShape& s) {
  return filterDesc(s, s.groups == 1 ? memory::format_tag::oihw : memory::format_tag::goihw);
}

// `rows` rows of `images` images within a plain tensor.
Desc plainDesc(int64_t images, int64_t channels, int64_t rows, const ConvolutionAxis& y,
               int64_t width, bool input) {
  const int64_t height = input ? y.in : y.out;
  return {{images, channels, rows, width},
          kFloat,
          memory::dims{channels * height * width, height * width, width, 1}};
}

Desc computedDesc(const Desc& plain, Layout layout) {
  if (layout == Layout::Plain) {
    return plain;
  }
  return {plain.dims(), kFloat,
          layout == Layout::Blocked ? memory::format_tag::any : memory::format_tag::nhwc};
}

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

  // Pointers are to the block's first elements; the filter is in the layout of filter().
  void run(float* input, void* filter, void* bias, float* output, void* scratch) const {
    void* x = inputReorder_.needed() ? at(scratch, inputOffset_) : input;
    void* y = outputReorder_.needed() ? at(scratch, outputOffset_) : output;
    void* pad = at(scratch, padOffset_);
    if (direction_ != Direction::Data && inputReorder_.needed()) {
      inputReorder_.run(input, x, pad);
    }
    if (direction_ != Direction::Forward && outputReorder_.needed()) {
      outputReorder_.run(output, y, pad);
    }
    compute(x, filter, bias, y, pad);
    if (direction_ == Direction::Data && inputReorder_.needed()) {
      inputReorder_.run(x, input, pad);
    }
    if (direction_ == Direction::Forward && outputReorder_.needed()) {
      outputReorder_.run(y, output, pad);
    }
  }

 private:
  BlockFunction(const ConvolutionShape& s, Layout layout, const ConvolutionBlock& block,
                const Desc& filter)
      : direction_(s.direction), bias_(s.bias) {
    const Desc input = plainDesc(block.images, s.inChannels, block.inRows, s.y, s.x.in, true);
    const Desc output = plainDesc(block.images, s.outChannels, block.outRows, s.y, s.x.out, false);
    used_ = {computedDesc(input, layout), filter, {}, computedDesc(output, layout)};
    if (bias_) {
      used_.bias = {{s.outChannels}, kFloat, memory::format_tag::x};
    }
    makePrimitive(windows(s, block));
    inputReorder_ =
        s.direction == Direction::Data ? Reorder(used_.input, input) : Reorder(input, used_.input);
    outputReorder_ = s.direction == Direction::Forward ? Reorder(used_.output, output)
                                                       : Reorder(output, used_.output);
    inputOffset_ = scratch_.add(inputReorder_.needed() ? used_.input.get_size() : 0);
    outputOffset_ = scratch_.add(outputReorder_.needed() ? used_.output.get_size() : 0);
    padOffset_ = scratch_.add(std::max(
        {primitive_.scratchBytes(), inputReorder_.scratchBytes(), outputReorder_.scratchBytes()}));
  }

  // Chooses the implementation and replaces `any` in used_ by what it wants.
  void makePrimitive(const Windows& w) {
    constexpr auto kDirect = dnnl::algorithm::convolution_direct;
    const dnnl::engine& engine = dnnlEngine();
    const dnnl::primitive_attr& attributes = callerScratchpad();
    const dnnl::convolution_forward::desc forwardDesc =
        bias_ ? dnnl::convolution_forward::desc(dnnl::prop_kind::forward_training, kDirect,
                                                used_.input, used_.filter, used_.bias, used_.output,
                                                w.strides, w.dilations, w.before, w.after)
              : dnnl::convolution_forward::desc(dnnl::prop_kind::forward_training, kDirect,
                                                used_.input, used_.filter, used_.output, w.strides,
                                                w.dilations, w.before, w.after);
    const dnnl::convolution_forward::primitive_desc forward(forwardDesc, attributes, engine);
    if (direction_ == Direction::Forward) {
      primitive_ = Primitive(forward);
      used_.input = forward.src_desc();
      used_.filter = forward.weights_desc();
      used_.output = forward.dst_desc();
    } else if (direction_ == Direction::Data) {
      const dnnl::convolution_backward_data::primitive_desc backward(
          {kDirect, used_.input, used_.filter, used_.output, w.strides, w.dilations, w.before,
           w.after},
          attributes, engine, forward);
      primitive_ = Primitive(backward);
      used_.input = backward.diff_src_desc();
      used_.filter = backward.weights_desc();
      used_.output = backward.diff_dst_desc();
    } else {
      const dnnl::convolution_backward_weights::primitive_desc backward(
          {kDirect, used_.input, used_.filter, used_.output, w.strides, w.dilations, w.before,
           w.after},
          attributes, engine, forward);
      primitive_ = Primitive(backward);
      used_.input = backward.src_desc();
      used_.filter = backward.diff_weights_desc();
      used_.output = backward.diff_dst_desc();
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
  Reorder inputReorder_, outputReorder_;
  ScratchLayout scratch_;
  size_t inputOffset_ = 0, outputOffset_ = 0, padOffset_ = 0;
};

class Convolution final : public LibraryFunction {
 public:
  // Null where BlockFunction::make is for a block of the split.
  static std::shared_ptr<Convolution> make(const ConvolutionShape& shape, Layout layout) {
    std::shared_ptr<Convolution> made(new Convolution(shape, splitConvolution(shape, layout)));
    if (!made->makeFunctions(layout)) {
      return nullptr;
    }
    made->layOutScratch();
    return made;
  }

  size_t scratchBytes() const override { return scratch_.bytes(); }

  std::string implementation() const override { return functions_.front().name(); }

  void run(void* const* operands, void* result, void* scratch, ThreadPool& pool) const override {
    switch (shape_.direction) {
      case Direction::Forward:
        runMap(operands[0], operands[1], shape_.bias ? operands[2] : nullptr, result, scratch,
               pool);
        break;
      case Direction::Data:
        runMap(result, operands[1], nullptr, operands[0], scratch, pool);
        break;
      case Direction::Filter:
        runFilter(operands[1], result, operands[0], scratch, pool);
        break;
    }
  }

 private:
  Convolution(const ConvolutionShape& shape, ConvolutionSplit split)
      : shape_(shape), split_(std::move(split)) {}

  bool filterGradient() const { return shape_.direction == Direction::Filter; }

  bool makeFunctions(Layout layout) {
    const Desc plain = plainFilterDesc(shape_);
    // The first block chooses the filter's layout, the others follow.
    Desc filter = layout == Layout::Plain ? plain : filterDesc(shape_, memory::format_tag::any);
    std::vector<ConvolutionBlock> works;
    for (const ConvolutionBlock& block : split_.blocks) {
      const auto same = std::find_if(works.begin(), works.end(),
                                     [&](const auto& work) { return block.sameWork(work); });
      functionOfBlock_.push_back(same - works.begin());
      if (same != works.end()) {
        continue;
      }
      works.push_back(block);
      std::optional<BlockFunction> function = BlockFunction::make(shape_, layout, block, filter);
      if (!function) {
        return false;
      }
      filter = function->filter();
      functions_.push_back(std::move(*function));
    }
    filterReorder_ = filterGradient() ? Reorder(filter, plain) : Reorder(plain, filter);
    filterBytes_ = filter.get_size();
    return true;
  }

  void layOutScratch() {
    size_t area = filterReorder_.scratchBytes();
    for (const BlockFunction& function : functions_) {
      area = std::max(area, function.scratchBytes());
    }
    ScratchLayout slot;
    areaOffset_ = slot.add(area);
    if (filterGradient()) {
      const bool manyBlocks = static_cast<int64_t>(split_.blocks.size()) > split_.slots;
      sumOffset_ = slot.add(oneSumIsResult() ? 0 : filterBytes_);
      partOffset_ = slot.add(manyBlocks ? filterBytes_ : 0);
    }
    slotBytes_ = slot.bytes();
    slotsOffset_ = scratch_.add(slotBytes_ * split_.slots);
    filterOffset_ = scratch_.add(!filterGradient() && filterReorder_.needed() ? filterBytes_ : 0);
  }

  void* slotArea(void* scratch, int64_t slot) const {
    return at(scratch, slotsOffset_ + slotBytes_ * slot);
  }

  void runBlock(int64_t index, void* input, void* filter, void* bias, void* output,
                void* area) const {
    const ConvolutionBlock& block = split_.blocks[index];
    const auto offset = [&](int64_t channels, int64_t rows, int64_t width, int64_t first) {
      return (block.firstImage * channels * rows + first) * width;
    };
    float* x = static_cast<float*>(input) +
               offset(shape_.inChannels, shape_.y.in, shape_.x.in, block.inBegin);
    float* y = static_cast<float*>(output) +
               offset(shape_.outChannels, shape_.y.out, shape_.x.out, block.outBegin);
    functions_[functionOfBlock_[index]].run(x, filter, bias, y, at(area, areaOffset_));
  }

  void runMap(void* input, void* filter, void* bias, void* output, void* scratch,
              ThreadPool& pool) const {
    if (filterReorder_.needed()) {
      SingleThread single;
      void* reordered = at(scratch, filterOffset_);
      filterReorder_.run(filter, reordered, slotArea(scratch, 0));
      filter = reordered;
    }
    pool.parallelFor(split_.slots, 1, [&](int64_t begin, int64_t end) {
      SingleThread single;
      for (int64_t i = split_.firstBlock(begin); i < split_.firstBlock(end); ++i) {
        runBlock(i, input, filter, bias, output, slotArea(scratch, begin));
      }
    });
  }

  void runFilter(void* input, void* result, void* output, void* scratch, ThreadPool& pool) const {
    const auto sumOf = [&](int64_t slot) {
      return static_cast<float*>(oneSumIsResult() ? result
                                                  : at(slotArea(scratch, slot), sumOffset_));
    };
    pool.parallelFor(split_.slots, 1, [&](int64_t slot, int64_t) {
      SingleThread single;
      sumBlocks(slot, input, sumOf(slot), output, slotArea(scratch, slot));
    });
    if (oneSumIsResult()) {
      return;
    }
    pool.parallelFor(filterElements(), kSumGrain, [&](int64_t begin, int64_t end) {
      for (int64_t slot = 1; slot < split_.slots; ++slot) {
        addTo(sumOf(0), sumOf(slot), begin, end);
      }
    });
    if (filterReorder_.needed()) {
      SingleThread single;
      filterReorder_.run(sumOf(0), result, slotArea(scratch, 0));
    } else {
      std::copy_n(sumOf(0), filterElements(), static_cast<float*>(result));
    }
  }

  // A single slot sums in place, unless the layouts differ.
  bool oneSumIsResult() const { return split_.slots == 1 && !filterReorder_.needed(); }

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
    for (; i + 16 <= end; i += 16) {
      for (int64_t j = 0; j < 16; ++j) {
        sum[i + j] += part[i + j];
      }
    }
    for (; i < end; ++i) {
      sum[i] += part[i];
    }
  }

  // With the padding of the layout.
  int64_t filterElements() const { return static_cast<int64_t>(filterBytes_ / sizeof(float)); }

  ConvolutionShape shape_;
  ConvolutionSplit split_;
  std::vector<BlockFunction> functions_;
  std::vector<size_t> functionOfBlock_;
  Reorder filterReorder_;
  size_t filterBytes_ = 0;
  // Slots, each an area of BlockFunction and two filter gradients; then the reordered filter.
  ScratchLayout scratch_;
  size_t slotsOffset_ = 0, slotBytes_ = 0, filterOffset_ = 0;
  size_t areaOffset_ = 0, sumOffset_ = 0, partOffset_ = 0;
};

}  // namespace

std::shared_ptr<LibraryFunction> makeConvolution(const ConvolutionShape& shape, Layout layout) {
  SingleThread single;
  return Convolution::make(shape, layout);
}

std::shared_ptr<LibraryFunction> prepareConvolution(const LibraryCall& call) {
  const ConvolutionShape shape = convolutionShape(call);
  if (!shape.x.consistent() || !shape.y.consistent()) {
    return nullptr;
  }
  for (const Layout layout : layoutsByCost(shape)) {
    if (auto made = makeConvolution(shape, layout)) {
      return made;
    }
  }
  return nullptr;
}

}  // namespace fl::runtime::cpu
