// Runs code in a thread with a small stack, on which nothing may recurse over the depth of a graph.
#pragma once

#include <gtest/gtest.h>
#include <pthread.h>

#include <functional>

namespace fl::testing {

inline void onSmallStack(std::function<void()> body) {
#ifdef __SANITIZE_ADDRESS__
  constexpr size_t kStackBytes = 1 << 20;  // frames grow by their red zones
#else
  constexpr size_t kStackBytes = 256 << 10;
#endif
  pthread_attr_t attributes;
  ASSERT_EQ(pthread_attr_init(&attributes), 0);
  ASSERT_EQ(pthread_attr_setstacksize(&attributes, kStackBytes), 0);
  pthread_t thread;
  const auto run = [](void* function) -> void* {
    (*static_cast<std::function<void()>*>(function))();
    return nullptr;
  };
  ASSERT_EQ(pthread_create(&thread, &attributes, run, &body), 0);
  ASSERT_EQ(pthread_join(thread, nullptr), 0);
  pthread_attr_destroy(&attributes);
}

}  // namespace fl::testing
