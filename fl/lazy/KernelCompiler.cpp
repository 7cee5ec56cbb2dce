#include "fl/lazy/KernelCompiler.h"

#include <exception>

#include "fl/base/Error.h"
#include "fl/base/Flags.h"
#include "fl/base/Log.h"
#include "fl/codegen/cpu/Emitter.h"
#include "fl/host/ThreadPool.h"
#include "fl/runtime/Counters.h"

namespace fl::lazy {

namespace {

// FL_JIT.
JitMode jitMode() {
  flags().validate();
  const std::string& mode = flags().jit;
  return mode == "async" ? JitMode::Async : mode == "sync" ? JitMode::Sync : JitMode::Off;
}

// The compilers that have started a thread; never destroyed.
struct Started {
  std::mutex mutex;
  std::vector<KernelCompiler*> compilers;
};

Started& started() {
  static auto& instance = *new Started();
  return instance;
}

// Stops background threads before the program's static objects are destroyed. LLVM makes static
// objects while it compiles; they are younger than any of ours and would go first. The main
// thread's thread_local objects go before all of them, and this one is the main thread's alone.
struct StopAtExit {
  ~StopAtExit() {
    std::vector<KernelCompiler*> compilers;
    {
      std::lock_guard<std::mutex> lock(started().mutex);
      compilers = started().compilers;
    }
    // Without that lock: a compiler takes it while it holds its own, which stop() needs.
    for (KernelCompiler* compiler : compilers) {
      compiler->stop();
    }
  }
};

[[maybe_unused]] const bool stopsAtExit = [] {
  thread_local const StopAtExit stopper;
  return true;
}();

void stopAtExit(KernelCompiler* compiler) {
  std::lock_guard<std::mutex> lock(started().mutex);
  started().compilers.push_back(compiler);
}

}  // namespace

KernelCompiler::KernelCompiler(runtime::Device& device) : device_(device), mode_(jitMode()) {}

void KernelCompiler::stop() {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    stop_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) {
    thread_.join();
  }
}

int KernelCompiler::request(const std::vector<runtime::DeviceKernelPtr>& kernels) {
  if (mode_ == JitMode::Off) {
    return 0;
  }
  std::vector<runtime::DeviceKernelPtr> fresh;
  for (const runtime::DeviceKernelPtr& kernel : kernels) {
    if (kernel->claimCompilation()) {
      fresh.push_back(kernel);
    }
  }
  if (fresh.empty()) {
    return 0;
  }
  if (mode_ == JitMode::Sync) {
    host::threadPool().parallelFor(static_cast<int64_t>(fresh.size()), 1,
                                   [&](int64_t begin, int64_t) { compileOne(fresh[begin]); });
  } else {
    compileLater(fresh);
  }
  return static_cast<int>(fresh.size());
}

void KernelCompiler::compileLater(const std::vector<runtime::DeviceKernelPtr>& kernels) {
  std::lock_guard<std::mutex> lock(mutex_);
  queue_.insert(queue_.end(), kernels.begin(), kernels.end());
  if (!thread_.joinable()) {
    stopAtExit(this);
    thread_ = std::thread([this] { work(); });
  }
  changed_.notify_all();
}

void KernelCompiler::compileOne(const runtime::DeviceKernelPtr& kernel) {
  try {
    kernel->setArtifact(
        codegen::cpu::emitKernel(kernel->kernel(), device_.target(), "kernel", kernel->stores()));
    runtime::counters().kernelsCompiled++;
  } catch (const std::exception& error) {
    runtime::counters().fallbacks++;
    logWarning(std::string("a kernel stays interpreted: ") + error.what());
  }
}

void KernelCompiler::work() {
  std::unique_lock<std::mutex> lock(mutex_);
  while (true) {
    changed_.wait(lock, [&] { return stop_ || !queue_.empty(); });
    if (stop_) {
      return;
    }
    const runtime::DeviceKernelPtr kernel = queue_.front();
    queue_.pop_front();
    busy_ = true;
    lock.unlock();
    compileOne(kernel);
    lock.lock();
    busy_ = false;
    changed_.notify_all();
  }
}

void KernelCompiler::wait() {
  std::unique_lock<std::mutex> lock(mutex_);
  changed_.wait(lock, [&] { return stop_ || (queue_.empty() && !busy_); });
}

}  // namespace fl::lazy
