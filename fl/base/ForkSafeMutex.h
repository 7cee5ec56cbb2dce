// A mutex that no child of fork() finds locked by a thread of its parent's: fork() waits for it.
// For those that are held briefly and while no other mutex is taken.
#pragma once

#include <mutex>

namespace fl {

class ForkSafeMutex {
 public:
  ForkSafeMutex();
  ~ForkSafeMutex();
  ForkSafeMutex(const ForkSafeMutex&) = delete;
  ForkSafeMutex& operator=(const ForkSafeMutex&) = delete;

  void lock() { mutex_.lock(); }
  void unlock() { mutex_.unlock(); }

 private:
  std::mutex mutex_;
};

}  // namespace fl
