// Tensor and its functions, with Flashlight's names, parameter orders and semantics: column-major,
// broadcasting from the first dimension, value semantics for copies, aliasing for indexing.
//
// A Tensor is (storage, view): a storage holds its current immutable value; reading a view records
// that view of the value, writing through a view records an update and swaps the storage's value.
// Copying a tensor copies the value (no data moves). Every function checks its arguments at the
// call and throws std::invalid_argument naming operator, types, rule and the caller's line. Nothing
// here computes: cost is that of the backend's apply(), below a microsecond when it records.
#pragma once

#include <array>
#include <memory>
#include <ostream>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "fl/base/CallSite.h"
#include "fl/base/Shape.h"
#include "fl/device/Stream.h"
#include "fl/tensor/TensorBackend.h"
#include "fl/tensor/TensorValue.h"

namespace fl {

struct Index;
class Tensor;

enum class Location { Host, Device };
using MemoryLocation = Location;
enum class StorageType { Dense = 0, CSR = 1, CSC = 2, COO = 3 };
enum class PadType { Constant, Edge, Symmetric };
enum class SortMode { Descending = 0, Ascending = 1 };
enum class MatrixProperty { None = 0, Transpose = 1 };

namespace detail {
struct SparseMatrix;
struct TensorStorage;
struct TensorView;
enum class Write;

// The tensor's value, which leaves the tensor empty. Values are shared, not owned by one tensor.
TensorValue releaseAdapter(Tensor&& tensor);
TensorValue releaseAdapterUnsafe(Tensor& tensor);
}  // namespace detail

class Tensor {
 public:
  // An empty f32 tensor of shape (0).
  Tensor();
  ~Tensor();
  Tensor(const Tensor& tensor);
  Tensor(Tensor&& tensor) noexcept;
  // Uninitialised elements.
  explicit Tensor(const Shape& shape, dtype type = dtype::f32);
  explicit Tensor(dtype type);
  explicit Tensor(std::unique_ptr<TensorAdapterBase> adapter);
  // Only of a TensorValue: braces are a shape's.
  template <typename Value>
    requires std::is_same_v<Value, TensorValue>
  explicit Tensor(Value value) {
    hold(std::move(value));
  }
  // A sparse matrix of values at (rowIdx, colIdx); CSR gives the offsets where rows begin (nRows +
  // 1 of them) in place of row indices, CSC those of columns. Values at one place are added. An
  // index out of range is an error of what reads it.
  Tensor(const Dim nRows, const Dim nCols, const Tensor& values, const Tensor& rowIdx,
         const Tensor& colIdx, StorageType storageType);

  // Templates take the caller's line themselves, and stay out of line for it.

  // Copy host memory in, column-major: as many elements as the shape has, or fewer throw.
  template <typename T>
  [[gnu::noinline]] static Tensor fromVector(Shape s, std::vector<T> v, dtype type) {
    FL_API_ENTRY();
    return fromHost(s, v.data(), v.size(), dtype_traits<T>::fl_type, type);
  }
  template <typename T>
  [[gnu::noinline]] static Tensor fromVector(Shape s, std::vector<T> v) {
    FL_API_ENTRY();
    return fromVector(std::move(s), std::move(v), dtype_traits<T>::fl_type);
  }
  template <typename T>
  [[gnu::noinline]] static Tensor fromVector(std::vector<T> v) {
    FL_API_ENTRY();
    const Shape shape({static_cast<Dim>(v.size())});
    return fromVector(shape, std::move(v), dtype_traits<T>::fl_type);
  }
  template <typename T, std::size_t N>
  [[gnu::noinline]] static Tensor fromArray(Shape s, std::array<T, N> a, dtype type) {
    FL_API_ENTRY();
    return fromHost(s, a.data(), N, dtype_traits<T>::fl_type, type);
  }
  template <typename T, std::size_t N>
  [[gnu::noinline]] static Tensor fromArray(Shape s, std::array<T, N> a) {
    FL_API_ENTRY();
    return fromArray(std::move(s), std::move(a), dtype_traits<T>::fl_type);
  }
  template <typename T, std::size_t N>
  [[gnu::noinline]] static Tensor fromArray(std::array<T, N> a) {
    FL_API_ENTRY();
    return fromArray(Shape({static_cast<Dim>(N)}), std::move(a), dtype_traits<T>::fl_type);
  }
  template <typename T>
  [[gnu::noinline]] static Tensor fromBuffer(Shape s, const T* ptr, Location) {
    FL_API_ENTRY();
    return fromHost(s, ptr, s.elements(), dtype_traits<T>::fl_type, dtype_traits<T>::fl_type);
  }
  static Tensor fromBuffer(Shape s, dtype t, const uint8_t* ptr, Location memoryLocation);

