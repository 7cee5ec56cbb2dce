#include "apps/mnist/Idx.h"

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <system_error>

#include "absl/numeric/int128.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace fl::app {

namespace {

constexpr size_t kWord = 4;                // bytes of each number in the header
constexpr uint32_t kUnsignedByte = 0x800;  // the magic number, less the rank

uint32_t bigEndian(const uint8_t* bytes) {
  return uint32_t{bytes[0]} << 24 | uint32_t{bytes[1]} << 16 | uint32_t{bytes[2]} << 8 | bytes[3];
}

std::vector<uint8_t> readBytes(const std::string& file) {
  std::error_code error;
  // Opening a fifo would wait for whoever writes to it.
  if (std::filesystem::is_other(file, error)) {
    throw std::runtime_error(absl::StrCat(file, ": cannot be read: it is no regular file"));
  }
  std::ifstream stream(file, std::ios::binary);
  if (!stream) {
    throw std::runtime_error(absl::StrCat(file, ": cannot be opened: ", std::strerror(errno)));
  }
  const uintmax_t size = std::filesystem::file_size(file, error);
  if (error) {
    throw std::runtime_error(absl::StrCat(file, ": cannot be read: ", error.message()));
  }
  std::vector<uint8_t> bytes(size);
  stream.read(reinterpret_cast<char*>(bytes.data()), static_cast<std::streamsize>(size));
  if (!stream) {
    throw std::runtime_error(absl::StrCat(file, ": cannot be read"));
  }
  return bytes;
}

// Throws unless the elements are as many as the extents say.
void checkSize(const std::string& file, const Idx& idx, const std::string& content) {
  // A damaged header's product may exceed 64 bits; that of three extents of 32 bits fits 128.
  absl::uint128 promised = 1;
  for (const uint64_t extent : idx.extents) {
    promised *= extent;
  }
  const size_t size = idx.elements.size();
  if (promised == size && size != 0) {
    return;
  }
  const char* rule = promised == 0 ? ": empty" : size < promised ? ": truncated" : ": too long";
  throw std::runtime_error(absl::StrCat(file, rule, ": the header promises ",
                                        absl::StrJoin(idx.extents, " x "), " bytes of ", content,
                                        ", and ", size, " follow"));
}

}  // namespace

Idx readIdx(const std::string& file, size_t rank, const std::string& content) {
  const std::vector<uint8_t> bytes = readBytes(file);
  const uint32_t magic = kUnsignedByte | static_cast<uint32_t>(rank);
  if (bytes.size() >= kWord && bigEndian(bytes.data()) != magic) {
    throw std::runtime_error(absl::StrCat(file, ": wrong magic number 0x",
                                          absl::Hex(bigEndian(bytes.data())), ": a file of ",
                                          content, " starts with 0x", absl::Hex(magic)));
  }
  const size_t header = kWord * (1 + rank);
  if (bytes.size() < header) {
    throw std::runtime_error(absl::StrCat(file, ": truncated: ", bytes.size(),
                                          " bytes, but the header alone has ", header));
  }
  Idx idx;
  for (size_t i = 1; i <= rank; ++i) {
    idx.extents.push_back(bigEndian(&bytes[kWord * i]));
  }
  idx.elements.assign(bytes.begin() + static_cast<std::ptrdiff_t>(header), bytes.end());
  checkSize(file, idx, content);
  return idx;
}

}  // namespace fl::app
