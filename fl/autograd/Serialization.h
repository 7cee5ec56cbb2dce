// How values are written to archives (cereal): Tensor, Shape and Variable, and the macros by which
// classes say which of their members are saved.
//
// On disk: a Shape is its dimensions; a Tensor is shape, dtype and the bytes of its elements,
// column-major; a Variable is its tensor and whether it wants a gradient, without history.
// Variables that share data or gradient, or tensors reached through the same Variable, are written
// once and share again when read. fl/nn/Serialization.h writes archives to files.
//
// FL_SAVE_LOAD(members...) goes into the private section of a class, FL_SAVE_LOAD_WITH_BASE(Base,
// members...) into that of a derived one; FL_SAVE_LOAD_DECLARE() only declares. A polymorphic class
// also needs CEREAL_REGISTER_TYPE in one source file that includes fl/nn/Serialization.h. Loading
// expects a default-constructed object; it may be private, for a friend of cereal::access.
//
// A class has version 0, or what CEREAL_CLASS_VERSION(Class, N) says; archives hold it. A member
// may be listed as versioned(member, min, max), to be in archives of these versions only, or as
// serializeAs<S>(member), to be in them as an S; or as one of the other.
#pragma once

#include <cereal/access.hpp>
#include <cereal/cereal.hpp>
#include <cereal/types/base_class.hpp>
#include <cereal/types/memory.hpp>
#include <cereal/types/vector.hpp>
#include <cstdint>
#include <type_traits>
#include <utility>
#include <vector>

#include "fl/autograd/Variable.h"

#define FL_SAVE_LOAD_DECLARE()                 \
  friend class cereal::access;                 \
  template <class Archive>                     \
  void save(Archive& archive, uint32_t) const; \
  template <class Archive>                     \
  void load(Archive& archive, uint32_t);

#define FL_SAVE_LOAD(...)                                                    \
  friend class cereal::access;                                               \
  template <class Archive>                                                   \
  void save(Archive& archive, uint32_t version) const {                      \
    ::fl::detail::applyArchive(archive, version __VA_OPT__(, ) __VA_ARGS__); \
  }                                                                          \
  template <class Archive>                                                   \
  void load(Archive& archive, uint32_t version) {                            \
    ::fl::detail::applyArchive(archive, version __VA_OPT__(, ) __VA_ARGS__); \
  }

#define FL_SAVE_LOAD_WITH_BASE(Base, ...) \
  FL_SAVE_LOAD(cereal::base_class<Base>(this) __VA_OPT__(, ) __VA_ARGS__)

namespace fl {
namespace detail {

template <typename T>
struct Versioned {
  T member;
  uint32_t minVersion, maxVersion;
};

template <typename S, typename T, typename SaveConverter, typename LoadConverter>
struct SerializeAs {
  T& member;
  SaveConverter saveConverter;
  LoadConverter loadConverter;
};

template <typename Archive, typename T>
void applyMember(Archive& archive, uint32_t, T&& member) {
  archive(std::forward<T>(member));
}

template <typename Archive, typename S, typename T, typename Save, typename Load>
void applyMember(Archive& archive, uint32_t, SerializeAs<S, T, Save, Load>&& as) {
  if constexpr (Archive::is_saving::value) {
    const S value = as.saveConverter(as.member);
    archive(value);
  } else {
    S value;
    archive(value);
    as.member = as.loadConverter(std::move(value));
  }
}

template <typename Archive, typename T>
void applyMember(Archive& archive, uint32_t version, Versioned<T>&& versioned) {
  if (version >= versioned.minVersion && version <= versioned.maxVersion) {
    applyMember(archive, version, std::forward<T>(versioned.member));
  }
}

template <typename Archive, typename... Members>
void applyArchive(Archive& archive, uint32_t version, Members&&... members) {
  (applyMember(archive, version, std::forward<Members>(members)), ...);
}

}  // namespace detail

// In FL_SAVE_LOAD: a member of the class's versions minVersion to maxVersion. Others' archives are
// without it; loading one leaves it as the default constructor made it.
template <typename T>
detail::Versioned<T> versioned(T&& member, uint32_t minVersion, uint32_t maxVersion = UINT32_MAX) {
  return {std::forward<T>(member), minVersion, maxVersion};
}

// In FL_SAVE_LOAD: a member that archives hold as an S, which saveConverter(member) makes; loading
// assigns loadConverter(S).
template <typename S, typename T, typename SaveConverter, typename LoadConverter>
detail::SerializeAs<S, T, SaveConverter, LoadConverter> serializeAs(T& member,
                                                                    SaveConverter saveConverter,
                                                                    LoadConverter loadConverter) {
  return {member, std::move(saveConverter), std::move(loadConverter)};
}

// The converters are static_cast.
template <typename S, typename T>
auto serializeAs(T& member) {
  return serializeAs<S>(
      member, [](const T& value) { return static_cast<S>(value); },
      [](S&& value) { return static_cast<std::remove_const_t<T>>(std::move(value)); });
}

}  // namespace fl

namespace cereal {

template <typename Archive>
void save(Archive& archive, const fl::Shape& shape) {
  archive(shape.get());
}

template <typename Archive>
void load(Archive& archive, fl::Shape& shape) {
  archive(shape.get());
}

template <typename Archive>
void save(Archive& archive, const fl::Tensor& tensor) {
  std::vector<uint8_t> bytes(tensor.bytes());
  tensor.host(static_cast<void*>(bytes.data()));
  archive(tensor.shape(), tensor.type(), bytes);
}

template <typename Archive>
void load(Archive& archive, fl::Tensor& tensor) {
  fl::Shape shape;
  fl::dtype type;
  size_type size;
  archive(shape, type, make_size_tag(size));
  // Checked before memory is taken: a damaged file may ask for any amount.
  const bool known = static_cast<int>(type) >= 0 && static_cast<int>(type) < fl::kDtypeCount;
  if (!known || size != static_cast<size_type>(shape.elements()) * fl::getTypeSize(type)) {
    throw Exception("a tensor's shape, type and size do not fit each other");
  }
  std::vector<uint8_t> bytes(size);
  archive(binary_data(bytes.data(), bytes.size()));
  tensor = fl::Tensor::fromBuffer(shape, type, bytes.data(), fl::Location::Host);
}

}  // namespace cereal

namespace fl {

template <typename Archive>
void Variable::save(Archive& archive, uint32_t) const {
  archive(data_, grad_);
}

template <typename Archive>
void Variable::load(Archive& archive, uint32_t) {
  archive(data_, grad_);
}

template <typename Archive>
void Variable::SharedData::save(Archive& archive, uint32_t) const {
  archive(data);
}

template <typename Archive>
void Variable::SharedData::load(Archive& archive, uint32_t) {
  archive(data);
}

template <typename Archive>
void Variable::SharedGrad::save(Archive& archive, uint32_t) const {
  archive(calcGrad);
}

template <typename Archive>
void Variable::SharedGrad::load(Archive& archive, uint32_t) {
  archive(calcGrad);
}

}  // namespace fl
