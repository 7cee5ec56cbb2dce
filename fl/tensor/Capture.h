// What recording a function (fl/lazy/Compile.h) has to learn while the function runs: which tensors
// it reads and assigns, and which of its numbers are new at each call.
#pragma once

#include <compare>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>

#include "fl/ir/Graph.h"
#include "fl/tensor/TensorBase.h"

namespace fl {
namespace detail {

struct StorageIdentity;
struct TensorStorage;

// A tensor, as one that is assigned to stays the same; keeps nothing alive. One that is moved from
// stays the same, too, with the value of Tensor() (and an adapter).
class TensorRef {
 public:
  explicit TensorRef(const std::shared_ptr<TensorStorage>& storage);

  // Whether it is not gone.
  bool exists() const;
  // What a read of it gives, a view's whole; null once it is gone.
  TensorValue value() const;
  // Of that, without making it of a sparse matrix.
  std::optional<ir::ValueType> type() const;
  // In its storage, so that views show it, too.
  void assign(TensorValue value) const;
  // Views show its storage, or the host, to which it is locked.
  bool isShown() const;
  // Nobody else has the elements, which are computed.
  bool ownsData() const;
  // Changes when views that were there show something else: the tensor has another storage, or one
  // of them has.
  uint64_t views() const;

  friend auto operator<=>(const TensorRef&, const TensorRef&) = default;

 private:
  std::shared_ptr<StorageIdentity> identity_;
};

using NextNumber = std::function<Number()>;

// Hears of what happens on a thread while a CaptureScope lives there.
class Capture {
 public:
  // What the tensor reads as there, with the elements of `value`. `madeIn`: the recording, or 0.
  virtual TensorValue onRead(const TensorRef& tensor, TensorValue value, uint64_t madeIn) = 0;
  // The elements of `value` are asked for, which may have to be computed first. Backends tell it.
  virtual void onHostRead(const TensorAdapterBase& value) = 0;
  // A view that was there before the scope is read or written.
  virtual void onView(const TensorRef& tensor) = 0;
  // The shape or the dtype of a tensor that was there before the scope is asked for.
  virtual void onType(const TensorRef& tensor, const ir::ValueType& type) = 0;
  // Of such a tensor. One that `rebinds` has a storage of its own from then on.
  virtual void onAssign(const TensorRef& tensor, bool rebinds) = 0;
  // `number` is what `next` gave, or `from` in another dtype.
  virtual void onNumber(const TensorValue& number, NextNumber next) = 0;
  virtual void onCast(const TensorValue& from, const TensorValue& number) = 0;

 protected:
  ~Capture() = default;
};

extern constinit thread_local Capture* activeCapture;
extern constinit thread_local uint64_t activeRecording;  // the scope's number, or 0

class CaptureScope {
 public:
  explicit CaptureScope(Capture& capture);
  ~CaptureScope();
  CaptureScope(const CaptureScope&) = delete;
  CaptureScope& operator=(const CaptureScope&) = delete;
};

}  // namespace detail

// A number of shape {} that the host computes: next()'s. A function that was compiled (fl::compile)
// calls `next` again at each call, in the order of recording; it must live as long as the function.
Tensor hostNumber(detail::NextNumber next);

}  // namespace fl
