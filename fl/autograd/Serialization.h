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
#pragma once

#include <cereal/access.hpp>
#include <cereal/cereal.hpp>
#include <cereal/types/base_class.hpp>
#include <cereal/types/memory.hpp>
#include <cereal/types/vector.hpp>
#include <cstdint>
#include <utility>
#include <vector>

#include "fl/autograd/Variable.h"

#define FL_SAVE_LOAD_DECLARE()                 \
  friend class cereal::access;                 \
  template <class Archive>                     \
  void save(Archive& archive, uint32_t) const; \
  template <class Archive>                     \
  void load(Archive& archive, uint32_t);

#define FL_SAVE_LOAD(...)                                           \
  friend class cereal::access;                                      \
  template <class Archive>                                          \
  void save(Archive& archive, uint32_t) const {                     \
    ::fl::detail::applyArchive(archive __VA_OPT__(, ) __VA_ARGS__); \
  }                                                                 \
  template <class Archive>                                          \
  void load(Archive& archive, uint32_t) {                           \
    ::fl::detail::applyArchive(archive __VA_OPT__(, ) __VA_ARGS__); \
  }

#define FL_SAVE_LOAD_WITH_BASE(Base, ...) \
  FL_SAVE_LOAD(cereal::base_class<Base>(this) __VA_OPT__(, ) __VA_ARGS__)

namespace fl::detail {

template <typename Archive, typename... Members>
void applyArchive(Archive& archive, Members&&... members) {
  (archive(std::forward<Members>(members)), ...);
}

}  // namespace fl::detail

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
