// Device memory behind a replaceable interface. Buffers return to the manager that made them.
//
// Under AddressSanitizer, what a manager keeps for reuse is poisoned: reading a freed buffer is
// caught though its memory was not given back.
#pragma once

#include <cstddef>
#include <memory>
#include <ostream>
#include <string>

#include "absl/functional/function_ref.h"
#include "fl/base/CallSite.h"
#include "fl/base/MemoryBlock.h"
#include "fl/runtime/MemoryManagerAdapter.h"

namespace fl::runtime {

// What the engine needs of a memory manager. Programs write a MemoryManagerAdapter.
class MemoryManager {
 public:
  virtual ~MemoryManager() = default;
  // At least `bytes` bytes, aligned to 64 but for a guarding manager's; never null. Nothing may be
  // read or written past them.
  // Throws std::bad_alloc if it has none, upon which a buffer releases and asks once more.
  // Thread-safe.
  virtual void* allocate(size_t bytes) = 0;
  // `bytes` is what allocate() was asked for.
  virtual void deallocate(void* pointer, size_t bytes) = 0;
  // Of a block that is allocated. Does not throw.
  virtual void fill(void* memory, unsigned char byte, size_t bytes);
  // Gives cached memory back to the system.
  virtual void release() = 0;
  virtual MemoryStats stats() const = 0;
  // Whether it is the machine's, which maps more than it has.
  virtual bool isHost() const { return true; }
  // For those who run out of it: what it is called, and how much of it nobody has.
  virtual std::string name() const { return "host memory"; }
  virtual size_t freeBytes() const;
  // The one that serves, if it is one; it has the log.
  virtual MemoryManagerAdapter* adapter() const { return nullptr; }
};

// Of a CachingMemoryManager, over the host's memory or other.
std::unique_ptr<MemoryManager> makeCachingMemoryManager(
    std::shared_ptr<MemoryManagerDeviceInterface> functions =
        std::make_shared<MemoryManagerDeviceInterface>());

// Which side of a block touches memory that must not be touched.
enum class Guard { End, Begin };
// Every block has pages of its own and ends (begins) exactly at an unmapped page: what reads or
// writes outside faults at once, as does what reads a freed block. It finds the overruns of
// compiled code, which AddressSanitizer cannot see. Blocks that end at a page begin wherever their
// size puts them, aligned as their elements at least. The arena of a plan is one block.
//
// A system maps only so many pieces of memory: blocks beyond kMostGuardedBlocks live ones are
// ordinary ones, without guards.
constexpr size_t kMostGuardedBlocks = 16384;
std::unique_ptr<MemoryManager> makeGuardMemoryManager(Guard guard);

// FL_POISON=1: buffers are poison when they are made and when they are given back, and temporaries
// of plans once nothing reads them: a value that depends on what its buffer held before, or on a
// buffer that was freed, differs.
bool poisons();
// Each byte is this one: NaN in every floating dtype, -1 in every signed one.
constexpr unsigned char kPoison = 0xff;

// The manager of host memory, caching unless FL_CHECK asks for another or it is replaced. Live
// buffers keep theirs.
std::shared_ptr<MemoryManager> hostMemoryManager();
// Throws std::invalid_argument for a null pointer. The one before gives back what it keeps.
void setHostMemoryManager(std::shared_ptr<MemoryManager> manager);
// One more that has memory of the host, which it gives back where another wants it.
void addHostMemoryManager(const std::shared_ptr<MemoryManager>& manager);
// Goes back to the one that the program started with.
void resetHostMemoryManager();

// Bytes that the temporaries of one plan may take, with the scratch memory of its steps, 0 for any;
// FL_MEMORY_BUDGET at first. It holds for plans that are made from then on: their values are
// computed again rather than kept until they fit, to the same bits. A realize whose plan cannot fit
// throws std::runtime_error before anything runs, with the largest values and their lines; what it
// would have computed stays pending. Eager mode, and plans that run unfused after a failure, have
// no budget, nor have results, which somebody holds: a loss that is read before backward() makes
// results of all that backward() needs. A plan is told of once whose new results take more than the
// budget. Thread-safe.
void setMemoryBudget(size_t bytes);
size_t getMemoryBudget();

// "1000 B in use, 24 B kept for reuse, 2048 B at most, 3 allocations"
std::string describe(const MemoryStats& stats);

// What the adapter of host memory prints of itself; the numbers of a manager that is none.
void printHostMemory(const char* message, int device, std::ostream* stream);
// The log of the adapter of host memory (fl/runtime/MemoryManagerAdapter.h), if it is one.
void setMemoryLogStream(std::ostream* stream);
void setMemoryLogging(bool enabled);
void setMemoryLogInterval(size_t interval);

// What a buffer is for, a word that lives as long as the program, and the line that asked for it.
struct BufferOrigin {
  const char* what = "data";
  CallSite site = currentCallSite();
};

// One allocation of the manager of host memory, or of a device's. Where there is none, even after
// the managers released what they kept, throws std::bad_alloc: it says how much was asked for, is
// in use, kept and free, and names the ten largest buffers with their operators and lines. Nothing
// else has changed then. The host has none, too, where the system would kill the process once it
// touched the block and what else it has not touched yet.
class Buffer : public MemoryBlock {
 public:
  explicit Buffer(size_t bytes, const BufferOrigin& origin = {})
      : Buffer(hostMemoryManager(), bytes, origin) {}
  ~Buffer() override;

 protected:
  Buffer(std::shared_ptr<MemoryManager> manager, size_t bytes, const BufferOrigin& origin);

 private:
  friend class LiveBuffers;
  const std::shared_ptr<MemoryManager> manager_;
  const BufferOrigin origin_;
  Buffer *previous_ = nullptr, *next_ = nullptr;  // of all that live
};
// What `make` returns, which makes code: called, and as for an allocation once more if it throws
// OutOfMemory for want of so many bytes.
size_t makeCode(size_t bytes, absl::FunctionRef<size_t()> make);
// A block with a copy of `bytes` bytes; uninitialised if `data` is null.
MemoryBlockPtr makeBlock(const void* data, size_t bytes);

}  // namespace fl::runtime
