// Forms of a block's elements: kept from their second request until the elements change.
#include <gtest/gtest.h>

#include <thread>

#include "fl/base/MemoryBlock.h"

namespace fl {
namespace {

struct Block : MemoryBlock {
  Block() : MemoryBlock(nullptr, 0) {}
};

TEST(MemoryBlock, KeepsAFormFromItsSecondRequestOn) {
  Block block;
  int made = 0;
  const auto make = [&]() -> MemoryBlockPtr { return ++made, std::make_shared<Block>(); };
  EXPECT_EQ(block.inForm("a", make), nullptr);
  EXPECT_EQ(block.inForm("b", make), nullptr);
  const MemoryBlockPtr a = block.inForm("a", make);
  ASSERT_NE(a, nullptr);
  EXPECT_EQ(block.inForm("a", make), a);
  EXPECT_NE(block.inForm("b", make), a);
  EXPECT_EQ(made, 2);
  block.willChange();
  EXPECT_EQ(a.use_count(), 1);
  EXPECT_EQ(block.inForm("a", make), nullptr);
  EXPECT_EQ(made, 2);
  EXPECT_NE(block.inForm("a", make), nullptr);
}

TEST(MemoryBlock, AsksAgainForWhatCouldNotBeMade) {
  Block block;
  int asked = 0;
  const auto fail = [&]() -> MemoryBlockPtr { return ++asked, nullptr; };
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(block.inForm("a", fail), nullptr);
  }
  EXPECT_EQ(asked, 2);
}

TEST(MemoryBlock, NobodyWaitsForAForm) {
  Block block;
  const auto make = [] { return std::make_shared<Block>(); };
  const auto askMeanwhile = [&]() -> MemoryBlockPtr {
    MemoryBlockPtr other;
    std::thread([&] { other = block.inForm("a", make); }).join();
    EXPECT_EQ(other, nullptr);
    return make();
  };
  EXPECT_EQ(block.inForm("a", askMeanwhile), nullptr);
  EXPECT_NE(block.inForm("a", askMeanwhile), nullptr);
}

}  // namespace
}  // namespace fl
