// What runtime and codegen tell each other without knowing each other: a Target is what a device
// can execute, an Artifact is code made for one. Both are plain data that may be stored on disk.
// Relies on std only. fl/runtime/cpu/HostTarget.h and fl/codegen/cpu/Emitter.h are the two ends.
#pragma once

#include <string>

namespace fl::ir {

// Equal targets run each other's code.
struct Target {
  std::string triple;
  // Every instruction set extension that code may use, as LLVM writes them: "+avx,+avx2,...".
  std::string features;
  // A processor to schedule for. It changes the choice and order of instructions, never their
  // legality or a result.
  std::string tuning;
  // Width of the vector registers; 0 if the device cannot run generated code at all.
  int vectorBits = 0;
  bool operator==(const Target&) const = default;
};

// Code of one kernel. On the CPU `bytes` is a relocatable ELF object without undefined symbols and
// `entry` names its KernelFunction (Kernel.h).
struct Artifact {
  std::string entry;
  std::string bytes;
  bool operator==(const Artifact&) const = default;
};

}  // namespace fl::ir
