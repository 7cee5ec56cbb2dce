#include "fl/runtime/DeviceMemory.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "fl/host/ThreadPool.h"
#include "fl/tile/StreamingCopy.h"

namespace fl::runtime {
namespace {

// Of no more than is worth a thread, and aligned, as streaming wants it: what is copied before is
// overwritten anyway.
std::vector<Bytes> piecesOf(std::span<const Bytes> all) {
  std::vector<Bytes> pieces;
  for (const Bytes& each : all)
    for (int64_t begin = each.begin / 64 * 64; begin < each.end; begin += kCopyBytes)
      pieces.push_back({begin, std::min(begin + kCopyBytes, each.end)});
  return pieces;
}

class HostMemory final : public DeviceMemory {
 public:
  MemoryBlockPtr allocate(size_t bytes, const BufferOrigin& origin) override {
    return std::make_shared<Buffer>(bytes, origin);
  }
  bool has(const MemoryBlock& block) const override { return !block.memory(); }
  void copy(void* to, const void* from, std::span<const Bytes> runs) override {
    const bool streams = tile::isStreamed(runs.back().end);
    const std::vector<Bytes> pieces = piecesOf(runs);
    host::threadPool().parallelFor(
        static_cast<int64_t>(pieces.size()), 1, [&](int64_t first, int64_t last) {
          for (int64_t i = first; i < last; ++i) {
            const auto [begin, end] = pieces[i];
            tile::copyRun(static_cast<char*>(to) + begin, static_cast<const char*>(from) + begin,
                          end - begin, streams);
          }
          tile::finishCopies(streams);
        });
  }
  void fill(void* memory, unsigned char byte, size_t bytes) override {
    std::memset(memory, byte, bytes);
  }
  void finish() override {}
  std::string name() const override { return "host memory"; }
};

}  // namespace

MemoryBlockPtr DeviceMemory::make(const void* data, size_t bytes) {
  MemoryBlockPtr block = allocate(bytes);
  if (data && bytes > 0) block->assign(data);
  return block;
}

MemoryBlockPtr DeviceMemory::allocateOnHost(size_t bytes) {
  return hostMemory().allocate(bytes, BufferOrigin{"temporaries of a plan on the host"});
}

MemoryBlockPtr DeviceMemory::bring(const MemoryBlockPtr& block) {
  const auto copy = [&] { return make(block->onHost()->data(), block->bytes()); };
  const MemoryBlockPtr kept = block->inForm(name(), copy);
  return kept ? kept : copy();
}

DeviceMemory& hostMemory() {
  static auto& memory = *new HostMemory();
  return memory;
}

}  // namespace fl::runtime
