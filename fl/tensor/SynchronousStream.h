// The stream of the CPU: each computation ends before the next begins.
#pragma once

#include "fl/tensor/DeviceManager.h"
#include "fl/tensor/Stream.h"

namespace fl {

class SynchronousStream : public StreamTrait<SynchronousStream> {
 public:
  static constexpr StreamType type = StreamType::Synchronous;

  // On the CPU; the other form is for the device manager, which is being made then.
  SynchronousStream();
  explicit SynchronousStream(X64Device& device) : device_(device) {}
  using StreamTrait<SynchronousStream>::relativeSync;
  X64Device& device() override { return device_; }
  const X64Device& device() const override { return device_; }
  void sync() const override;
  void relativeSync(const SynchronousStream& waitOn) const override;

 protected:
  X64Device& device_;
};

}  // namespace fl
