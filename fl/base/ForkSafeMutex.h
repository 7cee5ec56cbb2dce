// A mutex that no child of fork() finds locked by a thread of its parent's: fork() waits until all
// of them are free at once. For those that are held briefly, and while no mutex of another kind is
// taken.
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
  bool try_lock() { return mutex_.try_lock(); }
  void unlock() { mutex_.unlock(); }

 private:
  std::mutex mutex_;
};

}  // namespace fl