  Tensor copy() const;
  const Shape& shape() const;
  Location location() const;
  size_t elements() const { return shape().elements(); }
  // Throws std::invalid_argument if there is no such dimension.
  Dim dim(const size_t dim) const;
  int ndim() const { return shape().ndim(); }
  bool isEmpty() const { return elements() == 0; }
  // False for a tensor that is Tensor(), was moved from or whose value was released, until it is
  // written to, indexed or given a context.
  bool hasAdapter() const;
  // The backend's state of the value, as the class that the backend says it has; it lives until
  // this tensor is written to. A view becomes a tensor of its own.
  template <typename T>
  T& getAdapter() const {
    return static_cast<T&>(adapter());
  }
  size_t bytes() const { return elements() * getTypeSize(type()); }
  dtype type() const;
  // Until it is written to. matmul takes a sparse left side as it is; all else reads the dense
  // matrix it stands for.
  bool isSparse() const;
  bool isContiguous() const { return true; }
  Shape strides() const { return Shape(contiguousStrides(shape())); }
  const Stream& stream() const;
  TensorBackendType backendType() const { return backend().backendType(); }
  TensorBackend& backend() const;
  std::string toString() const;
  std::ostream& operator<<(std::ostream& ostr) const;

  Tensor astype(const dtype type) const;
  // Views: they alias this tensor's storage until it is assigned another value.
  Tensor operator()(const std::vector<Index>& indices) const;
  template <typename... Ts>
  [[gnu::noinline]] Tensor operator()(const Ts&... args) const {
    FL_API_ENTRY();
    return (*this)(std::vector<Index>{Index(args)...});
  }
  // Indexes the column-major flattening.
  Tensor flat(const Index& idx) const;
  // Values, not views.
  Tensor flatten() const;
  Tensor asContiguousTensor() const { return copy(); }

  // The first element; throws unless T is the type that stores type(), or if empty.
  template <typename T>
  T scalar() const;
  // The first element, cast.
  template <typename T>
  [[gnu::noinline]] T asScalar() const {
    FL_API_ENTRY();
    checkHasElement("asScalar");
    if constexpr (std::is_same_v<T, bool>) {
      return astype(dtype::b8).template scalar<char>() != 0;
    } else if constexpr (std::is_same_v<T, char>) {
      return static_cast<char>(astype(dtype::s64).template scalar<long long>());  // b8 is no number
    } else {
      return astype(dtype_traits<T>::fl_type).template scalar<T>();
    }
  }
  // Copies the elements to `ptr`; the other form returns memory that the caller frees with free(),
  // nullptr for an empty tensor.
  template <typename T>
  [[gnu::noinline]] void host(T* ptr) const {
    FL_API_ENTRY();
    checkHostType<T>("host");
    toHost(ptr);
  }
  template <typename T>
  [[gnu::noinline]] T* host() const {
    FL_API_ENTRY();
    checkHostType<T>("host");
    return static_cast<T*>(hostCopy());
  }
  template <typename T>
  [[gnu::noinline]] std::vector<T> toHostVector() const {
    FL_API_ENTRY();
    checkHostType<T>("toHostVector");
    std::vector<T> values;
    if (!reserve(&values)) throwNoHostMemory("toHostVector");
    values.resize(elements());
    toHost(values.data());
    return values;
  }

