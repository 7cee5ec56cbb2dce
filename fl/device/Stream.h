// Streams: sequences of computations on one device, as far as programs order them. The CPU has one,
// on which each computation ends before the next begins.
#pragma once

#include <stdexcept>
#include <unordered_set>

#include "fl/base/CallSite.h"
#include "fl/base/Error.h"

namespace fl {

class Device;

enum class StreamType { CUDA, Synchronous };

class Stream {
 public:
  Stream() = default;
  virtual ~Stream() = default;
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  virtual StreamType type() const = 0;
  virtual Device& device() = 0;
  virtual const Device& device() const = 0;
  // Waits until everything on this stream is done.
  virtual void sync() const = 0;
  // What comes next on this stream starts after what is now on `waitOn`; may wait for it. Throws
  // std::runtime_error for streams of different types.
  virtual void relativeSync(const Stream& waitOn) const = 0;
  virtual void relativeSync(const std::unordered_set<const Stream*>& waitOns) const;

  // This stream as a T; throws std::invalid_argument if it is none.
  template <typename T>
  [[gnu::noinline]] const T& impl() const {
    FL_API_ENTRY();
    FL_USER_CHECK(T::type == type(), "Stream::impl: the stream has another type");
    return static_cast<const T&>(*this);
  }
};

// For a class that states its StreamType as `type`.
template <typename Derived>
class StreamTrait : public Stream {
 public:
  using Stream::relativeSync;
  virtual void relativeSync(const Derived& waitOn) const = 0;

  StreamType type() const override { return Derived::type; }
  [[gnu::noinline]] void relativeSync(const Stream& waitOn) const override {
    FL_API_ENTRY();
    if (waitOn.type() != Derived::type)
      throwUser<std::runtime_error>("Stream::relativeSync: streams of different types");
    relativeSync(waitOn.impl<Derived>());
  }
};

}  // namespace fl
