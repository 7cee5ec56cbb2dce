// Library operators of the CPU: GFLOP/s by shape, direction, layout and threads. The layout
// "chosen" is what the library takes; the others show what it decides against (see
// fl/library/ConvolutionPlan.h).
//
//   bazel run //benchmarks:library -- --benchmark_filter=mnist
#include <benchmark/benchmark.h>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "fl/host/ThreadPool.h"
#include "fl/ir/Op.h"
#include "fl/library/ConvolutionPlan.h"
#include "fl/library/Library.h"

namespace fl::library {
namespace {

using ir::Op;

struct FreeDeleter {
  void operator()(void* pointer) const { std::free(pointer); }
};
using Memory = std::unique_ptr<void, FreeDeleter>;

Memory allocate(size_t bytes) {
  const size_t rounded = (bytes + 63) / 64 * 64 + 64;
  Memory memory(std::aligned_alloc(64, rounded));
  std::fill_n(static_cast<float*>(memory.get()), rounded / sizeof(float), 0.5f);
  return memory;
}

size_t bytesOf(const ir::ValueType& type) { return type.shape.elements() * sizeof(float); }

void runFunction(benchmark::State& state, const LibraryFunction& function, const LibraryCall& call,
                 double operations, int threads) {
  host::ThreadPool pool(threads);
  std::vector<Memory> operands;
  std::vector<void*> pointers;
  for (const ir::ValueType& operand : call.operands) {
    operands.push_back(allocate(bytesOf(operand)));
    pointers.push_back(operands.back().get());
  }
  const Memory result = allocate(bytesOf(call.result));
  const Memory scratch = allocate(function.scratchBytes());
  for (auto _ : state) {
    function.run(pointers.data(), result.get(), scratch.get(), pool);
  }
  state.SetLabel(function.implementation());
  state.counters["flops"] =
      benchmark::Counter(operations, benchmark::Counter::kIsIterationInvariantRate);
  state.counters["scratchMB"] = static_cast<double>(function.scratchBytes()) / (1 << 20);
}

void add(const std::string& name, std::shared_ptr<LibraryFunction> function,
         const LibraryCall& call, double operations) {
  if (function == nullptr) {
    return;
  }
  for (const int threads : {1, 2}) {
    benchmark::RegisterBenchmark(
        (name + "/threads:" + std::to_string(threads)).c_str(),
        [=](benchmark::State& state) { runFunction(state, *function, call, operations, threads); })
        ->UseRealTime()
        ->Unit(benchmark::kMicrosecond);
  }
}

ir::ValueType f32(Shape shape) { return {dtype::f32, std::move(shape)}; }

void addConvolution(const std::string& name, int64_t images, int64_t in, int64_t size, int64_t out,
                    int64_t kernel, int64_t stride, int64_t pad, int64_t groups = 1) {
  const int64_t outSize = (size + 2 * pad - kernel) / stride + 1;
  const ir::ValueType x = f32({size, size, in, images});
  const ir::ValueType w = f32({kernel, kernel, in / groups, out});
  const ir::ValueType y = f32({outSize, outSize, out, images});
  const auto attrs = [&](const std::vector<Dim>& sizes) {
    std::vector<Dim> tail = sizes;
    tail.insert(tail.end(), {0, 0});
    return ir::Attrs({stride, stride, pad, pad, 1, 1, groups}, tail);
  };
  const double operations =
      2.0 * static_cast<double>(y.shape.elements()) * (in / groups) * kernel * kernel;
  const std::pair<const char*, LibraryCall> calls[] = {
      {"forward", {Op::Conv2d, attrs({}), {x, w}, y}},
      {"data", {Op::Conv2dBackwardData, attrs({size, size}), {y, w}, x}},
      {"filter", {Op::Conv2dBackwardFilter, attrs({kernel, kernel}), {y, x}, w}}};
  const std::pair<const char*, Layout> layouts[] = {{"plain", Layout::Plain},
                                                    {"blocked", Layout::Blocked},
                                                    {"channelsLast", Layout::ChannelsLast}};
  for (const auto& [direction, call] : calls) {
    const std::string prefix = "conv/" + name + "/" + direction + "/";
    add(prefix + "chosen", cachedLibrary(call), call, operations);
    for (const auto& [layoutName, layout] : layouts) {
      add(prefix + layoutName, makeConvolution(convolutionShape(call), layout), call, operations);
    }
  }
}

void addMatmul(int64_t m, int64_t n, int64_t k, int64_t batch = 1) {
  for (const auto& [ta, tb] : {std::pair{0, 0}, {0, 1}, {1, 0}}) {
    const LibraryCall call{Op::Matmul,
                           {ta, tb, 0},
                           {f32(ta ? Shape{k, m, batch} : Shape{m, k, batch}),
                            f32(tb ? Shape{n, k, batch} : Shape{k, n, batch})},
                           f32({m, n, batch})};
    add("matmul/" + std::to_string(m) + "x" + std::to_string(n) + "x" + std::to_string(k) + "x" +
            std::to_string(batch) + (ta ? "/T" : "/N") + (tb ? "T" : "N"),
        cachedLibrary(call), call, 2.0 * static_cast<double>(m) * n * k * batch);
  }
}

// Counts input elements instead of operations.
void addPool(const std::string& name, int64_t images, int64_t channels, int64_t size,
             int64_t kernel, int64_t stride, int64_t pad) {
  const int64_t outSize = (size + 2 * pad - kernel) / stride + 1;
  const ir::ValueType x = f32({size, size, channels, images});
  const ir::ValueType y = f32({outSize, outSize, channels, images});
  for (const int mode : {0, 1}) {
    const ir::Attrs attrs = {kernel, kernel, stride, stride, pad, pad, mode, 0};
    const std::string prefix = "pool/" + name + (mode == 0 ? "/max" : "/average");
    const LibraryCall forward{Op::Pool2d, attrs, {x}, y};
    const LibraryCall backward{Op::Pool2dBackward, attrs, {y, x}, x};
    add(prefix + "/forward", cachedLibrary(forward), forward, x.shape.elements());
    add(prefix + "/backward", cachedLibrary(backward), backward, x.shape.elements());
  }
}

void addAll() {
  addConvolution("mnist1", 64, 1, 28, 32, 5, 1, 2);
  addConvolution("mnist2", 64, 32, 14, 64, 5, 1, 2);
  addConvolution("digits1", 32, 1, 8, 32, 5, 1, 2);
  addConvolution("digits2", 32, 32, 4, 64, 5, 1, 2);
  addConvolution("resnet128x16", 32, 128, 16, 128, 3, 1, 1);
  addConvolution("resnetStem", 8, 3, 224, 64, 7, 2, 3);
  addConvolution("pointwise", 32, 256, 14, 64, 1, 1, 0);
  addConvolution("oneImage64x56", 1, 64, 56, 64, 3, 1, 1);
  addConvolution("depthwise", 16, 64, 56, 64, 3, 1, 1, 64);
  addMatmul(1024, 1024, 1024);
  addMatmul(128, 64, 3136);
  addMatmul(3136, 64, 128);
  addMatmul(1024, 1, 1024);
  addMatmul(1024, 16, 1024);
  addMatmul(64, 64, 64, 128);
  addPool("mnist1", 64, 32, 28, 2, 2, 0);
  addPool("mnist2", 64, 64, 14, 2, 2, 0);
  addPool("resnetStem", 8, 64, 112, 3, 2, 1);
}

}  // namespace
}  // namespace fl::library

int main(int argc, char** argv) {
  fl::library::addAll();
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
}