  // The memory of the elements, nullptr for an empty tensor. It stays this tensor's, and what is
  // written there is seen by later calls, until unlock(), or until the tensor is assigned another's
  // value, which frees it; meanwhile every read copies, and x op= y keeps the dtype, to which its
  // result is cast. A view becomes a tensor of its own. T is the type that stores type(), or an
  // integer of its size where that is an integer, or void; also in the functions above.
  template <typename T>
  [[gnu::noinline]] T* device() const {
    FL_API_ENTRY();
    checkHostType<T>("device");
    return static_cast<T*>(lock());
  }
  template <typename T>
  [[gnu::noinline]] void device(T** ptr) const {
    FL_API_ENTRY();
    *ptr = device<T>();
  }
  void unlock() const;
  bool isLocked() const;
  // A pointer that the tensor carries and never uses; copies have none.
  void setContext(void* context);
  void* getContext() const;

  // An lvalue is bound to a copy of the other's value: after `Tensor v; v = x(0);` updates of x do
  // not show in v, as they do in `Tensor v = x(0);`. An rvalue (a view: x(idx) = y) writes through.
  Tensor& operator=(Tensor&& other) &;
  Tensor& operator=(Tensor&& other) &&;
  Tensor& operator=(const Tensor& other) &;
  Tensor& operator=(const Tensor& other) &&;
  Tensor& operator+=(const Tensor& value);
  Tensor& operator-=(const Tensor& value);
  Tensor& operator*=(const Tensor& value);
  Tensor& operator/=(const Tensor& value);
  // Scalars fill or update in place; shape and dtype stay. In a view the number is cast to that
  // dtype first, so that `x(0) /= 0.5` divides integers by 0, which gives 0. All of b8 takes it as
  // a char, as full() does: filled with 42 it holds 42.
#define FL_DECLARE(T)                 \
  Tensor& operator=(const T& value);  \
  Tensor& operator+=(const T& value); \
  Tensor& operator-=(const T& value); \
  Tensor& operator*=(const T& value); \
  Tensor& operator/=(const T& value);
  FL_FOR_EACH_SCALAR_TYPE(FL_DECLARE)
#undef FL_DECLARE

  // The parts of a sparse matrix, else null (for matmul).
  std::shared_ptr<const detail::SparseMatrix> sparseMatrix() const;
  // The current immutable value (for backends and tools); records the view's reads.
  TensorValue value() const;

 private:
  friend TensorValue detail::releaseAdapterUnsafe(Tensor& tensor);
  void hold(TensorValue value);
  // Drops what this tensor is and shows; a recorded function knows it as the same (Capture.h).
  void hold(std::shared_ptr<detail::TensorStorage> storage);
  static Tensor fromHost(const Shape& shape, const void* data, size_t count, dtype from, dtype to);
  // Gives a Tensor() the storage of the empty tensor that it stands for.
  void makeSureOfStorage() const;
  // Tell a function that is recorded (Capture.h) what it asks of a tensor outside it.
  void noteType() const;
  void noteView() const;
  void toHost(void* data) const;
  void* hostCopy() const;
  TensorAdapterBase& adapter() const;
  void* lock() const;
  void setValue(TensorValue value) const;
  template <typename T>
  void checkHostType(const char* function) const {
    if constexpr (!std::is_void_v<T>) checkHostType(dtype_traits<T>::fl_type, function);
  }
  void checkHostType(dtype type, const char* function) const;
  template <typename T>
  bool reserve(std::vector<T>* values) const try {
    values->reserve(elements());
    return true;
  } catch (const std::bad_alloc&) {
    return false;
  }
  [[noreturn]] void throwNoHostMemory(const char* function) const;
  void checkScalarRead(dtype type) const;
  void checkHasElement(const char* function) const;
  detail::TensorView currentView() const;
  // What `view` shows of this storage.
  Tensor viewed(detail::TensorView view) const;
  // Replaces this tensor's elements by those of `value`, cast; through the view if there is one.
  void write(const Tensor& value);
  void put(const Tensor& source, detail::Write write);
  bool accumulates(ir::Op op) const;
  Tensor& updateInPlace(ir::Op op, const Tensor& rhs);
  Tensor& updateInPlace(ir::Op op, const Number& rhs);

