// Memory managers of a program's own, as those that were written for Flashlight.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <condition_variable>
#include <cstring>
#include <limits>
#include <map>
#include <mutex>
#include <new>
#include <sstream>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "fl/fl.h"
#include "fl/runtime/MemoryManager.h"
#include "fl/runtime/MemoryManagerInstaller.h"
#include "fl/runtime/SystemMemory.h"
#include "tests/ErrorOf.h"

namespace fl::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::NiceMock;
using ::testing::StrEq;

// Keeps all it ever took until it is told to clean up, and gives none of it out again.
class PlainManager : public MemoryManagerAdapter {
 public:
  using MemoryManagerAdapter::MemoryManagerAdapter;
  ~PlainManager() override { PlainManager::signalMemoryCleanup(); }

  void initialize() override {}
  void shutdown() override {}
  void* alloc(bool userLock, const unsigned ndims, Dim* dims, const unsigned elSize) override {
    std::lock_guard lock(mutex_);
    size_t bytes = elSize;
    for (unsigned i = 0; i < ndims; ++i) {
      bytes *= static_cast<size_t>(dims[i]);
    }
    if (failures > 0) {
      --failures;
      throw std::bad_alloc();
    }
    void* block = deviceInterface->nativeAlloc(bytes);
    blocks_[block] = {bytes, true};
    ++allocations;
    return block;
  }
  size_t allocated(void* ptr) override { return blocks_.at(ptr).bytes; }
  void unlock(void* ptr, bool) override {
    std::lock_guard lock(mutex_);
    Block& block = blocks_.at(ptr);
    EXPECT_TRUE(block.isLocked) << "unlocked twice";
    block.isLocked = false;
    ++unlocks;
  }
  void signalMemoryCleanup() override {
    std::lock_guard lock(mutex_);
    for (auto block = blocks_.begin(); block != blocks_.end();) {
      if (block->second.isLocked) {
        ++block;
      } else {
        deviceInterface->nativeFree(block->first);
        block = blocks_.erase(block);
      }
    }
  }
  void printInfo(const char* msg, const int device, std::ostream* ostream) override {
    *ostream << msg << " of " << device << ": " << blocks_.size() << " blocks";
  }
  void userLock(const void*) override {}
  void userUnlock(const void*) override {}
  bool isUserLocked(const void*) override { return false; }
  float getMemoryPressure() override { return 0; }
  bool jitTreeExceedsMemoryPressure(size_t) override { return false; }
  void addMemoryManagement(int) override { throw std::logic_error("one device"); }
  void removeMemoryManagement(int) override { throw std::logic_error("one device"); }

  size_t held() const { return blocks_.size(); }

  int allocations = 0, unlocks = 0;
  int failures = 0;  // so many allocations fail

 private:
  struct Block {
    size_t bytes;
    bool isLocked;
  };
  std::mutex mutex_;
  std::map<void*, Block> blocks_;
};

class MockManager : public PlainManager {
 public:
  using PlainManager::PlainManager;
  MOCK_METHOD(void, initialize, (), (override));
  MOCK_METHOD(void, shutdown, (), (override));
  MOCK_METHOD(void, signalMemoryCleanup, (), (override));
  MOCK_METHOD(void, printInfo, (const char*, const int, std::ostream*), (override));
};

class Installer : public ::testing::Test {
 protected:
  ~Installer() override { MemoryManagerInstaller::unsetMemoryManager(); }

  template <typename Manager>
  std::shared_ptr<Manager> install() {
    auto manager = std::make_shared<Manager>(functions_);
    MemoryManagerInstaller(manager).setAsMemoryManager();
    return manager;
  }

  const std::shared_ptr<MemoryManagerDeviceInterface> functions_ =
      std::make_shared<MemoryManagerDeviceInterface>();
};

Tensor ones(Dim count) { return Tensor::fromVector(std::vector<float>(count, 1.0F)); }

// Before any other test installs one.
TEST(AtFirst, TheProgramHasOneThatCaches) {
  EXPECT_NE(dynamic_cast<CachingMemoryManager*>(
                MemoryManagerInstaller::currentlyInstalledMemoryManager()),
            nullptr);
}

// Shuts down until it is initialized again, or for a while.
class SlowManager : public PlainManager {
 public:
  using PlainManager::PlainManager;
  void initialize() override {
    std::lock_guard lock(mutex_);
    ++initialized;
    change_.notify_all();
  }
  void shutdown() override {
    std::unique_lock lock(mutex_);
    isShuttingDown_ = true;
    change_.notify_all();
    overlapped |=
        change_.wait_for(lock, std::chrono::milliseconds(200), [&] { return initialized > 1; });
  }
  void waitForShutdown() {
    std::unique_lock lock(mutex_);
    change_.wait(lock, [&] { return isShuttingDown_; });
  }

