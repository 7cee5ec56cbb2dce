// Library operators on the CPU: GEMM, convolution, pooling and attention by oneDNN, run
// single-threaded on slices in our thread pool. Slices depend on shapes only, never on the number
// of threads, so that results are the same bits for any number.
//
// A LibraryFunction is prepared once for an operator's types and attributes (primitives are created
// then) and run many times from any thread. The files: Matmul (with SmallMatmul, loops for what is
// over before oneDNN begins, and DoubleMatmul, for f64), Convolution (with ConvolutionPlan, which
// chooses slices and layouts), Pool, OneDnn for what they share.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "fl/host/ThreadPool.h"
#include "fl/ir/Graph.h"
#include "fl/kernel/Schedule.h"

namespace fl::library {

// What a call computes: an op of kind Library, or one that no kernel holds, on contiguous
// column-major operands.
struct LibraryCall {
  ir::Op op = ir::Op::Matmul;
  ir::Attrs attrs;
  std::vector<ir::ValueType> operands;
  ir::ValueType result;
  bool operator==(const LibraryCall&) const = default;
};

class LibraryFunction;

// How a function wants an operand that is the same from run to run, a filter: packed once.
struct Packing {
  int operand;
  size_t bytes;  // of the packed operand
  // Names the layout: where it is the same, equal operands are the same bytes.
  std::string form;
  // What runs with the packed operand in the place of the operand.
  std::shared_ptr<LibraryFunction> function;
};

class PartedFunction;

class LibraryFunction {
 public:
  virtual ~LibraryFunction() = default;
  // Itself if it makes its result in parts, otherwise null.
  virtual const PartedFunction* parted() const { return nullptr; }
  // Bytes of scratch memory, 64-byte aligned, that run() needs.
  virtual size_t scratchBytes() const = 0;
  // Operands and result must not overlap. Thread-safe if each call has its own scratch memory.
  // No memory is allocated but oneDNN's small argument objects and dnnl_sgemm's packing buffers.
  virtual void run(void* const* operands, void* result, void* scratch,
                   host::ThreadPool& pool) const = 0;
  // Null if all operands are used as they lie.
  virtual const Packing* packing() const { return nullptr; }
  // Packs the operand that packing() names; `scratch` is as run()'s.
  virtual void pack(const void*, void* /*packed*/, void* /*scratch*/) const {}
  // How many of the images that a convolution or pooling reads and writes it reorders; for tests.
  virtual int imageReorders() const { return 0; }
  // The implementation's name, as the library gives it; for logs and tests.
  virtual std::string implementation() const = 0;
};

// A function that makes its result in parts, so that what follows can take each part while it is in
// the caches of the thread that has made it.
class PartedFunction : public LibraryFunction {
 public:
  const PartedFunction* parted() const final { return this; }
  // Elements of which every part is a multiple; 0: parts are no runs of the result's memory.
  virtual int64_t partElements() const = 0;
  // How many parts may be made at the same time.
  virtual int64_t parts() const = 0;
  // Told of elements [begin, end) of the result by the thread that has just made them.
  using PartDone = absl::FunctionRef<void(int64_t begin, int64_t end)>;
  // As run(); `done` is told of every element once, unless partElements() is 0.
  virtual void runInParts(void* const* operands, void* result, void* scratch,
                          host::ThreadPool& pool, PartDone done) const = 0;
  void run(void* const* operands, void* result, void* scratch, host::ThreadPool& pool) const final {
    runInParts(operands, result, scratch, pool, [](int64_t, int64_t) {});
  }
};

// Where a process may map less, what makes a function throws OutOfMemory.
constexpr size_t kMostCode = size_t{8} << 20;

// The function of a call, from a process-wide cache; null where the definition (for primitives: the
// reference interpreter) must stand in: other dtypes than f32, f16, bf16 and, for products, f64;
// empty tensors; shapes that oneDNN refuses or has only reference code for.
// Creating one takes 0.1 to 5 ms, finding it 0.1 us.
std::shared_ptr<LibraryFunction> cachedLibrary(const LibraryCall& call);
// How many were made so far; for tests.
uint64_t functionsMade();
std::shared_ptr<LibraryFunction> functionOf(const ir::LibraryStep& step);
// What the function of a step needs, 0 if there is none.
size_t scratchBytes(const ir::Schedule& schedule, int step);

// Whether there is one; if so, it is in the cache afterwards.
bool librarySupports(const LibraryCall& call);

// Throws InternalError if !librarySupports(call).
std::shared_ptr<LibraryFunction> prepareLibrary(const LibraryCall& call);

}  // namespace fl::library
