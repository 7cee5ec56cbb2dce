#include <gtest/gtest.h>
#include <sched.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <mutex>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "fl/base/Flags.h"
#include "fl/host/ControlGroups.h"
#include "fl/host/ThreadPool.h"

namespace fl::host {
namespace {

using Ranges = std::set<std::pair<int64_t, int64_t>>;

Ranges rangesOf(ThreadPool& pool, int64_t count, int64_t grain) {
  std::mutex mutex;
  Ranges ranges;
  pool.parallelFor(count, grain, [&](int64_t begin, int64_t end) {
    std::lock_guard lock(mutex);
    EXPECT_TRUE(ranges.emplace(begin, end).second) << "a range ran twice";
  });
  return ranges;
}

// How many threads this process has, or -1.
int threadsOfProcess() {
  int threads = -1;
  if (FILE* file = std::fopen("/proc/self/status", "r")) {
    char line[256];
    while (std::fgets(line, sizeof(line), file) != nullptr) {
      std::sscanf(line, "Threads: %d", &threads);
    }
    std::fclose(file);
  }
  return threads;
}

// Sanitizers map memory of their own.
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
[[noreturn]] void loopWithoutMemoryForThreads() {
  ThreadPool pool(64);
  rlimit before;
  getrlimit(RLIMIT_AS, &before);
  size_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  rlimit now = before;
  now.rlim_cur =
      pages * getpagesize() + (2 << 20);  // a stack that is kept from before may be there
  setrlimit(RLIMIT_AS, &now);
  const size_t alone = rangesOf(pool, 100, 1).size();
  const int threadsAlone = threadsOfProcess();
  setrlimit(RLIMIT_AS, &before);
  const size_t together = rangesOf(pool, 100, 1).size();
  std::fprintf(stderr, "%zu by %d, %zu by %d", alone, threadsAlone, together, threadsOfProcess());
  _exit(0);
}

TEST(ThreadPool, GoesOnWithTheThreadsThatCanBeStarted) {
  EXPECT_EXIT(loopWithoutMemoryForThreads(), testing::ExitedWithCode(0), "100 by [1-9], 100 by 64");
}
#endif

class ThreadPoolTest : public testing::TestWithParam<int> {
 protected:
  ThreadPool pool_{GetParam()};
};
INSTANTIATE_TEST_SUITE_P(Threads, ThreadPoolTest, testing::Values(1, 2, 3, 8));

TEST_P(ThreadPoolTest, RangesAreTheSameForAnyNumberOfThreads) {
  EXPECT_EQ(pool_.threads(), GetParam());
  EXPECT_EQ(rangesOf(pool_, 10, 4), (Ranges{{0, 4}, {4, 8}, {8, 10}}));
  EXPECT_EQ(rangesOf(pool_, 8, 4), (Ranges{{0, 4}, {4, 8}}));
  EXPECT_EQ(rangesOf(pool_, 3, 100), (Ranges{{0, 3}}));
  EXPECT_EQ(rangesOf(pool_, 0, 1), Ranges{});
}

// Many short loops: helpers arrive late, in the middle, or not at all.
TEST_P(ThreadPoolTest, EveryElementIsVisitedOnce) {
  for (int64_t loop = 0; loop < 3000; ++loop) {
    std::vector<int64_t> visits(2 + loop % 61);
    const int64_t count = static_cast<int64_t>(visits.size());
    pool_.parallelFor(count, 1 + loop % 3, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        visits[i] += i + loop;
      }
    });
    for (int64_t i = 0; i < count; ++i) {
      ASSERT_EQ(visits[i], i + loop) << "loop " << loop;
    }
  }
}

