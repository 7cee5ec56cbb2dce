// Flashlight's interface of a memory manager. A program subclasses it, or takes one of ours, and
// installs it with a MemoryManagerInstaller; the memory of all tensors comes from it then.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <iostream>
#include <limits>
#include <memory>
#include <new>
#include <semaphore>
#include <string>

#include "fl/base/ForkSafeMutex.h"
#include "fl/base/Types.h"
#include "fl/runtime/MemoryManagerDeviceInterface.h"

namespace fl {

namespace runtime {
class AdaptedMemoryManager;
class MemoryManager;
}  // namespace runtime

// What a manager holds. Bytes count whole blocks, rounded up as the manager does.
struct MemoryStats {
  size_t liveBytes = 0;    // handed out
  size_t cachedBytes = 0;  // kept for reuse
  size_t peakBytes = 0;    // highest live + cached
  uint64_t allocations = 0;
};

// The engine calls alloc, unlock, signalMemoryCleanup, printInfo, getMemoryStats, initialize and
// shutdown, from several threads and maybe at once, and nothing else. A block is locked while
// anyone uses it: by the manager for a tensor, by the user for whoever called alloc(true, ...) or
// userLock(); when no lock is left, it is the manager's again.
class MemoryManagerAdapter {
 public:
  // With a stream, logging is on at once. Throws std::invalid_argument if there is no interface.
  explicit MemoryManagerAdapter(std::shared_ptr<MemoryManagerDeviceInterface> deviceInterface,
                                std::ostream* logStream = nullptr);
  // Writes what is left of the log.
  virtual ~MemoryManagerAdapter();
  MemoryManagerAdapter(const MemoryManagerAdapter&) = delete;
  MemoryManagerAdapter& operator=(const MemoryManagerAdapter&) = delete;

  // Before the first block after it was installed; and once it is replaced and its last block is
  // back, which must not throw.
  virtual void initialize() = 0;
  virtual void shutdown() = 0;
  // At least the product of `dims` times `elSize` bytes, aligned to 64; null for none. For a tensor
  // `dims` is one number, its bytes, and `elSize` is 1. Throws std::bad_alloc if there is no
  // memory: the engine calls signalMemoryCleanup() then and asks once more. What else it throws
  // passes through the engine as it is: what was to be computed stays pending.
  virtual void* alloc(bool userLock, const unsigned ndims, Dim* dims, const unsigned elSize) = 0;
  // Bytes of the block that begins there, 0 if there is none.
  virtual size_t allocated(void* ptr) = 0;
  // Drops the user's lock, or the manager's. Must not throw for a live block.
  virtual void unlock(void* ptr, bool userLock) = 0;
  // Gives what is cached back to the system: where memory is short, of any manager that the host's
  // memory had, and when the manager is replaced.
  virtual void signalMemoryCleanup() = 0;
  virtual void printInfo(const char* msg, const int device, std::ostream* ostream = &std::cout) = 0;
  virtual void userLock(const void* ptr) = 0;
  virtual void userUnlock(const void* ptr) = 0;
  virtual bool isUserLocked(const void* ptr) = 0;
  // The part of the device's memory that the manager holds, used or not.
  virtual float getMemoryPressure() = 0;
  // Whether so many bytes more would be too many.
  virtual bool jitTreeExceedsMemoryPressure(size_t bytes) = 0;
  virtual void addMemoryManagement(int device) = 0;
  virtual void removeMemoryManagement(int device) = 0;

  // The unit that a manager rounds sizes up to: the largest size_t, and nothing to set, for one
  // that has none.
  virtual size_t getMemStepSize() { return std::numeric_limits<size_t>::max(); }
  virtual void setMemStepSize(size_t) {}
  // Not in Flashlight: for the engine's messages. All zero unless a manager overrides it.
  virtual MemoryStats getMemoryStats() { return {}; }

  // A line of the log if logging is on: the name, then the numbers, each with a space behind it.
  // The engine writes "initialize", "shutdown", "alloc BYTES USERLOCK ADDRESS", "unlock ADDRESS
  // USERLOCK BYTES", "signalMemoryCleanup", "nativeAlloc BYTES ADDRESS", "nativeFree ADDRESS" and
  // "nativeDiscard ADDRESS BYTES". A line that there is no memory for is lost.
  template <typename... Values>
  void log(std::string fname, Values... vs) {
    if (!isLogging()) return;
    try {
      fname += ' ';
      ((fname += std::to_string(vs) + ' '), ...);
      addLogLine(fname);
    } catch (const std::bad_alloc&) {
      // Destructors of buffers write lines.
    }
  }
  // Lines are collected and written so many at a time (50 at first), to standard error where there
  // is no stream; what is left is written when the stream changes, logging ends or the manager
  // does. A stream must outlive that. Thread-safe.
  void setLogStream(std::ostream* logStream);
  std::ostream* getLogStream() const;
  void setLoggingEnabled(bool log);
  // Throws std::invalid_argument for 0.
  void setLogFlushInterval(size_t interval);

  bool isLogging() const { return loggingEnabled_.load(std::memory_order_relaxed); }

  const std::shared_ptr<MemoryManagerDeviceInterface> deviceInterface;

 private:
  friend class MemoryManagerInstaller;
  friend class runtime::AdaptedMemoryManager;
  void addLogLine(const std::string& line);
  void flushLog();

  std::weak_ptr<runtime::MemoryManager> installed_;  // as the engine has it, while it does
  std::binary_semaphore turns_{1};                   // of being initialized until shut down
  mutable ForkSafeMutex logMutex_;
  std::atomic<bool> loggingEnabled_;
  std::ostream* logStream_;
  std::string logLines_;
  size_t logLineCount_ = 0;
  size_t logFlushInterval_ = 50;
};

}  // namespace fl
