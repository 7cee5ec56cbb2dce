#include "fl/base/ForkSafeMutex.h"

#include <pthread.h>

#include <algorithm>
#include <thread>
#include <vector>

namespace fl {
namespace {

struct All {
  std::mutex mutex;
  std::vector<ForkSafeMutex*> each;
};

All& all() {
  static auto& instance = *new All();
  return instance;
}

// All or none: who holds one may be waiting for another, or making one.
bool tryLockAll() {
  all().mutex.lock();
  const std::vector<ForkSafeMutex*>& each = all().each;
  const auto taken = std::ranges::find_if(each, [](auto* mutex) { return !mutex->try_lock(); });
  if (taken == each.end()) return true;
  std::for_each(each.begin(), taken, [](auto* mutex) { mutex->unlock(); });
  all().mutex.unlock();
  return false;
}

void beforeFork() {
  while (!tryLockAll()) std::this_thread::yield();
}

void afterFork() {
  for (ForkSafeMutex* mutex : all().each) mutex->unlock();
  all().mutex.unlock();
}

// What is registered first runs last before fork(): when this one runs, who holds a mutex of
// another kind has let go of all of these.
[[maybe_unused]] const int registered = pthread_atfork(beforeFork, afterFork, afterFork);

}  // namespace

ForkSafeMutex::ForkSafeMutex() {
  const std::lock_guard<std::mutex> lock(all().mutex);
  all().each.push_back(this);
}

ForkSafeMutex::~ForkSafeMutex() {
  const std::lock_guard<std::mutex> lock(all().mutex);
  std::erase(all().each, this);
}

}  // namespace fl
