// What the engine has done so far in this process: the numbers that logs, tests and benchmarks
// read.
#pragma once

#include <atomic>
#include <cstdint>

namespace fl::runtime {

struct Counters {
  std::atomic<uint64_t> kernelLaunches = 0;
  std::atomic<uint64_t> libraryCalls = 0;
  // Steps that a device with memory of its own left to the host.
  std::atomic<uint64_t> hostCalls = 0;
  // Operands and results of all steps, each counted once a step.
  std::atomic<uint64_t> bytesMoved = 0;
  std::atomic<uint64_t> kernelsCompiled = 0;
  // From what earlier processes have compiled.
  std::atomic<uint64_t> kernelsLoaded = 0;
  std::atomic<uint64_t> realizes = 0;
  // Values that were read before anything else had them computed.
  std::atomic<uint64_t> reads = 0;
  std::atomic<uint64_t> plansBuilt = 0;
  // Those of them that earlier processes have compiled.
  std::atomic<uint64_t> plansLoaded = 0;
  // Steps of built plans that run again, rather than that their results are kept.
  std::atomic<uint64_t> stepsRecomputed = 0;
  // Regions that ran unfused because a pass or the emitter failed.
  std::atomic<uint64_t> fallbacks = 0;
};

Counters& counters();

}  // namespace fl::runtime
