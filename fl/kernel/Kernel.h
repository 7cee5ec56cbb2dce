// The kernel form: the contract between fusion, every executor and the artifact store.
//
// A kernel is a nest of at most kMaxRank merged axes with run-time extents (axis 0 is the fastest
// in the API's order), operands at base + sum(stride * index), and a list of stages. Axes in
// `reduced` are swept; the other axes are kept. Its domain is the number of kept elements, in
// column-major order of the kept axes; an executor runs any part [begin, end) of it, and the parts
// may run in any order and on any thread with the same result.
//
// For each kept element the stages run in order. A `sweep` stage visits every reduced element;
// other stages run once. A map is a kernel without reduced axes and with one stage that is no
// sweep.
//
// Reductions follow one tree, which depends on extents alone. Executors must match it bit for bit:
//
// n = extent of the lowest reduced axis. The combinations of indices of the other reduced axes, if
// any, are the "turns", in column-major order. A chunk is kRowChunk elements of the lowest reduced
// axis in rows (axis 0 is reduced) and kColumnChunk in columns (axis 0 is kept); the last may be
// shorter. Totals have the type totalType(op, type) and are rounded to `type` at the end.
//   total = init
//   for each group of turnsTogether(n, chunk) turns (the last may be smaller):
//     for each chunk:  total = op(total, part)
// The part of a group and a chunk, in columns:
//   p = init
//   for each turn of the group, each i of the chunk:  p = op(p, value(i))
// and in rows, where m is the chunk's length rounded down to a multiple of 32:
//   a[0..31] = t[0..15] = init
//   for each turn of the group:
//     for i < m:            a[i % 32] = op(a[i % 32], value(i))
//     for m <= i < length:  t[(i - m) % 16] = op(t[(i - m) % 16], value(i))
//   s[l] = op(op(a[l], a[l + 16]), t[l])                    for l < 16
//   s[l] = op(s[l], s[l + w])  for w = 8, 4, 2, 1 and l < w;  p = s[0]
// So at most 128 values of f32 are added one after the other, and their sums in f64.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "fl/ir/BadIndex.h"
#include "fl/ir/Op.h"

namespace fl {
class Lexer;
}

namespace fl::ir {

inline constexpr int kMaxRank = 8;
// More operands or numbers than this are no single kernel; what fusion groups never has as many.
inline constexpr int kMaxOperands = 256;
inline constexpr int kLanes = 16;
inline constexpr int64_t kRowChunk = 1 << 12, kColumnChunk = 128, kMaxTurnsTogether = 64;
// KernelArgs::scratch is kMaxKeptRows rows of values of up to 8 bytes, each with a vector behind
// it.
inline constexpr int64_t kMaxKeptRow = 1 << 14, kMaxKeptRows = 4;
inline constexpr int64_t kKeptRowBytes = 8 * (kMaxKeptRow + kLanes);
constexpr int64_t turnsTogether(int64_t length, int64_t chunk) {
  return length == 0 ? 1 : std::clamp<int64_t>(chunk / length, 1, kMaxTurnsTogether);
}
constexpr dtype totalType(Op op, dtype type) {
  return op == Op::Sum && type == dtype::f32 ? dtype::f64 : type;
}

// What code generation may assume of a stride; its value is a run-time argument in any case.
enum class Stride : uint8_t { Zero, One, Any };

struct KernelOperand {
  // An Index operand has no memory: its element is base + sum(stride * index), as s64.
  enum class Role : uint8_t { Input, Output, Index };
  Role role = Role::Input;
  dtype type = dtype::f32;
  std::vector<Stride> strides;  // one an axis; for outputs, Zero along reduced axes
  bool operator==(const KernelOperand&) const = default;
};

// One value of a kernel's body; `args` are indices of earlier values.
struct KernelValue {
  enum class Form : uint8_t {
    Load,    // element of operand `index` (Input or Index)
    Scalar,  // run-time number `index`
    Apply,   // `op` of `args`: elementwise kinds, Cast to `type`, or Random
    Gather,  // element args[0] of operand `index`, an Input whose strides are all Zero
    Total,   // result of reduction `index`, available after its stage
  };
  Form form = Form::Load;
  Op op = Op::Add;
  dtype type = dtype::f32;
  int index = -1;
  // Random takes (seed: u64, offset: u64, linear index: s64), or two numbers in (0, 1] of its own
  // type, of which it makes a normal one. Gather takes (element, index,
  // bound), all s64; it reads nothing and reports the index unless 0 <= index < bound.
  std::vector<int> args;
  // Apply: 16-bit floats are made of the result, an f32, for which the short formulas of
  // fl/ir/VectorMath.h will do.
  bool isShort = false;
  bool operator==(const KernelValue&) const = default;
};

// Functions that no instruction computes, which have short formulas.
constexpr bool isApproximated(const OpInfo& info) {
  return (info.kind == Kind::Unary || info.kind == Kind::Binary) && info.types == Types::Float &&
         info.ulp >= 1;
}

// True if the op Random draws a number here, rather than making a normal one of two.
inline bool drawsNumber(const KernelValue& value) {
  return value.form == KernelValue::Form::Apply && value.op == Op::Random && value.args.size() == 3;
}

struct KernelStage {
  struct Store {
    int operand;  // an Output
    int value;
    bool operator==(const Store&) const = default;
  };
  struct Reduce {
    Op op;      // of kind Reduce
    int value;  // swept; its type is the type of the total
    int index;  // number of the reduction, counted over the kernel
    bool operator==(const Reduce&) const = default;
  };
  bool sweep = false;
  std::vector<Store> stores;
  std::vector<Reduce> reduces;  // only in sweeps
  bool operator==(const KernelStage&) const = default;
};

struct Kernel {
  int rank = 1;
  uint32_t reduced = 0;  // bit a: axis a is swept
  std::vector<KernelOperand> operands;
  std::vector<dtype> scalars;
  std::vector<KernelValue> values;  // in order of definition
  std::vector<KernelStage> stages;

