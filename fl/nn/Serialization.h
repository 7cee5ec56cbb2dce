// Saving to and loading from files: modules, Variables, Tensors and everything cereal can archive.
//
//   fl::save("model.bin", model);                  // a Sequential, or any ModulePtr
//   fl::load("model.bin", other);
//
// A file is a header (format, size, hash), then a cereal binary archive
// (fl/autograd/Serialization.h says what is in it). It is written under another name and renamed
// when complete: whatever happens, `path` holds the old file or the new one. Pointers to Module are
// written with their class; Variables that modules share are shared again after loading. Several
// objects may go into one file; loading may stop after the first ones.
//
// Errors are std::runtime_error naming the file: it cannot be opened or written, it is no such
// file, it ends too early or is damaged, it holds a class that this program does not know, or
// something else where tensors, Variables or modules are loaded. A number or a string is made of
// whatever bytes are there.
#pragma once

#include <cereal/archives/binary.hpp>
#include <cereal/types/memory.hpp>
#include <cereal/types/polymorphic.hpp>
#include <cereal/types/string.hpp>
#include <functional>
#include <istream>
#include <memory>
#include <optional>
#include <ostream>
#include <string>
#include <type_traits>
#include <typeindex>
#include <unordered_map>

#include "fl/autograd/Serialization.h"

namespace fl {
namespace detail {

// Reads what cereal::BinaryOutputArchive has written, and believes no size that is more than the
// bytes that are left: cereal takes memory for a size before it reads as much. A stream whose end
// cannot be found is read as far as it goes.
class LoadArchive : public cereal::InputArchive<LoadArchive, cereal::AllowEmptyClassElision> {
 public:
  explicit LoadArchive(std::istream& stream);
  // Throw cereal::Exception.
  void loadBinary(void* data, std::streamsize size);
  void checkSize(cereal::size_type size) const;
  // An object that pointers behind it may share begins, and is there; whether `id` is one of this
  // type that is. Throw cereal::Exception.
  void begin(uint32_t id);
  void complete(uint32_t id, std::type_index type) { objects_[id] = type; }
  void checkShared(uint32_t id, std::type_index type) const;

 private:
  std::istream& stream_;
  uint64_t left_;
  std::unordered_map<uint32_t, std::optional<std::type_index>> objects_;
};

// Found by cereal, which looks here for how LoadArchive reads.
template <typename T>
  requires std::is_arithmetic_v<T>
void load(LoadArchive& archive, T& value) {
  archive.loadBinary(&value, sizeof(value));
}
// A byte that is neither 0 nor 1 is no bool. Throws cereal::Exception.
void load(LoadArchive& archive, bool& value);
template <typename T>
void load(LoadArchive& archive, cereal::BinaryData<T>& bytes) {
  archive.loadBinary(bytes.data, static_cast<std::streamsize>(bytes.size));
}
// As cereal does, which would also believe that an object is of the type that a pointer wants, and
// that it may be its own part. Objects do not share themselves.
template <typename T>
  requires(!cereal::traits::has_load_and_construct<std::remove_const_t<T>, LoadArchive>::value)
void load(LoadArchive& archive, cereal::memory_detail::PtrWrapper<std::shared_ptr<T>&>& wrapper) {
  using Object = std::remove_const_t<T>;
  uint32_t id = 0;
  archive(id);
  if (id & cereal::detail::msb_32bit) {
    const uint32_t number = id & ~cereal::detail::msb_32bit;
    archive.begin(number);
    std::shared_ptr<Object> object(cereal::access::construct<Object>());
    archive.registerSharedPointer(id, object);
    archive(*object);
    archive.complete(number, typeid(Object));
    wrapper.ptr = std::move(object);
  } else {
    archive.checkShared(id, typeid(Object));
    wrapper.ptr = std::static_pointer_cast<T>(archive.getSharedPointer(id));
  }
}
template <typename T>
void serialize(LoadArchive& archive, cereal::NameValuePair<T>& pair) {
  archive(pair.value);
}
template <typename T>
void serialize(LoadArchive& archive, cereal::SizeTag<T>& tag) {
  archive(tag.size);
  archive.checkSize(tag.size);
}

void writeFile(const std::string& path, const std::function<void(std::ostream&)>& write);
void readFile(const std::string& path, const std::function<void(std::istream&)>& read);

}  // namespace detail

// An archive alone, without the header. Throw cereal::Exception.
template <typename... Args>
void save(std::ostream& stream, const Args&... args) {
  cereal::BinaryOutputArchive archive(stream);
  archive(args...);
}

template <typename... Args>
void load(std::istream& stream, Args&... args) {
  detail::LoadArchive archive(stream);
  archive(args...);
}

template <typename... Args>
void save(const std::string& path, const Args&... args) {
  detail::writeFile(path, [&](std::ostream& stream) { save(stream, args...); });
}

template <typename... Args>
void load(const std::string& path, Args&... args) {
  detail::readFile(path, [&](std::istream& stream) { load(stream, args...); });
}

}  // namespace fl

// A class that cereal knows to write into the one archive is read from the other.
CEREAL_REGISTER_ARCHIVE(fl::detail::LoadArchive)
template <>
struct cereal::traits::detail::get_output_from_input<fl::detail::LoadArchive> {
  using type = cereal::BinaryOutputArchive;
};
