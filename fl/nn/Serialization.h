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
// file, it ends too early or is damaged, it holds a class that this program does not know or
// something else than what is loaded.
#pragma once

#include <cereal/archives/binary.hpp>
#include <cereal/types/polymorphic.hpp>
#include <cereal/types/string.hpp>
#include <functional>
#include <istream>
#include <ostream>
#include <string>

#include "fl/autograd/Serialization.h"

namespace fl {
namespace detail {

void writeFile(const std::string& path, const std::function<void(std::ostream&)>& write);
void readFile(const std::string& path, const std::function<void(std::istream&)>& read);

}  // namespace detail

// An archive alone, without the header. Throw what cereal throws.
template <typename... Args>
void save(std::ostream& stream, const Args&... args) {
  cereal::BinaryOutputArchive archive(stream);
  archive(args...);
}

template <typename... Args>
void load(std::istream& stream, Args&... args) {
  cereal::BinaryInputArchive archive(stream);
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
