// Times what costs the same for tensors of any size: recording, finding a plan again, starting it.
// Cases do a thing a thousand times, so that microseconds a case are nanoseconds a thing.
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "benchmarks/Workload.h"
#include "fl/fl.h"

namespace fl::bench {
namespace {

constexpr int kTimes = 1000;
constexpr Dim kFew = 16;

Tensor numbers(const Shape& shape) {
  const Tensor result = rand(shape);
  result.value()->data();
  return result;
}

// The values are dropped before anything needs them; eager mode computes them.
Workload recording() {
  return {"1000 additions that nothing reads", [] {
            const Tensor x = numbers({kFew}), y = numbers({kFew});
            return [=] {
              for (int i = 0; i < kTimes; ++i) {
                x + y;
              }
            };
          }};
}

// Read, it is also recognised as a plan that exists, and run.
Workload chain(bool isRead) {
  return {
      isRead ? "a chain of 1000 additions, read" : "a chain of 1000 additions that nothing reads",
      [=] {
        const Tensor x = numbers({kFew}), y = numbers({kFew});
        return [=] {
          Tensor sum = x;
          for (int i = 0; i < kTimes; ++i) {
            sum = sum + y;
          }
          if (isRead) sum.value()->data();
        };
      }};
}

Workload reading() {
  return {"1000 additions, each read", [] {
            const Tensor x = numbers({kFew}), y = numbers({kFew});
            return [=] {
              for (int i = 0; i < kTimes; ++i) {
                (x + y).value()->data();
              }
            };
          }};
}

// Plans of more than one step: a product, a map, and so on.
Workload layers(int count) {
  return {"1000 times " + std::to_string(count) + " layers of 16, read", [=] {
            const Tensor weights = numbers({kFew, kFew}), x = numbers({kFew, 1});
            return [=] {
              for (int i = 0; i < kTimes; ++i) {
                Tensor y = x;
                for (int layer = 0; layer < count; ++layer) {
                  y = tanh(matmul(weights, y));
                }
                y.value()->data();
              }
            };
          }};
}

// What a program costs whose graphs never repeat, as of trees or of layers that it chooses: no plan
// of theirs is found again.
Workload unlike() {
  return {"1000 operators in chains of 16 that differ, each chain read", [] {
            const Tensor x = numbers({kFew}), y = numbers({kFew});
            // One for all runs, of which none repeats another.
            const auto draw = std::make_shared<std::mt19937>(1);
            return [=] {
              Tensor value = x;
              for (int i = 1; i <= kTimes; ++i) {
                const auto drawn = (*draw)() % 4;
                value = drawn == 0   ? value + y
                        : drawn == 1 ? value * y
                        : drawn == 2 ? value - x
                                     : maximum(value, y);
                if (i % 16 == 0) value.value()->data();
              }
            };
          }};
}

// What a compiled function costs whose kernels are next to nothing.
Workload replays(int count) {
  return {"1000 replays of " + std::to_string(count) + " layers of 16", [=] {
            const Tensor weights = numbers({kFew, kFew}), x = numbers({kFew, 1});
            auto layers = fl::compile([=](const Tensor& input) {
              Tensor y = input;
              for (int layer = 0; layer < count; ++layer) {
                y = tanh(matmul(weights, y));
              }
              return y;
            });
            return [=]() mutable { layers.run(kTimes, x).value()->data(); };
          }};
}

// Kernels that do not fuse: each adds up along the other axis of a few numbers.
Workload replaysOfKernels(int count) {
  return {"1000 replays of " + std::to_string(count) + " kernels of 4 x 4", [=] {
            const Tensor x = numbers({4, 4});
            auto kernels = fl::compile([=](const Tensor& input) {
              Tensor y = input;
              for (int kernel = 0; kernel < count; ++kernel) {
                y = y - sum(y, {kernel % 2}, true);
              }
              return y;
            });
            return [=]() mutable { kernels.run(kTimes, x).value()->data(); };
          }};
}

// Kernels as long as fusion makes them, which all threads share, or one runs alone: what sharing
// them costs is what they take beyond their part of that.
Workload sharedMaps(bool isAlone) {
  const std::string name = "100 replays of 4096 operators on 2048 numbers";
  return {isAlone ? name + ", one thread" : name, [=] {
            const Tensor x = numbers({2048});
            auto maps = fl::compile([=](const Tensor& input) {
              Tensor y = input;
              for (int i = 0; i < 2048; ++i) {
                y = y * x + x;
              }
              return y;
            });
            return [=]() mutable {
              const int threads = getNumThreads();
              if (isAlone) setNumThreads(1);
              maps.run(100, x).value()->data();
              if (isAlone) setNumThreads(threads);
            };
          }};
}

// The least that it costs: a kernel that writes over what it reads.
Workload update() {
  return {"1000 replays of an update of 16", [] {
            const auto sum = std::make_shared<Tensor>(numbers({kFew}));
            auto add = fl::compile([=] { *sum += 1; });
            return [=]() mutable {
              add.run(kTimes);
              sum->value()->data();
            };
          }};
}

// What every public function does to know the user's line.
Workload callSites() {
  return {"1000 call sites", [] {
            return [] {
              for (int i = 0; i < kTimes; ++i) {
                const detail::CallSiteScope site(__builtin_return_address(0), __func__);
              }
            };
          }};
}

Workload nothing() {
  return {"1000 times nothing to realize", [] {
            return [] {
              for (int i = 0; i < kTimes; ++i) {
                sync();
              }
            };
          }};
}

std::vector<Workload> workloads() {
  return {recording(),
          chain(false),
          chain(true),
          reading(),
          unlike(),
          layers(1),
          layers(8),
          replays(1),
          replays(8),
          replaysOfKernels(64),
          sharedMaps(/*isAlone=*/false),
          sharedMaps(/*isAlone=*/true),
          update(),
          callSites(),
          nothing()};
}

}  // namespace
}  // namespace fl::bench

int main(int argc, char** argv) {
  using namespace fl::bench;
  return compareWorkloads("overhead",
                          "Times what costs the same for tensors of any size, lazy and eager.",
                          argc, argv, workloads);
}
