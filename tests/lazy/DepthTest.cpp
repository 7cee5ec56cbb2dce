// Graphs of any depth: nothing recurses over it, so a small stack is enough. The automatic flush is
// off (the BUILD file sets FL_FLUSH_NODES=0).
#include <gtest/gtest.h>
#include <pthread.h>

#include <functional>

#include "fl/runtime/Counters.h"
#include "fl/tensor/tensor.h"

namespace fl {
namespace {

constexpr int kOperators = 1'000'000;
#if defined(__SANITIZE_ADDRESS__)
constexpr size_t kStackBytes = 1024 * 1024;  // its redzones make every frame larger
#else
constexpr size_t kStackBytes = 256 * 1024;
#endif

void* call(void* body) {
  (*static_cast<std::function<void()>*>(body))();
  return nullptr;
}

void onSmallStack(std::function<void()> body) {
  pthread_attr_t attributes;
  ASSERT_EQ(pthread_attr_init(&attributes), 0);
  ASSERT_EQ(pthread_attr_setstacksize(&attributes, kStackBytes), 0);
  pthread_t thread;
  ASSERT_EQ(pthread_create(&thread, &attributes, call, &body), 0);
  ASSERT_EQ(pthread_join(thread, nullptr), 0);
  pthread_attr_destroy(&attributes);
}

Tensor chain() {
  Tensor x = full({4}, 0.0);
  for (int i = 0; i < kOperators; ++i) {
    x = x + 1.0;
  }
  return x;
}

TEST(Depth, AChainIsBuiltEvaluatedAndDestroyed) {
  onSmallStack([] {
    const runtime::Counters& counters = runtime::counters();
    const uint64_t compiled = counters.kernelsCompiled, plans = counters.plansBuilt;
    {
      const Tensor x = chain();
      EXPECT_EQ(x.toHostVector<float>(), std::vector<float>(4, kOperators));
    }
    EXPECT_EQ(counters.plansBuilt - plans, 1u) << "one graph, not flushed in pieces";
    // Equal pieces of the chain share a kernel; the first and the last may differ.
    EXPECT_LE(counters.kernelsCompiled - compiled, 3u);
    EXPECT_EQ(counters.fallbacks, 0u);
  });
}

TEST(Depth, AChainIsDestroyedUnevaluated) {
  onSmallStack([] {
    const uint64_t realizes = runtime::counters().realizes;
    chain();
    EXPECT_EQ(runtime::counters().realizes, realizes);
  });
}

TEST(Depth, SiblingsAreDestroyedUnevaluated) {
  onSmallStack([] {
    Tensor x = full({4}, 1.0);
    for (int i = 0; i < kOperators / 4; ++i) {
      x = concatenate(0, x(range(2, 4)), x(range(0, 2)));
    }
  });
}

}  // namespace
}  // namespace fl
