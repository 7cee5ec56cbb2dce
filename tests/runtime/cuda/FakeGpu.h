// A GPU, or two that are alike, for tests on machines without one.
//
// Its driver's memory is the host's, protected from all but what is in its streams; these do what
// is put into them when they are waited for and not before, in order; kernels are compiled by the
// host's compiler and run by fibers (tests/codegen/cuda/HostModule.h), blocks, warps and threads in
// order at the first launch of each, in reverse at the second, and so on by turns. Its NVRTC hands
// the source on in place of a cubin. It notes what a real driver would not forgive, and may be told
// to fail. By its events, everything that is done takes a millisecond, but for what libraries put
// in with a time. All may be called from any thread.
#pragma once

#include <cuda.h>

#include <functional>
#include <string>
#include <vector>

namespace fl::testing {

class FakeGpu {
 public:
  // Installs it for this process, before anything asks for a driver; the same one each time.
  static FakeGpu& install();

  // What happened since the last reset().
  struct Counts {
    size_t launches = 0;      // asked for
    size_t launchesDone = 0;  // run
    size_t sharedSweeps = 0;  // of those run, whose blocks share a sweep
    size_t graphs = 0, graphLaunches = 0, changedNodes = 0;
    size_t waits = 0;            // for streams or events
    size_t mostSharedBytes = 0;  // of a launch
    size_t bytesUp = 0, bytesDown = 0;  // copied, by graphs, too
    size_t bytesAcross = 0;
    size_t allocations = 0;  // of the system of the GPU, not of a manager's cache
    size_t trims = 0;        // of its pool
  };
  Counts counts() const;
  // The name of everything that was done, in order: "launch", "upload", "free", ...
  std::vector<std::string> done() const;
  // What programs must not do: "a copy to memory that was freed", ...
  std::vector<std::string> misuse() const;
  // Forgets all that, and errors.
  void reset();

  // What a kernel would do with the GPU's memory, when the stream has done all.
  void touch(const std::function<void()>& body);

  // Blocks that were not given back.
  size_t liveBlocks() const;
  size_t liveBytes() const;
  void setMemory(size_t bytes);
  // What the pool keeps of free memory when the stream is waited for.
  size_t keptBytes() const;

  // One until then, before any other call. Of two, the second reaches the first one's memory.
  void setGpus(int count);

  // Until reset(), the driver's function fails; or what its next call puts into the stream does
  // when it is done, as does everything from then on.
  void failCall(const std::string& function, CUresult result);
  void failLater(const std::string& function, CUresult result);
};

// For libraries that come with it: `run` is done when the stream gets to it.
void putIntoStream(CUstream stream, const std::string& name, std::function<void()> run,
                   double milliseconds = 1);

}  // namespace fl::testing
