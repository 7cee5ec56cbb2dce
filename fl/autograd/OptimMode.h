// Mixed precision: the floating type that differentiable functions compute in.
//
// A function that says FL_ADJUST_INPUT_TYPE(input) casts the input as the level in force wants it;
// the cast is differentiable, so gradients come back in the type of what was given. Nothing is cast
// at level DEFAULT, nor ever an input that is no float. Functions that combine Variables compare
// their types after the cast.
#pragma once

#include <string>
#include <unordered_map>
#include <unordered_set>

#include "fl/base/Types.h"

namespace fl {

// The functions that take part are matrix products, convolutions, reductions, norms, softmax,
// losses and those that grow fast, such as exp and pow. All others, as pooling, rnn and arithmetic,
// compute in the types that they are given, which are 16 bits behind one that takes part.
enum class OptimLevel {
  // In the types of the inputs.
  DEFAULT = 0,
  // In 16 bits, except for what adds up many values or grows fast.
  O1 = 1,
  // In 16 bits, except for batch normalization.
  O2 = 2,
  // In 16 bits, all of them.
  O3 = 3,
};

// The level in force, one for all threads: set it while no other thread calls functions.
class OptimMode {
 public:
  static OptimMode& get();

  OptimLevel getOptimLevel();
  void setOptimLevel(OptimLevel level);

  // The type of 16 bits, f16 unless it is set to bf16, which keeps the range of f32. Throws
  // std::invalid_argument for any other. Flashlight knows f16 alone.
  dtype getType();
  void setType(dtype type);

  // The level of that name; throws std::invalid_argument if there is none.
  static OptimLevel toOptimLevel(const std::string& in);
  static const std::unordered_map<std::string, OptimLevel> kStringToOptimLevel;

 private:
  OptimLevel optimLevel_ = OptimLevel::DEFAULT;
  dtype type_ = dtype::f16;
};

namespace detail {

// The functions that compute in 32 bits at each level.
extern const std::unordered_map<OptimLevel, std::unordered_set<std::string>>
    kOptimLevelTypeExclusionMappings;

// What the function `funcname` casts an input of type `type` to.
dtype adjustedType(dtype type, const char* funcname);

// A Tensor or Variable in the type that the function `funcname` computes in; itself, not a copy, if
// it has that type already.
template <typename T>
T adjustInputType(const T& in, const char* funcname) {
  const dtype type = adjustedType(in.type(), funcname);
  return type == in.type() ? in : in.astype(type);
}

}  // namespace detail

// The input as the function that says this is to compute with it.
#define FL_ADJUST_INPUT_TYPE(INPUT) ::fl::detail::adjustInputType(INPUT, __func__)

}  // namespace fl
