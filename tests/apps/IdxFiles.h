// Writes small files for the tests of apps/mnist: IDX files, whole or damaged.
#pragma once

#include <cstdint>
#include <filesystem>
#include <initializer_list>
#include <string>
#include <vector>

namespace fl::app {

// An empty folder that belongs to the running test.
std::filesystem::path makeFolder(const std::string& name);

void writeFile(const std::filesystem::path& file, const std::string& bytes);

// What an IDX file holds: the numbers of its header, then the elements.
std::string idxBytes(std::initializer_list<uint32_t> header, const std::vector<uint8_t>& elements);

// The four files of MNIST, whole: `count` images of width x height in both sets. Pixel i of a set
// is i modulo 256, label i is i modulo 10.
void writeDataset(const std::filesystem::path& folder, uint32_t count, uint32_t width,
                  uint32_t height);

}  // namespace fl::app