  bool isReduced(int axis) const { return reduced >> axis & 1; }
  // Which tree reductions follow, if there are any.
  bool rows() const { return isReduced(0); }
  bool columns() const { return reduced != 0 && !rows(); }
  int reductionCount() const;
  // The one whose result a Total is.
  const KernelStage::Reduce& reductionOf(const KernelValue& total) const;
  int gatherCount() const { return gatherNumber(static_cast<int>(values.size())); }
  // How many Gathers stand before a value.
  int gatherNumber(int value) const;
  bool operator==(const Kernel&) const = default;
};

// 16-bit floats are loaded, selected and stored as they are; arithmetic on them is explicit: no
// other ops than Cast and Where take or give values of type f16 or bf16.

// The run-time arguments of one launch.
struct KernelArgs {
  void* const* data;             // one an operand; an Index operand's holds its base as an integer
  const int64_t* extents;        // [rank]
  const int64_t* strides;        // [operands][rank], in elements
  const uint64_t* scalars;       // one a scalar, the element in the low bytes
  BadIndex* badIndex = nullptr;  // needed by kernels with a Gather
  void* scratch = nullptr;       // where Artifact.h says so; undefined afterwards
  // Of code that finds NaN (DeviceKernel::findsNan): one a value, the least place so far at which
  // it is NaN though no argument is or infinite though all are finite; of a sum, at which it is
  // either.
  uint64_t* found = nullptr;
  const int64_t* places = nullptr;  // [rank], from a place to the next along each axis
};

// Returns -1, or the number of a Gather (counted over the kernel's values) that found an index out
// of bounds, and which in *badIndex; outputs are then undefined.
using KernelFunction = int64_t (*)(const KernelArgs* args, int64_t begin, int64_t end);

// Bit a of each value: it varies along axis a.
std::vector<uint32_t> variedAxes(const Kernel& kernel);

// Number of kept elements.
int64_t kernelDomain(const Kernel& kernel, const int64_t* extents);

// True for a map with an input or output that lies along axis 1 in memory while axis 0 crosses it,
// as a transpose's input does. Executors walk it in tiles of both axes, so that each cache line is
// used up while it is near.
bool crossesMemory(const Kernel& kernel);
bool crossesMemory(const Kernel& kernel, const KernelOperand& operand);

// The kernel that counts along axes 0 and 1 in each other's place. Of one that reduces one of them
// the domain is the same; how its sums are stated to be added up is not.
Kernel axesExchanged(Kernel kernel);

// Throws InternalError unless every rule above holds.
void verify(const Kernel& kernel);

// Canonical text; `parseKernel(printKernel(k)) == k`.
std::string printKernel(const Kernel& kernel, const std::string& name);
Kernel parseKernel(const std::string& text);
// The text from `rank=` on, inside a larger form.
Kernel parseKernel(Lexer& lexer);

}  // namespace fl::ir