  int initialized = 0;
  bool overlapped = false;

 private:
  std::mutex mutex_;
  std::condition_variable change_;
  bool isShuttingDown_ = false;
};

TEST_F(Installer, InstallsAgainOnlyWhatIsShutDown) {
  const auto manager = install<SlowManager>();
  auto last = std::make_unique<Tensor>(ones(100));
  MemoryManagerInstaller::unsetMemoryManager();
  std::thread other([&] { last.reset(); });
  manager->waitForShutdown();
  MemoryManagerInstaller(manager).setAsMemoryManager();
  other.join();
  EXPECT_EQ(manager->initialized, 2);
  EXPECT_FALSE(manager->overlapped);
  EXPECT_EQ(ones(3).toHostVector<float>(), std::vector<float>(3, 1.0F)) << "it serves";
}

TEST_F(Installer, SetsTheFunctionsOfTheDevice) {
  const auto manager = std::make_shared<PlainManager>(functions_);
  EXPECT_FALSE(functions_->nativeAlloc);
  functions_->getActiveDeviceId = [] { return 7; };
  const MemoryManagerInstaller installer(manager);
  EXPECT_EQ(functions_->getActiveDeviceId(), 7) << "that of the program";
  EXPECT_EQ(functions_->getMaxMemorySize(0), runtime::systemMemory());
  EXPECT_EQ(functions_->getMemoryPressureThreshold(), 1.0F);
  functions_->setMemoryPressureThreshold(0.25F);
  EXPECT_EQ(functions_->getMemoryPressureThreshold(), 0.25F);
  for (const size_t bytes : {1ul, 64ul, 1ul << 16, 1ul << 20, (3ul << 20) + 1, 9ul << 20}) {
    void* block = functions_->nativeAlloc(bytes);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(block) % 64, 0u);
    std::memset(block, 1, bytes);
    functions_->nativeFree(block);
  }
  functions_->nativeFree(nullptr);
  EXPECT_THROW(functions_->nativeAlloc(size_t{1} << 60), std::bad_alloc);
  EXPECT_EQ(installer.getMemoryManager<PlainManager>(), manager);
  EXPECT_EQ(installer.getMemoryManager<MemoryManagerAdapter>(), manager);
  EXPECT_EQ(installer.getMemoryManager<CachingMemoryManager>(), nullptr);
  EXPECT_NE(MemoryManagerInstaller::currentlyInstalledMemoryManager(), manager.get());
  EXPECT_THAT(test::errorOf([] { MemoryManagerInstaller{nullptr}; }),
              HasSubstr("MemoryManagerInstaller: the manager must not be null"));
}

TEST_F(Installer, InstallsAndUnsets) {
  const auto plain = install<PlainManager>();
  EXPECT_EQ(MemoryManagerInstaller::currentlyInstalledMemoryManager(), plain.get());
  MemoryManagerInstaller(plain).setAsMemoryManagerPinned();
  ones(10);
  EXPECT_EQ(plain->allocations, 1);
  MemoryManagerInstaller::unsetMemoryManager();
  EXPECT_EQ(MemoryManagerInstaller::currentlyInstalledMemoryManager(), nullptr);
  MemoryManagerInstaller::unsetMemoryManager();
  ones(10);
  EXPECT_EQ(plain->allocations, 1);
  MemoryManagerInstaller::installDefaultMemoryManager();
  auto* caching = dynamic_cast<CachingMemoryManager*>(
      MemoryManagerInstaller::currentlyInstalledMemoryManager());
  ASSERT_NE(caching, nullptr);
  const Tensor x = ones(10);
  EXPECT_EQ(caching->getMemoryStats().liveBytes, 64u);
}

TEST_F(Installer, LiveBlocksKeepTheirManager) {
  auto mock = install<NiceMock<MockManager>>();
  EXPECT_CALL(*mock, initialize()).Times(0);
  EXPECT_CALL(*mock, shutdown()).Times(0);
  auto x = std::make_unique<Tensor>(ones(100));
  MemoryManagerInstaller::unsetMemoryManager();
  const Tensor y = ones(100);
  EXPECT_EQ(mock->allocations, 1);
  MemoryManagerInstaller(mock).setAsMemoryManager();  // x has kept it alive
  MemoryManagerInstaller::unsetMemoryManager();
  EXPECT_EQ(x->toHostVector<float>(), std::vector<float>(100, 1.0F));
  ::testing::Mock::VerifyAndClearExpectations(mock.get());

  EXPECT_CALL(*mock, shutdown()).Times(1);
  x.reset();
  EXPECT_EQ(mock->unlocks, 1);
  ::testing::Mock::VerifyAndClearExpectations(mock.get());

  EXPECT_CALL(*mock, initialize()).Times(1);
  EXPECT_CALL(*mock, shutdown()).Times(1);
  MemoryManagerInstaller(mock).setAsMemoryManager();
  MemoryManagerInstaller::unsetMemoryManager();
}

