#include "fl/runtime/Store.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <stdexcept>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "fl/base/AtomicFile.h"
#include "fl/base/Fault.h"
#include "fl/base/Flags.h"
#include "fl/base/Hash.h"
#include "fl/base/Log.h"

namespace fl::runtime {

namespace fs = std::filesystem;

namespace {

// The head of a file; key and value follow.
struct Header {
  char format[8];
  uint64_t keyBytes;
  uint64_t valueBytes;
  Hash128 checksum;  // of key and value
};
constexpr char kFormat[sizeof(Header::format)] = "flkept1";

[[noreturn]] void fail(const fs::path& path, const std::string& reason) {
  throw std::runtime_error(path.string() + ": " + reason);
}

// True if nobody else could put code into the folder.
bool isOurs(const fs::path& folder) {
  struct stat status;
  return stat(folder.c_str(), &status) == 0 && status.st_uid == geteuid() &&
         (status.st_mode & (S_IWGRP | S_IWOTH)) == 0;
}

void prepareFolder(const fs::path& folder) {
  fs::create_directories(folder.parent_path());
  if (mkdir(folder.c_str(), S_IRWXU) != 0 && errno != EEXIST) fail(folder, std::strerror(errno));
  if (!isOurs(folder)) fail(folder, "others may write to it");
}

// What of it can be read; nothing if it cannot be opened, as when there is none.
std::optional<std::string> readFile(const fs::path& path) {
  std::ifstream stream(path, std::ios::binary | std::ios::ate);
  if (!stream) return std::nullopt;
  std::string text(std::max<int64_t>(stream.tellg(), 0), 0);
  stream.seekg(0).read(text.data(), static_cast<std::streamsize>(text.size()));
  return text;
}

std::string fileOf(const std::string& key, const std::string& value) {
  const std::string body = key + value;
  Header header{{}, key.size(), value.size(), hashBytes(body.data(), body.size())};
  std::memcpy(header.format, kFormat, sizeof(kFormat));
  return std::string(reinterpret_cast<const char*>(&header), sizeof(header)) + body;
}

// The key and value of a file; nothing if it is damaged.
std::optional<std::pair<std::string, std::string>> entryOf(const std::string& file) {
  Header header;
  if (file.size() < sizeof(header)) return std::nullopt;
  std::memcpy(&header, file.data(), sizeof(header));
  const uint64_t body = file.size() - sizeof(header);
  if (std::memcmp(header.format, kFormat, sizeof(kFormat)) != 0 || header.keyBytes > body ||
      header.valueBytes != body - header.keyBytes ||
      !(hashBytes(file.data() + sizeof(header), body) == header.checksum))
    return std::nullopt;
  return std::pair(file.substr(sizeof(header), header.keyBytes),
                   file.substr(sizeof(header) + header.keyBytes));
}

struct File {
  fs::file_time_type used;
  uint64_t bytes;
  fs::path path;
};

// Of all kinds: no other folder or file that may be there is ours, nor one without a hash's name.
std::vector<File> filesIn(const fs::path& root) {
  std::vector<File> files;
  for (const char* kind : kKinds) {
    std::error_code error;
    for (fs::directory_iterator it(root / kind, error), end; !error && it != end;
         it.increment(error)) {
      std::error_code gone;  // by another process
      const std::string name = it->path().filename();
      const bool isNamed = name.size() >= 16 && name.find_first_not_of("0123456789abcdef") >= 16;
      if (!isNamed || !it->is_regular_file(gone)) continue;
      const File file{it->last_write_time(gone), it->file_size(gone), it->path()};
      if (!gone) files.push_back(file);
    }
  }
  return files;
}

// Longer than a kernel takes to compile: who has a lock then has been stopped.
constexpr auto kPatience = std::chrono::seconds(2);

// False if another has it until then.
bool lockWithin(std::chrono::seconds patience, int file) {
  const auto end = std::chrono::steady_clock::now() + patience;
  while (flock(file, LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK) return true;  // nobody can lock it
    if (std::chrono::steady_clock::now() >= end) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return true;
}

}  // namespace

uint64_t cacheLimit() { return Flags::toInt("FL_CACHE_BYTES", flags().cacheBytes); }

uint64_t makeRoom(const fs::path& root, uint64_t limit) {
  std::vector<File> files = filesIn(root);
  uint64_t total = 0;
  for (const File& file : files) total += file.bytes;
  if (total <= limit) return limit - total;
  std::ranges::sort(files, {}, &File::used);
  for (auto file = files.begin(); total > limit / 4 * 3; ++file) {
    std::error_code ignored;
    fs::remove(file->path, ignored);
    total -= file->bytes;
  }
  return limit - total;
}

std::unique_ptr<Store> openStore(const std::string& kind) {
  const fs::path folder = cacheFolder();
  if (flags().cache == "off" || isAnyWrong() || folder.empty()) return nullptr;
  return std::make_unique<Store>(folder / kind, cacheLimit());
}

fs::path cacheFolder() {
  if (!flags().cacheFolder.empty()) return flags().cacheFolder;
  const char *cache = std::getenv("XDG_CACHE_HOME"), *home = std::getenv("HOME");
  if (cache && *cache) return fs::path(cache) / "fl";
  return home && *home ? fs::path(home) / ".cache" / "fl" : fs::path();
}

Store::Store(fs::path folder, uint64_t limit) : folder_(std::move(folder)), limit_(limit) {}

fs::path Store::pathOf(const std::string& key) const {
  const Hash128 hash = hashBytes(key.data(), key.size());
  return folder_ / absl::StrCat(absl::Hex(hash.high, absl::kZeroPad16),
                                absl::Hex(hash.low, absl::kZeroPad16));
}

std::optional<std::string> Store::find(const std::string& key) {
  const fs::path path = pathOf(key);
  std::error_code ignored;
  const auto type = isOurs(folder_) ? fs::status(path, ignored).type() : fs::file_type::not_found;
  // What is no file is damaged: nothing is read, which may take for ever.
  const auto file = type == fs::file_type::regular ? readFile(path) : std::string();
  if (type == fs::file_type::not_found || !file) return std::nullopt;
  auto entry = entryOf(*file);
  if (!entry || entry->first != key) {
    fs::remove_all(path, ignored);  // it may be a folder
    return std::nullopt;
  }
  fs::last_write_time(path, fs::file_time_type::clock::now(), ignored);
  return std::move(entry->second);
}

Store::Lock::~Lock() {
  if (file_ >= 0) close(file_);
}

Store::Lock Store::lock(const std::string& key) {
  constexpr uint64_t kLocks = 64;
  const fs::path folder = folder_ / "locks";
  try {
    prepareFolder(folder_);
    fs::create_directory(folder);
  } catch (const std::exception&) {
    return Lock();  // insert() tells why
  }
  const uint64_t number = hashBytes(key.data(), key.size()).low % kLocks;
  const int file =
      open((folder / std::to_string(number)).c_str(), O_CREAT | O_RDWR | O_CLOEXEC, 0600);
  if (file >= 0 && !lockWithin(waits_ ? kPatience : std::chrono::seconds(0), file)) waits_ = false;
  return Lock(file);
}

void Store::insert(const std::string& key, const std::string& value) {
  if (failed_.load(std::memory_order_relaxed)) return;
  try {
    prepareFolder(folder_);
    const std::string content = fileOf(key, value);
    const fs::path path = pathOf(key);
    if (std::error_code none; !fs::is_regular_file(path, none)) fs::remove_all(path, none);
    AtomicFile::write(path, content);
    const std::lock_guard lock(mutex_);
    // Of the room, which others fill as well, this store takes a quarter unseen.
    unseen_ = content.size() < unseen_ ? unseen_ - content.size()
                                       : makeRoom(folder_.parent_path(), limit_) / 4;
  } catch (const std::exception& error) {
    if (!failed_.exchange(true))
      logWarning(std::string("what was compiled is not kept: ") + error.what());
  }
}

}  // namespace fl::runtime
