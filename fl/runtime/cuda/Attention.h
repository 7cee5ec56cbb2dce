// Attention and its gradients in 16 bits by cuDNN: scores are never in memory going forward, and
// once, in 16 bits, for the gradients, which are deterministic so.
//
// cuDNN wants the features of a position contiguous, where ours has the positions of a feature: a
// kernel transposes what it is given and gives (fl/kernel/cuda/Transpose.h). The operator's
// gradients are not given what the forward pass has kept, and run it again.
#pragma once

#include <memory>
#include <optional>

#include "fl/runtime/cuda/CudnnCall.h"

namespace fl::runtime::cuda {

struct AttentionShape {
  dtype type;
  int64_t queries, keys, features, heads, batch;
  struct Mask {
    int64_t queries, heads, batch;  // 1 where it has one for all
  };
  std::optional<Mask> mask;  // of all keys
};

// None for what is not for cuDNN: other dtypes, few queries or keys, and what is known to go wrong.
std::optional<AttentionShape> attentionShape(const OperatorCall& call);

// Tell cuDNN of either direction. Buffers are numbered as here; the mask is there if there is one,
// and what stands behind it moves up otherwise. Need no GPU; throw library::cuda::CudnnRefusal.
//
// All are (features, positions, heads, batch), the mask is (keys, queries, heads, batch), and
// statistics and sums are f32 of (queries, heads, batch).
enum class Forward { Query, Key, Value, Statistics, Mask, Output };
void describeForward(library::cuda::CudnnGraph& graph, const AttentionShape& shape);
enum class Backward {
  Query,
  Key,
  Value,
  Output,
  GradOutput,
  Statistics,
  Sums,
  GradKey,
  GradValue,
  Mask,
  GradQuery,
  One,  // a number of the host
};
void describeBackward(library::cuda::CudnnGraph& graph, const AttentionShape& shape);

// Null for other operators, and where cuDNN has no plan or is not there.
std::shared_ptr<const DeviceCall> findAttention(Context& context, const OperatorCall& call);

}  // namespace fl::runtime::cuda