TEST_F(Installer, OutOfMemoryCleansUpAndAsksOnceMore) {
  const auto mock = install<NiceMock<MockManager>>();
  EXPECT_CALL(*mock, signalMemoryCleanup()).Times(1);
  mock->failures = 1;
  const Tensor x = ones(1000);
  ::testing::Mock::VerifyAndClearExpectations(mock.get());
  EXPECT_CALL(*mock, signalMemoryCleanup()).Times(1);
  mock->failures = 2;
  const std::string error = test::errorOf<std::bad_alloc>([] { ones(500); });
  EXPECT_THAT(error, HasSubstr("host memory: 2000 bytes cannot be had"));
  EXPECT_THAT(error, HasSubstr("\n  4000 bytes of "));
  ::testing::Mock::VerifyAndClearExpectations(mock.get());  // it is called again once replaced
}

class ThrowingManager : public PlainManager {
 public:
  using PlainManager::PlainManager;
  void* alloc(bool userLock, const unsigned ndims, Dim* dims, const unsigned elSize) override {
    if (isOver) throw std::range_error("the quota is used up");
    return PlainManager::alloc(userLock, ndims, dims, elSize);
  }
  bool isOver = false;
};

TEST_F(Installer, WhatElseAManagerThrowsPassesAsItIs) {
  for (const char* backend : {"lazy", "eager"}) {
    const BackendScope scope(backend);
    const auto manager = install<ThrowingManager>();
    const Tensor x = ones(100);
    const size_t held = manager->held();
    manager->isOver = true;
    EXPECT_EQ(test::errorOf<std::range_error>([&] { (x + 1).toHostVector<float>(); }),
              "the quota is used up");
    EXPECT_EQ(manager->held(), held);
    manager->isOver = false;
    EXPECT_EQ((x + 1).toHostVector<float>(), std::vector<float>(100, 2.0F)) << backend;
    MemoryManagerInstaller::unsetMemoryManager();
  }
}

class UnalignedManager : public PlainManager {
 public:
  using PlainManager::PlainManager;
  ~UnalignedManager() override { UnalignedManager::signalMemoryCleanup(); }
  void* alloc(bool userLock, const unsigned ndims, Dim* dims, const unsigned elSize) override {
    dims[0] += 16;
    return static_cast<char*>(PlainManager::alloc(userLock, ndims, dims, elSize)) + 16;
  }
  void unlock(void* ptr, bool userLock) override {
    PlainManager::unlock(static_cast<char*>(ptr) - 16, userLock);
  }
};

TEST_F(Installer, RefusesBlocksThatAreNotAligned) {
  const auto manager = install<UnalignedManager>();
  const std::string error = test::errorOf<std::runtime_error>([] { ones(100); });
  EXPECT_THAT(error, ::testing::MatchesRegex(
                         "MemoryManagerAdapter::alloc: the manager gave a block at 0x[0-9a-f]+, "
                         "which is not aligned to 64 bytes, at "
                         "tests/runtime/MemoryManagerInstallerTest.cpp:[0-9]+"));
  EXPECT_EQ(manager->unlocks, manager->allocations) << "it has the block again";
}

TEST_F(Installer, PrintsAndLogsThroughTheFrontend) {
  const auto mock = install<NiceMock<MockManager>>();
  std::ostringstream text;
  EXPECT_CALL(*mock, printInfo(StrEq("now"), 0, &text)).Times(1);
  detail::getMemMgrInfo("now", 0, &text);
  detail::setMemMgrLogStream(&text);
  EXPECT_EQ(mock->getLogStream(), &text);
  detail::setMemMgrFlushInterval(1);
  detail::setMemMgrLoggingEnabled(true);
  mock->log("note", 1, 2u, -3);
  EXPECT_EQ(text.str(), "note 1 2 -3 \n");
  detail::setMemMgrLoggingEnabled(false);
  mock->log("silent");
  EXPECT_EQ(text.str(), "note 1 2 -3 \n");
  detail::setMemMgrLogStream(nullptr);
}

