// What a process writes when it ends, a trace and a page: once, and not by its children.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <sstream>
#include <thread>
#include <vector>

#include "fl/base/Flags.h"
#include "fl/lazy/LazyBackend.h"
#include "fl/tensor/tensor.h"

namespace fl::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

// In a process that ends by exit(), or at once with 1 if `body` returns false; what it ended with.
int statusOf(const std::function<bool()>& body) {
  const pid_t child = fork();
  if (child == 0) body() ? std::exit(0) : std::_Exit(1);
  int status = -1;
  waitpid(child, &status, 0);
  return status;
}

std::string contentOf(const std::string& path) {
  std::stringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

int countOf(const std::string& what, const std::string& text) {
  int count = 0;
  for (size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + 1)) ++count;
  return count;
}

constexpr char kPlan[] = "<script type=\"application/json\" class=\"plan\">";

// A plan of its own for every length.
void compute(Dim length) { sum(exp(full({length}, 0.5f)) * 2).scalar<float>(); }

// Plans of their own for every length; true if the results are right.
bool computesRight(const char* backend, Dim length) {
  const BackendScope scope(backend, "cpu");
  const Tensor x = full({length, 3}, 0.5f) * 4 + 1;
  const Tensor rows = exp(x - amax(x, {0}, true)) * static_cast<double>(length);
  return rows.toHostVector<float>() == std::vector<float>(3 * length, static_cast<float>(length));
}

bool multipliesRight(const char* backend, Dim length) {
  const BackendScope scope(backend, "cpu");
  const Tensor product = matmul(full({9, length}, 2.0f), full({length, 3}, 0.5f));
  return product.toHostVector<float>() == std::vector<float>(27, static_cast<float>(length));
}

// Computes when it is destroyed.
template <auto kIsRight>
struct Last {
  ~Last() {
    for (Dim i = 0; i < 20; ++i)
      if (!kIsRight(backend, length + 40 * i)) std::_Exit(1);
  }
  const char* backend;
  Dim length;
};

class AtExit : public ::testing::Test {
 protected:
  AtExit() {
    flags().cache = "off";
    flags().jit = "off";
    for (const std::string& path : {trace_, page_}) std::filesystem::remove(path);
  }
  const std::string trace_ = ::testing::TempDir() + "/exit.json";
  const std::string page_ = ::testing::TempDir() + "/exit.html";
};

TEST_F(AtExit, ChildrenWriteNothingOfTheirParents) {
  const int status = statusOf([&] {
    flags().profile = trace_;
    flags().view = page_;
    compute(101);
    const int child = statusOf([] { return compute(102), true; });
    const bool isWritten = std::filesystem::exists(trace_) || std::filesystem::exists(page_);
    compute(103);
    return child == 0 && !isWritten;
  });
  EXPECT_EQ(status, 0);
  EXPECT_EQ(countOf(kPlan, contentOf(page_)), 2);
  EXPECT_THAT(contentOf(page_), Not(HasSubstr("more plans")));
  EXPECT_EQ(countOf(" operators\"", contentOf(trace_)), 4) << "two are recorded, and planned";
}

TEST_F(AtExit, APageHasTheFirstPlansAndTheNumberOfOthers) {
  const int status = statusOf([&] {
    flags().view = page_;
    for (Dim length = 1; length <= 53; ++length) compute(100 + length);
    return true;
  });
  EXPECT_EQ(status, 0);
  const std::string page = contentOf(page_);
  EXPECT_EQ(countOf(kPlan, page), 50);
  EXPECT_EQ(countOf("\"name\":\"plan0049\"", page), 1);
  EXPECT_THAT(page, HasSubstr("<span id=\"note\">and 3 more plans: FL_VIEW shows the first 50"));
}

// The thread's own objects are gone then, or some of them.
TEST_F(AtExit, DestructorsCompute) {
  using LastOfMain = const Last<computesRight>;  // static objects of libraries may be gone, too
  for (const char* backend : {"eager", "lazy"}) {
    for (const char* jit : {"off", "async", "sync"}) {
      static const char* by;
      by = backend;
      const int status = statusOf([&] {
        flags().jit = jit;
        static LastOfMain atExit{by, 40};
        thread_local LastOfMain ofMain{by, 41};
        std::atexit([] { LastOfMain{by, 42}; });
        std::thread([] {
          thread_local const Last<computesRight> older{by, 43};
          thread_local const Last<multipliesRight> olderProduct{by, 43};
          bool isRight =
              computesRight(by, older.length) && multipliesRight(by, olderProduct.length);
          thread_local const Last<computesRight> younger{by, 44};
          if (!isRight || !computesRight(by, younger.length)) std::_Exit(1);
        }).join();
        return computesRight(by, ofMain.length) && computesRight(by, atExit.length);
      });
      EXPECT_EQ(status, 0) << backend << " " << jit;
    }
  }
}

TEST_F(AtExit, AnyThreadMayExitWhileKernelsCompile) {
  for (int i = 0; i < 8; ++i) {
    const int status = statusOf([&] {
      flags().jit = "async";
      compute(1);
      waitForCompiler(getBackend("lazy", "cpu"));  // LLVM's static objects are there
      std::thread([&] {
        for (Dim length = 1; length <= 12; ++length) {
          Tensor x = full({1000}, 0.5f);
          for (Dim j = 0; j < 3 + i + length; ++j) x = j % 2 == 0 ? sin(x) : x * 2 + 1;
          x.toHostVector<float>();
        }
        std::exit(0);
      }).join();
      return false;
    });
    EXPECT_EQ(status, 0) << i;
  }
}

}  // namespace
}  // namespace fl::testing
