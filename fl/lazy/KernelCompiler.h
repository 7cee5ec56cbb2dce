// Compiles kernels, at once or on background threads, half as many as compute, and hands the code
// to the device's kernels. With one thread (FL_NUM_THREADS, fl::setNumThreads) the caller compiles,
// also under FL_JIT=async; what was asked for before there was only one is finished in the
// background. Until then, and if the emitter fails, a kernel runs on tier 0 with the same results.
// Code is kept on disk (FL_CACHE); what is found there is loaded at once, without the emitter.
#pragma once

#include <atomic>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "fl/base/CallSite.h"
#include "fl/runtime/Device.h"
#include "fl/runtime/Store.h"

namespace fl::lazy {

// The name of a kernel's function, by which profilers of GPUs show it: its label, of what names may
// hold.
std::string entryOf(const ir::Kernel& kernel);

enum class JitMode { Async, Sync, Off };
// Lives as long as the process, as backends do, but where one cannot be made.
class KernelCompiler {
 public:
  // Takes the mode from FL_JIT, the folder and size of what is kept from FL_CACHE and its like.
  explicit KernelCompiler(runtime::Device& device);
  ~KernelCompiler();
  // Stops the background threads; kernels still waiting stay on tier 0.
  void stop();

  // Asks for code of kernels that have none and were not asked for before; returns how many must be
  // compiled. `site`, the user's line, is for messages.
  int request(const std::vector<runtime::DeviceKernelPtr>& kernels, const CallSite& site);
  // Waits until nothing is being compiled or waiting.
  void wait();
  // Around fork(), with the engine's mutex held: it waits for what is being compiled, nothing else
  // is meanwhile, and a child, which has no other thread than its own, starts another when it needs
  // one.
  void beforeFork();
  void afterFork(bool isChild);

 private:
  struct Request {
    runtime::DeviceKernelPtr kernel;
    CallSite site;
  };
  // What code is kept under: all that it depends on.
  std::string keyOf(const runtime::DeviceKernel& kernel) const;
  bool loadKept(runtime::DeviceKernel& kernel);
  void startThreads();
  void compileOne(const Request& request);
  void work();

  runtime::Device& device_;
  const JitMode mode_;
  const std::unique_ptr<runtime::Store> store_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Request> queue_;
  int busy_ = 0;
  std::atomic<bool> stop_ = false, forks_ = false;
  std::vector<std::thread> threads_;  // started when there is something to do
};

}  // namespace fl::lazy