TEST_F(Installer, LogsWhatTheEngineAsksFor) {
  std::ostringstream text;
  {
    const auto manager = std::make_shared<PlainManager>(functions_, &text);
    EXPECT_EQ(manager->getLogStream(), &text);
    MemoryManagerInstaller(manager).setAsMemoryManager();
    manager->setLogFlushInterval(2);
    EXPECT_EQ(text.str(), "");
    ones(1000);
    EXPECT_THAT(text.str(),
                ::testing::MatchesRegex("initialize \nnativeAlloc 4000 [0-9]+ \n"
                                        "alloc 4000 0 [0-9]+ \nunlock [0-9]+ 0 4000 \n"));
    text.str("");
    MemoryManagerInstaller::unsetMemoryManager();  // what it keeps goes
    EXPECT_THAT(text.str(), ::testing::MatchesRegex("signalMemoryCleanup \nnativeFree [0-9]+ \n"));
    text.str("");
    EXPECT_THAT(test::errorOf([&] { manager->setLogFlushInterval(0); }),
                HasSubstr("setLogFlushInterval: the interval must not be 0"));
  }
  EXPECT_EQ(text.str(), "shutdown \n") << "what was left when the manager died";
}

TEST_F(Installer, LogsToStandardErrorWithoutAStream) {
  const auto manager = install<PlainManager>();
  EXPECT_EQ(manager->getLogStream(), nullptr);
  ::testing::internal::CaptureStderr();
  manager->setLoggingEnabled(true);
  manager->log("here", 1);
  manager->setLoggingEnabled(false);
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), "here 1 \n");
}

TEST(MemoryManagerAdapter, HasDefaults) {
  PlainManager manager(std::make_shared<MemoryManagerDeviceInterface>());
  EXPECT_EQ(manager.getMemStepSize(), std::numeric_limits<size_t>::max());
  manager.setMemStepSize(1024);
  EXPECT_EQ(manager.getMemStepSize(), std::numeric_limits<size_t>::max());
  EXPECT_EQ(manager.getMemoryStats().allocations, 0u);
}

float train() {
  setSeed(1);
  Linear model(20, 10);
  AdamOptimizer optimizer(model.params(), /*learningRate=*/1e-2);
  const Variable x = noGrad(rand({20, 32})), y = noGrad(randn({10, 32}));
  float last = 0;
  for (int step = 0; step < 20; ++step, optimizer.zeroGrad()) {
    auto loss = MeanSquaredError()(model(x), y);
    loss.backward(), optimizer.step();
    last = loss.scalar<float>();
  }
  return last;
}

TEST_F(Installer, TrainingTakesAllMemoryFromIt) {
  for (const char* backend : {"lazy", "eager"}) {
    const BackendScope scope(backend);
    const float expected = train();
    const auto manager = install<PlainManager>();
    EXPECT_EQ(train(), expected);
    EXPECT_GE(manager->allocations, 20) << backend;
    EXPECT_EQ(manager->held(), static_cast<size_t>(manager->allocations));
    const int left = manager->allocations - manager->unlocks;  // known plans keep numbers
    EXPECT_EQ(train(), expected);
    EXPECT_EQ(manager->allocations - manager->unlocks, left) << backend;
    MemoryManagerInstaller::unsetMemoryManager();
  }
}

// What a step takes from the system once it has run: nothing.
TEST_F(Installer, TrainingTakesNothingFromTheSystemAfterItsFirstSteps) {
  for (const char* backend : {"lazy", "eager"}) {
    const BackendScope scope(backend);
    const auto functions = std::make_shared<MemoryManagerDeviceInterface>();
    const MemoryManagerInstaller installer(std::make_shared<CachingMemoryManager>(1, functions));
    int taken = 0;
    functions->nativeAlloc = [&taken, native = functions->nativeAlloc](size_t bytes) {
      ++taken;
      return native(bytes);
    };
    MemoryManagerInstaller(installer).setAsMemoryManager();
    Sequential model;
    for (int layer = 0; layer < 4; ++layer) {
      model.add(Linear(256, 256));
      model.add(Tanh());
    }
    SGDOptimizer optimizer(model.params(), /*learningRate=*/0.1);
    const Variable x = noGrad(rand({256, 8192}));
    const auto step = [&] {
      auto loss = MeanSquaredError()(model(x), x);
      loss.backward();
      optimizer.step();
      optimizer.zeroGrad();
      loss.scalar<float>();
    };
    for (int i = 0; i < 4; ++i) {
      step();
    }
    EXPECT_GT(taken, 3) << backend;
    taken = 0;
    for (int i = 0; i < 6; ++i) {
      step();
    }
    EXPECT_EQ(taken, 0) << backend;
    MemoryManagerInstaller::unsetMemoryManager();
  }
}

