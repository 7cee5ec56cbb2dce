// Plans that an earlier process compiled: here an earlier engine, whose plans no later one has but
// on disk.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "fl/base/Flags.h"
#include "fl/profile/Profile.h"
#include "tests/ErrorOf.h"
#include "tests/FullDisk.h"
#include "tests/lazy/Counts.h"
#include "tests/lazy/FreshEngine.h"

namespace fl::testing {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;

class KeptPlans : public ::testing::Test {
 protected:
  KeptPlans() {
    flags().jit = "sync";
    folder_ = fs::path(::testing::TempDir()) /
              ::testing::UnitTest::GetInstance()->current_test_info()->name();
    fs::remove_all(folder_);
    flags().cacheFolder = folder_;
  }
  ~KeptPlans() override {
    flags().cacheFolder = "";
    flags().cache = "on";
    flags().check = "";
    flags().dump = "";
  }

  // 2 + 3 `rounds` operators: lookups, sums, products and a slice at a number.
  static Tensor graph(const Tensor& x, int place, int rounds) {
    Tensor y = x;
    for (int i = 0; i < rounds; ++i) {
      y = tanh(y) * x + sum(y, {0}, true);
    }
    const std::vector<Tensor> parts = {y(range(place, place + 3)), matmul(y, transpose(y))};
    return concatenate(parts, 0)(Tensor::fromVector<int>({0, place}), span);
  }
  static std::vector<float> compute(int place = 1, int rounds = 8) {
    return graph(arange({8, 8}) / 40.0, place, rounds).toHostVector<float>();
  }

  size_t files(const char* kind = "plans") const {
    size_t count = 0;
    if (fs::exists(folder_ / kind)) {
      for (const auto& entry : fs::directory_iterator(folder_ / kind)) {
        count += entry.is_regular_file();
      }
    }
    return count;
  }

