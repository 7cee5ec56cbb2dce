// Reads IDX, the file format of MNIST: a big-endian header (a magic number that says type and rank,
// then the extents) and the elements, the last dimension contiguous. Only unsigned bytes are read.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace fl::app {

struct Idx {
  // Slowest first: count, height, width.
  std::vector<uint64_t> extents;
  std::vector<uint8_t> elements;
};

// A file of `rank` dimensions, at most 3; `content` names its elements in messages ("images").
// Throws std::runtime_error, one line that names the file and the rule, if it cannot be read, has
// another magic number, holds fewer or more bytes than its header says, or holds nothing.
Idx readIdx(const std::string& file, size_t rank, const std::string& content);

}  // namespace fl::app
