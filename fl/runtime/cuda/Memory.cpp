#include "fl/runtime/cuda/Memory.h"

#include <algorithm>
#include <cstring>

#include "fl/runtime/SystemMemory.h"

namespace fl::runtime::cuda {
namespace {

CUdeviceptr address(const void* memory) { return reinterpret_cast<CUdeviceptr>(memory); }

void* allocateBlock(Context& context, size_t bytes) {
  CUdeviceptr block = 0;
  const CUresult result = context.use().cuMemAllocAsync(&block, bytes, context.stream());
  if (result == CUDA_ERROR_OUT_OF_MEMORY) throw OutOfMemory();
  context.check(result, bytes, " bytes of the GPU's memory");
  return reinterpret_cast<void*>(block);
}

// What goes wrong here went wrong before, and is told where that is waited for.
void freeBlock(const Context& context, void* block) {
  const Driver* driver = block == nullptr ? nullptr : context.tryUse();
  if (driver != nullptr) driver->cuMemFreeAsync(address(block), context.stream());
}

std::unique_ptr<MemoryManager> makeCache(Context& context) {
  auto functions = std::make_shared<MemoryManagerDeviceInterface>();
  functions->getMaxMemorySize = [&](int) { return context.totalBytes(); };
  functions->nativeAlloc = [&](size_t bytes) { return allocateBlock(context, bytes); };
  functions->nativeFree = [&](void* block) { freeBlock(context, block); };
  return makeCachingMemoryManager(std::move(functions));
}

void* allocatePinned(Context& context, size_t bytes) {
  void* block = nullptr;
  const CUresult result = context.use().cuMemAllocHost(&block, bytes);
  if (result == CUDA_ERROR_OUT_OF_MEMORY) throw OutOfMemory();
  context.check(result, bytes, " bytes of pinned memory");
  return block;
}

// When what is in the stream is done, as it may use it.
void freePinned(const Context& context, void* block) {
  const Driver* driver = block == nullptr ? nullptr : context.tryUse();
  if (driver == nullptr) return;
  driver->cuStreamSynchronize(context.stream());
  driver->cuMemFreeHost(block);
}

std::unique_ptr<MemoryManager> makePinnedCache(Context& context) {
  auto functions = std::make_shared<MemoryManagerDeviceInterface>();
  functions->nativeAlloc = [&](size_t bytes) { return allocatePinned(context, bytes); };
  functions->nativeFree = [&](void* block) { freePinned(context, block); };
  return makeCachingMemoryManager(std::move(functions));
}

class PinnedMemoryManager final : public MemoryManager {
 public:
  explicit PinnedMemoryManager(Context& context) : cache_(makePinnedCache(context)) {}
  void* allocate(size_t bytes) override { return cache_->allocate(bytes); }
  void deallocate(void* pointer, size_t bytes) override { cache_->deallocate(pointer, bytes); }
  // What is in the stream may yet write and read it.
  void fill(void*, unsigned char, size_t) override {}
  void release() override { cache_->release(); }
  MemoryStats stats() const override { return cache_->stats(); }

 private:
  const std::unique_ptr<MemoryManager> cache_;
};

class PinnedBlock final : public Buffer {
 public:
  PinnedBlock(std::shared_ptr<MemoryManager> manager, size_t bytes)
      : Buffer(std::move(manager), bytes, BufferOrigin{"temporaries of a plan on the host"}) {}
};

class GpuMemoryManager final : public MemoryManager {
 public:
  explicit GpuMemoryManager(Context& context) : context_(context), cache_(makeCache(context)) {}
  void* allocate(size_t bytes) override { return cache_->allocate(bytes); }
  void deallocate(void* pointer, size_t bytes) override { cache_->deallocate(pointer, bytes); }
  // What goes wrong is told where it is waited for.
  void fill(void* memory, unsigned char byte, size_t bytes) override {
    const Driver* driver = bytes == 0 ? nullptr : context_.tryUse();
    if (driver != nullptr) driver->cuMemsetD8Async(address(memory), byte, bytes, context_.stream());
  }
  void release() override {
    cache_->release();
    context_.trimMemory();
  }
  MemoryStats stats() const override { return cache_->stats(); }
  MemoryManagerAdapter* adapter() const override { return cache_->adapter(); }
  bool isHost() const override { return false; }
  std::string name() const override {
    return context_.number() == 0 ? "memory of the GPU" : "memory of " + context_.name();
  }
  size_t freeBytes() const override {
    size_t free = 0, total = 0;
    context_.use().cuMemGetInfo(&free, &total);
    return free;
  }

 private:
  Context& context_;
  const std::unique_ptr<MemoryManager> cache_;
};

class GpuBlock final : public Buffer {
 public:
  GpuBlock(Memory& memory, std::shared_ptr<MemoryManager> manager, size_t bytes,
           const BufferOrigin& origin)
      : Buffer(std::move(manager), bytes, origin), memory_(memory) {}

  const void* memory() const override { return static_cast<const DeviceMemory*>(&memory_); }
  Context& context() const { return memory_.context(); }
  MemoryBlockPtr onHost() override {
    MemoryBlockPtr copy = std::make_shared<Buffer>(bytes(), BufferOrigin{"a copy on the host"});
    memory_.download(copy->data(), data(), bytes());
    return copy;
  }
  void assign(const void* elements) override { memory_.upload(data(), elements, bytes()); }

