// A memory manager of one's own, installed while the program runs: blocks are kept by their exact
// size, and what is kept never exceeds a quarter of what is in use at most.
#include <algorithm>
#include <cstdlib>
#include <iostream>
#include <map>
#include <memory>
#include <mutex>
#include <new>
#include <vector>

#include "fl/fl.h"
#include "fl/runtime/MemoryManager.h"

class ExactSizes final : public fl::runtime::MemoryManager {
 public:
  ~ExactSizes() override { release(); }

  void* allocate(size_t bytes) override {
    const std::lock_guard lock(mutex_);
    void* block = take(bytes);
    if (block == nullptr) {
      throw std::bad_alloc();  // upon which the engine releases, and asks once more
    }
    stats_.allocations += 1;
    stats_.liveBytes += bytes;
    stats_.peakBytes = std::max(stats_.peakBytes, stats_.liveBytes + stats_.cachedBytes);
    mostLive_ = std::max(mostLive_, stats_.liveBytes);
    return block;
  }

  void deallocate(void* pointer, size_t bytes) override {
    const std::lock_guard lock(mutex_);
    stats_.liveBytes -= bytes;
    if (stats_.cachedBytes + bytes > mostLive_ / 4) {
      return std::free(pointer);
    }
    kept_[bytes].push_back(pointer);
    stats_.cachedBytes += bytes;
  }

  void release() override {
    const std::lock_guard lock(mutex_);
    for (auto& [bytes, blocks] : kept_) {
      std::for_each(blocks.begin(), blocks.end(), std::free);
    }
    kept_.clear();
    stats_.cachedBytes = 0;
  }

  fl::runtime::MemoryStats stats() const override {
    const std::lock_guard lock(mutex_);
    return stats_;
  }

 private:
  void* take(size_t bytes) {
    std::vector<void*>& blocks = kept_[bytes];
    if (blocks.empty()) {
      return std::aligned_alloc(64, (bytes + 63) / 64 * 64);
    }
    void* block = blocks.back();
    blocks.pop_back();
    stats_.cachedBytes -= bytes;
    return block;
  }

  mutable std::mutex mutex_;
  std::map<size_t, std::vector<void*>> kept_;
  fl::runtime::MemoryStats stats_;
  size_t mostLive_ = 0;
};

float train() {
  fl::setSeed(1);
  fl::Linear model(64, 10);
  fl::AdamOptimizer optimizer(model.params(), /*learningRate=*/1e-2);
  const auto x = fl::noGrad(fl::rand({64, 256})), y = fl::noGrad(fl::randn({10, 256}));
  float last = 0;
  for (int step = 0; step < 50; ++step, optimizer.zeroGrad()) {
    auto loss = fl::MeanSquaredError()(model(x), y);
    loss.backward(), optimizer.step();
    last = loss.scalar<float>();
  }
  return last;
}

int main() {
  const float before = train();
  const auto manager = std::make_shared<ExactSizes>();
  fl::runtime::setHostMemoryManager(manager);
  const float after = train();
  const fl::runtime::MemoryStats stats = manager->stats();
  std::cout << "loss " << before << ", with our manager " << after << "; " << stats.allocations
            << " allocations, at most " << stats.peakBytes << " bytes\n";
  return before == after ? 0 : 1;
}
