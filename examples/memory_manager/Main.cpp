// A memory manager of one's own, installed while the program runs: blocks are kept by their exact
// size, and what is kept never exceeds a quarter of what is in use at most.
#include <algorithm>
#include <iostream>
#include <map>
#include <memory>
#include <mutex>
#include <new>
#include <vector>

#include "fl/fl.h"

class ExactSizes final : public fl::MemoryManagerAdapter {
 public:
  using MemoryManagerAdapter::MemoryManagerAdapter;

  void initialize() override {}
  void shutdown() override { signalMemoryCleanup(); }
  void* alloc(bool, const unsigned ndims, fl::Dim* dims, const unsigned elSize) override {
    size_t bytes = elSize;
    std::for_each(dims, dims + ndims, [&](fl::Dim dim) { bytes *= dim; });
    const std::lock_guard lock(mutex_);
    std::vector<void*>& kept = kept_[bytes];
    void* block = kept.empty() ? deviceInterface->nativeAlloc(bytes) : kept.back();
    if (block == nullptr) throw std::bad_alloc();  // as nativeAlloc, but for that of a program
    if (!kept.empty()) {
      kept.pop_back();
      keptBytes_ -= bytes;
    }
    live_[block] = bytes;
    liveBytes_ += bytes;
    mostLive = std::max(mostLive, liveBytes_);
    ++allocations;
    return block;
  }
  void unlock(void* block, bool) override {
    const std::lock_guard lock(mutex_);
    const size_t bytes = live_.extract(block).mapped();
    liveBytes_ -= bytes;
    if (keptBytes_ + bytes > mostLive / 4) {
      return deviceInterface->nativeFree(block);
    }
    kept_[bytes].push_back(block);
    keptBytes_ += bytes;
  }
  void signalMemoryCleanup() override {
    const std::lock_guard lock(mutex_);
    for (const auto& [bytes, blocks] : kept_) {
      std::for_each(blocks.begin(), blocks.end(), deviceInterface->nativeFree);
    }
    kept_.clear();
    keptBytes_ = 0;
  }
  // Nobody calls these while tensors are computed, and nobody but tensors takes blocks.
  size_t allocated(void* block) override { return live_.contains(block) ? live_[block] : 0; }
  void printInfo(const char* msg, const int, std::ostream* stream) override {
    *stream << msg << ": " << liveBytes_ << " bytes in use, " << keptBytes_ << " kept\n";
  }
  void userLock(const void*) override {}
  void userUnlock(const void*) override {}
  bool isUserLocked(const void*) override { return false; }
  float getMemoryPressure() override { return 0; }
  bool jitTreeExceedsMemoryPressure(size_t) override { return false; }
  void addMemoryManagement(int) override {}
  void removeMemoryManagement(int) override {}

  size_t allocations = 0, mostLive = 0;

 private:
  std::mutex mutex_;
  std::map<void*, size_t> live_;
  std::map<size_t, std::vector<void*>> kept_;
  size_t liveBytes_ = 0, keptBytes_ = 0;
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
  const auto manager =
      std::make_shared<ExactSizes>(std::make_shared<fl::MemoryManagerDeviceInterface>());
  fl::MemoryManagerInstaller(manager).setAsMemoryManager();
  const float after = train();
  std::cout << "loss " << before << ", with our manager " << after << "; " << manager->allocations
            << " allocations, at most " << manager->mostLive << " bytes\n";
  return before == after ? 0 : 1;
}
