// Programs in a control group that leaves them less memory than the system maps: they are told, and
// go on, where they would be killed. Groups are made of either version, where this may be done.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <ostream>
#include <string>
#include <vector>

#include "fl/fl.h"
#include "tests/ErrorOf.h"

namespace fl::testing {
namespace {

namespace fs = std::filesystem;

constexpr size_t kLimit = size_t{600} << 20;

bool write(const fs::path& file, const std::string& text) {
  std::ofstream stream(file);
  stream << text << std::flush;
  return stream.good();
}

// A group with so much memory, which goes with it; no path if none can be made.
class Group {
 public:
  explicit Group(size_t bytes) {
    const fs::path groups = "/sys/fs/cgroup";
    const std::string name = "fl_test_" + std::to_string(getpid());
    for (const auto& [folder, limit] :
         {std::pair(groups / "memory", "memory.limit_in_bytes"), std::pair(groups, "memory.max")}) {
      std::error_code error;
      if (!fs::create_directory(folder / name, error)) continue;
      path = folder / name;
      if (fs::exists(path / limit) && write(path / limit, std::to_string(bytes))) return;
      rmdir(path.c_str());
      path.clear();
    }
  }
  ~Group() {
    if (!path.empty()) rmdir(path.c_str());
  }
  bool enter() const { return write(path / "cgroup.procs", std::to_string(getpid())); }

  fs::path path;
};

// The exit code, which is told with words where it is not 0.
int fail(const std::string& words) {
  std::fprintf(stderr, "%s\n", words.c_str());
  return 1;
}

int checkLargeTensor() {
  const std::string error = test::errorOf<std::bad_alloc>([] {
    const Tensor x = full({200'000'000}, 1.0);
    x.value()->data();
  });
  if (!error.starts_with("host memory: 800000000 bytes cannot be had")) {
    return fail(error);
  }
  return sum(full({1'000'000}, 2.0)).scalar<float>() == 2'000'000 ? 0 : fail("a wrong sum");
}

// Each is touched before the next one is made.
int checkManyTensors() {
  std::vector<Tensor> kept;
  const std::string error = test::errorOf<std::bad_alloc>([&] {
    while (kept.size() < 100) {
      kept.push_back(full({10'000'000}, 1.0));
      kept.back().value()->data();
    }
  });
  if (!error.starts_with("host memory: 40000000 bytes cannot be had")) {
    return fail(error);
  }
  kept.resize(1);
  const float first = sum(kept[0]).scalar<float>();
  return first == 10'000'000 ? 0 : fail("the first one's sum is " + std::to_string(first));
}

// They are made for one plan, before it touches any.
int checkResultsOfAPlan() {
  const Tensor x = full({10'000'000}, 1.0);
  x.value()->data();  // computes it
  std::vector<Tensor> pending;
  for (int i = 0; i < 20; ++i) pending.push_back(x * i);
  const std::string error = test::errorOf<std::bad_alloc>([] { sync(); });
  return error.starts_with("host memory: 40000000 bytes cannot be had") ? 0 : fail(error);
}

struct Case {
  const char* name;
  const char* backend;
  int (*check)();
};
void PrintTo(const Case& each, std::ostream* stream) { *stream << each.name; }

class ControlGroupMemory : public ::testing::TestWithParam<Case> {};

INSTANTIATE_TEST_SUITE_P(Programs, ControlGroupMemory,
                         ::testing::Values(Case{"OneLargeTensorLazily", "lazy", checkLargeTensor},
                                           Case{"OneLargeTensorEagerly", "eager", checkLargeTensor},
                                           Case{"ManyTensorsLazily", "lazy", checkManyTensors},
                                           Case{"ManyTensorsEagerly", "eager", checkManyTensors},
                                           Case{"ResultsOfAPlan", "lazy", checkResultsOfAPlan}),
                         [](const auto& test) { return std::string(test.param.name); });

// What is told where memory is short, without a group: OutOfMemoryTest.cpp.
TEST_P(ControlGroupMemory, ThatIsShortIsTold) {
  const Group group(kLimit);
  if (group.path.empty()) GTEST_SKIP() << "no control group can be made here";
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(
      {
        if (!group.enter()) std::_Exit(fail("the group cannot be entered"));
        const BackendScope scope(GetParam().backend, "cpu");
        std::_Exit(GetParam().check());
      },
      ::testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace fl::testing
