// Entries on disk: found by their whole key, never wrong, never in the way.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <fstream>
#include <functional>
#include <sstream>
#include <utility>
#include <vector>

#include "fl/base/Flags.h"
#include "fl/runtime/Store.h"
#include "tests/FullDisk.h"

namespace fl::runtime {
namespace {

namespace fs = std::filesystem;

constexpr uint64_t kPlenty = uint64_t{1} << 30;

std::string contentOf(const fs::path& path) {
  std::stringstream text;
  text << std::ifstream(path, std::ios::binary).rdbuf();
  return text.str();
}

void writeTo(const fs::path& path, const std::string& text) {
  std::ofstream(path, std::ios::binary) << text;
}

class StoreTest : public ::testing::Test {
 protected:
  StoreTest() { fs::remove_all(folder_.parent_path()); }

  std::vector<fs::path> files() const {
    std::vector<fs::path> result;
    for (const auto& entry : fs::directory_iterator(folder_)) {
      if (entry.is_regular_file()) {
        result.push_back(entry.path());
      }
    }
    return result;
  }

  const fs::path folder_ = fs::path(::testing::TempDir()) / "store" / kKernels;
};

TEST_F(StoreTest, FindsWhatWasInserted) {
  const std::string value("a\0b\n", 4), large(100000, 'x');
  Store store(folder_, kPlenty);
  EXPECT_EQ(store.find("key"), std::nullopt);
  store.insert("key", value);
  store.insert("", "");
  store.insert(large, large);
  Store other(folder_, kPlenty);
  EXPECT_EQ(other.find("key"), value);
  EXPECT_EQ(other.find(""), "");
  EXPECT_EQ(other.find(large), large);
  EXPECT_EQ(other.find("ke"), std::nullopt);
  store.insert("key", "new");
  EXPECT_EQ(other.find("key"), "new");
  EXPECT_EQ(files().size(), 3u) << "no partial file is left";
}

// As if two keys had one hash.
TEST_F(StoreTest, TheWholeKeyDecides) {
  Store store(folder_, kPlenty);
  store.insert("one", "1");
  const fs::path one = files().front();
  store.insert("two", "2");
  for (const fs::path& path : files()) {
    if (path != one) {
      fs::copy_file(one, path, fs::copy_options::overwrite_existing);
    }
  }
  EXPECT_EQ(files().size(), 2u);
  EXPECT_EQ(store.find("two"), std::nullopt);
  EXPECT_EQ(files(), std::vector{one}) << "the other one goes";
  EXPECT_EQ(store.find("one"), "1");
}

TEST_F(StoreTest, ADamagedEntryIsNoneAndGoes) {
  Store store(folder_, kPlenty);
  store.insert("key", "value");
  const fs::path path = files().front();
  const std::string whole = contentOf(path);
  for (size_t i = 0; i < whole.size(); ++i) {
    std::string flipped = whole;
    flipped[i] ^= 4;
    for (const std::string& text : {flipped, whole.substr(0, i), whole + "more"}) {
      writeTo(path, text);
      EXPECT_EQ(store.find("key"), std::nullopt) << i;
      EXPECT_FALSE(fs::exists(path)) << i;
    }
  }
  store.insert("key", "value");
  EXPECT_EQ(store.find("key"), "value");
}

TEST_F(StoreTest, AFolderInAnEntrysPlaceIsNoneAndGoes) {
  Store store(folder_, kPlenty);
  store.insert("key", "value");
  const fs::path path = files().front();
  fs::remove(path);
  fs::create_directories(path / "inner");
  writeTo(path / "inner" / "file", "text");
  EXPECT_EQ(store.find("key"), std::nullopt);
  EXPECT_FALSE(fs::exists(path));
  store.insert("key", "value");
  EXPECT_EQ(store.find("key"), "value");
}

// One that a read would wait for, or never reach the end of, is not read.
TEST_F(StoreTest, WhatIsNoFileIsNoEntryAndIsReplaced) {
  Store store(folder_, kPlenty);
  store.insert("key", "value");
  const fs::path path = files().front();
  const std::pair<const char*, std::function<void()>> kinds[] = {
      {"a pipe", [&] { ASSERT_EQ(mkfifo(path.c_str(), 0600), 0); }},
      {"a link to what has no end", [&] { fs::create_symlink("/dev/zero", path); }},
      {"a link to nothing", [&] { fs::create_symlink(folder_ / "none", path); }},
      {"a link to nowhere", [&] { fs::create_symlink(folder_ / "none" / "none", path); }},
      {"a link to itself", [&] { fs::create_symlink(path, path); }},
      {"a socket", [&] { ASSERT_EQ(mknod(path.c_str(), S_IFSOCK | 0600, 0), 0); }},
  };
  alarm(60);
  for (const bool isLookedFor : {true, false}) {
    for (const auto& [name, make] : kinds) {
      fs::remove(path);
      make();
      if (isLookedFor) EXPECT_EQ(store.find("key"), std::nullopt) << name;
      store.insert("key", "value");
      EXPECT_EQ(store.find("key"), "value") << name;
      EXPECT_TRUE(fs::is_regular_file(fs::symlink_status(path))) << name;
      EXPECT_EQ(files().size(), 1u) << name;
    }
  }
  alarm(0);
}

TEST_F(StoreTest, WhatWasNotUsedForLongestGoes) {
  const std::string value(1000, 'v');
  Store store(folder_, 20000);
  const auto key = [](int i) { return "key" + std::to_string(i); };
  for (int i = 0; i < 60; ++i) {
    store.insert(key(i), value);
    EXPECT_EQ(store.find(key(0)), value) << "used after " << i;
    uint64_t bytes = 0;
    for (const fs::path& path : files()) {
      bytes += fs::file_size(path);
    }
    EXPECT_LE(bytes, 20000u);
    usleep(2000);  // times of use differ
  }
  EXPECT_EQ(store.find(key(59)), value);
  EXPECT_EQ(store.find(key(1)), std::nullopt);
  EXPECT_GE(files().size(), 10u);
}

TEST_F(StoreTest, OneLimitIsThatOfAllKinds) {
  const std::string value(1000, 'v');
  const fs::path root = folder_.parent_path();
  for (const char* folder : {kFailures, kFusions, kCalls, "theirs"}) {
    fs::create_directories(root / folder);
    for (int64_t i = 0; i < 15; ++i)
      writeTo(root / folder / std::to_string(1'000'000'000'000'000 + i), value);
  }
  fs::create_directories(root / kPlans);
  writeTo(root / kPlans / "of a trip", value);
  Store kernels(root / kKernels, 50000), plans(root / kPlans, 50000);
  for (int i = 0; i < 200; ++i) {
    (i % 2 == 0 ? kernels : plans).insert("key" + std::to_string(i), value);
    uint64_t bytes = 0;
    for (const auto& entry : fs::recursive_directory_iterator(root)) {
      bytes += entry.is_regular_file() ? entry.file_size() : 0;
    }
    EXPECT_LE(bytes, 50000u + 16 * 1000) << "with theirs, after " << i;
    usleep(1000);  // times of use differ
  }
  for (const char* kind : {kFailures, kFusions, kCalls})
    EXPECT_TRUE(fs::is_empty(root / kind)) << "oldest";
  EXPECT_EQ(std::distance(fs::directory_iterator(root / "theirs"), {}), 15);
  EXPECT_TRUE(fs::exists(root / kPlans / "of a trip"));
  EXPECT_TRUE(kernels.find("key198") && plans.find("key199"));
}

TEST_F(StoreTest, AFolderThatOthersMayWriteToIsNotUsed) {
  Store(folder_, kPlenty).insert("key", "value");
  EXPECT_EQ(fs::status(folder_).permissions(), fs::perms::owner_all);
  fs::permissions(folder_, fs::perms::all);
  Store store(folder_, kPlenty);
  EXPECT_EQ(store.find("key"), std::nullopt);
  ::testing::internal::CaptureStderr();
  store.insert("key", "value");
  store.insert("other", "value");
  EXPECT_EQ(
      ::testing::internal::GetCapturedStderr(),
      "fl: what was compiled is not kept: " + folder_.string() + ": others may write to it\n");
  EXPECT_EQ(files().size(), 1u);
}

TEST_F(StoreTest, WhatCannotBeWrittenIsToldOnce) {
  fs::create_directories(folder_.parent_path());
  writeTo(folder_, "a file in its place");
  Store store(folder_, kPlenty);
  ::testing::internal::CaptureStderr();
  store.insert("key", "value");
  store.insert("key", "value");
  EXPECT_EQ(store.find("key"), std::nullopt);
  const std::string words = ::testing::internal::GetCapturedStderr();
  EXPECT_THAT(words,
              ::testing::StartsWith("fl: what was compiled is not kept: " + folder_.string()));
  EXPECT_EQ(std::count(words.begin(), words.end(), '\n'), 1);
}

TEST_F(StoreTest, WhatADiskHasNoRoomForIsNotKept) {
  Store(folder_, kPlenty).insert("key", "value");
  const std::string large(10000, 'x');
  for (const rlim_t room : {0, 1, 1000, 10000}) {
    const auto insert = [&] {
      const testing::FullDisk disk(room);
      Store store(folder_, kPlenty);
      store.insert("key", large);
      store.insert("other", large);
      const bool isRight = store.find("key") == "value" && !store.find("other");
      _exit(isRight ? 0 : 1);
    };
    const bool isTold = room >= 1000;  // to a file, which ends as early
    EXPECT_EXIT(insert(), ::testing::ExitedWithCode(0),
                isTold ? "is not kept: .*File too large" : "")
        << room;
    EXPECT_EQ(files().size(), 1u) << "a part is left, with room for " << room;
  }
  Store store(folder_, kPlenty);
  EXPECT_EQ(store.find("key"), "value");
  store.insert("key", large);
  EXPECT_EQ(store.find("key"), large);
}

// Some are killed while they write.
TEST_F(StoreTest, ManyProcessesAtOnce) {
  const auto valueOf = [](int i) { return std::string(500 + i, static_cast<char>('a' + i)); };
  std::vector<pid_t> children;
  for (int child = 0; child < 16; ++child) {
    children.push_back(fork());
    if (children.back() == 0) {
      Store store(folder_, 12000);
      for (int round = 0; round < 40; ++round) {
        const int i = (round + child) % 20;
        const auto found = store.find("key" + std::to_string(i));
        if (found && *found != valueOf(i)) {
          _exit(1);
        }
        store.insert("key" + std::to_string(i), valueOf(i));
        if (child % 4 == 3 && round == 20) {
          kill(getpid(), SIGKILL);
        }
      }
      _exit(0);
    }
  }
  for (size_t child = 0; child < children.size(); ++child) {
    int status = 0;
    ASSERT_EQ(waitpid(children[child], &status, 0), children[child]);
    EXPECT_EQ(child % 4 == 3 ? WIFSIGNALED(status) : WIFEXITED(status) && !WEXITSTATUS(status),
              true)
        << child;
  }
  Store store(folder_, kPlenty);
  int found = 0;
  for (int i = 0; i < 20; ++i) {
    const auto value = store.find("key" + std::to_string(i));
    EXPECT_TRUE(!value || *value == valueOf(i));
    found += value.has_value();
  }
  EXPECT_GT(found, 5);
}

// Processes that hold it end in every way; one at a time has it.
TEST_F(StoreTest, ALockIsOneProcessesAndGoesWithIt) {
  fs::create_directories(folder_.parent_path());
  const fs::path counter = folder_.parent_path() / "counter";
  writeTo(counter, "0");
  std::vector<pid_t> children;
  for (int child = 0; child < 8; ++child) {
    children.push_back(fork());
    if (children.back() == 0) {
      Store store(folder_, kPlenty);
      for (int round = 0; round < 20; ++round) {
        const Store::Lock lock = store.lock("key");
        const int count = std::stoi(contentOf(counter));
        usleep(100);
        writeTo(counter, std::to_string(count + 1));
        if (child % 2 == 1 && round == 9) {
          kill(getpid(), SIGKILL);
        }
      }
      _exit(0);
    }
  }
  for (const pid_t child : children) {
    ASSERT_EQ(waitpid(child, nullptr, 0), child);
  }
  EXPECT_EQ(contentOf(counter), std::to_string(4 * 20 + 4 * 10));
}

// Each with a patience of its own would take minutes.
TEST_F(StoreTest, WhoDoesNotGiveALockBackIsWaitedForOnce) {
  Store store(folder_, kPlenty), other(folder_, kPlenty);
  const Store::Lock held = store.lock("key");
  alarm(60);
  for (int i = 0; i < 200; ++i) other.lock("key");
  alarm(0);
  other.insert("key", "value");
  EXPECT_EQ(store.find("key"), "value");
}

// As a terminal's ^Z, or a debugger, does.
TEST_F(StoreTest, AProcessThatWasStoppedBlocksNoOther) {
  const pid_t child = fork();
  if (child == 0) {
    Store store(folder_, kPlenty);
    const Store::Lock lock = store.lock("key");
    raise(SIGSTOP);
    _exit(0);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, WUNTRACED), child);
  ASSERT_TRUE(WIFSTOPPED(status));
  alarm(60);
  Store(folder_, kPlenty).lock("key");
  alarm(0);
  kill(child, SIGCONT);
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status));
}

TEST_F(StoreTest, ALockThatCannotBeHadIsNotHeld) {
  fs::create_directories(folder_.parent_path());
  writeTo(folder_, "a file in its place");
  Store store(folder_, kPlenty);
  const Store::Lock one = store.lock("key");
  const Store::Lock other = store.lock("key");  // or this would wait for ever
  EXPECT_EQ(store.find("key"), std::nullopt);
}

TEST(CacheFolder, FollowsTheEnvironment) {
  flags().cacheFolder = "";
  setenv("HOME", "/home/x", 1);
  setenv("XDG_CACHE_HOME", "/cache", 1);
  EXPECT_EQ(cacheFolder(), "/cache/fl");
  setenv("XDG_CACHE_HOME", "", 1);
  EXPECT_EQ(cacheFolder(), "/home/x/.cache/fl");
  unsetenv("HOME");
  EXPECT_EQ(cacheFolder(), "");
  flags().cacheFolder = "/own";
  EXPECT_EQ(cacheFolder(), "/own");
}

}  // namespace
}  // namespace fl::runtime
