// Makes the code of an Artifact callable: a loader for relocatable ELF objects that need nothing
// from outside. It takes about 10 us and no LLVM. Relies on fl/kernel/Artifact.h; HostTarget.h says
// what code this machine can run.
#pragma once

#include <cstddef>
#include <memory>

#include "fl/kernel/Artifact.h"
#include "fl/kernel/Kernel.h"

namespace fl::runtime::cpu {

// Code in memory that can be executed and not written; unmapped with the last reference.
class LoadedCode {
 public:
  // Throws InternalError if the object is malformed, refers to a symbol that it does not define,
  // needs a relocation of another kind than PC32, PLT32, 64 and PC64, or lacks the entry.
  static std::shared_ptr<LoadedCode> load(const ir::Artifact& artifact);

  ~LoadedCode();
  LoadedCode(const LoadedCode&) = delete;
  LoadedCode& operator=(const LoadedCode&) = delete;

  // Valid while this object lives.
  ir::KernelFunction entry() const { return entry_; }
  // Where it lies.
  const void* memory() const { return memory_; }
  // Memory taken, in whole pages.
  size_t bytes() const { return size_; }

 private:
  LoadedCode(char* memory, size_t size) : memory_(memory), size_(size) {}

  char* memory_;
  size_t size_;
  ir::KernelFunction entry_ = nullptr;
};

}  // namespace fl::runtime::cpu