  // Mutable, because a view that is locked becomes a tensor of its own.
  mutable std::shared_ptr<detail::TensorStorage> storage_;
  mutable std::shared_ptr<const detail::TensorView> view_;
};

#define FL_DECLARE(T) \
  template <>         \
  T Tensor::scalar<T>() const;
FL_FOR_EACH_HOST_TYPE(FL_DECLARE)
#undef FL_DECLARE

// ---- Creation ----
// A scalar tensor of shape {}.
template <typename T>
Tensor fromScalar(const T& value, const dtype type = dtype_traits<T>::ctype);
template <typename T>
Tensor full(const Shape& dims, const T& value, const dtype type = dtype_traits<T>::ctype);
Tensor identity(const Dim dim, const dtype type = dtype::f32);
// trunc((end - start) / step) elements start, start + step, ...
template <typename T>
Tensor arange(const T& start, const T& end, const T& step = 1,
              const dtype type = dtype_traits<T>::ctype);
// The index along `seqDim`.
Tensor arange(const Shape& shape, const Dim seqDim = 0, const dtype type = dtype::f32);
// The column-major linear index of `dims`, tiled.
Tensor iota(const Shape& dims, const Shape& tileDims = {1}, const dtype type = dtype::f32);

// ---- Shape ----
Tensor reshape(const Tensor& tensor, const Shape& shape);
// Dimension i of the result is dimension axes[i]; no axes reverse all. One dimension stays as it
// is, whatever the axes.
Tensor transpose(const Tensor& tensor, const Shape& axes = {});
Tensor tile(const Tensor& tensor, const Shape& shape);
// Tensors of shape (0) are left out, unless all are; of no tensors it is Tensor().
// The others must have one dtype, else std::invalid_argument names the two that differ.
Tensor concatenate(const std::vector<Tensor>& tensors, const unsigned axis = 0);
template <typename... Ts>
[[gnu::noinline]] Tensor concatenate(unsigned axis, const Ts&... args) {
  FL_API_ENTRY();
  return concatenate(std::vector<Tensor>{args...}, axis);
}
// The u32 column-major indices of the elements that are not 0, in order. Reads the tensor, which
// has up to 2^32 elements, as masks have.
Tensor nonzero(const Tensor& tensor);
// A pair (before, after) a dimension; those behind the last are of size 1.
Tensor pad(const Tensor& input, const std::vector<std::pair<int, int>>& padWidths,
           const PadType type = PadType::Constant);
Tensor flip(const Tensor& tensor, const unsigned dim);
// Elements move up by `shift` along `axis` and come in again at the other end.
Tensor roll(const Tensor& tensor, const int shift, const unsigned axis);
// The elements on and below (above) the diagonal of the first two dimensions, 0 elsewhere.
Tensor tril(const Tensor& tensor);
Tensor triu(const Tensor& tensor);
// A number counts as a tensor of f32: integers and 16-bit floats become f32, f64 stays f64.
Tensor clip(const Tensor& tensor, const Tensor& low, const Tensor& high);
Tensor clip(const Tensor& tensor, const Tensor& low, const double& high);
Tensor clip(const Tensor& tensor, const double& low, const Tensor& high);
Tensor clip(const Tensor& tensor, const double& low, const double& high);
// A number becomes of the tensor's dtype.
Tensor where(const Tensor& condition, const Tensor& x, const Tensor& y);
Tensor where(const Tensor& condition, const Tensor& x, const double& y);
Tensor where(const Tensor& condition, const double& x, const Tensor& y);

// ---- The elementwise operators and plain reductions of fl/ir/Ops.def, whose rows say what is not
// obvious. Unary ones take (tensor), binary ones (lhs, rhs); integers become f32 for functions of
// floats. Reductions take the axes to reduce, which go unless keepDims; no axes means all. ----
#define FL_UNARY(Name, name) Tensor name(const Tensor& tensor);
#define FL_BINARY(Name, name) Tensor name(const Tensor& lhs, const Tensor& rhs);
#define FL_REDUCE(Name, name) \
  Tensor name(const Tensor& input, const std::vector<int>& axes = {}, const bool keepDims = false);
#include "fl/tensor/Functions.def"
Tensor operator-(const Tensor& tensor);
Tensor operator!(const Tensor& tensor);
Tensor abs(const Tensor& tensor);
Tensor sigmoid(const Tensor& tensor);

// ---- Operators of binary functions, and their forms with each scalar type on either side ----
// A number of the array's own dtype keeps it, and so does a floating one with a floating array;
// another counts as its dtype_traits<>::ctype, so that a `long` wraps at 32 bits unless the array
// has 64.
#define FL_DECLARE_SCALAR(T, FUNC, OP)                 \
  Tensor FUNC(const Tensor& lhs, const T& rhs);        \
  Tensor FUNC(const T& lhs, const Tensor& rhs);        \
  Tensor operator OP(const Tensor& lhs, const T& rhs); \
  Tensor operator OP(const T& lhs, const Tensor& rhs);
#define FL_DECLARE_BINARY(FUNC, OP)                         \
  Tensor operator OP(const Tensor& lhs, const Tensor& rhs); \
  FL_FOR_EACH_SCALAR_TYPE(FL_DECLARE_SCALAR, FUNC, OP)
#define FL_FOR_EACH_BINARY_OPERATOR(X) \
  X(add, +)                            \
  X(sub, -)                            \
  X(mul, *)                            \
  X(div, /)                            \
  X(eq, ==)                            \
  X(neq, !=)                           \
  X(lessThan, <)                       \
  X(lessThanEqual, <=)                 \
  X(greaterThan, >)                    \
  X(greaterThanEqual, >=)              \
  X(logicalOr, ||)                     \
  X(logicalAnd, &&)                    \
  X(mod, %)                            \
  X(bitwiseAnd, &)                     \
  X(bitwiseOr, |)                      \
  X(bitwiseXor, ^)                     \
  X(lShift, <<)                        \
  X(rShift, >>)
FL_FOR_EACH_BINARY_OPERATOR(FL_DECLARE_BINARY)
#undef FL_DECLARE_BINARY
#undef FL_DECLARE_SCALAR

// A number counts as a tensor of f32, as in clip().
Tensor minimum(const Tensor& lhs, const double& rhs);
Tensor minimum(const double& lhs, const Tensor& rhs);
Tensor maximum(const Tensor& lhs, const double& rhs);
Tensor maximum(const double& lhs, const Tensor& rhs);
Tensor power(const Tensor& lhs, const double& rhs);
Tensor power(const double& lhs, const Tensor& rhs);

// (M,K) x (K,N) -> (M,N); 1-D operands are a row on the left and a column on the right; further
// dimensions are a batch, equal on both sides or absent on one. Both sides must have one dtype,
// else std::invalid_argument names the two. Integers are multiplied and added in their own dtype.
// Subnormal operands of bf16 may count as 0 (oneDNN's products with AVX512_BF16).
Tensor matmul(const Tensor& lhs, const Tensor& rhs, MatrixProperty lhsProp = MatrixProperty::None,
              MatrixProperty rhsProp = MatrixProperty::None);

// ---- Order, along one axis; NaN comes last, upwards and downwards ----
// Integers narrower than 32 bits are summed as in sum().
// Adds in the dtype of the result, 16-bit floats in f32; a line of more than 64 floats that are
// neighbours in groups, with the total of f32 in f64, so that long ones round little.
Tensor cumsum(const Tensor& input, const unsigned axis);
Tensor sort(const Tensor& input, const Dim axis, const SortMode sortMode = SortMode::Ascending);
// Also the u32 indices that sort; equal elements keep their order.
void sort(Tensor& values, Tensor& indices, const Tensor& input, const Dim axis,
          const SortMode sortMode = SortMode::Ascending);
Tensor argsort(const Tensor& input, const Dim axis, const SortMode sortMode = SortMode::Ascending);
// The first k of sort(), in time that grows with the length of the axis and k log k.
void topk(Tensor& values, Tensor& indices, const Tensor& input, const unsigned k, const Dim axis,
          const SortMode sortMode = SortMode::Descending);

// ---- Reductions; no axes means all. Reduced dimensions go unless keepDims ----
// The extreme along one axis and its first index (u32).
void min(Tensor& values, Tensor& indices, const Tensor& input, const unsigned axis,
         const bool keepDims = false);
void max(Tensor& values, Tensor& indices, const Tensor& input, const unsigned axis,
         const bool keepDims = false);
Tensor argmax(const Tensor& input, const unsigned axis, const bool keepDims = false);
Tensor argmin(const Tensor& input, const unsigned axis, const bool keepDims = false);
Tensor mean(const Tensor& input, const std::vector<int>& axes = {}, const bool keepDims = false);
// bias = false divides by N, true by N - 1.
Tensor var(const Tensor& input, const std::vector<int>& axes = {}, const bool bias = false,
           const bool keepDims = false);
// The middle element, or the mean of the middle two; NaN if there is any.
Tensor median(const Tensor& input, const std::vector<int>& axes = {}, const bool keepDims = false);
Tensor std(const Tensor& input, const std::vector<int>& axes = {}, const bool keepDims = false);
Tensor norm(const Tensor& input, const std::vector<int>& axes = {}, double p = 2,
            const bool keepDims = false);
Tensor countNonzero(const Tensor& input, const std::vector<int>& axes = {},
                    const bool keepDims = false);
Tensor any(const Tensor& input, const std::vector<int>& axes = {}, const bool keepDims = false);
Tensor all(const Tensor& input, const std::vector<int>& axes = {}, const bool keepDims = false);

// ---- Utilities ----
std::ostream& operator<<(std::ostream& ostr, const Tensor& tensor);
void print(const Tensor& tensor);
// Equal dtype and shape, and max |a - b| below the tolerance.
bool allClose(const Tensor& a, const Tensor& b, const double absTolerance = 1e-5);
// True if any element is NaN or infinite.
bool isInvalidArray(const Tensor& tensor);
std::string tensorBackendTypeToString(const TensorBackendType type);
std::ostream& operator<<(std::ostream& os, const TensorBackendType type);

namespace detail {

// Whether all have the first one's backend, or dtype.
bool areBackendsEqual(const Tensor& a, const Tensor& b);
bool areTensorTypesEqual(const Tensor& a, const Tensor& b);
template <typename... Args>
bool areBackendsEqual(const Tensor& a, const Tensor& b, const Args&... args) {
  return areBackendsEqual(a, b) && areBackendsEqual(a, args...);
}
template <typename... Args>
bool areTensorTypesEqual(const Tensor& a, const Tensor& b, const Args&... args) {
  return areTensorTypesEqual(a, b) && areTensorTypesEqual(a, args...);
}

// For FL_TENSOR_DTYPES_MATCH_CHECK.
[[noreturn]] void throwDtypesDiffer(const char* function, const std::vector<Tensor>& tensors);

}  // namespace detail
}  // namespace fl

// Throws std::invalid_argument that names the calling function, its line of call and the types
// unless the tensors have one dtype.
#define FL_TENSOR_DTYPES_MATCH_CHECK(...)                       \
  do {                                                          \
    if (!::fl::detail::areTensorTypesEqual(__VA_ARGS__)) {      \
      FL_API_ENTRY();                                           \
      ::fl::detail::throwDtypesDiffer(__func__, {__VA_ARGS__}); \
    }                                                           \
  } while (false)

// An Index holds a Tensor.
#include "fl/tensor/Index.h"
