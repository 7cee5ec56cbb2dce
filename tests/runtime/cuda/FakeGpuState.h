// What the driver of FakeGpu.h knows of its GPUs: streams and what they have yet to do, blocks of
// memory, and what calls are told to do.
#pragma once

#include <sys/mman.h>

#include <deque>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "tests/codegen/cuda/HostModule.h"
#include "tests/runtime/cuda/FakeDevice.h"
#include "tests/runtime/cuda/FakeGpu.h"

namespace fl::testing {

// What a launch of a function that is not set to more may ask for, for a block.
constexpr int kUsualSharedBytes = 48 << 10;

struct Module {
  std::string source;
  CUcontext context = currentFakeContext();
};
struct Function {
  std::shared_ptr<HostModule> module;
  std::string name;
  CUcontext context;
  int mostSharedBytes = kUsualSharedBytes;
  unsigned launches = 0;  // run
};
struct Launch {
  Function* kernel;
  ir::cuda::Launch shape;
  std::vector<uint64_t> words;
};

// What a stream has yet to do, or a graph does: a launch, or something else.
struct Work {
  std::string name;
  std::function<CUresult()> run;
  std::optional<Launch> launch = {};
  double milliseconds = 1;
};
// A node's handle is its number, from 1 on.
struct Graph {
  std::deque<Work> nodes;
  CUgraphNode last;
};
struct Stream {
  const CUcontext context = currentFakeContext();
  std::deque<Work> work;
  std::unique_ptr<Graph> captured = nullptr;  // what is put in goes here
};
struct Event {
  const CUcontext context = currentFakeContext();
  Stream* stream = nullptr;
  size_t recorded = 0, done = 0;
  double time = 0;  // when the GPU got there
};
struct Block {
  size_t bytes = 0;
  CUcontext context = nullptr;
  bool isGivenBack = false;  // the stream has yet to do it
};
using Blocks = std::map<uintptr_t, Block>;

// The block that holds them all, or null.
inline const Block* find(const Blocks& blocks, uintptr_t begin, size_t bytes) {
  const auto next = blocks.upper_bound(begin);
  if (next == blocks.begin()) return nullptr;
  const auto& [address, block] = *std::prev(next);
  return begin + bytes <= address + block.bytes ? &block : nullptr;
}

struct State {
  std::recursive_mutex mutex;
  FakeGpu::Counts counts;
  std::vector<std::string> done, misuse;
  Blocks blocks, freed, pinned;
  std::list<Module> modules;  // that are loaded
  size_t memory = kFakeMemory, live = 0;
  int accesses = 0;  // one within another
  cuuint64_t kept = 0;
  double milliseconds = 0;          // that everything took so far
  CUresult failure = CUDA_SUCCESS;  // that all calls give from now on
  std::string failing;              // the function whose calls fail
  CUresult failingWith = CUDA_SUCCESS;
  bool failsLater = false;
};

inline State& state() {
  static State& all = *new State();
  return all;
}

// Runs a call of the driver with the state locked, unless it is to fail.
template <class Body>
CUresult call(const char* function, Body body) {
  State& s = state();
  const std::lock_guard<std::recursive_mutex> lock(s.mutex);
  if (s.failure != CUDA_SUCCESS) return s.failure;
  if (s.failing == function && !s.failsLater) return s.failingWith;
  return body(s);
}

// The calling thread must be on the stream's GPU.
inline CUresult put(CUstream stream, const char* function, Work work) {
  State& s = state();
  if (reinterpret_cast<Stream*>(stream)->context != currentFakeContext())
    s.misuse.push_back(work.name + " in a stream of another GPU");
  if (s.failing == function && s.failsLater) {
    s.failing.clear();
    work = {work.name, [error = s.failingWith] { return error; }};
  }
  auto* const to = reinterpret_cast<Stream*>(stream);
  (to->captured ? to->captured->nodes : to->work).push_back(std::move(work));
  return CUDA_SUCCESS;
}
inline CUresult put(CUstream stream, const char* function, std::string name,
                    std::function<CUresult()> run, double milliseconds = 1) {
  return put(stream, function, Work{std::move(name), std::move(run), {}, milliseconds});
}

inline void* pointer(CUdeviceptr address) { return reinterpret_cast<void*>(address); }

// Of the GPU's memory, which nobody else reads or writes.
class Access {
 public:
  explicit Access(State& s) : state_(s) {
    if (s.accesses++ == 0) protect(PROT_READ | PROT_WRITE);
  }
  ~Access() {
    if (--state_.accesses == 0) protect(PROT_NONE);
  }

 private:
  void protect(int access) {
    for (const auto& [address, block] : state_.blocks)
      mprotect(pointer(address), block.bytes, access);
  }
  State& state_;
};

// Of a GPU's memory, when it is used.
inline void checkLive(const char* what, CUdeviceptr address, size_t bytes, CUcontext context) {
  const Block* const block = find(state().blocks, address, bytes);
  if (!block || block->context != context) {
    state().misuse.push_back(std::string(what) + " memory that is none of the GPU's");
  }
}
inline void checkPinned(const void* memory, size_t bytes) {
  if (!find(state().pinned, reinterpret_cast<uintptr_t>(memory), bytes)) {
    state().misuse.push_back("a copy of host memory that is not pinned");
  }
}

}  // namespace fl::testing
