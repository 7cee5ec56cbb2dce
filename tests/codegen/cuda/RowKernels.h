// Row kernels of several sweeps, as fusion makes them.
#pragma once

#include "tests/codegen/KernelMaker.h"

namespace fl::testing {

inline const std::vector<ir::Stride> kRow = {kOne, kAny};

inline ir::Kernel softmaxKernel(dtype type, std::vector<ir::Stride> in = kRow,
                                uint32_t reduced = 1) {
  const dtype wide = computeType(type);
  KernelMaker maker(static_cast<int>(in.size()), reduced);
  const int loaded = maker.input(type, in);
  const int x = wide == type ? loaded : maker.cast(loaded, wide);
  maker.beginStage(true);
  const int largest = maker.total(maker.reduce(ir::Op::Amax, x), wide);
  const int power = maker.apply(ir::Op::Exp, {maker.apply(ir::Op::Sub, {x, largest})});
  maker.beginStage(true);
  const int sum = maker.total(maker.reduce(ir::Op::Sum, power), wide);
  const int inverse = maker.apply(ir::Op::Div, {maker.scalar(wide), sum});
  const int result = maker.apply(ir::Op::Mul, {power, inverse});
  maker.beginStage(true);
  maker.store(wide == type ? result : maker.cast(result, type), in);
  return maker.kernel();
}

// Softmax and its gradient, whose operand the third sweep reads first.
inline ir::Kernel softmaxGradientKernel() {
  KernelMaker maker(2, 1);
  const int x = maker.input(dtype::f32, kRow);
  maker.beginStage(true);
  const int largest = maker.total(maker.reduce(ir::Op::Amax, x), dtype::f32);
  const int power = maker.apply(ir::Op::Exp, {maker.apply(ir::Op::Sub, {x, largest})});
  maker.beginStage(true);
  const int sum = maker.total(maker.reduce(ir::Op::Sum, power), dtype::f32);
  const int y = maker.apply(ir::Op::Mul, {power, sum});
  const int gradient = maker.input(dtype::f32, kRow);
  const int product = maker.apply(ir::Op::Mul, {gradient, y});
  maker.beginStage(true);
  maker.store(y, kRow);
  const int slope = maker.total(maker.reduce(ir::Op::Sum, product), dtype::f32);
  maker.beginStage(true);
  maker.store(maker.apply(ir::Op::Sub, {product, maker.apply(ir::Op::Mul, {y, slope})}), kRow);
  return maker.kernel();
}

// Dropout, a residual and layer norm with a factor for each column.
inline ir::Kernel dropoutNormKernel() {
  KernelMaker maker(2, 1);
  const int x = maker.input(dtype::f32, kRow), residual = maker.input(dtype::f32, {kAny, kAny});
  const int seed = maker.scalar(dtype::u64), index = maker.index(kRow);
  const int number = maker.random(dtype::f32, seed, seed, index);
  const int keeps = maker.apply(ir::Op::LessThan, {number, maker.scalar(dtype::f32)});
  const int dropped = maker.apply(ir::Op::Mul, {x, maker.cast(keeps, dtype::f32)});
  const int sum = maker.apply(ir::Op::Add, {dropped, residual});
  maker.beginStage(true);
  const int mean = maker.total(maker.reduce(ir::Op::Sum, sum), dtype::f32);
  const int difference = maker.apply(ir::Op::Sub, {sum, mean});
  maker.beginStage(true);
  const int squares = maker.reduce(ir::Op::Sum, maker.apply(ir::Op::Mul, {difference, difference}));
  const int scaled = maker.apply(ir::Op::Mul, {difference, maker.total(squares, dtype::f32)});
  maker.beginStage(true);
  maker.store(maker.apply(ir::Op::Mul, {scaled, maker.input(dtype::f32, {kOne, kZero})}), kRow);
  maker.store(keeps, kRow);
  return maker.kernel();
}

// Layer norm's gradient, whose factor is the same for all rows.
inline ir::Kernel normGradientKernel() {
  KernelMaker maker(2, 1);
  const int x = maker.input(dtype::f32, kRow), gradient = maker.input(dtype::f32, kRow);
  const int factor = maker.input(dtype::f32, {kOne, kZero});
  const int scaled = maker.apply(ir::Op::Mul, {gradient, factor});
  maker.beginStage(true);
  const int mean = maker.total(maker.reduce(ir::Op::Sum, x), dtype::f32);
  const int sum = maker.total(maker.reduce(ir::Op::Sum, scaled), dtype::f32);
  const int centered = maker.apply(ir::Op::Sub, {x, mean});
  maker.beginStage(true);
  const int squares = maker.total(
      maker.reduce(ir::Op::Sum, maker.apply(ir::Op::Mul, {centered, centered})), dtype::f32);
  const int normal = maker.apply(ir::Op::Mul, {centered, squares});
  maker.beginStage(true);
  maker.store(maker.apply(ir::Op::Mul, {normal, factor}), kRow);
  maker.store(maker.apply(ir::Op::Mul, {gradient, normal}), kRow);
  const int slope = maker.total(
      maker.reduce(ir::Op::Sum, maker.apply(ir::Op::Mul, {scaled, normal})), dtype::f32);
  maker.beginStage(true);
  const int rest = maker.apply(ir::Op::Sub, {scaled, sum});
  maker.store(maker.apply(ir::Op::Sub, {rest, maker.apply(ir::Op::Mul, {normal, slope})}), kRow);
  return maker.kernel();
}

// One of each.
inline std::vector<ir::Kernel> rowKernels() {
  return {softmaxKernel(dtype::f32),  softmaxKernel(dtype::f64),
          softmaxKernel(dtype::bf16), softmaxKernel(dtype::f32, {kOne, kAny, kAny}, 5),
          softmaxGradientKernel(),    dropoutNormKernel(),
          normGradientKernel()};
}

}  // namespace fl::testing
