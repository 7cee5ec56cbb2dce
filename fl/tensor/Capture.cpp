#include "fl/tensor/Capture.h"

#include <atomic>
#include <mutex>

#include "fl/tensor/Detail.h"
#include "fl/tensor/View.h"

namespace fl {
namespace detail {

constinit thread_local Capture* activeCapture = nullptr;
constinit thread_local uint64_t activeRecording = 0;

CaptureScope::CaptureScope(Capture& capture) {
  static std::atomic<uint64_t> recordings = 0;
  activeCapture = &capture;
  activeRecording = ++recordings;
}

CaptureScope::~CaptureScope() {
  activeCapture = nullptr;
  activeRecording = 0;
}

// Threads may record functions that read the same tensor.
TensorRef::TensorRef(const std::shared_ptr<TensorStorage>& storage) {
  static std::mutex mutex;
  const std::lock_guard lock(mutex);
  if (!storage->identity) storage->identity = std::make_shared<StorageIdentity>(storage);
  identity_ = storage->identity;
}

bool TensorRef::exists() const { return !identity_->storage.expired(); }

std::optional<ir::ValueType> TensorRef::type() const {
  const std::shared_ptr<TensorStorage> storage = identity_->storage.lock();
  return storage ? std::optional(typeOf(*storage)) : std::nullopt;
}

TensorValue TensorRef::value() const {
  const std::shared_ptr<TensorStorage> storage = identity_->storage.lock();
  return storage ? readStorage(*storage) : nullptr;
}

void TensorRef::assign(TensorValue value) const {
  if (const std::shared_ptr<TensorStorage> storage = identity_->storage.lock())
    writeStorage(*storage, std::move(value));
}

bool TensorRef::isShown() const {
  const std::shared_ptr<TensorStorage> storage = identity_->storage.lock();
  return storage && (storage->locked || storage.use_count() > 2);
}

uint64_t TensorRef::views() const { return identity_->views; }

bool TensorRef::ownsData() const {
  const std::shared_ptr<TensorStorage> storage = identity_->storage.lock();
  return storage && !storage->locked && storage->ownsData();
}

}  // namespace detail

Tensor hostNumber(detail::NextNumber next) {
  const Tensor number(defaultTensorBackend().fromHostNumber(next));
  if (detail::activeCapture) detail::activeCapture->onNumber(number.value(), std::move(next));
  return number;
}

}  // namespace fl
