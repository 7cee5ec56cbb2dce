#include "tests/codegen/RandomKernel.h"

#include <algorithm>

#include "tests/codegen/KernelMaker.h"

namespace fl::testing {
namespace {

using ir::Op;
using ir::Stride;

class Drawing {
 public:
  Drawing(std::mt19937_64& random, RandomKernelOptions options)
      : random_(random),
        options_(options),
        rank_(1 + below(4)),
        reduced_(drawReduced()),
        maker_(rank_, reduced_) {}

  ir::Kernel draw() {
    for (int i = 1 + below(3); i > 0; --i) addLoad();
    if (below(2)) add(maker_.scalar(drawType()), 0);
    for (int i = 2 + below(6); i > 0; --i) addApply();
    if (reduced_ == 0) {
      maker_.beginStage(false);
      for (int i = 1 + below(3); i > 0; --i) store(drawValue(~0u), false);
      return maker_.kernel();
    }
    for (int i = 1 + below(3); i > 0; --i) addSweep();
    const int last = drawValue(~reduced_);
    if (last >= 0) {
      maker_.beginStage(false);
      store(last, true);
      if (below(2)) store(drawValue(~reduced_), true);
    }
    return maker_.kernel();
  }

 private:
  int below(int count) { return static_cast<int>(random_() % count); }
  uint32_t drawReduced() { return below(3) == 0 ? 0 : random_() % (1u << rank_); }
  uint32_t axes() const { return (1u << rank_) - 1; }

  // Types of arithmetic, f32 most of all; 16-bit floats are loaded, cast, selected and stored.
  dtype drawType() {
    const dtype types[] = {dtype::f32, dtype::f32, dtype::f32, dtype::f64, dtype::b8,  dtype::s16,
                           dtype::s32, dtype::s64, dtype::u8,  dtype::u16, dtype::u32, dtype::u64};
    return types[below(std::size(types))];
  }
  dtype drawAnyType() { return below(5) ? drawType() : below(2) ? dtype::f16 : dtype::bf16; }

  int add(int value, uint32_t varies) {
    varies_.resize(value + 1);
    varies_[value] = varies;
    return value;
  }

  void addLoad() {
    std::vector<Stride> strides;
    uint32_t varies = 0;
    for (int axis = 0; axis < rank_; ++axis) {
      const int drawn = below(6);
      strides.push_back(drawn == 0 ? kZero : (axis == 0 ? drawn < 5 : drawn == 1) ? kOne : kAny);
      varies |= (strides.back() != kZero) << axis;
    }
    if (below(8) == 0) {
      add(maker_.index(strides), varies);
    } else {
      add(maker_.input(drawAnyType(), strides), varies);
    }
  }

  // A known value that varies along no axis but `within`, or -1.
  int drawValue(uint32_t within) {
    std::vector<int> choices;
    for (size_t i = 0; i < varies_.size(); ++i) {
      if ((varies_[i] & axes() & ~within) == 0) choices.push_back(static_cast<int>(i));
    }
    if (choices.empty()) return -1;
    // Newer values more often, so that bodies grow deep.
    return choices[std::max(below(choices.size()), below(choices.size()))];
  }

  int as(int value, dtype type) {
    if (maker_.typeOf(value) == type) return value;
    return add(maker_.cast(value, type), varies_[value]);
  }

  bool isUsable(const ir::OpInfo& info, dtype type) const {
    if (!ir::isElementwise(info.op) || info.op == Op::Cast) return false;
    if (options_.exact && info.types == ir::Types::Float && info.ulp >= 1) return false;
    if (info.types == ir::Types::Float) return isFloating(type);
    return info.types == ir::Types::All || !isFloating(type);
  }

  void addApply() {
    if (below(12) == 0) return addRandom();
    const dtype type = drawAnyType();
    const ir::OpInfo* info = &ir::opInfo(Op::Where);
    while (computeType(type) == type && !isUsable(*info, type)) {
      info = &ir::opInfo(static_cast<Op>(below(ir::kOpCount)));
    }
    std::vector<int> args;
    uint32_t varies = 0;
    for (int i = 0; i < info->arity; ++i) {
      const bool condition = info->kind == ir::Kind::Select && i == 0;
      args.push_back(as(drawValue(~0u), condition ? dtype::b8 : type));
      varies |= varies_[args.back()];
    }
    const bool isShort = type == dtype::f32 && ir::isApproximated(*info) && below(2) == 0;
    add(maker_.apply(info->op, args, isShort), varies);
    if (below(4) == 0) as(static_cast<int>(varies_.size()) - 1, drawAnyType());
  }

  void addRandom() {
    const int seed = as(drawValue(~0u), dtype::u64), offset = as(drawValue(~0u), dtype::u64);
    const int index = as(drawValue(~0u), dtype::s64);
    add(maker_.random(below(2) ? dtype::f32 : dtype::f64, seed, offset, index),
        varies_[seed] | varies_[offset] | varies_[index]);
  }

  void addSweep() {
    const int swept = drawValue(~0u);
    const dtype type = maker_.typeOf(swept);
    const int value = as(swept, computeType(type));
    const bool reduces = below(4) != 0, stores = !reduces || below(3) == 0;
    const int stored = drawValue(~0u);
    maker_.beginStage(true);
    if (stores) store(stored, false);
    if (!reduces) return;
    const Op ops[] = {Op::Sum, Op::Sum, Op::Amax, Op::Amin};
    const int first = maker_.reduce(ops[below(4)], value);
    if (below(2)) maker_.reduce(ops[below(4)], value);
    add(maker_.total(first, computeType(type)), axes() & ~reduced_);
    for (int i = below(3); i > 0; --i) addApply();
  }

  void store(int value, bool keptOnly) {
    std::vector<Stride> strides;
    for (int axis = 0; axis < rank_; ++axis) {
      const bool fixed = keptOnly && (reduced_ >> axis & 1);
      strides.push_back(fixed ? kZero : axis == 0 && below(4) ? kOne : kAny);
    }
    maker_.store(value, strides);
  }

  std::mt19937_64& random_;
  const RandomKernelOptions options_;
  const int rank_;
  const uint32_t reduced_;
  KernelMaker maker_;
  std::vector<uint32_t> varies_;
};

}  // namespace

ir::Kernel drawKernel(std::mt19937_64& random, RandomKernelOptions options) {
  return Drawing(random, options).draw();
}

std::vector<int64_t> drawExtents(const ir::Kernel& kernel, std::mt19937_64& random) {
  std::vector<int64_t> extents;
  int64_t room = 20000;
  for (int axis = 0; axis < kernel.rank; ++axis) {
    const int64_t choices[] = {1, 2, 3, 15, 16, 17, 31, 32, 33, 64, 100, 129, 1000, 0};
    const int64_t drawn = choices[random() % (random() % 8 ? 13 : 14)];
    extents.push_back(std::min(drawn, room));
    room = std::max<int64_t>(1, room / std::max<int64_t>(1, extents.back()) / (axis ? 2 : 1));
  }
  return extents;
}

}  // namespace fl::testing
