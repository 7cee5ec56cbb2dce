#include "fl/lazy/KernelCompiler.h"

#include <pthread.h>

#include <algorithm>
#include <cctype>
#include <new>

#include "fl/base/Error.h"
#include "fl/base/Flags.h"
#include "fl/base/Log.h"
#include "fl/codegen/cpu/Emitter.h"
#include "fl/codegen/cuda/KernelCode.h"
#include "fl/host/ThreadPool.h"
#include "fl/kernel/cuda/Launch.h"
#include "fl/lazy/Engine.h"
#include "fl/runtime/Counters.h"
#include "fl/runtime/Failure.h"
#include "fl/runtime/StepLabel.h"
#include "fl/runtime/SystemMemory.h"

namespace fl::lazy {

namespace {

// FL_JIT. A GPU interprets nothing: it waits for code rather than leave kernels to the host.
JitMode jitMode(bool interprets) {
  flags().validate();
  host::getNumThreads(), logEnabled(0);  // throw for what theirs cannot be, before plans fail
  if (flags().jit == "off") return JitMode::Off;
  // An interpreter does not tell where NaN is made.
  const bool waits = !interprets || flags().check.starts_with("nan");
  return flags().jit == "async" && !waits ? JitMode::Async : JitMode::Sync;
}

// What code for a target depends on beside the kernel.
std::string versionFor(const ir::Target& to) {
  return ir::cuda::isGpu(to) ? codegen::cuda::codeVersion(to) : codegen::cpu::emitterVersion();
}

// All compilers; never destroyed.
struct Compilers {
  std::mutex mutex;
  std::vector<KernelCompiler*> each;
};

Compilers& compilers() {
  static auto& instance = *new Compilers();
  return instance;
}

void stopAll() {
  const std::lock_guard<std::mutex> lock(compilers().mutex);
  for (KernelCompiler* compiler : compilers().each) compiler->stop();
}

// Nothing is compiled any more when static objects are destroyed. LLVM makes some while it
// compiles, which are younger than any of ours and would go first. The main thread's thread_local
// objects go before all of them, and this one is the main thread's alone.
[[maybe_unused]] const bool stopsAtExit = [] {
  thread_local const std::shared_ptr<void> stopper(nullptr, [](void*) { stopAll(); });
  return true;
}();

// Calls, vectors and memory: with what LLVM makes static objects for.
constexpr char kAnyKernel[] =
    "kernel @k rank=1 reduced=[] { operand input f32 [1] operand output f32 [1] %0 = load 0 : f32 "
    "%1 = exp %0 : f32 stage { store 1 %1 } }";

// Before anything is compiled, on the thread that compiles: it takes milliseconds.
void prepareLlvm(const ir::Target& target) {
  // While LLVM compiles, a lack of memory may end the program.
  if (runtime::mappableMemory() < size_t{16} << 20) throw OutOfMemory();
  if (ir::cuda::isGpu(target)) return;
  // Where another thread calls exit(), no thread_local of the main thread's is destroyed. What was
  // registered last runs first: LLVM's objects have to be there before. Until they are, no other
  // thread may call it.
  [[maybe_unused]] static const int once =
      (codegen::cpu::emitAssemblyText(ir::parseKernel(kAnyKernel), target, "any"),
       std::atexit(stopAll));
}

void beforeFork() {
  engineMutex().lock();
  compilers().mutex.lock();
  for (KernelCompiler* compiler : compilers().each) compiler->beforeFork();
}

void afterFork(bool isChild) {
  for (KernelCompiler* compiler : compilers().each) compiler->afterFork(isChild);
  compilers().mutex.unlock();
  if (isChild) {
    // It is a thread's that is not here: the child's has another number.
    new (&engineMutex()) std::recursive_mutex();
  } else {
    engineMutex().unlock();
  }
}

}  // namespace

std::string entryOf(const ir::Kernel& kernel) {
  std::string name = runtime::kernelLabel(kernel);
  std::ranges::replace_if(name, [](unsigned char c) { return !std::isalnum(c); }, '_');
  return name;
}

KernelCompiler::KernelCompiler(runtime::Device& device)
    : device_(device),
      mode_(jitMode(!ir::cuda::isGpu(device.target()))),
      store_(runtime::openStore(runtime::kKernels)) {
  versionFor(device.target());  // throws if nothing can be compiled
  [[maybe_unused]] static const int once = pthread_atfork(
      lazy::beforeFork, [] { lazy::afterFork(false); }, [] { lazy::afterFork(true); });
  const std::lock_guard<std::mutex> lock(compilers().mutex);
  compilers().each.push_back(this);
}

KernelCompiler::~KernelCompiler() {
  const std::lock_guard<std::mutex> lock(compilers().mutex);
  std::erase(compilers().each, this);
}

void KernelCompiler::stop() {
  std::unique_lock<std::mutex> lock(mutex_);
  stop_ = true;
  lock.unlock();
  changed_.notify_all();
  for (std::thread& thread : threads_) thread.join();
  threads_.clear();
}

int KernelCompiler::request(const std::vector<runtime::DeviceKernelPtr>& kernels,
                            const CallSite& site) {
  if (mode_ == JitMode::Off || (stop_ && !ir::cuda::isGpu(device_.target()))) return 0;
  std::vector<Request> fresh;
  for (const runtime::DeviceKernelPtr& kernel : kernels)
    if (kernel->claimCompilation() && !loadKept(*kernel)) fresh.push_back({kernel, site});
  // Where one thread is all there is, none beside it compiles.
  if (mode_ == JitMode::Sync || host::getNumThreads() == 1) {
    host::threadPool().parallelFor(static_cast<int64_t>(fresh.size()), 1,
                                   [&](int64_t begin, int64_t) { compileOne(fresh[begin]); });
  } else {
    const std::lock_guard<std::mutex> lock(mutex_);
    queue_.insert(queue_.end(), fresh.begin(), fresh.end());
    startThreads();
    changed_.notify_all();
  }
  return static_cast<int>(fresh.size());
}

std::string KernelCompiler::keyOf(const runtime::DeviceKernel& kernel) const {
  const ir::Target target = device_.target();
  return detail::concat("emitter ", versionFor(target), "\ntarget ", target.triple, " ",
                        target.features, " ", target.tuning, " ", target.vectorBits, "\nstores ",
                        static_cast<int>(kernel.stores()), kernel.findsNan() ? " nan" : "",
                        " launches ", kernel.launches(), "\n",
                        ir::printKernel(kernel.kernel(), entryOf(kernel.kernel())));
}

bool KernelCompiler::loadKept(runtime::DeviceKernel& kernel) {
  if (!store_) return false;
  try {
    std::optional<std::string> code = store_->find(keyOf(kernel));
    if (!code) return false;
    kernel.setArtifact({entryOf(kernel.kernel()), std::move(*code)});
  } catch (...) {
    return false;  // as if it were not there
  }
  runtime::counters().kernelsLoaded++;
  return true;
}

// Under mutex_.
void KernelCompiler::startThreads() {
  if (queue_.empty() || stop_) return;
  const size_t most = std::min<size_t>(std::max(1, host::getNumThreads() / 2), queue_.size());
  try {
    while (threads_.size() < most) threads_.emplace_back([this] { work(); });
  } catch (const std::exception&) {
    if (threads_.empty()) queue_.clear();  // these stay interpreted
  }
}

void KernelCompiler::compileOne(const Request& request) {
  runtime::DeviceKernel& kernel = *request.kernel;
  try {
    const std::string key = store_ ? keyOf(kernel) : "";
    const auto lock = store_ ? store_->lock(key) : runtime::Store::Lock();
    if (loadKept(kernel)) return;  // another process was faster
    const profile::Scope scope([&] {
      return profile::label(profile::Lane::Compiling, profile::Extent::Whole,
                            runtime::kernelLabel(kernel.kernel()), request.site);
    });
    prepareLlvm(device_.target());
    const int64_t start = profile::now();
    const ir::Target target = device_.target();
    const std::string entry = entryOf(kernel.kernel());
    const ir::Artifact artifact =
        ir::cuda::isGpu(target)
            ? codegen::cuda::compileKernel(kernel.kernel(), kernel.launches(), target, entry)
            : codegen::cpu::emitKernel(kernel.kernel(), target, entry, kernel.stores(),
                                       kernel.findsNan());
    const auto load = [&] { kernel.setArtifact(artifact); };
    artifact.emitter.empty() ? load() : codegen::cpu::emitters().blame(artifact.emitter, load);
    const double elapsed = static_cast<double>(profile::now() - start) / 1e6;
    runtime::counters().kernelsCompiled++;
    if (logEnabled(3)) logLine(3, detail::concat("kernel compiled ", elapsed, " ms: ", entry));
    if (store_) store_->insert(key, artifact.bytes);
  } catch (...) {
    try {
      runtime::reportFailure("a kernel stays interpreted", runtime::caughtError(),
                             ir::printKernel(kernel.kernel(), entryOf(kernel.kernel())),
                             request.site);
    } catch (...) {  // nor is there memory to say so
    }
  }
}

void KernelCompiler::work() {
  std::unique_lock<std::mutex> lock(mutex_);
  while (true) {
    changed_.wait(lock, [&] { return stop_ || (!queue_.empty() && !forks_); });
    if (stop_) return;
    const Request request = queue_.front();
    queue_.pop_front();
    ++busy_;
    lock.unlock();
    compileOne(request);
    lock.lock();
    --busy_;
    changed_.notify_all();
  }
}

void KernelCompiler::wait() {
  std::unique_lock<std::mutex> lock(mutex_);
  startThreads();
  changed_.wait(lock, [&] { return stop_ || (queue_.empty() && busy_ == 0); });
}

void KernelCompiler::beforeFork() {
  std::unique_lock<std::mutex> lock(mutex_);
  forks_ = true;
  changed_.wait(lock, [&] { return busy_ == 0; });
  lock.release();
}

void KernelCompiler::afterFork(bool isChild) {
  if (isChild) {
    // Made anew: both are of a thread that is not here.
    new (&threads_) std::vector<std::thread>();
    new (&changed_) std::condition_variable();
  }
  forks_ = false;
  mutex_.unlock();
  changed_.notify_all();
}

}  // namespace fl::lazy
