#include "benchmarks/GpuTimes.h"

#include <algorithm>
#include <array>
#include <memory>
#include <optional>
#include <string>

#include "benchmarks/KernelCases.h"
#include "benchmarks/TrainSteps.h"
#include "fl/fl.h"
#include "fl/lazy/Compile.h"
#include "fl/runtime/Counters.h"
#include "fl/runtime/Device.h"
#include "fl/runtime/cuda/Context.h"

namespace fl::bench {
namespace {

using runtime::cuda::Context;

constexpr double kBlockMicroseconds = 5000;
constexpr int kMostCalls = 1000;

// Never destroyed, and one pair for all: blocks take turns.
const std::array<CUevent, 2>& events() {
  static const std::array<CUevent, 2> made = [] {
    const Context& context = Context::of(0);
    std::array<CUevent, 2> made = {};
    for (CUevent& event : made) {
      context.check(context.use().cuEventCreate(&event, CU_EVENT_DEFAULT), "an event");
    }
    return made;
  }();
  return made;
}

Tensor numbers(const Shape& shape, dtype type = dtype::f32) {
  const Tensor result = (rand(shape) - 0.5).astype(type);
  result.value()->data();
  return result;
}

constexpr Dim kFloat = 4;

Workload map() {
  constexpr Dim kElements = Dim{1} << 26;
  return {"tanh(ax+b) sigmoid(cx), 2^26",
          [] {
            const Tensor x = numbers({kElements});
            return [=] {
              const Tensor y = tanh(1.1 * x + 0.3) * sigmoid(0.7 * x);
              y.value()->data();  // when the expression's temporaries are gone
            };
          },
          kElements * kFloat, kElements * kFloat};
}

constexpr Dim kRows = 16384, kRowLength = 4096, kMatrix = kRows * kRowLength;

Workload softmaxOfRows() {
  return {"softmax, 16384x4096",
          [] {
            const Variable x(numbers({kRowLength, kRows}), false);
            return [=] { softmax(x, 0).tensor().value()->data(); };
          },
          kMatrix * kFloat, kMatrix * kFloat};
}

Workload sumOver(const char* name, std::vector<int> axes, Dim results) {
  return {name,
          [=] {
            const Tensor x = numbers({kRowLength, kRows});
            return [=] { sum(x, axes).value()->data(); };
          },
          kMatrix * kFloat, results * kFloat};
}

Workload product(const char* name, dtype type, bool tf32 = false) {
  constexpr Dim kSize = 8192;
  return {.name = name,
          .make =
              [=] {
                const Tensor x = numbers({kSize, kSize}, type), y = numbers({kSize, kSize}, type);
                return [=] {
                  std::optional<Tf32Scope> scope;
                  if (tf32) scope.emplace();
                  matmul(x, y).value()->data();
                };
              },
          .operations = type == dtype::f32 && !tf32 ? 2. * kSize * kSize * kSize : 0};
}

// A layer and its gradients, for one of its result that is like it.
Workload layer(const char* name, const Shape& input,
               const std::function<std::shared_ptr<Module>()>& makeModule) {
  const auto make = [=] {
    const std::shared_ptr<Module> module = makeModule();
    std::vector<Variable> changed = module->params();
    changed.insert(changed.begin(), Variable(numbers(input), true));
    return [=]() mutable {
      Variable y = module->forward({changed[0]})[0];
      y.backward(noGrad(y.tensor()));
      for (Variable& each : changed) {
        each.grad().tensor().value()->data();
        each.zeroGrad();
      }
    };
  };
  return {name, make};
}

// Which cuDNN has calls for, and which are made of kernels here.
std::vector<Workload> layers() {
  constexpr int kChannels = 64, kSize = 112, kImages = 32, kFeatures = 512, kTime = 64;
  const Shape images = {kSize, kSize, kChannels, kImages}, sequence = {kFeatures, kImages, kTime};
  return {layer("max pool 3x3 of 32x64x112x112, and gradient", images,
                [] { return std::make_shared<Pool2D>(3, 3, 2, 2, 1, 1); }),
          layer("batch norm of 32x64x112x112, and gradients", images,
                [=] { return std::make_shared<BatchNorm>(2, kChannels); }),
          layer("LSTM of 64 steps, 2 x 512, and gradients", sequence,
                [=] { return std::make_shared<RNN>(kFeatures, kFeatures, 2, RnnMode::LSTM); })};
}

// Each kernel needs the one before it.
std::function<void()> chainOf(int kernels) {
  const auto state = std::make_shared<Tensor>(numbers({16, 16}));
  auto step = std::make_shared<Compiled<void()>>(compile([=] {
    for (int i = 0; i < kernels; ++i) *state = *state - sum(*state, {i % 2}, /*keepDims=*/true);
  }));
  return [=] { (*step)(); };
}

}  // namespace

GpuSubject::GpuSubject(std::function<void()> call) : call_(std::move(call)) {
  // Values take turns in their places, each of which has a graph from when it comes again.
  constexpr int kWarmUp = 12;
  for (int i = 0; i < kWarmUp; ++i) call_();
  calls_ = std::clamp(static_cast<int>(kBlockMicroseconds / timed(1)), 1, kMostCalls);
}

void GpuSubject::block() { times_.push_back(timed(calls_) / calls_); }

double GpuSubject::timed(int calls) const {
  Context& context = Context::of(0);
  const auto& [begin, end] = events();
  context.check(context.use().cuEventRecord(begin, context.stream()), "an event");
  for (int i = 0; i < calls; ++i) call_();
  context.check(context.use().cuEventRecord(end, context.stream()), "an event");
  context.finish();
  float milliseconds = 0;
  context.check(context.use().cuEventElapsedTime(&milliseconds, begin, end), "an event");
  return milliseconds * 1e3;
}

GpuLimits measureLimits(int64_t copyBytes, Dim productSize, int rounds) {
  runtime::DeviceMemory& memory = runtime::makeDevice("cuda")->memory();
  const auto bytes = static_cast<size_t>(copyBytes);
  const MemoryBlockPtr from = memory.allocate(bytes, {"a copy's source"});
  const MemoryBlockPtr to = memory.allocate(bytes, {"a copy"});
  const runtime::Bytes all[] = {{0, copyBytes}};
  GpuSubject copy([&] { memory.copy(to->data(), from->data(), all); });
  const Tensor x = numbers({productSize, productSize});
  GpuSubject product([&] { matmul(x, x).value()->data(); });
  for (int i = 0; i < rounds; ++i) {
    copy.block();
    product.block();
  }
  const auto size = static_cast<double>(productSize);
  return {2. * static_cast<double>(copyBytes) / copy.microseconds(),
          2 * size * size * size / product.microseconds()};
}

Json limitOf(const Workload& workload, const GpuLimits& limits) {
  if (workload.bytesRead > 0) {
    return static_cast<double>(workload.bytesRead + workload.bytesWritten) / limits.copyRate;
  }
  return workload.operations > 0 ? Json(workload.operations / limits.productRate) : Json();
}

Json gpuRow(const std::string& name, const std::string& unit, double ours) {
  return {{"bench", "gpu"}, {"case", name},     {"unit", unit},     {"threads", 1},
          {"ours", ours},   {"eager", nullptr}, {"limit", nullptr}, {"peers", Json::object()}};
}

std::vector<Json> rowsOfGpu(const GpuLimits& limits, int rounds) {
  std::vector<Json> rows = {gpuRow("a copy on the GPU", "GB/s", limits.copyRate / 1e3),
                            gpuRow("a product in f32", "GFLOP/s", limits.productRate / 1e3)};
  for (const int kernels : {1, 16}) {
    GpuSubject subject(chainOf(kernels));
    for (int i = 0; i < rounds; ++i) subject.block();
    rows.push_back(gpuRow(detail::concat("a replay of ", kernels, " steps of 16x16"), "us",
                          subject.microseconds()));
  }
  return rows;
}

Workload attentionOf(Dim time, Dim batch, bool isMasked, bool hasGradients) {
  constexpr int kHeads = 16, kFeatures = 64;
  const auto make = [=] {
    const auto input = [=] {
      return Variable(numbers({time, kHeads * kFeatures, batch}, dtype::bf16), hasGradients);
    };
    std::vector<Variable> inputs = {input(), input(), input()};
    Variable mask;
    if (isMasked) {
      const Tensor later = iota({1, time}, {time, 1}) > iota({time, 1}, {1, time});
      mask = noGrad(later.astype(dtype::bf16) * -1e4);
    }
    return [=]() mutable {
      Variable y = multiheadAttention(inputs[0], inputs[1], inputs[2], Variable(), mask, Variable(),
                                      kHeads, 0);
      if (!hasGradients) return static_cast<void>(y.tensor().value()->data());
      y.backward(noGrad(y.tensor()));
      for (Variable& each : inputs) {
        each.grad().tensor().value()->data();
        each.zeroGrad();
      }
    };
  };
  return {detail::concat("attention, bf16, ", time, (isMasked ? ", causal" : ""),
                         (hasGradients ? ", and its gradients" : "")),
          make};
}

std::vector<Workload> gpuCases() {
  std::vector<Workload> cases = {map(),
                                 softmaxOfRows(),
                                 sumOver("sum of 16384x4096 over columns", {0}, kRows),
                                 sumOver("sum of 16384x4096 over rows", {1}, kRowLength),
                                 sumOver("sum of 16384x4096", {0, 1}, 1),
                                 product("matmul 8192x8192x8192", dtype::f32),
                                 product("matmul 8192x8192x8192, f16", dtype::f16),
                                 product("matmul 8192x8192x8192, TF32", dtype::f32, true),
                                 attentionOf(2048, 8, false, false),
                                 attentionOf(2048, 8, true, false),
                                 attentionOf(2048, 8, false, true),
                                 attentionOf(2048, 8, true, true)};
  for (Workload& workload : kernelCases()) cases.push_back(std::move(workload));
  for (Workload& workload : layers()) cases.push_back(std::move(workload));
  for (const Stepping stepping : {Stepping::Recorded, Stepping::Compiled}) {
    for (Workload& workload : std::vector{
             perceptronStep(128, stepping), perceptronStep(8192, stepping), mnistStep(stepping),
             residualStep(stepping), deepResidualStep(224, 64, stepping),
             transformerStep(4, 256, 128, stepping), transformerStep(12, 256, 128, stepping)}) {
      cases.push_back(std::move(workload));
    }
  }
  return cases;
}

}  // namespace fl::bench
