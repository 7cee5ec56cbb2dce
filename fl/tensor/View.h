// Views: how an indexed tensor lies in its storage, and reading and writing through it.
#pragma once

#include <atomic>
#include <vector>

#include "fl/base/CallSite.h"
#include "fl/tensor/Capture.h"
#include "fl/tensor/TensorBase.h"

namespace fl::detail {

struct SparseMatrix;

struct StorageIdentity;

struct TensorStorage {
  TensorValue value;  // null while it is sparse
  std::shared_ptr<const SparseMatrix> sparse = nullptr;
  // A program holds a pointer to the value's memory and may write to it: the value is this
  // storage's alone, and whoever reads it takes a copy.
  bool locked = false;
  bool isNone = false;  // of a Tensor(), which has no adapter
  void* context = nullptr;
  // Of the tensor that has it, once a recorded function met that (Capture.h).
  std::shared_ptr<StorageIdentity> identity = nullptr;
  uint64_t recording = activeRecording;  // that its tensor was made in, or 0

  // Nobody else has the elements, which are computed.
  bool ownsData() const { return value && isHeldBy(1, value) && value->ownsData(); }
};

// A tensor whichever storage it has: assignment gives it another, and that the identity.
struct StorageIdentity {
  std::weak_ptr<TensorStorage> storage;
  std::atomic<uint64_t> views = 0;  // TensorRef::views()
};

ir::ValueType typeOf(const TensorStorage& storage);
// The value that a storage holds now.
TensorValue readStorage(const TensorStorage& storage);
void writeStorage(TensorStorage& storage, TensorValue value);

// One move from a value to a part of it.
struct ViewMove {
  enum class Kind : uint8_t {
    Reshape,  // the same elements in another shape
    Box,      // a strided box: starts, strides
    Lookup,   // the elements at `index` along `axis`
  };
  Kind kind;
  Shape shape;  // after the move
  std::vector<Dim> starts;
  std::vector<Dim> strides;
  int axis = 0;
  TensorValue index = nullptr;  // s64, 1 in all dimensions but `axis`
  CallSite site = {};           // of the call that looks up, with the shape that it indexes
};

struct TensorView {
  std::vector<ViewMove> moves;
  Shape shape;
  // Of the call that indexed last.
  CallSite site = {};
  uint64_t recording = activeRecording;  // that it was made in, or 0
  mutable bool isMet = false;            // by a function that is recorded

  // True if a Lookup may name an element twice.
  bool hasLookups() const;
  // Indexes what the view shows. Tensors as indices are flattened and select along their dimension,
  // several of them every combination; those of b8 select where they hold, which reads them at the
  // call. A single one with as many elements as the shape indexes the flattening. Indices behind
  // the last dimension are for dimensions of 1, which vanish. Throws std::invalid_argument for
  // literals and ranges out of bounds and for empty ranges; `type` is the tensor's, for its words.
  void index(const std::vector<Index>& indices, dtype type);
  // Indexes the column-major flattening.
  void flat(const Index& index, dtype type);
};

TensorValue readView(const TensorValue& value, const TensorView& view);

// What happens to elements that a view names more than once: the last write holds, or all count.
enum class Write { Replace, Add };
// `value` with the view's elements replaced by `box`, or with `box` added to them. The box has the
// view's shape and value's dtype.
TensorValue writeView(const TensorValue& value, const TensorView& view, const TensorValue& box,
                      Write write);

}  // namespace fl::detail
