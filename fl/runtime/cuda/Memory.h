// Memory of a GPU. It is given out and taken back in the order of the stream, and kept for reuse by
// a caching manager; copies from and to the host go through pinned memory.
#pragma once

#include <array>
#include <memory>
#include <mutex>
#include <vector>

#include "fl/runtime/DeviceMemory.h"
#include "fl/runtime/cuda/Context.h"

namespace fl::runtime::cuda {

// Pinned memory, in slots: those of uploads take turns.
class Staging {
  struct Slot {
    char* memory = nullptr;
    CUevent done = nullptr;
    size_t launches = 0;  // before it
  };

 public:
  static constexpr size_t kSlotBytes = size_t{1} << 22;

  // Elements on their way to the host.
  class Arrival {
   public:
    Arrival(Staging& staging, const Slot& slot) : staging_(staging), slot_(slot) {}
    ~Arrival() { staging_.giveBack(slot_); }
    Arrival(const Arrival&) = delete;
    // They stay there until this is destroyed.
    const void* wait() const;

   private:
    Staging& staging_;
    const Slot slot_;
  };

  explicit Staging(Context& context) : context_(context) {}

  // Returns as soon as `from` has been read: the copy is in the stream.
  void upload(CUdeviceptr to, const void* from, size_t bytes);
  // Waits for what is in the stream and the copy.
  void download(void* to, CUdeviceptr from, size_t bytes);
  // Puts a copy of at most kSlotBytes into the stream.
  std::unique_ptr<Arrival> fetch(CUdeviceptr from, size_t bytes);

 private:
  Slot make() const;
  // The next of those that take turns, which no copy uses any more.
  Slot& next();
  void record(Slot& slot);
  void giveBack(const Slot& slot);

  Context& context_;
  std::mutex mutex_;
  std::array<Slot, 4> slots_;
  size_t turn_ = 0;
  std::vector<Slot> free_;  // of downloads
};

class Memory final : public DeviceMemory {
 public:
  explicit Memory(Context& context);
  // The one of the GPU's, never destroyed: blocks may outlive devices.
  static Memory& of(Context& context);
  Context& context() const { return context_; }

  MemoryBlockPtr allocate(size_t bytes, const BufferOrigin& origin) override;
  // Pinned. Nothing on the host touches it, so that it may be given out again at once: what still
  // copies from it comes first in the stream.
  MemoryBlockPtr allocateOnHost(size_t bytes) override;
  void copy(void* to, const void* from, std::span<const Bytes> runs) override;
  void fill(void* memory, unsigned char byte, size_t bytes) override {
    manager_->fill(memory, byte, bytes);
  }
  void finish() override { context_.finish(); }
  std::string name() const override { return manager_->name(); }
  // From a GPU that this one reaches without the host, if it may.
  MemoryBlockPtr bring(const MemoryBlockPtr& block) override;

  void upload(void* to, const void* from, size_t bytes);
  void download(void* to, const void* from, size_t bytes);
  std::unique_ptr<Staging::Arrival> fetch(const void* from, size_t bytes);

 private:
  Context& context_;
  const std::shared_ptr<MemoryManager> manager_, pinned_;
  Staging staging_;
};

}  // namespace fl::runtime::cuda
