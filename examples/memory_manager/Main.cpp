// A memory manager of one's own, installed while the program runs: blocks are kept by their exact
// size, and what is kept never exceeds a quarter of what is in use at most.
#include <algorithm>
#include <iostream>
#include <map>
#include <memory>
#include <mutex>
#include <new>
#include <stdexcept>

#include "fl/fl.h"

class ExactSizes final : public fl::MemoryManagerAdapter {
 public:
  ExactSizes() : MemoryManagerAdapter(std::make_shared<fl::MemoryManagerDeviceInterface>()) {}
  void initialize() override {}
  void shutdown() override { signalMemoryCleanup(); }
  void* alloc(bool userLock, const unsigned ndims, fl::Dim* dims, const unsigned elSize) override {
    if (userLock) refuse();
    size_t bytes = elSize;
    std::for_each(dims, dims + ndims, [&](fl::Dim dim) { bytes *= dim; });
    const std::lock_guard lock(mutex_);
    Blocks& kept = kept_[bytes];
    // Blocks move from map to map, which takes no memory: none is lost where that is short.
    auto block = kept.extract(kept.empty() ? kept.emplace(nullptr, 0).first : kept.begin());
    keptBytes_ -= block.mapped();
    if (block.key() == nullptr) block.key() = deviceInterface->nativeAlloc(bytes);
    if (block.key() == nullptr) throw std::bad_alloc();  // as nativeAlloc, but for a program's own
    block.mapped() = bytes;
    liveBytes_ += bytes;
    mostLive = std::max(mostLive, liveBytes_);
    ++allocations;
    return live_.insert(std::move(block)).position->first;
  }
  void unlock(void* pointer, bool) override {
    const std::lock_guard lock(mutex_);
    auto block = live_.extract(pointer);
    liveBytes_ -= block.mapped();
    if (keptBytes_ + block.mapped() > mostLive / 4) return deviceInterface->nativeFree(pointer);
    keptBytes_ += block.mapped();
    kept_[block.mapped()].insert(std::move(block));
  }
  void signalMemoryCleanup() override {
    const std::lock_guard lock(mutex_);
    for (auto& [bytes, blocks] : kept_) {
      for (const auto& block : blocks) deviceInterface->nativeFree(block.first);
      blocks.clear();  // the map of this size stays for unlock()
    }
    keptBytes_ = 0;
  }
  void printInfo(const char* msg, const int, std::ostream* stream) override {
    *stream << msg << ": " << liveBytes_ << " bytes in use, " << keptBytes_ << " kept\n";
  }
  // The library calls none of these, and asks for no block that is the user's.
  size_t allocated(void* block) override { return live_.contains(block) ? live_[block] : 0; }
  void userLock(const void*) override { refuse(); }
  void userUnlock(const void*) override { refuse(); }
  bool isUserLocked(const void*) override { return false; }
  float getMemoryPressure() override { return 0; }
  bool jitTreeExceedsMemoryPressure(size_t) override { return false; }
  void addMemoryManagement(int) override {}
  void removeMemoryManagement(int) override {}

  size_t allocations = 0, mostLive = 0;

 private:
  using Blocks = std::map<void*, size_t>;  // with their bytes
  static void refuse() { throw std::logic_error("ExactSizes: its blocks are for tensors alone"); }

  std::mutex mutex_;
  Blocks live_;
  std::map<size_t, Blocks> kept_;  // by their bytes
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
    loss.backward();
    optimizer.step();
    last = loss.scalar<float>();
  }
  return last;
}

int main() {
  const float before = train();
  const auto manager = std::make_shared<ExactSizes>();
  fl::MemoryManagerInstaller(manager).setAsMemoryManager();
  const float after = train();
  std::cout << "loss " << before << ", with our manager " << after << "; " << manager->allocations
            << " allocations, at most " << manager->mostLive << " bytes\n";
  return before == after ? 0 : 1;
}
