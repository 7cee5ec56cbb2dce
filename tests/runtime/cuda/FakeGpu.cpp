#include "tests/runtime/cuda/FakeGpu.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>

#include "fl/runtime/cuda/Driver.h"
#include "tests/runtime/cuda/FakeCublasLt.h"
#include "tests/runtime/cuda/FakeCudnn.h"
#include "tests/runtime/cuda/FakeGpuState.h"
#include "tests/runtime/cuda/FakeNvrtc.h"

namespace fl::testing {
namespace {

CUresult run(State& s, const Work& work);

// Does what the stream has yet to do, until there is no need.
CUresult work(State& s, Stream& stream, const std::function<bool()>& isEnough) {
  if (isEnough() || stream.work.empty()) return s.failure;
  const Access access(s);
  while (!isEnough() && !stream.work.empty() && s.failure == CUDA_SUCCESS) {
    const Work next = std::move(stream.work.front());
    stream.work.pop_front();
    s.failure = run(s, next);
    s.done.push_back(next.name);
    s.milliseconds += next.milliseconds;
  }
  if (s.failure != CUDA_SUCCESS) stream.work.clear();
  return s.failure;
}

// ---- memory ----

CUcontext contextOf(CUstream stream) { return reinterpret_cast<Stream*>(stream)->context; }

CUresult allocate(CUdeviceptr* address, size_t bytes, CUstream stream) {
  return call("cuMemAllocAsync", [&](State& s) {
    if (s.live + bytes > s.memory) return CUDA_ERROR_OUT_OF_MEMORY;
    void* const block = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
                             /*fd=*/-1, /*offset=*/0);
    if (block == MAP_FAILED) return CUDA_ERROR_OUT_OF_MEMORY;
    std::memset(block, 0xff, bytes);
    mprotect(block, bytes, PROT_NONE);
    *address = reinterpret_cast<CUdeviceptr>(block);
    s.blocks[*address] = {bytes, contextOf(stream)};
    s.live += bytes;
    ++s.counts.allocations;
    return CUDA_SUCCESS;
  });
}

CUresult giveBack(CUdeviceptr address, CUstream stream) {
  return call("cuMemFreeAsync", [&](State& s) {
    const auto found = s.blocks.find(address);
    if (found == s.blocks.end() || found->second.isGivenBack ||
        found->second.context != contextOf(stream)) {
      s.misuse.push_back("a free of what is no block");
      return CUDA_ERROR_INVALID_VALUE;
    }
    found->second.isGivenBack = true;
    s.live -= found->second.bytes;
    return put(stream, "cuMemFreeAsync", "free", [&s, address] {
      s.freed[address] = s.blocks.at(address);
      munmap(pointer(address), s.blocks.at(address).bytes);
      s.blocks.erase(address);
      return CUDA_SUCCESS;
    });
  });
}

CUresult upload(CUdeviceptr to, const void* from, size_t bytes, CUstream stream) {
  return call("cuMemcpyHtoDAsync", [&](State& s) {
    checkPinned(from, bytes);
    return put(stream, "cuMemcpyHtoDAsync", "upload", [=, &s] {
      s.counts.bytesUp += bytes;
      checkLive("a copy to", to, bytes, contextOf(stream));
      std::memcpy(pointer(to), from, bytes);
      return CUDA_SUCCESS;
    });
  });
}

CUresult download(void* to, CUdeviceptr from, size_t bytes, CUstream stream) {
  return call("cuMemcpyDtoHAsync", [&](State& s) {
    checkPinned(to, bytes);
    return put(stream, "cuMemcpyDtoHAsync", "download", [=, &s] {
      s.counts.bytesDown += bytes;
      checkLive("a copy of", from, bytes, contextOf(stream));
      std::memcpy(to, pointer(from), bytes);
      return CUDA_SUCCESS;
    });
  });
}

CUresult copy(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream) {
  return call("cuMemcpyDtoDAsync", [&](State&) {
    return put(stream, "cuMemcpyDtoDAsync", "copy", [=] {
      checkLive("a copy of", from, bytes, contextOf(stream));
      checkLive("a copy to", to, bytes, contextOf(stream));
      std::memcpy(pointer(to), pointer(from), bytes);
      return CUDA_SUCCESS;
    });
  });
}

CUresult copyFromPeer(CUdeviceptr to, CUcontext toContext, CUdeviceptr from, CUcontext fromContext,
                      size_t bytes, CUstream stream) {
  return call("cuMemcpyPeerAsync", [&](State& s) {
    s.counts.bytesAcross += bytes;
    return put(stream, "cuMemcpyPeerAsync", "peer copy", [=] {
      checkLive("a copy of", from, bytes, fromContext);
      checkLive("a copy to", to, bytes, toContext);
      std::memcpy(pointer(to), pointer(from), bytes);
      return CUDA_SUCCESS;
    });
  });
}

CUresult fill(CUdeviceptr to, unsigned char byte, size_t bytes, CUstream stream) {
  return call("cuMemsetD8Async", [&](State&) {
    return put(stream, "cuMemsetD8Async", "fill", [=] {
      checkLive("a fill of", to, bytes, contextOf(stream));
      std::memset(pointer(to), byte, bytes);
      return CUDA_SUCCESS;
    });
  });
}

// ---- kernels ----

// Compiled without the lock, so that threads compile at the same time; equal ones once.
std::shared_ptr<HostModule> compiled(const std::string& source) {
  static std::mutex mutex;
  static auto& modules = *new std::map<std::string, std::shared_ptr<HostModule>>();
  {
    const std::lock_guard<std::mutex> lock(mutex);
    const auto found = modules.find(source);
    if (found != modules.end()) return found->second;
  }
  auto module = std::make_shared<HostModule>(source);
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

void runKernel(State& s, const Launch& launch) {
  const auto& [kernel, shape, words] = launch;
  for (const uint64_t word : words) {
    const Block* const block = find(s.blocks, word, 1);
    const bool isGone = find(s.freed, word, 1) && !block;
    if (isGone) s.misuse.push_back("a launch on memory that was freed");
    if (block && block->context != kernel->context)
      s.misuse.push_back("a launch on another GPU's memory");
  }
  if (shape.splits > 1) {
    checkLive("parts in", *(words.end() - 2), sizeof(uint64_t), kernel->context);
    checkLive("counters in", words.back(), shape.blocks * sizeof(uint32_t), kernel->context);
    ++s.counts.sharedSweeps;
  }
  const bool reversed = kernel->launches++ % 2 == 1;
  kernel->module->launch(kernel->name, shape, words, reversed);
  ++s.counts.launchesDone;
}

CUresult run(State& s, const Work& work) {
  if (!work.launch) return work.run();
  runKernel(s, *work.launch);
  return CUDA_SUCCESS;
}

Launch launchOf(CUfunction function, const std::array<unsigned, 2>& blocks,
                const std::array<unsigned, 3>& threads, unsigned sharedBytes, void** parameters) {
  auto* const kernel = reinterpret_cast<Function*>(function);
  const auto* first = static_cast<const uint64_t*>(parameters[0]);
  const auto size = [](unsigned count) { return static_cast<int>(count); };
  return {kernel,
          {blocks[0],
           {size(threads[0]), size(threads[1]), size(threads[2])},
           size(blocks[1]),
           0,
           size(sharedBytes)},
          {first, first + kernel->module->words(kernel->name)}};
}

CUresult launch(CUfunction function, unsigned blocks, unsigned splits, unsigned, unsigned x,
                unsigned y, unsigned z, unsigned sharedBytes, CUstream stream, void** parameters,
                void**) {
  return call("cuLaunchKernel", [&](State& s) {
    if (!reinterpret_cast<Stream*>(stream)->captured) ++s.counts.launches;
    const Launch made = launchOf(function, {blocks, splits}, {x, y, z}, sharedBytes, parameters);
    if (made.kernel->context != contextOf(stream))
      s.misuse.push_back("a launch of another GPU's function");
    if (!isAllowed(s, *made.kernel, sharedBytes)) return CUDA_ERROR_INVALID_VALUE;
    return put(stream, "cuLaunchKernel", Work{"launch", nullptr, made});
  });
}

CUresult setAttribute(CUfunction function, CUfunction_attribute which, int value) {
  return call("cuFuncSetAttribute", [&](State&) {
    if (which != CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES) return CUDA_SUCCESS;
    if (value > kFakeSharedBytes) return CUDA_ERROR_INVALID_VALUE;
    reinterpret_cast<Function*>(function)->mostSharedBytes = value;
    return CUDA_SUCCESS;
  });
}

// ---- graphs ----

CUresult beginCapture(CUstream stream, CUstreamCaptureMode) {
  return call("cuStreamBeginCapture", [&](State&) {
    reinterpret_cast<Stream*>(stream)->captured = std::make_unique<Graph>();
    return CUDA_SUCCESS;
  });
}

CUresult endCapture(CUstream stream, CUgraph* graph) {
  *graph = reinterpret_cast<CUgraph>(reinterpret_cast<Stream*>(stream)->captured.release());
  return call("cuStreamEndCapture", [](State&) { return CUDA_SUCCESS; });
}

// The last node alone: this is a chain.
CUresult captureInfo(CUstream stream, CUstreamCaptureStatus* status, cuuint64_t*, CUgraph*,
                     const CUgraphNode** nodes, const CUgraphEdgeData**, size_t* count) {
  return call("cuStreamGetCaptureInfo", [&](State&) {
    Graph& graph = *reinterpret_cast<Stream*>(stream)->captured;
    graph.last = reinterpret_cast<CUgraphNode>(graph.nodes.size());
    *status = CU_STREAM_CAPTURE_STATUS_ACTIVE;
    *nodes = &graph.last;
    *count = 1;
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

CUresult changeNode(CUgraphExec made, CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS* p) {
  return call("cuGraphExecKernelNodeSetParams", [&](State& s) {
    ++s.counts.changedNodes;
    auto& nodes = reinterpret_cast<Graph*>(made)->nodes;
    std::optional<Launch>& changed = nodes.at(reinterpret_cast<size_t>(node) - 1).launch;
    const Launch now =
        launchOf(p->func, {p->gridDimX, p->gridDimY}, {p->blockDimX, p->blockDimY, p->blockDimZ},
                 p->sharedMemBytes, p->kernelParams);
    if (!changed || changed->kernel != now.kernel) return CUDA_ERROR_INVALID_VALUE;
    changed = now;
    return CUDA_SUCCESS;
  });
}

CUresult launchGraph(CUgraphExec made, CUstream stream) {
  return call("cuGraphLaunch", [&](State& s) {
    ++s.counts.graphLaunches;
    return put(stream, "cuGraphLaunch", "graph", [&s, graph = *reinterpret_cast<Graph*>(made)] {
      CUresult result = CUDA_SUCCESS;
      for (size_t i = 0; i < graph.nodes.size() && result == CUDA_SUCCESS; ++i)
        result = run(s, graph.nodes[i]);
      return result;
    });
  });
}

// ---- tables ----

runtime::cuda::Driver driverTable() {
  runtime::cuda::Driver table;
  describeFakeDevice(&table);
  table.cuStreamCreate = [](CUstream* stream, unsigned) {
    *stream = reinterpret_cast<CUstream>(new Stream());
    return CUDA_SUCCESS;
  };
  table.cuStreamSynchronize = [](CUstream stream) {
    return call("cuStreamSynchronize", [&](State& s) {
      ++s.counts.waits;
      return work(s, *reinterpret_cast<Stream*>(stream), [] { return false; });
    });
  };
  table.cuStreamBeginCapture = beginCapture;
  table.cuStreamEndCapture = endCapture;
  table.cuStreamGetCaptureInfo = captureInfo;
  table.cuEventCreate = [](CUevent* event, unsigned) {
    *event = reinterpret_cast<CUevent>(new Event());
    return CUDA_SUCCESS;
  };
  table.cuEventRecord = [](CUevent event, CUstream stream) {
    return call("cuEventRecord", [&](State& s) {
      auto* e = reinterpret_cast<Event*>(event);
      if (e->context != contextOf(stream)) s.misuse.push_back("an event of another GPU");
      e->stream = reinterpret_cast<Stream*>(stream);
      const auto happen = [e, number = ++e->recorded] {
        e->done = number;
        e->time = state().milliseconds;
        return CUDA_SUCCESS;
      };
      return put(stream, "cuEventRecord", "event", happen, 0);
    });
  };
  table.cuStreamWaitEvent = [](CUstream stream, CUevent event, unsigned) {
    return call("cuStreamWaitEvent", [&](State& s) {
      auto* e = reinterpret_cast<Event*>(event);
      return put(
          stream, "cuStreamWaitEvent", "wait",
          [&s, e, number = e->recorded] {
            return work(s, *e->stream, [=] { return e->done >= number; });
          },
          0);
    });
  };
  table.cuEventSynchronize = [](CUevent event) {
    return call("cuEventSynchronize", [&](State& s) {
      ++s.counts.waits;
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
      constexpr size_t kPage = 4096;
      *memory = std::aligned_alloc(kPage, (bytes + kPage - 1) / kPage * kPage);
      s.pinned[reinterpret_cast<uintptr_t>(*memory)] = {bytes};
      return CUDA_SUCCESS;
    });
  };
  table.cuMemFreeHost = [](void* memory) {
    return call("cuMemFreeHost", [&](State& s) {
      if (s.pinned.erase(reinterpret_cast<uintptr_t>(memory)) == 0)
        s.misuse.emplace_back("free of what is no pinned memory");
      s.done.emplace_back("free on the host");
      std::free(memory);
      return CUDA_SUCCESS;
    });
  };
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
  table.cuPointerGetAttribute = [](void* kind, CUpointer_attribute, CUdeviceptr address) {
    return call("cuPointerGetAttribute", [&](State& s) {
      if (!find(s.blocks, address, 1)) return CUDA_ERROR_INVALID_VALUE;
      *static_cast<unsigned*>(kind) = CU_MEMORYTYPE_DEVICE;
      return CUDA_SUCCESS;
    });
  };
  table.cuMemcpyHtoDAsync = upload;
  table.cuMemcpyDtoHAsync = download;
  table.cuMemcpyDtoDAsync = copy;
  table.cuMemcpyPeerAsync = copyFromPeer;
  table.cuMemsetD8Async = fill;
  table.cuModuleLoadData = [](CUmodule* module, const void* image) {
    return call("cuModuleLoadData", [&](State& s) {
      s.modules.push_back({static_cast<const char*>(image)});
      *module = reinterpret_cast<CUmodule>(&s.modules.back());
      return CUDA_SUCCESS;
    });
  };
  table.cuModuleUnload = [](CUmodule module) {
    return call("cuModuleUnload", [&](State& s) {
      s.modules.remove_if(
          [&](const Module& each) { return &each == reinterpret_cast<const Module*>(module); });
      return CUDA_SUCCESS;
    });
  };
  table.cuModuleGetFunction = [](CUfunction* function, CUmodule module, const char* name) {
    const auto& [source, context] = *reinterpret_cast<Module*>(module);
    *function = reinterpret_cast<CUfunction>(new Function{compiled(source), name, context});
    return CUDA_SUCCESS;
  };
  table.cuFuncSetAttribute = setAttribute;
  table.cuLaunchKernel = launch;
  table.cuGraphDestroy = [](CUgraph graph) {
    delete reinterpret_cast<Graph*>(graph);
    return CUDA_SUCCESS;
  };
  table.cuGraphExecDestroy = [](CUgraphExec made) {
    delete reinterpret_cast<Graph*>(made);
    return CUDA_SUCCESS;
  };
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
    s.memory = kFakeMemory;
  });
}
void FakeGpu::touch(const std::function<void()>& body) {
  locked([&](State& s) {
    const Access access(s);
    body();
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
void FakeGpu::setGpus(int count) { setFakeDevices(count); }
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
