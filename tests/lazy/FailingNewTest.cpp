// Memory of the heap that cannot be had, at every call of operator new of the read that runs a
// recorded training step: an error each time, or none, and the same bits when it is read again. And
// of the destructor of a history, which asks for none.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <new>
#include <optional>
#include <vector>

#include "fl/fl.h"
#include "tests/lazy/MallocNew.h"

namespace {

// On this thread, the call after so many fails, if that is not negative, as do all after it.
thread_local long callsLeft = -1;
thread_local bool failsOnce = false, hasFailed = false;

}  // namespace

// Out of line, as compilers mistrust a free() that they see for what new made.
[[gnu::noinline]] void* operator new(std::size_t bytes) {
  if (callsLeft == 0) {
    callsLeft = failsOnce ? -1 : 0;
    hasFailed = true;
    throw std::bad_alloc();
  }
  callsLeft -= callsLeft > 0;
  void* block = std::malloc(std::max<std::size_t>(bytes, 1));
  if (block == nullptr) throw std::bad_alloc();
  return block;
}

namespace fl::testing {
namespace {

class Trained {
 public:
  Trained() {
    setSeed(3);
    model_.add(Linear(20, 64));
    model_.add(ReLU());
    model_.add(Linear(64, 10));
    model_.add(LogSoftmax());
    optimizer_ = std::make_unique<AdamOptimizer>(model_.params(), 1e-3);
    x_ = noGrad(rand({20, 64})), y_ = noGrad(full({64}, 3, dtype::s32));
    eval(x_.tensor()), eval(y_.tensor());
    sync();
    for (int i = 0; i < 4; ++i) record().scalar<float>();
  }

  // The loss of a step that is yet to run.
  Variable record() {
    Variable loss = categoricalCrossEntropy(model_(x_), y_);
    Variable(loss).backward();
    optimizer_->step();
    optimizer_->zeroGrad();
    return loss;
  }
  std::vector<std::vector<float>> parameters() const {
    std::vector<std::vector<float>> all;
    for (const Variable& each : model_.params()) {
      all.push_back(each.tensor().toHostVector<float>());
    }
    return all;
  }

 private:
  Sequential model_;
  std::unique_ptr<AdamOptimizer> optimizer_;
  Variable x_, y_;
};

class FailingNew : public ::testing::TestWithParam<bool> {
 protected:
  FailingNew() { setNumThreads(1); }
  ~FailingNew() override { setNumThreads(threads_); }

  // False if `work` threw for want of memory, which there is for so many calls; hasFailed tells if
  // it met any.
  template <typename Work>
  bool succeeds(long calls, Work&& work) {
    bool isDone = false;
    failsOnce = GetParam();
    hasFailed = false;
    callsLeft = calls;
    try {
      work();
      isDone = true;
    } catch (const std::bad_alloc&) {
    }
    callsLeft = -1;
    return isDone;
  }

 private:
  const int threads_ = getNumThreads();
};

INSTANTIATE_TEST_SUITE_P(Calls, FailingNew, ::testing::Bool(),
                         [](const auto& test) { return test.param ? "Once" : "FromThenOn"; });

TEST_P(FailingNew, LeavesWhatIsRecordedAsItIs) {
  Trained trained, reference;
  int met = 0;
  for (long call = 0;; ++call) {
    SCOPED_TRACE(call);
    const Variable loss = trained.record(), expected = reference.record();
    float value = 0;
    const bool isThere = succeeds(call, [&] { value = loss.scalar<float>(); });
    met += hasFailed;
    if (!isThere) value = loss.scalar<float>();
    ASSERT_EQ(value, expected.scalar<float>());
    ASSERT_EQ(trained.parameters(), reference.parameters());
    if (isThere && !hasFailed) break;
  }
  EXPECT_GT(met, 10);
}

TEST_P(FailingNew, LetsGoOfAHistoryWithoutMemory) {
  constexpr int kLength = 2000;
  std::optional<Variable> last(std::in_place, full({4}, 1.0), true);
  for (int i = 0; i < kLength; ++i) *last = *last + *last * 0.0;
  EXPECT_EQ(last->scalar<float>(), 1.0f);
  // A destructor that threw would end the process.
  EXPECT_TRUE(succeeds(0, [&] { last.reset(); }));
  EXPECT_FALSE(hasFailed);
}

}  // namespace
}  // namespace fl::testing