// ---- DefaultMemoryManager ----

class DefaultManager : public ::testing::Test {
 protected:
  DefaultManager() { MemoryManagerInstaller{manager_}; }
  void* take(size_t bytes, bool userLock = false) {
    Dim dims = static_cast<Dim>(bytes);
    return manager_->alloc(userLock, 1, &dims, 1);
  }
  const std::shared_ptr<MemoryManagerDeviceInterface> functions_ =
      std::make_shared<MemoryManagerDeviceInterface>();
  const std::shared_ptr<DefaultMemoryManager> manager_ =
      std::make_shared<DefaultMemoryManager>(1, /*maxBuffers=*/2, /*debug=*/false, functions_);
};

TEST_F(DefaultManager, TakesAndGivesBackBlocksOfTheSystem) {
  void* block = take(100);
  EXPECT_EQ(manager_->allocated(block), 100u);
  EXPECT_EQ(manager_->allocated(nullptr), 0u);
  EXPECT_EQ(manager_->getMemoryStats().liveBytes, 100u);
  manager_->signalMemoryCleanup();
  std::ostringstream text;
  manager_->initialize();
  manager_->printInfo("so far", 0, &text);
  EXPECT_EQ(text.str(),
            "so far\ndevice 0: 100 B in use, 0 B kept for reuse, 100 B at most, 1 allocations of " +
                std::to_string(runtime::systemMemory()) + " B\n");
  manager_->unlock(block, false);
  manager_->unlock(nullptr, false);
  EXPECT_EQ(take(0), nullptr);
  EXPECT_THROW(take(size_t{1} << 60), std::bad_alloc);
  EXPECT_EQ(manager_->getMemoryStats().liveBytes, 0u);
  manager_->shutdown();
}

TEST_F(DefaultManager, LocksOfManagerAndUser) {
  void* block = take(100, /*userLock=*/true);
  EXPECT_TRUE(manager_->isUserLocked(block));
  manager_->unlock(block, /*userLock=*/false);
  EXPECT_EQ(manager_->allocated(block), 100u) << "the user's lock is left";
  manager_->userUnlock(block);
  EXPECT_FALSE(manager_->isUserLocked(block));
  EXPECT_THAT(test::errorOf([&] { manager_->userUnlock(block); }),
              ::testing::ContainsRegex("DefaultMemoryManager::unlock: 0x[0-9a-f]+ is no live bl"));
  EXPECT_THAT(test::errorOf([&] { manager_->userLock(block); }),
              HasSubstr("DefaultMemoryManager::userLock: 0x"));
}

TEST_F(DefaultManager, HasLimits) {
  functions_->getMaxMemorySize = [](int) { return size_t{1000}; };
  EXPECT_FALSE(manager_->checkMemoryLimit());
  manager_->setMaxMemorySize();
  EXPECT_EQ(manager_->getMaxBytes(), 1000u);
  EXPECT_EQ(manager_->getMaxBuffers(), 2u);
  void* block = take(900);
  EXPECT_FALSE(manager_->jitTreeExceedsMemoryPressure(100));
  EXPECT_TRUE(manager_->jitTreeExceedsMemoryPressure(101));
  EXPECT_EQ(manager_->getMemoryPressure(), 0.0F);
  void* second = take(10);
  EXPECT_TRUE(manager_->checkMemoryLimit()) << "two blocks";
  EXPECT_EQ(manager_->getMemoryPressure(), 1.0F);
  manager_->unlock(second, false);
  second = take(100);
  manager_->unlock(block, false);
  EXPECT_FALSE(manager_->checkMemoryLimit());
  block = take(1000);
  manager_->unlock(second, false);
  EXPECT_TRUE(manager_->checkMemoryLimit()) << "1000 bytes";
  manager_->unlock(block, false);
  manager_->addMemoryManagement(1);
  manager_->removeMemoryManagement(1);
}

TEST(DefaultMemoryManager, NeedsTheFunctionsOfItsDevice) {
  DefaultMemoryManager manager(1, 1, false, std::make_shared<MemoryManagerDeviceInterface>());
  Dim dims = 1;
  EXPECT_THAT(test::errorOf<std::runtime_error>([&] { manager.alloc(false, 1, &dims, 1); }),
              HasSubstr("functions of its device are not set; a MemoryManagerInstaller sets them"));
}

}  // namespace
}  // namespace fl::testing
