// Makes a memory manager the one that tensors get their memory from.
#pragma once

#include <memory>

#include "fl/runtime/MemoryManagerAdapter.h"

namespace fl {

// One thread at a time installs; others may compute meanwhile. Live blocks return to the manager
// that made them, which therefore lives, installed or not, until the last one is back.
class MemoryManagerInstaller {
 public:
  // Sets those functions of the manager's device interface that are not set. Installs nothing.
  // Throws std::invalid_argument for a null pointer.
  explicit MemoryManagerInstaller(std::shared_ptr<MemoryManagerAdapter> managerImpl);

  // Null if the manager is of another type.
  template <typename T>
  std::shared_ptr<T> getMemoryManager() const {
    return std::dynamic_pointer_cast<T>(impl_);
  }

  // Initializes the manager, unless blocks of an earlier time keep it alive, and installs it.
  void setAsMemoryManager();
  // Pinned memory is a CUDA device's: there is none here, and nobody is asked for any.
  void setAsMemoryManagerPinned() {}

  // The one that a program starts with at first, unless FL_CHECK asks for another a
  // CachingMemoryManager; null after unsetMemoryManager().
  static MemoryManagerAdapter* currentlyInstalledMemoryManager();
  // A new CachingMemoryManager.
  static void installDefaultMemoryManager();
  // Goes back to the one that the program started with.
  static void unsetMemoryManager();

 private:
  std::shared_ptr<MemoryManagerAdapter> impl_;
};

}  // namespace fl
