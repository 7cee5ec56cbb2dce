// Maps: every op, cast and layout against the reference; properties of the generated code.
#include <elf.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <numeric>
#include <thread>

#include "fl/runtime/MemoryManager.h"
#include "tests/codegen/EmitterHarness.h"

namespace fl::testing {
namespace {

using ir::Op;

const std::vector<dtype> kAllTypes = {dtype::f16, dtype::f32, dtype::f64, dtype::b8,
                                      dtype::s16, dtype::s32, dtype::s64, dtype::u8,
                                      dtype::u16, dtype::u32, dtype::u64, dtype::bf16};

bool appliesTo(const ir::OpInfo& info, dtype type) {
  if (computeType(type) != type) return false;
  if (info.types == ir::Types::Float) return isFloating(type);
  return info.types == ir::Types::All || !isFloating(type);
}

// A map that applies `op` to whole vectors of `type`.
ir::Kernel elementwise(const ir::OpInfo& info, dtype type) {
  KernelMaker maker(1);
  std::vector<int> args;
  for (int i = 0; i < info.arity; ++i) {
    const bool condition = info.kind == ir::Kind::Select && i == 0;
    args.push_back(maker.input(condition ? dtype::b8 : type, {kOne}));
  }
  maker.beginStage(false);
  maker.store(maker.apply(info.op, args), {kOne});
  return maker.kernel();
}

double ulpsBetween(double actual, double expected, dtype type) {
  if (actual == expected || (std::isnan(actual) && std::isnan(expected))) return 0;
  const double next = type == dtype::f32 ? std::nextafterf(static_cast<float>(expected), INFINITY)
                                         : std::nextafter(expected, INFINITY);
  return std::fabs(actual - expected) / std::fabs(next - expected);
}

double worstUlps(const KernelLaunch& actual, const KernelLaunch& expected, dtype type) {
  const std::string a = actual.outputs()[0], e = expected.outputs()[0];
  double worst = 0;
  for (size_t at = 0; at < a.size(); at += getTypeSize(type)) {
    uint64_t x = 0, y = 0;
    std::memcpy(&x, &a[at], getTypeSize(type));
    std::memcpy(&y, &e[at], getTypeSize(type));
    worst =
        std::max(worst, ulpsBetween(Number(type, x).toDouble(), Number(type, y).toDouble(), type));
  }
  return worst;
}

void checkOp(const ir::OpInfo& info, dtype type, const ir::Target& target) {
  SCOPED_TRACE(std::string(info.name) + " " + dtypeToString(type) + " " +
               std::to_string(target.vectorBits));
  std::mt19937_64 random(7);
  LaunchOptions options{.special = !ir::isApproximated(info), .low = info.lo, .high = info.hi};
  const KernelLaunch expected(elementwise(info, type), {1000}, random, options);
  const KernelLaunch actual(expected);
  runReference(expected);
  run(*compile(expected.kernel(), target), actual);
  if (ir::isApproximated(info)) {
    EXPECT_LE(worstUlps(actual, expected, type), info.ulp + 0.5);
  } else {
    EXPECT_EQ(actual.difference(expected), "");
  }
}

TEST(Emitter, EveryOpOnEveryType) {
  for (const ir::Target& target : targets()) {
    for (int i = 0; i < ir::kOpCount; ++i) {
      const ir::OpInfo& info = ir::opInfo(static_cast<Op>(i));
      if (!ir::isElementwise(info.op) || info.op == Op::Cast) continue;
      for (dtype type : kAllTypes) {
        if (appliesTo(info, type)) checkOp(info, type, target);
      }
    }
  }
}

// FL_CHECK=guard finds what no sanitizer sees: here a launch of one element more than there are.
TEST(EmitterDeathTest, AnOverrunOfAGuardedBufferDies) {
  constexpr int64_t kCount = 40;
  const ir::Kernel kernel = elementwise(ir::opInfo(Op::Negative), dtype::f32);
  const auto code = compile(kernel, targets()[0]);
  const auto guarded = runtime::makeGuardMemoryManager(runtime::Guard::End);
  const auto plain = runtime::makeCachingMemoryManager();
  const int64_t strides[] = {1, 1};
  for (int guardedOperand : {0, 1}) {
    void* data[2];
    for (int i = 0; i < 2; ++i) {
      data[i] = (i == guardedOperand ? guarded : plain)->allocate(kCount * sizeof(float));
    }
    const auto launch = [&](int64_t count) {
      const ir::KernelArgs args = {data, &count, strides, nullptr};
      return code->entry()(&args, 0, count);
    };
    EXPECT_EQ(launch(kCount), -1);
    EXPECT_DEATH(launch(kCount + 1), "");
    for (int i = 0; i < 2; ++i) {
      (i == guardedOperand ? guarded : plain)->deallocate(data[i], kCount * sizeof(float));
    }
  }
}

TEST(Emitter, CastsBetweenAllTypes) {
  for (const ir::Target& target : targets()) {
    for (dtype from : kAllTypes) {
      KernelMaker maker(1);
      const int x = maker.input(from, {kOne});
      const int compared =
          maker.apply(Op::LessThan, {maker.cast(x, dtype::f32), maker.scalar(dtype::f32)});
      maker.beginStage(false);
      for (dtype to : kAllTypes) maker.store(maker.cast(x, to), {kOne});
      for (dtype to : kAllTypes) maker.store(maker.cast(compared, to), {kOne});
      std::mt19937_64 random(3);
      const KernelLaunch expected(maker.kernel(), {500}, random, {.special = true, .high = 70000});
      const KernelLaunch actual(expected);
      runReference(expected);
      run(*compile(maker.kernel(), target), actual);
      EXPECT_EQ(actual.difference(expected), "") << from << ", " << target.vectorBits << " bits";
    }
  }
}

// Runs a map of one axis from `from` to `to`, both contiguous.
void runMap(const ir::Kernel& kernel, const ir::Target& target, void* from, void* to,
            int64_t count) {
  void* data[] = {from, to};
  const int64_t strides[] = {1, 1};
  const ir::KernelArgs args = {data, &count, strides, nullptr};
  EXPECT_EQ(compile(kernel, target)->entry()(&args, 0, count), -1);
}

// Every upper half of an f32 with lower halves below, at and above the middle, denormals and NaN
// among their neighbours.
TEST(Emitter, RoundsToBfloat16) {
  std::vector<float> x;
  for (uint32_t i = 0; i < 1 << 16; ++i) {
    const uint32_t high = i * 40503 << 16;  // an odd factor permutes
    for (uint32_t low : {0u, 1u, 0x7fffu, 0x8000u, 0x8001u, 0xffffu}) {
      x.push_back(std::bit_cast<float>(high | low));
    }
  }
  KernelMaker maker(1);
  const int input = maker.input(dtype::f32, {kOne});
  maker.beginStage(false);
  maker.store(maker.cast(input, dtype::bf16), {kOne});
  for (const ir::Target& target : targets()) {
    std::vector<uint16_t> rounded(x.size());
    const auto count = static_cast<int64_t>(x.size()) - 5;  // the last vector is not full
    runMap(maker.kernel(), target, x.data(), rounded.data(), count);
    for (int64_t i = 0; i < count; ++i) {
      ASSERT_EQ(rounded[i], bfloat16(x[i]).bits)
          << std::hex << std::bit_cast<uint32_t>(x[i]) << " with " << target.features;
    }
  }
}

// The root of a normal f64 may be a denormal f32.
TEST(Emitter, RoundsRootsToBfloat16) {
  std::vector<double> squares;
  std::vector<uint16_t> expected;
  for (uint32_t bits = 1; bits < 0x7f800000; bits += 54321) {
    const auto x = std::bit_cast<float>(bits);
    squares.push_back(static_cast<double>(x) * x);
    expected.push_back(bfloat16(x).bits);
  }
  KernelMaker maker(1);
  const int root = maker.apply(Op::Sqrt, {maker.input(dtype::f64, {kOne})});
  maker.beginStage(false);
  maker.store(maker.cast(root, dtype::bf16), {kOne});
  for (const ir::Target& target : targets()) {
    std::vector<uint16_t> rounded(squares.size());
    runMap(maker.kernel(), target, squares.data(), rounded.data(), std::ssize(squares));
    EXPECT_EQ(rounded, expected) << target.features;
  }
}

TEST(Emitter, WidensEveryBfloat16) {
  std::vector<uint16_t> x(1 << 16);
  std::iota(x.begin(), x.end(), 0);
  KernelMaker maker(1);
  const int input = maker.input(dtype::bf16, {kOne});
  maker.beginStage(false);
  maker.store(maker.cast(input, dtype::f32), {kOne});
  for (const ir::Target& target : targets()) {
    std::vector<uint32_t> wide(x.size());
    runMap(maker.kernel(), target, x.data(), wide.data(), std::ssize(x));
    for (uint32_t i = 0; i < x.size(); ++i) ASSERT_EQ(wide[i], i << 16) << target.features;
  }
}

// z = x * y + s with every stride class of axis 0 for x, y and z.
ir::Kernel product(int rank, dtype type, ir::Stride x0, ir::Stride y0, ir::Stride z0) {
  const auto classes = [&](ir::Stride first, ir::Stride rest) {
    std::vector<ir::Stride> strides(rank, rest);
    strides[0] = first;
    return strides;
  };
  KernelMaker maker(rank);
  const int x = maker.input(type, classes(x0, kAny));
  const int y = maker.input(type, classes(y0, rank % 2 ? kAny : kZero));
  const int scaled = maker.apply(Op::Mul, {x, y});
  const int sum = maker.apply(Op::Add, {scaled, maker.scalar(type)});
  maker.beginStage(false);
  maker.store(sum, classes(z0, kAny));
  return maker.kernel();
}

const std::vector<std::vector<int64_t>> kExtents = {
    {1},      {15},   {16},      {17},       {31},         {32},
    {33},     {100},  {0},       {3, 5},     {20, 1},      {33, 4},
    {48, 17}, {5, 0}, {2, 3, 4}, {37, 2, 3}, {7, 3, 2, 2}, {18, 2, 1, 3, 2}};

TEST(Emitter, MapsOverEveryLayout) {
  std::mt19937_64 random(testSeed(11));
  const auto all = targets();
  for (dtype type : {dtype::f32, dtype::f64, dtype::u8, dtype::s16}) {
    for (const auto& extents : kExtents) {
      const int rank = static_cast<int>(extents.size());
      const ir::Stride choices[] = {kZero, kOne, kAny};
      const ir::Kernel kernel = product(rank, type, choices[random() % 3], choices[random() % 3],
                                        choices[1 + random() % 2]);
      for (const ir::Target& target : all) {
        const auto code = compile(kernel, target);
        for (bool guardAfter : {true, false}) {
          const KernelLaunch expected(kernel, extents, random, {.guardAfter = guardAfter});
          const KernelLaunch actual(expected);
          runReference(expected);
          run(*code, actual);
          EXPECT_EQ(actual.difference(expected), "");
        }
      }
    }
  }
}

// Two inputs that cross memory, one of 16 bits, and others that do not.
ir::Kernel transposeOf(dtype type, int rank) {
  const auto strides = [&](std::vector<ir::Stride> first) {
    first.resize(rank, kAny);
    return first;
  };
  KernelMaker maker(rank);
  const int x = maker.input(type, strides({kAny, kOne}));
  const int y = maker.cast(maker.input(dtype::f16, strides({kAny, kOne})), computeType(type));
  const int z = maker.cast(maker.input(type, strides({kZero, kAny})), computeType(type));
  maker.beginStage(false);
  const int sum = maker.apply(Op::Add, {maker.cast(x, computeType(type)), y});
  maker.store(maker.cast(maker.apply(Op::Add, {sum, z}), type), strides({kOne, kAny}));
  maker.store(x, strides({kAny, kOne}));
  return maker.kernel();
}

// Extents around the sides of tiles and of the squares in them.
const std::vector<std::vector<int64_t>> kCrossedExtents = {
    {40, 40}, {16, 16}, {5, 100}, {100, 3}, {1, 1}, {33, 17}, {67, 260}, {300, 15}, {129, 64}};

TEST(Emitter, TransposesInTilesAndParts) {
  std::mt19937_64 random(testSeed(12));
  for (const ir::Target& target : targets()) {
    const dtype types[] = {dtype::f32, dtype::f16, dtype::bf16, dtype::f64, dtype::b8,  dtype::s16,
                           dtype::s32, dtype::s64, dtype::u8,   dtype::u16, dtype::u32, dtype::u64};
    for (size_t t = 0; t < std::size(types); ++t) {
      const ir::Kernel kernel = transposeOf(types[t], 2 + t % 4);
      const auto code = compile(kernel, target);
      for (std::vector<int64_t> extents : kCrossedExtents) {
        extents.resize(kernel.rank, 2);
        const KernelLaunch expected(kernel, extents, random);
        const KernelLaunch actual(expected);
        runReference(expected);
        const ir::KernelArgs args = actual.args();
        for (int64_t begin = 0; begin < actual.domain();) {
          const int64_t end = std::min<int64_t>(actual.domain(), begin + 1 + random() % 9000);
          code->entry()(&args, begin, end);
          begin = end;
        }
        EXPECT_EQ(actual.difference(expected), "");
      }
    }
  }
}

TEST(Emitter, WritesOverItsInput) {
  KernelMaker maker(2);
  const int x = maker.input(dtype::f32, {kOne, kAny});
  maker.beginStage(false);
  maker.store(maker.apply(Op::Mul, {x, x}), {kOne, kAny});
  std::mt19937_64 random(5);
  const KernelLaunch expected(maker.kernel(), {100, 7}, random);
  runReference(expected);
  const auto element = [](const KernelLaunch& launch, int64_t i, int64_t j) {
    return static_cast<const float*>(launch.data(1))[i + j * launch.stride(1, 1)];
  };
  for (const ir::Target& target : targets()) {
    KernelLaunch actual(expected);
    actual.share(1, 0);
    run(*compile(maker.kernel(), target), actual);
    for (int64_t i = 0; i < 100; ++i) {
      for (int64_t j = 0; j < 7; ++j) ASSERT_EQ(element(actual, i, j), element(expected, i, j));
    }
  }
}

TEST(Emitter, IndexOperandsAreNumbers) {
  KernelMaker maker(3);
  const int varying = maker.index({kOne, kAny, kZero}), strided = maker.index({kAny, kZero, kOne});
  const int outer = maker.index({kZero, kZero, kAny});
  maker.beginStage(false);
  maker.store(maker.apply(Op::Add, {maker.apply(Op::Mul, {varying, strided}), outer}),
              {kOne, kAny, kAny});
  maker.store(maker.cast(varying, dtype::f32), {kOne, kAny, kAny});
  std::mt19937_64 random(6);
  for (const ir::Target& target : targets()) {
    const KernelLaunch expected(maker.kernel(), {37, 3, 4}, random), actual(expected);
    runReference(expected);
    run(*compile(maker.kernel(), target), actual);
    EXPECT_EQ(actual.difference(expected), "");
  }
}

TEST(Emitter, EmptyPartsTouchNoMemory) {
  const ir::Kernel kernel = product(2, dtype::f32, kZero, kAny, kOne);
  const int64_t extents[] = {0, 0}, strides[6] = {};
  void* const data[3] = {};
  const ir::KernelArgs args{data, extents, strides, nullptr};
  EXPECT_EQ(compile(kernel, targets()[0])->entry()(&args, 0, 0), -1);
}

TEST(Emitter, RandomNumbersAreThoseOfTheirIndex) {
  for (const ir::Target& target : targets()) {
    KernelMaker maker(2);
    const int seed = maker.scalar(dtype::u64), offset = maker.scalar(dtype::u64);
    const int index = maker.index({kOne, kAny});
    maker.beginStage(false);
    for (dtype type : {dtype::f32, dtype::f64, dtype::u32}) {
      maker.store(maker.random(type, seed, offset, index), {kOne, kAny});
    }
    const auto code = compile(maker.kernel(), target);
    std::mt19937_64 random(8);
    // Of the lines some begin with a block, others within one.
    for (int launch = 0; launch < 8; ++launch) {
      KernelLaunch expected(maker.kernel(), {67, 5}, random);
      expected.setScalar(0, Number::fromUnsigned(0x123456789abcdef0, dtype::u64));
      expected.setScalar(1, Number::fromUnsigned(0xfedcba9876543210, dtype::u64));
      const KernelLaunch actual(expected);
      runReference(expected);
      run(*code, actual);
      EXPECT_EQ(actual.difference(expected), "");
    }
  }
}

TEST(Emitter, PartsOfTheDomainGiveTheWhole) {
  std::mt19937_64 random(testSeed(13));
  const ir::Kernel kernel = product(3, dtype::f32, kOne, kAny, kOne);
  const auto code = compile(kernel, targets()[0]);
  const KernelLaunch whole(kernel, {19, 5, 7}, random), parts(whole);
  run(*code, whole);
  const ir::KernelArgs args = parts.args();
  for (int64_t begin = 0; begin < parts.domain();) {
    const int64_t end = std::min<int64_t>(parts.domain(), begin + random() % 60);
    EXPECT_EQ(code->entry()(&args, begin, end), -1);
    begin = end;
  }
  EXPECT_EQ(parts.difference(whole), "");
}

// tanh(a * x + b) / (1 + exp(-c * x))
ir::Kernel activation() {
  KernelMaker maker(1);
  const int x = maker.input(dtype::f32, {kOne}), one = maker.scalar(dtype::f32);
  const int inner = maker.apply(
      Op::Add, {maker.apply(Op::Mul, {x, maker.scalar(dtype::f32)}), maker.scalar(dtype::f32)});
  const int scaled = maker.apply(Op::Mul, {x, maker.scalar(dtype::f32)});
  const int exp = maker.apply(Op::Exp, {maker.apply(Op::Negative, {scaled})});
  const int sum = maker.apply(Op::Add, {one, exp});
  maker.beginStage(false);
  maker.store(maker.apply(Op::Div, {maker.apply(Op::Tanh, {inner}), sum}), {kOne});
  return maker.kernel();
}

std::vector<std::string> basicBlocks(const std::string& llvm) {
  std::vector<std::string> blocks;
  for (size_t begin = 0, end; begin < llvm.size(); begin = end) {
    end = std::min(llvm.find("\n\n", begin), llvm.size() - 2) + 2;
    blocks.push_back(llvm.substr(begin, end - begin));
  }
  return blocks;
}

TEST(Emitter, MasksOnlyInTheTail) {
  int full = 0, masked = 0;
  for (const std::string& block :
       basicBlocks(codegen::cpu::emitLlvmText(activation(), targets()[0], "kernel"))) {
    const bool usesMask = block.find("call void @llvm.masked.store") != std::string::npos ||
                          block.find("call <16 x float> @llvm.masked.load") != std::string::npos;
    const bool computes = block.find("= fmul <16 x float>") != std::string::npos;
    EXPECT_LE(usesMask, computes) << block;
    full += computes && !usesMask;
    masked += usesMask;
  }
  EXPECT_EQ(full, 1);
  EXPECT_EQ(masked, 1);
}

// Without AVX-512 a tail is stored in vectors of powers of two, the last one an element.
TEST(Emitter, StoresTailsInPieces) {
  for (const ir::Target& target : targets()) {
    const std::string text = codegen::cpu::emitLlvmText(activation(), target, "kernel");
    const bool masks = text.find("@llvm.masked.store") != std::string::npos;
    EXPECT_EQ(masks, target.vectorBits == 512);
    EXPECT_EQ(text.find("store <4 x float>") == std::string::npos, masks);
  }
}

TEST(Emitter, SetsNoFastMathFlagAndFusesNothing) {
  KernelMaker maker(1);
  const int x = maker.input(dtype::f32, {kOne}), y = maker.input(dtype::f32, {kOne});
  maker.beginStage(false);
  maker.store(maker.apply(Op::Add, {maker.apply(Op::Mul, {x, y}), y}), {kOne});
  for (const ir::Target& target : targets()) {
    const std::string text = codegen::cpu::emitLlvmText(maker.kernel(), target, "kernel");
    for (const char* flag : {" fast ", " contract ", " reassoc ", " nnan ", " noalias"}) {
      EXPECT_EQ(text.find(flag), std::string::npos) << flag;
    }
    const std::string assembly = codegen::cpu::emitAssemblyText(maker.kernel(), target, "kernel");
    EXPECT_EQ(assembly.find("vfmadd"), std::string::npos);
    EXPECT_NE(assembly.find("vmulps"), std::string::npos);
  }
}

template <typename T>
T at(const std::string& bytes, size_t offset) {
  T value;
  std::memcpy(&value, bytes.data() + offset, sizeof(T));
  return value;
}

int undefinedSymbols(const std::string& object) {
  const auto header = at<Elf64_Ehdr>(object, 0);
  int count = 0;
  for (int i = 0; i < header.e_shnum; ++i) {
    const auto section = at<Elf64_Shdr>(object, header.e_shoff + i * sizeof(Elf64_Shdr));
    if (section.sh_type != SHT_SYMTAB) continue;
    for (size_t s = 1; s < section.sh_size / sizeof(Elf64_Sym); ++s) {
      count +=
          at<Elf64_Sym>(object, section.sh_offset + s * sizeof(Elf64_Sym)).st_shndx == SHN_UNDEF;
    }
  }
  return count;
}

TEST(Emitter, ObjectsNeedNothingFromOutside) {
  for (const ir::Target& target : targets()) {
    for (int i = 0; i < ir::kOpCount; ++i) {
      const ir::OpInfo& info = ir::opInfo(static_cast<Op>(i));
      if (!ir::isElementwise(info.op) || info.op == Op::Cast || !appliesTo(info, dtype::f64))
        continue;
      const auto artifact =
          codegen::cpu::emitKernel(elementwise(info, dtype::f64), target, "kernel");
      EXPECT_EQ(undefinedSymbols(artifact.bytes), 0) << info.name;
    }
  }
}

TEST(Emitter, ThreadsEmitTheSameCode) {
  const ir::Target target = targets()[0];
  const ir::Artifact expected = codegen::cpu::emitKernel(activation(), target, "kernel");
  std::vector<ir::Artifact> artifacts(4);
  std::vector<std::thread> threads;
  for (ir::Artifact& artifact : artifacts) {
    threads.emplace_back([&] {
      for (int i = 0; i < 5; ++i)
        artifact = codegen::cpu::emitKernel(activation(), target, "kernel");
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const ir::Artifact& artifact : artifacts) EXPECT_EQ(artifact, expected);
}

TEST(Emitter, RefusesTargetsBelowItsBase) {
  ir::Target target = targets()[0];
  target.vectorBits = 0;
  EXPECT_THROW(codegen::cpu::emitKernel(activation(), target, "kernel"), InternalError);
}

}  // namespace
}  // namespace fl::testing
