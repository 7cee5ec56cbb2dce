// What runtime and codegen tell each other without knowing each other: a Target is what a device
// can execute, an Artifact is code made for one. Both are plain data that may be stored on disk.
// Relies on std only. fl/tile/HostTarget.h and fl/codegen/cpu/Emitter.h are the two ends.
#pragma once

#include <cstdint>
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

// How code reads and writes whole vectors along axis 0. Cached code does so through the caches;
// Fetching code too, but asks for lines ahead of time, as does code that writes around the caches:
// both are for what no cache can hold. Streaming code asks of every output that each kLanes
// elements from a multiple of kLanes on are contiguous and aligned as their size (64 bytes where
// that is more), and of a launch that its parts begin at such multiples. Aligning code, for maps
// with one output that are not tiled, asks for contiguous elements only, finds in each run where
// they are aligned, and streams, too. Keeping code, for row kernels, is as Cached; it and streaming
// code of row kernels ask for rows of at most kMaxKeptRow elements and for KernelArgs::scratch,
// where what is long to compute waits for the sweeps that need it again. Across code, for kernels
// that reduce axis 0 and keep axis 1, takes kLanes short rows at a time and asks for rows of at
// most kLanes elements.
enum class Stores : uint8_t { Cached, Streaming, Aligning, Keeping, Fetching, Across };

// Code of one kernel. On the CPU `bytes` is a relocatable ELF object without undefined symbols and
// `entry` names its KernelFunction (Kernel.h); `emitter` is the one from outside of the tree that
// made it, if one did.
struct Artifact {
  std::string entry;
  std::string bytes, emitter = {};
  bool operator==(const Artifact&) const = default;
};

}  // namespace fl::ir
