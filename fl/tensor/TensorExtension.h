// Sets of operators beside TensorBackend's, such as those of neural networks (fl/autograd/tensor):
// an interface derived from TensorExtension, and implementations of it registered for types of
// backends. TensorBackend::getExtension<Interface>() finds the one for its type.
//
//   class Vision : public TensorExtension<Vision> {
//    public:
//     static constexpr TensorExtensionType extensionType = TensorExtensionType::Vision;
//     virtual Tensor resize(...) = 0;
//   };
//   class MyVision : public Vision { ... };                  // with a default constructor
//   FL_REGISTER_TENSOR_EXTENSION(MyVision, Jit);             // in one .cpp, linked always
//   backend.getExtension<Vision>().resize(...);
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <utility>

#include "fl/base/Types.h"

namespace fl {

enum class TensorBackendType;
enum class TensorExtensionType { Generic, Autograd, Vision, JitOptimizer };

class TensorExtensionBase {
 public:
  virtual ~TensorExtensionBase() = default;
  virtual bool isDataTypeSupported(const dtype& type) const = 0;
};

template <typename T>
class TensorExtension : public TensorExtensionBase {
 public:
  static TensorExtensionType getExtensionType() { return T::extensionType; }
};

namespace detail {

using TensorExtensionCallback = std::function<std::unique_ptr<TensorExtensionBase>()>;

// Who makes extensions, by types of backend and extension. May be used from any thread.
class TensorExtensionRegistrar {
 public:
  static TensorExtensionRegistrar& getInstance();

  // The first registration stays. Returns true.
  bool registerTensorExtension(TensorBackendType backend, TensorExtensionType extensionType,
                               TensorExtensionCallback&& creationFunc);
  template <typename T>
  bool registerTensorExtension(TensorBackendType backend) {
    return registerTensorExtension(backend, T::getExtensionType(),
                                   [] { return std::make_unique<T>(); });
  }
  bool isTensorExtensionRegistered(TensorBackendType backend, TensorExtensionType extensionType);
  // The registered one, which stays where it is. Throws std::invalid_argument if there is none.
  TensorExtensionCallback& getTensorExtensionCreationFunc(TensorBackendType backend,
                                                          TensorExtensionType extensionType);

 private:
  TensorExtensionRegistrar() = default;

  std::mutex mutex_;
  std::map<std::pair<TensorBackendType, TensorExtensionType>, TensorExtensionCallback> creators_;
};

// The extensions of one backend, each made when it is first asked for.
class TensorExtensionCache {
 public:
  // Throws std::invalid_argument if none is registered.
  TensorExtensionBase& get(TensorBackendType backend, TensorExtensionType extensionType);
  // True if all that were made so far support `type`.
  bool supportDataType(const dtype& type) const;

 private:
  mutable std::mutex mutex_;
  std::map<TensorExtensionType, std::unique_ptr<TensorExtensionBase>> extensions_;
};

}  // namespace detail

template <typename T>
bool registerTensorExtension(TensorBackendType backendType) {
  return detail::TensorExtensionRegistrar::getInstance().registerTensorExtension<T>(backendType);
}

template <typename T>
struct TensorExtensionRegisterer {
  explicit TensorExtensionRegisterer(TensorBackendType backendType) {
    registerTensorExtension<T>(backendType);
  }
};

}  // namespace fl

#define FL_REGISTER_TENSOR_EXTENSION(T, BACKEND_TYPE)                          \
  static const ::fl::TensorExtensionRegisterer<T> T##BACKEND_TYPE##Registerer( \
      ::fl::TensorBackendType::BACKEND_TYPE)