TEST_P(ThreadPoolTest, WorksAfterHelpersWentToSleep) {
  for (int loop = 0; loop < 3; ++loop) {
    EXPECT_EQ(rangesOf(pool_, 40, 1).size(), 40u);
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
}

TEST_P(ThreadPoolTest, FirstExceptionIsRethrownAndThePoolGoesOn) {
  for (int loop = 0; loop < 50; ++loop) {
    std::atomic<int> running{0};
    try {
      pool_.parallelFor(100, 1, [&](int64_t begin, int64_t) {
        ++running;
        if (begin >= 10) {
          --running;
          throw std::runtime_error("range " + std::to_string(begin));
        }
        --running;
      });
      ADD_FAILURE() << "nothing thrown";
    } catch (const std::runtime_error& error) {
      EXPECT_EQ(std::string(error.what()).substr(0, 6), "range ");
    }
    EXPECT_EQ(running, 0) << "a range still runs";
    EXPECT_EQ(rangesOf(pool_, 9, 2).size(), 5u);
  }
}

TEST_P(ThreadPoolTest, NestedLoopsRunInTheirCaller) {
  std::atomic<int> inner{0};
  pool_.parallelFor(20, 1, [&](int64_t, int64_t) {
    const auto caller = std::this_thread::get_id();
    pool_.parallelFor(7, 2, [&](int64_t begin, int64_t end) {
      if (pool_.threads() > 1) {
        EXPECT_EQ(std::this_thread::get_id(), caller);
      }
      inner += static_cast<int>(end - begin);
    });
  });
  EXPECT_EQ(inner, 20 * 7);
}

TEST_P(ThreadPoolTest, SeveralCallersShareThePool) {
  std::atomic<int64_t> sum{0};
  std::vector<std::thread> callers;
  for (int caller = 0; caller < 3; ++caller) {
    callers.emplace_back([&] {
      for (int loop = 0; loop < 300; ++loop) {
        pool_.parallelFor(16, 1, [&](int64_t begin, int64_t) { sum += begin; });
      }
    });
  }
  for (std::thread& caller : callers) {
    caller.join();
  }
  EXPECT_EQ(sum, 3 * 300 * 120);
}

TEST(ThreadPool, StartsNoThreadBeforeALoopWithTwoRanges) {
  // A sanitizer starts a thread of its own together with the first.
  std::thread([] {}).join();
  const int before = threadsOfProcess();
  ThreadPool pool(4);
  pool.parallelFor(1000, 1000, [](int64_t, int64_t) {});
  EXPECT_EQ(threadsOfProcess(), before);
  pool.parallelFor(1000, 500, [](int64_t, int64_t) {});
  EXPECT_EQ(threadsOfProcess(), before < 0 ? -1 : before + 3);
}

TEST(ThreadPool, HelpersTakePart) {
  ThreadPool pool(2);
  std::atomic<int> arrived{0};
  // Each range waits for the other: only two threads can end this.
  pool.parallelFor(2, 1, [&](int64_t, int64_t) {
    ++arrived;
    while (arrived < 2) {
      std::this_thread::yield();
    }
  });
  EXPECT_EQ(arrived, 2);
}

// So that each thread meets in loop after loop what its caches hold.
TEST(ThreadPool, TheCallerTakesTheFirstRangesAndHelpersTheLast) {
  ThreadPool pool(2);
  const auto caller = std::this_thread::get_id();
  for (int loop = 0; loop < 100; ++loop) {
    std::vector<int> byCaller(8, -1);
    std::atomic<int> arrived{0};
    pool.parallelFor(8, 1, [&](int64_t begin, int64_t) {
      byCaller[begin] = std::this_thread::get_id() == caller;
      // The first range of each waits for the other's, so that both take part.
      if (++arrived <= 2) {
        while (arrived < 2) std::this_thread::yield();
      }
    });
    EXPECT_EQ(byCaller.front(), 1);
    EXPECT_EQ(byCaller.back(), 0);
    EXPECT_TRUE(std::ranges::is_sorted(byCaller, std::greater<>()));
  }
}

TEST(ThreadPool, ChangesItsThreadsWhileOthersCompute) {
  ThreadPool pool(2);
  std::atomic<bool> stop{false};
  std::vector<std::thread> callers;
  for (int caller = 0; caller < 2; ++caller) {
    callers.emplace_back([&] {
      for (int64_t loop = 0; !stop || loop < 100; ++loop) {
        std::vector<int64_t> visits(40);
        pool.parallelFor(40, 1, [&](int64_t begin, int64_t) { visits[begin] += begin + loop; });
        for (int64_t i = 0; i < 40; ++i) {
          ASSERT_EQ(visits[i], i + loop);
        }
      }
    });
  }
  for (int change = 0; change < 200; ++change) {
    const int threads = 1 + change % 4;
    pool.setThreads(threads);
    ASSERT_EQ(pool.threads(), threads);
  }
  stop = true;
  for (std::thread& caller : callers) {
    caller.join();
  }
}

TEST(ThreadPool, WaitsForTheRunningLoopBeforeItChanges) {
  ThreadPool pool(2);
  std::atomic<bool> running{false}, changed{false};
  std::thread caller([&] {
    pool.parallelFor(2, 1, [&](int64_t, int64_t) {
      running = true;
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
      EXPECT_FALSE(changed);
    });
  });
  while (!running) {
    std::this_thread::yield();
  }
  pool.setThreads(3);
  changed = true;
  caller.join();
  EXPECT_EQ(pool.threads(), 3);
}

TEST(ThreadPool, ItsThreadsDoNotChangeFromInsideALoop) {
  ThreadPool pool(2);
  EXPECT_THROW(pool.parallelFor(2, 1, [&](int64_t, int64_t) { pool.setThreads(3); }),
               std::invalid_argument);
  EXPECT_EQ(pool.threads(), 2);
  EXPECT_THROW(pool.setThreads(0), std::invalid_argument);
}

TEST(ThreadPool, StartsAsManyHelpersAsItWasGivenLast) {
  std::thread([] {}).join();
  const int before = threadsOfProcess();
  // A thread that was joined may be counted for a moment more.
  const auto settlesAt = [](int wanted) {
    for (int i = 0; i < 1000 && threadsOfProcess() != wanted; ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    return threadsOfProcess() == wanted;
  };
  ThreadPool pool(4);
  for (int threads : {4, 2, 1, 3}) {
    pool.setThreads(threads);
    EXPECT_TRUE(settlesAt(before)) << threads;
    EXPECT_EQ(rangesOf(pool, 10, 3).size(), 4u);
    EXPECT_TRUE(settlesAt(before < 0 ? -1 : before + threads - 1)) << threads;
  }
}

// In a process of its own, whose pool is made behind it.
TEST(ThreadPool, ProcessPoolHasNoMoreThreadsThanItsAffinityAllows) {
  const auto threadsOn = [](int processors) {
    cpu_set_t all, some;
    sched_getaffinity(0, sizeof(all), &all);
    CPU_ZERO(&some);
    for (int cpu = 0; cpu < CPU_SETSIZE && CPU_COUNT(&some) < processors; ++cpu)
      if (CPU_ISSET(cpu, &all)) CPU_SET(cpu, &some);
    sched_setaffinity(0, sizeof(some), &some);
    flags().threads = "0";
    std::_Exit(getNumThreads());
  };
  cpu_set_t all;
  ASSERT_EQ(sched_getaffinity(0, sizeof(all), &all), 0);
  testing::GTEST_FLAG(death_test_style) = "threadsafe";
  EXPECT_EXIT(threadsOn(1), testing::ExitedWithCode(1), "");
  if (CPU_COUNT(&all) > 1) {
    const int most = static_cast<int>(std::ceil(cpuQuota("/").value_or(2)));
    EXPECT_EXIT(threadsOn(2), testing::ExitedWithCode(std::min(2, most)), "");
  }
}

TEST(ThreadPool, ProcessPoolFollowsTheFlagAndSetNumThreads) {
  flags().threads = "3";
  EXPECT_EQ(getNumThreads(), 3);
  EXPECT_EQ(&threadPool(), &threadPool());
  setNumThreads(2);
  EXPECT_EQ(getNumThreads(), 2);
  EXPECT_EQ(rangesOf(threadPool(), 10, 3).size(), 4u);
  EXPECT_THROW(setNumThreads(0), std::invalid_argument);
  EXPECT_EQ(getNumThreads(), 2);
}

}  // namespace
}  // namespace fl::host
