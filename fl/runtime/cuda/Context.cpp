#include "fl/runtime/cuda/Context.h"

#include <pthread.h>

#include <algorithm>
#include <limits>
#include <stdexcept>

#include "fl/runtime/cuda/Range.h"

namespace fl::runtime::cuda {
namespace {

// What the GPU met with in work that was put in before: every call gives it from then on.
bool isSticky(CUresult result) {
  return result == CUDA_ERROR_ILLEGAL_ADDRESS || result == CUDA_ERROR_LAUNCH_TIMEOUT ||
         result == CUDA_ERROR_ASSERT || result == CUDA_ERROR_ECC_UNCORRECTABLE ||
         (result >= CUDA_ERROR_HARDWARE_STACK_ERROR && result <= CUDA_ERROR_LAUNCH_FAILED);
}

}  // namespace

Context& Context::of(int number) {
  static std::mutex mutex;
  static auto& all = *new std::map<int, std::unique_ptr<Context>>();
  const std::lock_guard<std::mutex> lock(mutex);
  std::unique_ptr<Context>& made = all[number];
  if (!made) made.reset(new Context(number));
  return *made;
}

Context::Context(int number) : driver_(driver()), number_(number), launched_(kTold) {
  int count = 0;
  check(driver_.cuDeviceGetCount(&count), "how many GPUs there are");
  if (number >= count) {
    std::string known = "cuda:0";
    for (int i = 1; i < count; ++i) known += detail::concat(", cuda:", i);
    throwUser("device \"", name(), "\" does not exist; there are: ", known);
  }
  check(driver_.cuDeviceGet(&device_, number), "the GPU");
  check(driver_.cuDevicePrimaryCtxRetain(&context_, device_), "the GPU's context");
  [[maybe_unused]] static const int known =
      pthread_atfork(nullptr, nullptr, [] { isForked_ = true; });
  use();
  for (CUstream* stream : {&stream_, &captured_})
    check(driver_.cuStreamCreate(stream, CU_STREAM_NON_BLOCKING), "a stream");
  int major = 0, minor = 0;
  const auto attribute = [&](int* value, CUdevice_attribute which) {
    check(driver_.cuDeviceGetAttribute(value, which, device_), "what the GPU has");
  };
  attribute(&major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR);
  attribute(&minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
  architecture_ = detail::concat("sm_", major, minor);
  constexpr int kOfKernels = 1 << 10;  // which they have without asking
  attribute(&sharedBytes_, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN);
  sharedBytes_ = std::min(sharedBytes_ - kOfKernels, ir::cuda::kMostSharedBytes);
  check(driver_.cuDeviceTotalMem(&totalBytes_, device_), "the GPU's memory");
  check(driver_.cuEventCreate(&reached_, CU_EVENT_DISABLE_TIMING), "an event");
  // By default every wait gives back what is free, and what is taken after it is mapped anew.
  cuuint64_t keepsAll = std::numeric_limits<cuuint64_t>::max();
  check(driver_.cuDeviceGetDefaultMemPool(&pool_, device_), "the GPU's memory");
  check(driver_.cuMemPoolSetAttribute(pool_, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &keepsAll),
        "the GPU's memory");
}

const Driver& Context::use() const {
  if (isForked_) {
    throw std::runtime_error(detail::withCallSite(
        prefix() + "a child of fork() cannot use the GPU of its parent; it can be forked before "
                   "the first tensor there is made, or start a program"));
  }
  // Each time: another library of the program may have set its own on this thread.
  check(driver_.cuCtxSetCurrent(context_), "the GPU's context");
  return driver_;
}

const Driver* Context::tryUse() const {
  return isForked_ || driver_.cuCtxSetCurrent(context_) != CUDA_SUCCESS ? nullptr : &driver_;
}

uint32_t* Context::counters() {
  std::call_once(countersOnce_, [&] {
    constexpr size_t kBytes = ir::cuda::kMostShared * sizeof(uint32_t);
    check(use().cuMemAllocAsync(&counters_, kBytes, stream_), "memory for counters");
    check(driver_.cuMemsetD8Async(counters_, 0, kBytes, stream_), "memory for counters");
  });
  return reinterpret_cast<uint32_t*>(counters_);
}

void Context::fail(CUresult result, const std::string& words) const {
  if (isSticky(result)) throw std::runtime_error(describeLate(result));
  throw std::runtime_error(
      detail::withCallSite(detail::concat(prefix(), words, ": ", describe(driver_, result))));
}

std::string Context::prefix() const {
  return number_ == 0 ? "CUDA: " : detail::concat("CUDA: ", name(), ": ");
}

void Context::launch(CUfunction function, const ir::cuda::Launch& launch,
                     std::vector<uint64_t>& words, const std::shared_ptr<const std::string>& label,
                     const CallSite& site) {
  const Range range(label->c_str());
  void* parameter = words.data();
  const auto size = [&](int axis) { return static_cast<unsigned>(launch.threads[axis]); };
  const CUresult result = use().cuLaunchKernel(
      function, static_cast<unsigned>(launch.blocks), static_cast<unsigned>(launch.splits), 1,
      size(0), size(1), size(2), static_cast<unsigned>(launch.sharedBytes), stream(), &parameter,
      /*extra=*/nullptr);
  if (result != CUDA_SUCCESS) {
    const detail::CallSiteOverride recorded(site);
    fail(result, "a launch of " + *label);
  }
  note(label, site);
}

void Context::note(const std::shared_ptr<const std::string>& label, const CallSite& site) {
  const std::lock_guard lock(mutex_);
  launched_[launches_++ % kTold] = {label, site};
}

void Context::trimMemory() {
  finish();
  check(use().cuMemPoolTrimTo(pool_, 0), "the GPU's memory");
}

void Context::finish() {
  const size_t launches = launches_;
  checkLate(use().cuStreamSynchronize(stream_), launches);
}

void Context::finish(CUevent event, size_t launches) {
  checkLate(use().cuEventSynchronize(event), launches);
}

bool Context::reaches(const Context& other) {
  const std::lock_guard lock(mutex_);
  const auto [found, isNew] = reaches_.try_emplace(other.number_, false);
  if (!isNew) return found->second;
  int can = 0;
  check(use().cuDeviceCanAccessPeer(&can, device_, other.device_), "another GPU's memory");
  if (can == 0) return false;
  // Its pool lets nobody else read it by itself.
  const CUmemAccessDesc access = {{CU_MEM_LOCATION_TYPE_DEVICE, {number_}},
                                  CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
  check(driver_.cuMemPoolSetAccess(other.pool_, &access, 1), "another GPU's memory");
  return found->second = true;
}

void Context::follow(Context& other) {
  check(other.use().cuEventRecord(other.reached_, other.stream()), "an event");
  check(use().cuStreamWaitEvent(stream(), other.reached_, CU_EVENT_WAIT_DEFAULT), "an event");
}

void Context::copyFrom(Context& other, CUdeviceptr to, CUdeviceptr from, size_t bytes) {
  follow(other);
  check(use().cuMemcpyPeerAsync(to, context_, from, other.context_, bytes, stream()), "a copy of ",
        bytes, " bytes from ", other.name());
  other.follow(*this);
}

void Context::checkLate(CUresult result, size_t launches) {
  const std::lock_guard lock(mutex_);
  if (result == CUDA_SUCCESS) {
    done_ = std::max(done_, launches);
    return;
  }
  throw std::runtime_error(describeLate(result));
}

std::string Context::describeLate(CUresult result) const {
  const std::lock_guard lock(mutex_);
  std::string text = prefix() + describe(driver_, result);
  const size_t all = launches_, suspects = all - done_, told = std::min(suspects, kTold);
  if (told > 0) text += ", in one of these launches or what came among or after them:";
  if (suspects > told) text += detail::concat("\n  ", suspects - told, " launches before these");
  for (size_t i = all - told; i < all; ++i) {
    const Launched& each = launched_[i % kTold];
    const std::string where = each.site.toString();
    text += detail::concat("\n  ", *each.label, where.empty() ? "" : " at ", where);
  }
  return text;
}

}  // namespace fl::runtime::cuda
