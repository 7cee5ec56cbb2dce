// What is kept on disk between runs, by text keys: one file an entry, in a folder that processes
// share. The hash of a key names its file; the file holds the whole key, which is compared, and a
// checksum of all.
//
// An entry that is damaged, of another format or of another key is none, and goes. Nothing here
// throws: what cannot be written is warned about once, and nothing more is written. Files appear
// complete or not at all, so that processes may be killed at any time. The folder, which code is
// run from, is made for its owner alone; one that others may write to is not used.
//
// All may be called from any thread. find() takes about 40 us, 8 where there is nothing, insert()
// 150.
#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>

#include "fl/base/ForkSafeMutex.h"

namespace fl::runtime {

// FL_CACHE_DIR, or fl in $XDG_CACHE_HOME or ~/.cache; empty if there is none of them.
std::filesystem::path cacheFolder();

// FL_CACHE_BYTES: that of all kinds together.
uint64_t cacheLimit();
// What is in it, a folder a kind.
constexpr const char *kKernels = "kernels", *kPlans = "plans", *kFusions = "fusions",
                     *kCalls = "calls", *kFailures = "failures";
inline constexpr const char* kKinds[] = {kKernels, kPlans, kFusions, kCalls, kFailures};
// Where there are more bytes of all kinds than `limit`, removes what has not been used for longest,
// down to three quarters. Returns how many there may be more.
uint64_t makeRoom(const std::filesystem::path& root, uint64_t limit);

class Store;
// That of one kind of entries, in cacheFolder(). Null if FL_CACHE is off, or if FL_FAULT makes code
// wrong.
std::unique_ptr<Store> openStore(const std::string& kind);

class Store {
 public:
  // `folder` is named by its kind; `limit` is that of what is beside it, too, as makeRoom() has it.
  Store(std::filesystem::path folder, uint64_t limit);

  std::optional<std::string> find(const std::string& key);
  void insert(const std::string& key, const std::string& value);

  // Held by who makes an entry, so that of many processes that want it one makes it. It goes with
  // its process, however that ends. One that cannot be had is not held.
  class Lock {
   public:
    explicit Lock(int file = -1) : file_(file) {}
    ~Lock();
    Lock(const Lock&) = delete;
    Lock& operator=(const Lock&) = delete;

   private:
    int file_;
  };
  // Waits for it, but not for ever: after two seconds, as of one that was stopped, it is not held,
  // and from then on no other is waited for. Whoever had it may have made the entry since the last
  // find(). Some keys share one: a thread must not hold two.
  Lock lock(const std::string& key);

 private:
  std::filesystem::path pathOf(const std::string& key) const;

  const std::filesystem::path folder_;
  const uint64_t limit_;
  std::atomic<bool> failed_ = false;
  std::atomic<bool> waits_ = true;  // for locks
  ForkSafeMutex mutex_;
  uint64_t unseen_ = 0;  // so many bytes may be inserted before all are counted again; guarded
};

}  // namespace fl::runtime
