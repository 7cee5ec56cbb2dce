#include "fl/nn/Serialization.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <system_error>

#include "fl/base/AtomicFile.h"
#include "fl/base/Error.h"
#include "fl/base/Hash.h"

namespace fl::detail {
namespace {

// The first bytes of a file; the archive follows.
struct Header {
  char format[8] = {'f', 'l', '-', 's', 'a', 'v', 'e', '1'};
  uint64_t archiveBytes = 0;
  Hash128 archiveHash;
};
static_assert(sizeof(Header) == 32 && std::is_trivially_copyable_v<Header>);

[[noreturn]] void fail(const std::string& path, const std::string& reason) {
  throw std::runtime_error(path + ": " + reason);
}

std::string systemError() { return std::strerror(errno); }

// The bytes of a file, read-only; none if it cannot be mapped.
class MappedFile {
 public:
  explicit MappedFile(const std::string& path) {
    const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
    struct stat info;
    if (file >= 0 && fstat(file, &info) == 0 && info.st_size > 0) {
      size_ = static_cast<size_t>(info.st_size);
      data_ = mmap(nullptr, size_, PROT_READ, MAP_PRIVATE, file, 0);
    }
    if (file >= 0) close(file);
    if (data_ == MAP_FAILED) {
      data_ = nullptr;
      size_ = 0;
    }
  }
  ~MappedFile() {
    if (data_) munmap(data_, size_);
  }
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  const char* data() const { return static_cast<const char*>(data_); }
  size_t size() const { return size_; }

 private:
  void* data_ = nullptr;
  size_t size_ = 0;
};

// Of a file whose header may still be blank. Throws if it is no file of ours.
Header describe(const std::string& path, const MappedFile& file) {
  Header header;
  if (file.size() < sizeof(Header) ||
      std::memcmp(file.data(), header.format, sizeof(header.format)) != 0) {
    fail(path, "is no file that fl::save has written");
  }
  header.archiveBytes = file.size() - sizeof(Header);
  header.archiveHash = hashBytes(file.data() + sizeof(Header), header.archiveBytes);
  return header;
}

// Before anything is parsed: a damaged size could ask for any amount of memory.
void checkWhole(const std::string& path) {
  const MappedFile file(path);
  const Header actual = describe(path, file);
  Header stored;
  std::memcpy(&stored, file.data(), sizeof(stored));
  if (actual.archiveBytes < stored.archiveBytes) {
    fail(path, concat("ends too early: ", actual.archiveBytes, " of ", stored.archiveBytes,
                      " bytes are there"));
  }
  if (actual.archiveBytes != stored.archiveBytes || !(actual.archiveHash == stored.archiveHash)) {
    fail(path, "is damaged: its contents do not have the hash that was stored");
  }
}

// Bytes from here to the stream's end; as many as there are numbers if that cannot be found.
uint64_t bytesLeft(std::istream& stream) {
  std::streambuf& buffer = *stream.rdbuf();
  const std::streamoff here = buffer.pubseekoff(0, std::ios::cur, std::ios::in);
  if (here < 0) {
    return ~uint64_t{0};
  }
  const std::streamoff end = buffer.pubseekoff(0, std::ios::end, std::ios::in);
  buffer.pubseekpos(here, std::ios::in);
  return static_cast<uint64_t>(std::max(end - here, std::streamoff{0}));
}

}  // namespace

LoadArchive::LoadArchive(std::istream& stream)
    : InputArchive(this), stream_(stream), left_(bytesLeft(stream)) {}

void LoadArchive::loadBinary(void* data, std::streamsize size) {
  if (stream_.rdbuf()->sgetn(static_cast<char*>(data), size) != size) {
    throw cereal::Exception("it ends too early");
  }
  left_ -= static_cast<uint64_t>(size);
}

namespace {

template <typename... Words>
[[noreturn]] void holdsElse(const Words&... words) {
  throw cereal::Exception(
      concat("it holds something else than what is loaded from it: ", words...));
}

}  // namespace

void LoadArchive::checkSize(cereal::size_type size) const {
  if (size > left_) holdsElse("a size of ", size, " where ", left_, " bytes are left");
}

void LoadArchive::begin(uint32_t id) {
  if (!objects_.try_emplace(id).second) holdsElse("object ", id, " twice");
}

void LoadArchive::checkShared(uint32_t id, std::type_index type) const {
  const auto found = objects_.find(id);
  if (id != 0 && (found == objects_.end() || found->second != type)) {
    holdsElse("a pointer to object ", id);
  }
}

void load(LoadArchive& archive, bool& value) {
  uint8_t byte = 0;
  archive.loadBinary(&byte, sizeof(byte));
  if (byte > 1) {
    holdsElse(int{byte}, " as a bool");
  }
  value = byte == 1;
}

void writeFile(const std::string& path, const std::function<void(std::ostream&)>& write) {
  AtomicFile file(path);
  std::fstream stream(file.partial(),
                      std::ios::in | std::ios::out | std::ios::trunc | std::ios::binary);
  const auto check = [&] {
    if (!stream) fail(path, "cannot be written: " + systemError());
  };
  check();
  Header header;
  stream.write(reinterpret_cast<const char*>(&header), sizeof(header));
  try {
    write(stream);
  } catch (const std::exception& error) {
    fail(path, std::string("cannot be saved: ") + error.what());
  }
  stream.flush();
  check();
  header = describe(path, MappedFile(file.partial()));
  stream.seekp(0);
  stream.write(reinterpret_cast<const char*>(&header), sizeof(header));
  stream.close();
  check();
  file.commit();
}

void readFile(const std::string& path, const std::function<void(std::istream&)>& read) {
  std::error_code error;
  // Opening a fifo would wait for whoever writes to it.
  if (std::filesystem::is_other(path, error)) fail(path, "cannot be opened: it is no regular file");
  std::ifstream stream(path, std::ios::binary);
  if (!stream) fail(path, "cannot be opened: " + systemError());
  checkWhole(path);
  stream.seekg(sizeof(Header));
  try {
    read(stream);
  } catch (const std::exception& error) {
    fail(path, std::string("cannot be loaded: ") + error.what());
  }
}

}  // namespace fl::detail
