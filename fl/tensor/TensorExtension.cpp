#include "fl/tensor/TensorExtension.h"

#include <iterator>

#include "fl/base/Error.h"
#include "fl/tensor/TensorBase.h"

namespace fl::detail {
namespace {

const char* nameOf(TensorExtensionType type) {
  static constexpr const char* kNames[] = {"Generic", "Autograd", "Vision", "JitOptimizer"};
  const auto index = static_cast<size_t>(type);
  return index < std::size(kNames) ? kNames[index] : "unknown";
}

}  // namespace

TensorExtensionRegistrar& TensorExtensionRegistrar::getInstance() {
  static auto& instance = *new TensorExtensionRegistrar();
  return instance;
}

bool TensorExtensionRegistrar::registerTensorExtension(TensorBackendType backend,
                                                       TensorExtensionType extensionType,
                                                       TensorExtensionCallback&& creationFunc) {
  std::lock_guard<std::mutex> lock(mutex_);
  creators_.try_emplace({backend, extensionType}, std::move(creationFunc));
  return true;
}

bool TensorExtensionRegistrar::isTensorExtensionRegistered(TensorBackendType backend,
                                                           TensorExtensionType extensionType) {
  std::lock_guard<std::mutex> lock(mutex_);
  return creators_.contains({backend, extensionType});
}

TensorExtensionCallback& TensorExtensionRegistrar::getTensorExtensionCreationFunc(
    TensorBackendType backend, TensorExtensionType extensionType) {
  std::lock_guard<std::mutex> lock(mutex_);
  const auto creator = creators_.find({backend, extensionType});
  FL_USER_CHECK(creator != creators_.end(), "getExtension: no ", nameOf(extensionType),
                " extension is registered for ", backend, " backends");
  return creator->second;
}

TensorExtensionBase& TensorExtensionCache::get(TensorBackendType backend,
                                               TensorExtensionType extensionType) {
  std::lock_guard<std::mutex> lock(mutex_);
  auto& extension = extensions_[extensionType];
  auto& registrar = TensorExtensionRegistrar::getInstance();
  if (!extension) extension = registrar.getTensorExtensionCreationFunc(backend, extensionType)();
  return *extension;
}

bool TensorExtensionCache::supportDataType(const dtype& type) const {
  std::lock_guard<std::mutex> lock(mutex_);
  for (const auto& [extensionType, extension] : extensions_)
    if (extension && !extension->isDataTypeSupported(type)) return false;
  return true;
}

}  // namespace fl::detail
