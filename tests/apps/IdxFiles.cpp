#include "tests/apps/IdxFiles.h"

#include <fstream>

#include "gtest/gtest.h"

namespace fl::app {

namespace fs = std::filesystem;

fs::path makeFolder(const std::string& name) {
  const fs::path folder = fs::path(testing::TempDir()) / name;
  fs::remove_all(folder);
  fs::create_directories(folder);
  return folder;
}

void writeFile(const fs::path& file, const std::string& bytes) {
  std::ofstream stream(file, std::ios::binary);
  stream << bytes;
  stream.close();
  ASSERT_TRUE(stream) << file;
}

std::string idxBytes(std::initializer_list<uint32_t> header, const std::vector<uint8_t>& elements) {
  std::string bytes;
  for (const uint32_t number : header) {
    for (int shift = 24; shift >= 0; shift -= 8) {
      bytes.push_back(static_cast<char>(number >> shift));
    }
  }
  bytes.append(elements.begin(), elements.end());
  return bytes;
}

void writeDataset(const fs::path& folder, uint32_t count, uint32_t width, uint32_t height) {
  std::vector<uint8_t> pixels(size_t{count} * width * height);
  for (size_t i = 0; i < pixels.size(); ++i) {
    pixels[i] = static_cast<uint8_t>(i);
  }
  std::vector<uint8_t> labels(count);
  for (size_t i = 0; i < labels.size(); ++i) {
    labels[i] = i % 10;
  }
  for (const char* set : {"train", "t10k"}) {
    writeFile(folder / (std::string(set) + "-images-idx3-ubyte"),
              idxBytes({0x803, count, height, width}, pixels));
    writeFile(folder / (std::string(set) + "-labels-idx1-ubyte"), idxBytes({0x801, count}, labels));
  }
}

}  // namespace fl::app
