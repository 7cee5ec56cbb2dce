#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <string>

#include "apps/mnist/Curve.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace fl::app {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

constexpr double kTestAccuracy = 93.5;

fs::path emptyFolder(const std::string& name) {
  const fs::path folder = fs::path(testing::TempDir()) / name;
  fs::remove_all(folder);
  fs::create_directories(folder);
  return folder;
}

History threeEpochs() { return {{2.0, 1.0, 0.5}, {1.5, 1.0, 0.75}, {60, 80, 90}}; }

std::string read(const fs::path& file) {
  std::ifstream stream(file);
  return {std::istreambuf_iterator<char>(stream), {}};
}

TEST(Curve, DrawsEachSeriesWithItsName) {
  const fs::path file = emptyFolder("curve") / "curve.svg";
  drawCurve(threeEpochs(), kTestAccuracy, file);
  const std::string svg = read(file);
  EXPECT_THAT(svg, HasSubstr("<svg"));
  EXPECT_THAT(svg, testing::EndsWith("</svg>\n\n"));
  for (const char* words : {"loss", "accuracy, %", "epoch", "training", "validation", "test"}) {
    EXPECT_THAT(svg, HasSubstr(words));
  }
}

TEST(Curve, QuotesThePathAndLeavesNoOtherFile) {
  const fs::path folder = emptyFolder("it's a \"folder\"; $(true)");
  drawCurve(threeEpochs(), kTestAccuracy, folder / "curve.svg");
  EXPECT_TRUE(fs::exists(folder / "curve.svg"));
  EXPECT_EQ(std::distance(fs::directory_iterator(folder), fs::directory_iterator()), 1);
}

TEST(Curve, NamesTheFileThatItCannotWrite) {
  const std::string file = fs::path(testing::TempDir()) / "no folder" / "curve.svg";
  try {
    drawCurve(threeEpochs(), kTestAccuracy, file);
    FAIL() << "nothing thrown";
  } catch (const std::runtime_error& error) {
    EXPECT_THAT(error.what(), testing::StartsWith(file + ": the curve cannot be drawn"));
  }
}

}  // namespace
}  // namespace fl::app