  fs::path folder_;
};

TEST_F(KeptPlans, AreLoadedInPlaceOfPasses) {
  std::vector<float> want, wantOther;
  {
    const FreshEngine engine;
    const Counts counts;
    want = compute();
    EXPECT_EQ(counts.plansBuilt(), 1u);
    EXPECT_EQ(counts.plansLoaded(), 0u);
    EXPECT_EQ(files(), 1u);
    wantOther = compute(2);
    EXPECT_EQ(counts.plansBuilt(), 1u);
  }
  const FreshEngine engine;
  const Counts counts;
  EXPECT_EQ(compute(2), wantOther);
  EXPECT_EQ(compute(), want);
  EXPECT_EQ(counts.plansBuilt(), 1u);
  EXPECT_EQ(counts.plansLoaded(), 1u);
  EXPECT_EQ(counts.kernelsCompiled(), 0u);
  EXPECT_EQ(counts.fallbacks(), 0u);
}

TEST_F(KeptPlans, ThatCannotBeReadAreMadeAgain) {
  std::vector<float> want;
  {
    const FreshEngine engine;
    want = compute();
  }
  for (const auto& entry : fs::directory_iterator(folder_ / "plans")) {
    const fs::path path = entry.path();
    if (!entry.is_regular_file()) continue;
    fs::remove(path);
    fs::create_directory(path);
  }
  for (const uint64_t loaded : {0, 1}) {
    const FreshEngine engine;
    const Counts counts;
    EXPECT_EQ(compute(), want);
    EXPECT_EQ(counts.plansLoaded(), loaded);
    EXPECT_EQ(counts.fallbacks(), 0u);
  }
}

// Nor are their kernels.
TEST_F(KeptPlans, AreNoneThatADiskHasNoRoomFor) {
  flags().cache = "off";
  const std::vector<float> want = compute();
  flags().cache = "on";
  for (const rlim_t room : {0, 1000}) {
    const Counts counts;
    const std::vector<float> values = [&] {
      const FullDisk disk(room);
      const FreshEngine engine;
      return compute();
    }();
    EXPECT_EQ(values, want);
    EXPECT_GT(counts.kernelsCompiled(), 0u);
    EXPECT_EQ(counts.fallbacks(), 0u);
    EXPECT_EQ(files("plans") + files("kernels"), 0u) << "a part is left, with room for " << room;
  }
}

TEST_F(KeptPlans, KnowTheLookupsOfABadIndex) {
  const auto lookUp = [] {
    Tensor y = arange({8, 8});
    for (int i = 0; i < 8; ++i) {
      y = y * 2.0 + exp(y);
    }
    const Tensor good = y(Tensor::fromVector<int>({1, 2}), span);
    const Tensor bad = (good + 1.0)(span, Tensor::fromVector<int>({1, 9}));
    return test::errorOf([&] { (sum(bad) + sum(good)).toHostVector<float>(); });
  };
  std::string errors[2];
  for (std::string& error : errors) {
    const FreshEngine engine;
    error = lookUp();
  }
  EXPECT_THAT(errors[0], HasSubstr("index: "));
  EXPECT_THAT(errors[0], HasSubstr("9 is out of range for dimension 1 of 8"));
  EXPECT_THAT(errors[0], HasSubstr("KeptPlansTest.cpp"));
  EXPECT_EQ(errors[1], errors[0]);
  EXPECT_EQ(files(), 1u);
}

TEST_F(KeptPlans, KnowTheWriteOfABadIndex) {
  const auto write = [] {
    Tensor y = arange({8, 8});
    for (int i = 0; i < 8; ++i) {
      y = y * 2.0 + exp(y);
    }
    y(Tensor::fromVector<int>({1, 9}), span) = 3.0;
    return test::errorOf([&] { sum(y).toHostVector<float>(); });
  };
  std::string errors[2];
  for (std::string& error : errors) {
    const FreshEngine engine;
    const Counts counts;
    error = write();
    EXPECT_EQ(counts.plansLoaded(), &error == &errors[1]);
  }
  EXPECT_THAT(errors[0], HasSubstr("9 is out of range for dimension 0 of 8"));
  EXPECT_THAT(errors[0], HasSubstr("KeptPlansTest.cpp"));
  EXPECT_EQ(errors[1], errors[0]);
}

// Not those of who had it compiled.
TEST_F(KeptPlans, HaveTheLinesOfWhoRunsThem) {
  const auto tableOf = [](const auto& work) {
    const FreshEngine engine;
    startProfile(::testing::TempDir() + "/trace.json");
    work(arange({8, 8}) / 40.0).template toHostVector<float>();
    ::testing::internal::CaptureStderr();
    stopProfile();
    return ::testing::internal::GetCapturedStderr();
  };
  const auto at = [](int line) { return HasSubstr("KeptPlansTest.cpp:" + std::to_string(line)); };
  const int firstLine = __LINE__ + 3;
  const std::string first = tableOf([](const Tensor& x) {
    Tensor y = x;
    for (int i = 0; i < 9; ++i) y = matmul(tanh(y) + x, x);
    return y;
  });
  const int secondLine = __LINE__ + 4;
  const std::string second = tableOf([](const Tensor& x) {
    asm volatile("");  // or the compiler folds the two functions into one
    Tensor y = x;
    for (int i = 0; i < 9; ++i) y = matmul(tanh(y) + x, x);
    return y;
  });
  EXPECT_EQ(files(), 1u);
  EXPECT_THAT(first, AllOf(at(firstLine), Not(at(secondLine))));
  EXPECT_THAT(second, AllOf(at(secondLine), Not(at(firstLine))));
  EXPECT_THAT(second, ContainsRegex("library matmul.* at .*KeptPlansTest.cpp"));
  EXPECT_THAT(second, ContainsRegex("map .*tanh\\+add [0-9a-f]+ at .*KeptPlansTest.cpp"));
}

TEST_F(KeptPlans, AreNotThoseOfFewOperators) {
  const FreshEngine engine;
  compute(1, 2);
  EXPECT_EQ(files(), 0u);
}

TEST_F(KeptPlans, AreNoneForWhoWatchesThePasses) {
  {
    const FreshEngine engine;
    compute();
  }
  for (std::string* flag : {&flags().check, &flags().dump}) {
    *flag = flag == &flags().check ? "verify" : (folder_ / "dump").string();
    const FreshEngine engine;
    const Counts counts;
    compute();
    EXPECT_EQ(counts.plansLoaded(), 0u);
    *flag = "";
  }
  EXPECT_TRUE(fs::exists(folder_ / "dump" / "plan0000"));
}

TEST_F(KeptPlans, AreNoneIfTheCacheIsOff) {
  flags().cache = "off";
  for (int i = 0; i < 2; ++i) {
    const FreshEngine engine;
    const Counts counts;
    compute();
    EXPECT_EQ(counts.plansLoaded(), 0u);
    EXPECT_FALSE(fs::exists(folder_));
  }
}

}  // namespace
}  // namespace fl::testing
