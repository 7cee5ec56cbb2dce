#include <sys/stat.h>

#include <filesystem>
#include <string>
#include <vector>

#include "apps/mnist/Idx.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/ErrorOf.h"
#include "tests/apps/IdxFiles.h"

namespace fl::app {
namespace {

using testing::ElementsAre;
using testing::EndsWith;

const std::filesystem::path& folder() {
  static const std::filesystem::path folder = makeFolder("idx");
  return folder;
}

// What readIdx says of a file with these bytes, after the file's name.
std::string messageFor(const std::string& bytes, size_t rank = 3,
                       const std::string& content = "images") {
  const std::string file = folder() / "file";
  writeFile(file, bytes);
  const std::string message = test::errorOf<std::exception>([&] { readIdx(file, rank, content); });
  EXPECT_EQ(message.substr(0, file.size()), file) << message;
  EXPECT_EQ(message.find('\n'), std::string::npos) << message;
  return message.substr(std::min(file.size(), message.size()));
}

TEST(Idx, ReadsExtentsSlowestFirstAndElementsInOrder) {
  const std::string file = folder() / "good";
  writeFile(file, idxBytes({0x803, 2, 1, 3}, {1, 2, 3, 4, 5, 255}));
  const Idx idx = readIdx(file, 3, "images");
  EXPECT_THAT(idx.extents, ElementsAre(2, 1, 3));
  EXPECT_THAT(idx.elements, ElementsAre(1, 2, 3, 4, 5, 255));
}

TEST(Idx, ReadsAllFourBytesOfAnExtent) {
  const std::string file = folder() / "long";
  writeFile(file, idxBytes({0x801, 0x10203}, std::vector<uint8_t>(0x10203, 7)));
  const Idx idx = readIdx(file, 1, "labels");
  EXPECT_THAT(idx.extents, ElementsAre(0x10203));
  EXPECT_EQ(idx.elements.size(), 0x10203u);
}

TEST(Idx, NamesAMissingFile) {
  const std::string file = folder() / "missing";
  EXPECT_EQ(test::errorOf<std::exception>([&] { readIdx(file, 3, "images"); }),
            file + ": cannot be opened: No such file or directory");
}

TEST(Idx, NamesADirectory) {
  EXPECT_EQ(test::errorOf<std::exception>([&] { readIdx(folder(), 3, "images"); }),
            folder().string() + ": cannot be read: Is a directory");
}

TEST(Idx, NamesAFifoRatherThanWaitForIt) {
  const std::string file = folder() / "fifo";
  ASSERT_EQ(mkfifo(file.c_str(), 0600), 0);
  EXPECT_EQ(test::errorOf<std::exception>([&] { readIdx(file, 3, "images"); }),
            file + ": cannot be read: it is no regular file");
}

TEST(Idx, RefusesAnotherMagicNumber) {
  EXPECT_EQ(messageFor(idxBytes({0x801, 2}, {1, 2})),
            ": wrong magic number 0x801: a file of images starts with 0x803");
  EXPECT_EQ(messageFor(idxBytes({0x803, 1, 1, 1}, {1}), 1, "labels"),
            ": wrong magic number 0x803: a file of labels starts with 0x801");
  // gzip: MNIST as it is downloaded.
  EXPECT_EQ(messageFor("\x1f\x8b\x08\x08packed"),
            ": wrong magic number 0x1f8b0808: a file of images starts with 0x803");
}

TEST(Idx, RefusesAHeaderCutShort) {
  EXPECT_EQ(messageFor(""), ": truncated: 0 bytes, but the header alone has 16");
  EXPECT_EQ(messageFor(idxBytes({0x803, 2, 2}, {})),
            ": truncated: 12 bytes, but the header alone has 16");
}

TEST(Idx, RefusesElementsCutShort) {
  EXPECT_EQ(messageFor(idxBytes({0x803, 2, 2, 2}, {1, 2, 3, 4, 5, 6, 7})),
            ": truncated: the header promises 2 x 2 x 2 bytes of images, and 7 follow");
  EXPECT_EQ(messageFor(idxBytes({0x801, 3}, {}), 1, "labels"),
            ": truncated: the header promises 3 bytes of labels, and 0 follow");
}

TEST(Idx, RefusesMoreElementsThanPromised) {
  EXPECT_EQ(messageFor(idxBytes({0x803, 1, 2, 2}, {1, 2, 3, 4, 5})),
            ": too long: the header promises 1 x 2 x 2 bytes of images, and 5 follow");
}

TEST(Idx, RefusesNoElements) {
  EXPECT_EQ(messageFor(idxBytes({0x803, 0, 28, 28}, {})),
            ": empty: the header promises 0 x 28 x 28 bytes of images, and 0 follow");
}

TEST(Idx, RefusesExtentsWhoseProductExceeds64Bits) {
  // 0x80000000^3 = 2^93: 0 in 64 bits.
  EXPECT_THAT(messageFor(idxBytes({0x803, 0x80000000, 0x80000000, 0x80000000}, {})),
              EndsWith("bytes of images, and 0 follow"));
  EXPECT_THAT(messageFor(idxBytes({0x803, 0x80000000, 0x80000000, 0x80000000}, {})),
              testing::StartsWith(": truncated"));
}

}  // namespace
}  // namespace fl::app
