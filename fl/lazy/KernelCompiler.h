// Compiles kernels, at once or on a background thread, and hands the code to the device's kernels.
// Until then, and if the emitter fails, a kernel runs on tier 0 with the same results.
#pragma once

#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>
#include <vector>

#include "fl/runtime/Device.h"

namespace fl::lazy {

enum class JitMode { Async, Sync, Off };
// Lives as long as the process, as backends do.
class KernelCompiler {
 public:
  // Takes the mode from FL_JIT.
  explicit KernelCompiler(runtime::Device& device);
  // Stops the background thread; kernels still waiting stay on tier 0.
  void stop();

  // Asks for code of kernels that have none and were not asked for before; returns how many.
  int request(const std::vector<runtime::DeviceKernelPtr>& kernels);
  // Waits until nothing is being compiled or waiting.
  void wait();

 private:
  void compileLater(const std::vector<runtime::DeviceKernelPtr>& kernels);
  void compileOne(const runtime::DeviceKernelPtr& kernel);
  void work();

  runtime::Device& device_;
  const JitMode mode_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<runtime::DeviceKernelPtr> queue_;
  bool busy_ = false;
  bool stop_ = false;
  std::thread thread_;  // started with the first asynchronous request
};

}  // namespace fl::lazy