 private:
  Memory& memory_;
};

}  // namespace

Staging::Slot Staging::make() const {
  const Driver& driver = context_.use();
  Slot slot;
  void* memory = nullptr;
  context_.check(driver.cuEventCreate(&slot.done, CU_EVENT_DISABLE_TIMING), "an event");
  context_.check(driver.cuMemAllocHost(&memory, kSlotBytes), kSlotBytes, " bytes of pinned memory");
  slot.memory = static_cast<char*>(memory);
  return slot;
}

Staging::Slot& Staging::next() {
  Slot& slot = slots_[turn_++ % slots_.size()];
  if (slot.memory == nullptr) {
    slot = make();
  } else {
    context_.finish(slot.done, slot.launches);
  }
  return slot;
}

void Staging::record(Slot& slot) {
  slot.launches = context_.launches();
  context_.check(context_.use().cuEventRecord(slot.done, context_.stream()), "an event");
}

void Staging::upload(CUdeviceptr to, const void* from, size_t bytes) {
  const std::lock_guard<std::mutex> lock(mutex_);
  for (size_t done = 0; done < bytes; done += kSlotBytes) {
    const size_t part = std::min(kSlotBytes, bytes - done);
    Slot& slot = next();
    std::memcpy(slot.memory, static_cast<const char*>(from) + done, part);
    context_.check(
        context_.use().cuMemcpyHtoDAsync(to + done, slot.memory, part, context_.stream()),
        "a copy of ", bytes, " bytes to the GPU");
    record(slot);
  }
}

// While one part is copied out of its slot, the next one arrives.
void Staging::download(void* to, CUdeviceptr from, size_t bytes) {
  std::unique_ptr<Arrival> arriving;
  size_t arrived = 0;
  const auto take = [&](size_t end) {
    std::memcpy(static_cast<char*>(to) + arrived, arriving->wait(), end - arrived);
    arrived = end;
  };
  for (size_t done = 0; done < bytes; done += kSlotBytes) {
    auto next = fetch(from + done, std::min(kSlotBytes, bytes - done));
    if (arriving) take(done);
    arriving = std::move(next);
  }
  if (arriving) take(bytes);
}

std::unique_ptr<Staging::Arrival> Staging::fetch(CUdeviceptr from, size_t bytes) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (free_.empty()) free_.push_back(make());
  Slot slot = free_.back();
  free_.pop_back();
  context_.check(context_.use().cuMemcpyDtoHAsync(slot.memory, from, bytes, context_.stream()),
                 "a copy of ", bytes, " bytes from the GPU");
  record(slot);
  return std::make_unique<Arrival>(*this, slot);
}

const void* Staging::Arrival::wait() const {
  staging_.context_.finish(slot_.done, slot_.launches);
  return slot_.memory;
}

// The next copy into it is behind this one in the stream.
void Staging::giveBack(const Slot& slot) {
  const std::lock_guard<std::mutex> lock(mutex_);
  free_.push_back(slot);
}

Memory::Memory(Context& context)
    : context_(context),
      manager_(std::make_shared<GpuMemoryManager>(context)),
      pinned_(std::make_shared<PinnedMemoryManager>(context)),
      staging_(context) {
  addHostMemoryManager(pinned_);
}

Memory& Memory::of(Context& context) {
  static auto& all = *new PerGpu<Memory>();
  return all.of(context);
}

MemoryBlockPtr Memory::allocate(size_t bytes, const BufferOrigin& origin) {
  return std::make_shared<GpuBlock>(*this, manager_, bytes, origin);
}

MemoryBlockPtr Memory::allocateOnHost(size_t bytes) {
  return std::make_shared<PinnedBlock>(pinned_, bytes);
}

void Memory::copy(void* to, const void* from, std::span<const Bytes> runs) {
  for (const auto& [begin, end] : runs) {
    if (begin == end) continue;
    context_.check(context_.use().cuMemcpyDtoDAsync(address(to) + begin, address(from) + begin,
                                                    end - begin, context_.stream()),
                   "a copy of ", end - begin, " bytes on the GPU");
  }
}

MemoryBlockPtr Memory::bring(const MemoryBlockPtr& block) {
  const auto* other = dynamic_cast<const GpuBlock*>(block.get());
  if (!other || !context_.reaches(other->context())) return DeviceMemory::bring(block);
  const auto copy = [&] {
    MemoryBlockPtr made = allocate(block->bytes(), {});
    context_.copyFrom(other->context(), address(made->data()), address(block->data()),
                      block->bytes());
    return made;
  };
  const MemoryBlockPtr kept = block->inForm(name(), copy);
  return kept ? kept : copy();
}

// Of the host's elements, or the GPU's, which Tensor::fromBuffer() may be given: the caller may
// write to them again in a stream of its own.
void Memory::upload(void* to, const void* from, size_t bytes) {
  unsigned kind = 0;
  const CUresult result =
      context_.use().cuPointerGetAttribute(&kind, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, address(from));
  if (result == CUDA_SUCCESS && kind == CU_MEMORYTYPE_DEVICE) {
    copy(to, from, {{{0, static_cast<int64_t>(bytes)}}});
    return context_.finish();
  }
  staging_.upload(address(to), from, bytes);
}

std::unique_ptr<Staging::Arrival> Memory::fetch(const void* from, size_t bytes) {
  return staging_.fetch(address(from), bytes);
}

void Memory::download(void* to, const void* from, size_t bytes) {
  staging_.download(to, address(from), bytes);
}

}  // namespace fl::runtime::cuda
