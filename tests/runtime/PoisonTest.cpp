// FL_POISON=1 in the midst of a plan: a temporary holds its value up to the last step that may
// use it, and no longer.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "fl/base/Flags.h"
#include "fl/kernel/Schedule.h"
#include "fl/runtime/Device.h"
#include "fl/runtime/MemoryManager.h"

namespace fl::runtime {
namespace {

// -(2 x) twice, each by a temporary of its own. The steps run two at a time, as each two are
// launches of one kernel that need nothing of one another.
constexpr const char* kSchedule = R"(schedule @s arena=128 bound=128 {
  parameter f32[4]
  output f32[4]
  output f32[4]
  temporary bytes=64 first=0 last=2 offset=0
  temporary bytes=64 first=1 last=3 offset=64
kernel @double rank=1 reduced=[] {
  operand input f32 [1]
  operand output f32 [1]
  %0 = load 0 : f32
  %1 = add %0, %0 : f32
  stage { store 1 %1 }
}
kernel @negative rank=1 reduced=[] {
  operand input f32 [1]
  operand output f32 [1]
  %0 = load 0 : f32
  %1 = negative %0 : f32
  stage { store 1 %1 }
}
  launch 0 extents=[4] operands(p0+0[1], t0+0[1]) numbers=[]
  launch 0 extents=[4] operands(p0+0[1], t1+0[1]) numbers=[]
  launch 1 extents=[4] operands(t0+0[1], o0+0[1]) numbers=[]
  launch 1 extents=[4] operands(t1+0[1], o1+0[1]) numbers=[]
})";

struct Results {
  std::vector<float> first, second;
};

// `lastOfFirst`: the last step of the first temporary, which step 2 reads, as the plan has it.
Results run(const std::string& poison, int lastOfFirst) {
  const std::vector<float> x = {1, 2, 3, 4};
  const std::vector<MemoryBlockPtr> buffers = {makeBlock(x.data(), sizeof(float) * x.size())};
  KernelCache kernels;
  const auto device = makeDevice("cpu");
  ir::Schedule schedule = ir::parseSchedule(kSchedule);
  schedule.temporaries[0].last = lastOfFirst;
  const auto plan = device->load(std::move(schedule), &kernels);
  const std::string before = std::exchange(flags().poison, poison);
  const auto outputs = plan->run(buffers, std::vector<Number>(1));
  flags().poison = before;
  const auto values = [](const MemoryBlock& block) {
    const auto* begin = static_cast<const float*>(block.data());
    return std::vector<float>(begin, begin + 4);
  };
  return {values(*outputs[0]), values(*outputs[1])};
}

const std::vector<float> kExpected = {-2, -4, -6, -8};

TEST(Poison, LeavesWhatIsStillRead) {
  const Results results = run("1", 2);
  EXPECT_EQ(results.first, kExpected);
  EXPECT_EQ(results.second, kExpected);
}

// As if the plan took the temporary for dead before its last reader runs.
TEST(Poison, ShowsWhatIsReadTooLate) {
  EXPECT_EQ(run("0", 1).first, kExpected) << "nothing happens to be in its place";
  const Results results = run("1", 1);
  for (const float value : results.first) {
    EXPECT_TRUE(std::isnan(value)) << value;
  }
  EXPECT_EQ(results.second, kExpected);
}

// Scratch memory holds nothing once its step has run.
TEST(Poison, FillsScratchMemory) {
  struct Looks final : StepObserver {
    void afterSteps(size_t begin, size_t, const StepMemory& memory) override {
      const MemoryBlockPtr block = memory.read({ir::BufferRef::Space::Temporary, 0}, {}, dtype::u8);
      const auto* bytes = static_cast<const unsigned char*>(block->data());
      poisoned[begin] = std::count(bytes, bytes + block->bytes(), kPoison);
      size = block->bytes();
    }
    std::ptrdiff_t poisoned[2] = {-1, -1};
    size_t size = 0;
  } looks;
  const auto device = makeDevice("cpu");
  KernelCache kernels;
  const auto plan = device->load(ir::parseSchedule(R"(schedule @s arena=0 bound=0 {
  parameter f32[1000]
  output s64[1000]
  output f32[1000]
kernel @negative rank=1 reduced=[] {
  operand input f32 [1]
  operand output f32 [1]
  %0 = load 0 : f32
  %1 = negative %0 : f32
  stage { store 1 %1 }
}
  library argsort {axis=0, count=1000} (p0: f32[1000]) -> o0: s64[1000]
  launch 0 extents=[1000] operands(p0+0[1], o1+0[1]) numbers=[]
})"),
                                 &kernels);
  const std::vector<float> x(1000, 1.5f);
  const std::vector<MemoryBlockPtr> buffers = {makeBlock(x.data(), sizeof(float) * x.size())};
  const std::string before = std::exchange(flags().poison, "1");
  stepObserver() = &looks;
  plan->run(buffers, std::vector<Number>(1));
  stepObserver() = nullptr;
  flags().poison = before;
  EXPECT_EQ(looks.size, 8000u) << "a key and an index an element";
  EXPECT_EQ(plan->schedule().arenaBytes, 8000u);
  EXPECT_LT(looks.poisoned[0], 4000);
  EXPECT_EQ(looks.poisoned[1], 8000);
}

}  // namespace
}  // namespace fl::runtime
