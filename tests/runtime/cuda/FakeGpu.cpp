#include "tests/runtime/cuda/FakeGpu.h"

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>

#include "fl/runtime/cuda/Driver.h"
#include "tests/codegen/cuda/HostModule.h"
#include "tests/runtime/cuda/FakeCublasLt.h"
#include "tests/runtime/cuda/FakeCudnn.h"
#include "tests/runtime/cuda/FakeNvrtc.h"

namespace fl::testing {
namespace {

constexpr size_t kMemory = size_t{4} << 30;
constexpr size_t kAlignment = 256;
// Of a block: what a launch may ask for, and what a function may be set to.
constexpr int kUsualSharedBytes = 48 << 10, kMostSharedBytes = 227 << 10;

// What a stream has yet to do.
struct Work {
  std::string name;
  std::function<CUresult()> run;
  double milliseconds;
};
struct Stream {
  std::deque<Work> work;
};
struct Event {
  Stream* stream = nullptr;
  size_t recorded = 0, done = 0;
  double time = 0;  // when the GPU got there
};
struct Module {
  std::string source;
};
struct Function {
  std::shared_ptr<HostModule> module;
  std::string name;
  int mostSharedBytes = kUsualSharedBytes;
};
struct Block {
  size_t bytes = 0;
  bool isGivenBack = false;  // the stream has yet to do it
};
using Blocks = std::map<uintptr_t, Block>;

// The block that holds them all, or null.
const Block* find(const Blocks& blocks, uintptr_t begin, size_t bytes) {
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
  size_t memory = kMemory, live = 0;
  cuuint64_t kept = 0;
  double milliseconds = 0;          // that everything took so far
  CUresult failure = CUDA_SUCCESS;  // that all calls give from now on
  std::string failing;              // the function whose calls fail
  CUresult failingWith = CUDA_SUCCESS;
  bool failsLater = false;
};

State& state() {
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

CUresult put(CUstream stream, const char* function, std::string name, std::function<CUresult()> run,
             double milliseconds = 1) {
  State& s = state();
  if (s.failing == function && s.failsLater) {
    s.failing.clear();
    run = [error = s.failingWith] { return error; };
  }
  reinterpret_cast<Stream*>(stream)->work.push_back(
      {std::move(name), std::move(run), milliseconds});
  return CUDA_SUCCESS;
}

// Does what the stream has yet to do, until there is no need.
CUresult work(State& s, Stream& stream, const std::function<bool()>& isEnough) {
  ++s.counts.waits;
  while (!isEnough() && !stream.work.empty() && s.failure == CUDA_SUCCESS) {
    const Work next = std::move(stream.work.front());
    stream.work.pop_front();
    s.failure = next.run();
    s.done.push_back(next.name);
    s.milliseconds += next.milliseconds;
  }
  if (s.failure != CUDA_SUCCESS) stream.work.clear();
  return s.failure;
}

void* pointer(CUdeviceptr address) { return reinterpret_cast<void*>(address); }

// Of the GPU's memory, when it is used.
void checkLive(const char* what, CUdeviceptr address, size_t bytes) {
  if (!find(state().blocks, address, bytes)) {
    state().misuse.push_back(std::string(what) + " memory that is none of the GPU's");
  }
}
void checkPinned(const void* memory, size_t bytes) {
  if (!find(state().pinned, reinterpret_cast<uintptr_t>(memory), bytes)) {
    state().misuse.push_back("a copy of host memory that is not pinned");
  }
}

// ---- memory ----

CUresult allocate(CUdeviceptr* address, size_t bytes, CUstream) {
  return call("cuMemAllocAsync", [&](State& s) {
    if (s.live + bytes > s.memory) return CUDA_ERROR_OUT_OF_MEMORY;
    void* block = nullptr;
    if (posix_memalign(&block, kAlignment, bytes) != 0) return CUDA_ERROR_OUT_OF_MEMORY;
    std::memset(block, 0xff, bytes);
    *address = reinterpret_cast<CUdeviceptr>(block);
    s.blocks[*address] = {bytes};
    s.live += bytes;
    ++s.counts.allocations;
    return CUDA_SUCCESS;
  });
}

CUresult giveBack(CUdeviceptr address, CUstream stream) {
  return call("cuMemFreeAsync", [&](State& s) {
    const auto found = s.blocks.find(address);
    if (found == s.blocks.end() || found->second.isGivenBack) {
      s.misuse.push_back("a free of what is no block");
      return CUDA_ERROR_INVALID_VALUE;
    }
    found->second.isGivenBack = true;
    s.live -= found->second.bytes;
    return put(stream, "cuMemFreeAsync", "free", [&s, address] {
      s.freed[address] = s.blocks.at(address);
      s.blocks.erase(address);
      std::free(pointer(address));
      return CUDA_SUCCESS;
    });
  });
}

CUresult upload(CUdeviceptr to, const void* from, size_t bytes, CUstream stream) {
  return call("cuMemcpyHtoDAsync", [&](State& s) {
    checkPinned(from, bytes);
    s.counts.bytesUp += bytes;
    return put(stream, "cuMemcpyHtoDAsync", "upload", [=] {
      checkLive("a copy to", to, bytes);
      std::memcpy(pointer(to), from, bytes);
      return CUDA_SUCCESS;
    });
  });
}

CUresult download(void* to, CUdeviceptr from, size_t bytes, CUstream stream) {
  return call("cuMemcpyDtoHAsync", [&](State& s) {
    checkPinned(to, bytes);
    s.counts.bytesDown += bytes;
    return put(stream, "cuMemcpyDtoHAsync", "download", [=] {
      checkLive("a copy of", from, bytes);
      std::memcpy(to, pointer(from), bytes);
      return CUDA_SUCCESS;
    });
  });
}

CUresult copy(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream) {
  return call("cuMemcpyDtoDAsync", [&](State&) {
    return put(stream, "cuMemcpyDtoDAsync", "copy", [=] {
      checkLive("a copy of", from, bytes);
      checkLive("a copy to", to, bytes);
      std::memcpy(pointer(to), pointer(from), bytes);
      return CUDA_SUCCESS;
    });
  });
}

CUresult fill(CUdeviceptr to, unsigned char byte, size_t bytes, CUstream stream) {
  return call("cuMemsetD8Async", [&](State&) {
    return put(stream, "cuMemsetD8Async", "fill", [=] {
      checkLive("a fill of", to, bytes);
      std::memset(pointer(to), byte, bytes);
      return CUDA_SUCCESS;
    });
  });
}

// ---- kernels ----

// Compiled without the lock, so that threads compile at the same time; equal ones once.
std::shared_ptr<HostModule> compiled(const std::string& source, const std::string& name) {
  static std::mutex mutex;
  static auto& modules = *new std::map<std::string, std::shared_ptr<HostModule>>();
  {
    const std::lock_guard<std::mutex> lock(mutex);
    const auto found = modules.find(source);
    if (found != modules.end()) return found->second;
  }
  auto module = std::make_shared<HostModule>(source, std::vector<std::string>{name});
  const std::lock_guard<std::mutex> lock(mutex);
  return modules[source] = module;
}

// Whether the driver takes a launch of so much.
bool isAllowed(State& s, const Function& kernel, unsigned sharedBytes) {
  const bool isIt = sharedBytes <= static_cast<unsigned>(kernel.mostSharedBytes);
  if (!isIt) s.misuse.push_back("a launch that asks for more shared memory than its function may");
  s.counts.mostSharedBytes = std::max<size_t>(s.counts.mostSharedBytes, sharedBytes);
  return isIt;
}

void runKernel(State& s, const Function& kernel, const ir::cuda::Launch& shape,
               const std::vector<uint64_t>& words) {
  for (const uint64_t word : words) {
    const bool isGone = find(s.freed, word, 1) && !find(s.blocks, word, 1);
    if (isGone) s.misuse.push_back("a launch on memory that was freed");
  }
  if (shape.splits > 1) {
    checkLive("parts in", *(words.end() - 2), sizeof(uint64_t));
    checkLive("counters in", words.back(), shape.blocks * sizeof(uint32_t));
    ++s.counts.sharedSweeps;
  }
  kernel.module->launch(kernel.name, shape, words, /*reversed=*/false);
  ++s.counts.launchesDone;
}

CUresult launch(CUfunction function, unsigned blocks, unsigned splits, unsigned, unsigned x,
                unsigned y, unsigned z, unsigned sharedBytes, CUstream stream, void** parameters,
                void**) {
  return call("cuLaunchKernel", [&](State& s) {
    ++s.counts.launches;
    const Function kernel = *reinterpret_cast<Function*>(function);
    if (!isAllowed(s, kernel, sharedBytes)) return CUDA_ERROR_INVALID_VALUE;
    const auto* first = static_cast<const uint64_t*>(parameters[0]);
    const std::vector<uint64_t> words(first, first + kernel.module->words(kernel.name));
    const ir::cuda::Launch shape{blocks,
                                 {static_cast<int>(x), static_cast<int>(y), static_cast<int>(z)},
                                 static_cast<int>(splits),
                                 0,
                                 static_cast<int>(sharedBytes)};
    return put(stream, "cuLaunchKernel", "launch", [&s, kernel, words, shape] {
      runKernel(s, kernel, shape, words);
      return CUDA_SUCCESS;
    });
  });
}

CUresult setAttribute(CUfunction function, CUfunction_attribute which, int value) {
  return call("cuFuncSetAttribute", [&](State&) {
    if (which != CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES) return CUDA_SUCCESS;
    if (value > kMostSharedBytes) return CUDA_ERROR_INVALID_VALUE;
    reinterpret_cast<Function*>(function)->mostSharedBytes = value;
    return CUDA_SUCCESS;
  });
}

// ---- graphs ----

struct GraphNode {
  const Function* kernel;
  ir::cuda::Launch shape;
  std::vector<uint64_t> words;
};
struct Graph {
  std::deque<GraphNode> nodes;
};

GraphNode nodeOf(const CUDA_KERNEL_NODE_PARAMS& parameters) {
  const auto* kernel = reinterpret_cast<const Function*>(parameters.func);
  const auto* first = static_cast<const uint64_t*>(parameters.kernelParams[0]);
  const auto size = [](unsigned threads) { return static_cast<int>(threads); };
  return {kernel,
          {parameters.gridDimX,
           {size(parameters.blockDimX), size(parameters.blockDimY), size(parameters.blockDimZ)},
           size(parameters.gridDimY),
           0,
           size(parameters.sharedMemBytes)},
          {first, first + kernel->module->words(kernel->name)}};
}

// A node's handle is its number, from 1 on.
CUresult addNode(CUgraphNode* node, CUgraph graph, const CUgraphNode* before, size_t count,
                 const CUDA_KERNEL_NODE_PARAMS* parameters) {
  return call("cuGraphAddKernelNode", [&](State& s) {
    auto& nodes = reinterpret_cast<Graph*>(graph)->nodes;
    const auto number = nodes.size();
    const bool isChain =
        number == 0 ? count == 0 : count == 1 && reinterpret_cast<size_t>(*before) == number;
    if (!isChain) s.misuse.push_back("a graph that is no chain");
    nodes.push_back(nodeOf(*parameters));
    if (!isAllowed(s, *nodes.back().kernel, parameters->sharedMemBytes)) {
      return CUDA_ERROR_INVALID_VALUE;
    }
    *node = reinterpret_cast<CUgraphNode>(number + 1);
    return CUDA_SUCCESS;
  });
}

CUresult instantiate(CUgraphExec* made, CUgraph graph, unsigned long long) {
  return call("cuGraphInstantiate", [&](State& s) {
    ++s.counts.graphs;
    *made = reinterpret_cast<CUgraphExec>(new Graph(*reinterpret_cast<Graph*>(graph)));
    return CUDA_SUCCESS;
  });
}

CUresult changeNode(CUgraphExec made, CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS* parameters) {
  return call("cuGraphExecKernelNodeSetParams", [&](State& s) {
    ++s.counts.changedNodes;
    reinterpret_cast<Graph*>(made)->nodes[reinterpret_cast<size_t>(node) - 1] = nodeOf(*parameters);
    return CUDA_SUCCESS;
  });
}

CUresult launchGraph(CUgraphExec made, CUstream stream) {
  return call("cuGraphLaunch", [&](State& s) {
    ++s.counts.graphLaunches;
    return put(stream, "cuGraphLaunch", "graph", [&s, graph = *reinterpret_cast<Graph*>(made)] {
      for (const GraphNode& node : graph.nodes) {
        runKernel(s, *node.kernel, node.shape, node.words);
      }
      return CUDA_SUCCESS;
    });
  });
}

// ---- tables ----

runtime::cuda::Driver driverTable() {
  runtime::cuda::Driver table;
  table.cuInit = [](unsigned) { return CUDA_SUCCESS; };
  table.cuDriverGetVersion = [](int* version) {
    *version = CUDA_VERSION;
    return CUDA_SUCCESS;
  };
  table.cuGetErrorName = [](CUresult, const char** name) {
    *name = "CUDA_ERROR_OF_A_TEST";
    return CUDA_SUCCESS;
  };
  table.cuGetErrorString = [](CUresult, const char** words) {
    *words = "told to fail";
    return CUDA_SUCCESS;
  };
  table.cuDeviceGet = [](CUdevice* device, int) {
    *device = 0;
    return CUDA_SUCCESS;
  };
  table.cuDeviceGetCount = [](int* count) {
    *count = 1;
    return CUDA_SUCCESS;
  };
  table.cuDeviceGetAttribute = [](int* value, CUdevice_attribute which, CUdevice) {
    *value = which == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR            ? 9
             : which == CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN ? kMostSharedBytes
                                                                              : 0;
    return CUDA_SUCCESS;
  };
  table.cuDeviceGetName = [](char* name, int bytes, CUdevice) {
    std::strncpy(name, "a GPU that is none", bytes);
    return CUDA_SUCCESS;
  };
  table.cuDeviceTotalMem = [](size_t* bytes, CUdevice) {
    *bytes = kMemory;
    return CUDA_SUCCESS;
  };
  table.cuDevicePrimaryCtxRetain = [](CUcontext* context, CUdevice) {
    *context = reinterpret_cast<CUcontext>(&state());
    return CUDA_SUCCESS;
  };
  table.cuCtxSetCurrent = [](CUcontext) { return CUDA_SUCCESS; };
  table.cuStreamCreate = [](CUstream* stream, unsigned) {
    *stream = reinterpret_cast<CUstream>(new Stream());
    return CUDA_SUCCESS;
  };
  table.cuStreamSynchronize = [](CUstream stream) {
    return call("cuStreamSynchronize", [&](State& s) {
      return work(s, *reinterpret_cast<Stream*>(stream), [] { return false; });
    });
  };
  table.cuEventCreate = [](CUevent* event, unsigned) {
    *event = reinterpret_cast<CUevent>(new Event());
    return CUDA_SUCCESS;
  };
  table.cuEventRecord = [](CUevent event, CUstream stream) {
    return call("cuEventRecord", [&](State&) {
      auto* e = reinterpret_cast<Event*>(event);
      e->stream = reinterpret_cast<Stream*>(stream);
      const auto happen = [e, number = ++e->recorded] {
        e->done = number;
        e->time = state().milliseconds;
        return CUDA_SUCCESS;
      };
      return put(stream, "cuEventRecord", "event", happen, 0);
    });
  };
  table.cuEventSynchronize = [](CUevent event) {
    return call("cuEventSynchronize", [&](State& s) {
      auto* e = reinterpret_cast<Event*>(event);
      return work(s, *e->stream, [e] { return e->done == e->recorded; });
    });
  };
  table.cuEventElapsedTime = [](float* milliseconds, CUevent begin, CUevent end) {
    const auto time = [](CUevent event) { return reinterpret_cast<Event*>(event)->time; };
    *milliseconds = static_cast<float>(time(end) - time(begin));
    return CUDA_SUCCESS;
  };
  table.cuMemAllocAsync = allocate;
  table.cuMemFreeAsync = giveBack;
  table.cuMemAllocHost = [](void** memory, size_t bytes) {
    return call("cuMemAllocHost", [&](State& s) {
      *memory = std::malloc(bytes);
      s.pinned[reinterpret_cast<uintptr_t>(*memory)] = {bytes};
      return CUDA_SUCCESS;
    });
  };
  table.cuDeviceGetDefaultMemPool = [](CUmemoryPool*, CUdevice) { return CUDA_SUCCESS; };
  table.cuMemPoolSetAttribute = [](CUmemoryPool, CUmemPool_attribute, void* value) {
    std::memcpy(&state().kept, value, sizeof(state().kept));
    return CUDA_SUCCESS;
  };
  table.cuMemPoolTrimTo = [](CUmemoryPool, size_t) {
    return call("cuMemPoolTrimTo", [](State& s) {
      ++s.counts.trims;
      return CUDA_SUCCESS;
    });
  };
  table.cuMemGetInfo = [](size_t* free, size_t* total) {
    return call("cuMemGetInfo", [&](State& s) {
      *total = s.memory;
      *free = s.memory - s.live;
      return CUDA_SUCCESS;
    });
  };
  table.cuMemcpyHtoDAsync = upload;
  table.cuMemcpyDtoHAsync = download;
  table.cuMemcpyDtoDAsync = copy;
  table.cuMemsetD8Async = fill;
  table.cuModuleLoadData = [](CUmodule* module, const void* image) {
    return call("cuModuleLoadData", [&](State&) {
      *module = reinterpret_cast<CUmodule>(new Module{static_cast<const char*>(image)});
      return CUDA_SUCCESS;
    });
  };
  table.cuModuleUnload = [](CUmodule module) {
    delete reinterpret_cast<Module*>(module);
    return CUDA_SUCCESS;
  };
  table.cuModuleGetFunction = [](CUfunction* function, CUmodule module, const char* name) {
    const std::string& source = reinterpret_cast<Module*>(module)->source;
    *function = reinterpret_cast<CUfunction>(new Function{compiled(source, name), name});
    return CUDA_SUCCESS;
  };
  table.cuFuncSetAttribute = setAttribute;
  table.cuLaunchKernel = launch;
  table.cuGraphCreate = [](CUgraph* graph, unsigned) {
    *graph = reinterpret_cast<CUgraph>(new Graph());
    return CUDA_SUCCESS;
  };
  table.cuGraphDestroy = [](CUgraph graph) {
    delete reinterpret_cast<Graph*>(graph);
    return CUDA_SUCCESS;
  };
  table.cuGraphExecDestroy = [](CUgraphExec made) {
    delete reinterpret_cast<Graph*>(made);
    return CUDA_SUCCESS;
  };
  table.cuGraphAddKernelNode = addNode;
  table.cuGraphInstantiate = instantiate;
  table.cuGraphExecKernelNodeSetParams = changeNode;
  table.cuGraphLaunch = launchGraph;
  return table;
}

}  // namespace

FakeGpu& FakeGpu::install() {
  static FakeGpu& gpu = [] {
    runtime::cuda::installDriver(driverTable());
    installFakeNvrtc();
    installFakeCublasLt();
    installFakeCudnn();
    return std::ref(*new FakeGpu());
  }();
  return gpu;
}

namespace {
template <class Body>
auto locked(Body body) {
  const std::lock_guard<std::recursive_mutex> lock(state().mutex);
  return body(state());
}
}  // namespace

void putIntoStream(CUstream stream, const std::string& name, std::function<void()> run,
                   double milliseconds) {
  const auto happen = [run = std::move(run)] {
    run();
    return CUDA_SUCCESS;
  };
  locked([&](State&) { return put(stream, "", name, happen, milliseconds); });
}

FakeGpu::Counts FakeGpu::counts() const {
  return locked([](State& s) { return s.counts; });
}
std::vector<std::string> FakeGpu::done() const {
  return locked([](State& s) { return s.done; });
}
std::vector<std::string> FakeGpu::misuse() const {
  return locked([](State& s) { return s.misuse; });
}
void FakeGpu::reset() {
  locked([](State& s) {
    s.counts = {};
    s.done.clear();
    s.misuse.clear();
    s.failure = CUDA_SUCCESS;
    s.failing.clear();
    s.memory = kMemory;
  });
}
size_t FakeGpu::liveBlocks() const {
  return locked([](State& s) {
    size_t live = 0;
    for (const auto& [address, block] : s.blocks) live += !block.isGivenBack;
    return live;
  });
}
size_t FakeGpu::keptBytes() const { return state().kept; }
size_t FakeGpu::liveBytes() const {
  return locked([](State& s) { return s.live; });
}
void FakeGpu::setMemory(size_t bytes) {
  locked([=](State& s) { s.memory = bytes; });
}
void FakeGpu::failCall(const std::string& function, CUresult result) {
  locked([&](State& s) {
    s.failing = function;
    s.failingWith = result;
    s.failsLater = false;
  });
}
void FakeGpu::failLater(const std::string& function, CUresult result) {
  failCall(function, result);
  locked([](State& s) { s.failsLater = true; });
}

}  // namespace fl::testing
