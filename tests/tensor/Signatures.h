// The tensor API's functions, methods and constructors with Flashlight's exact types and default
// arguments: a program that takes their addresses, overloads beside them or leaves arguments out
// compiles here as it does there. Nothing runs. Each entry was compared with the declaration of
// Flashlight's header that the section names.
#pragma once

#include <array>
#include <functional>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <unordered_set>
#include <variant>
#include <vector>

#include "fl/autograd/tensor/AutogradExtension.h"
#include "fl/autograd/tensor/AutogradOps.h"
#include "fl/runtime/CachingMemoryManager.h"
#include "fl/runtime/DefaultMemoryManager.h"
#include "fl/runtime/MemoryManagerInstaller.h"
#include "fl/tensor/tensor.h"
#include "tests/ExactTypes.h"

namespace fl::testing {

using Axes = const std::vector<int>&;
using T = const Tensor&;
using std::declval;

// ---- TensorBase.h, Random.h: creation and random ----
#define FL_OF_NUMBERS(N)                                                      \
  FL_SIGNATURE(fl::fromScalar<N>, Tensor (*)(const N&, const dtype));         \
  FL_SIGNATURE(fl::full<N>, Tensor (*)(const Shape&, const N&, const dtype)); \
  FL_CALL(fl::fromScalar(declval<N>()), Tensor);                              \
  FL_CALL(fl::full(Shape(), declval<N>()), Tensor);
FL_FOR_EACH_SCALAR_TYPE(FL_OF_NUMBERS)
#undef FL_OF_NUMBERS
#define FL_OF_STEPS(N)                                                                \
  FL_SIGNATURE(fl::arange<N>, Tensor (*)(const N&, const N&, const N&, const dtype)); \
  FL_CALL(fl::arange(declval<N>(), declval<N>()), Tensor);
FL_OF_STEPS(double)
FL_OF_STEPS(float)
FL_OF_STEPS(int)
FL_OF_STEPS(unsigned)
FL_OF_STEPS(long)
FL_OF_STEPS(unsigned long)
FL_OF_STEPS(long long)
FL_OF_STEPS(unsigned long long)
#undef FL_OF_STEPS
FL_SIGNATURE(fl::identity, Tensor (*)(const Dim, const dtype));
FL_CALL(fl::identity(1), Tensor);
FL_SIGNATURE(fl::arange, Tensor (*)(const Shape&, const Dim, const dtype));
FL_CALL(fl::arange(Shape()), Tensor);
FL_SIGNATURE(fl::iota, Tensor (*)(const Shape&, const Shape&, const dtype));
FL_CALL(fl::iota(Shape()), Tensor);
FL_SIGNATURE(fl::setSeed, void (*)(const int));
FL_SIGNATURE(fl::randn, Tensor (*)(const Shape&, dtype));
FL_CALL(fl::randn(Shape()), Tensor);
FL_SIGNATURE(fl::rand, Tensor (*)(const Shape&, dtype));
FL_CALL(fl::rand(Shape()), Tensor);

// ---- Shape ----
FL_SIGNATURE(fl::reshape, Tensor (*)(T, const Shape&));
FL_SIGNATURE(fl::transpose, Tensor (*)(T, const Shape&));
FL_CALL(fl::transpose(declval<T>()), Tensor);
FL_SIGNATURE(fl::tile, Tensor (*)(T, const Shape&));
FL_SIGNATURE(fl::concatenate, Tensor (*)(const std::vector<Tensor>&, const unsigned));
FL_CALL(fl::concatenate(std::vector<Tensor>()), Tensor);
FL_SIGNATURE(fl::nonzero, Tensor (*)(T));
FL_SIGNATURE(fl::pad, Tensor (*)(T, const std::vector<std::pair<int, int>>&, const PadType));
FL_CALL(fl::pad(declval<T>(), {}), Tensor);

// ---- Unary and selection ----
#define FL_UNARY(name) FL_SIGNATURE(fl::name, Tensor (*)(T));
FL_UNARY(exp)
FL_UNARY(log)
FL_UNARY(negative)
FL_UNARY(logicalNot)
FL_UNARY(log1p)
FL_UNARY(sin)
FL_UNARY(cos)
FL_UNARY(sqrt)
FL_UNARY(tanh)
FL_UNARY(floor)
FL_UNARY(ceil)
FL_UNARY(rint)
FL_UNARY(absolute)
FL_UNARY(abs)
FL_UNARY(sigmoid)
FL_UNARY(erf)
FL_UNARY(isnan)
FL_UNARY(isinf)
FL_UNARY(sign)
FL_UNARY(tril)
FL_UNARY(triu)
FL_UNARY(operator!)
FL_UNARY(operator-)
#undef FL_UNARY
FL_SIGNATURE(fl::flip, Tensor (*)(T, const unsigned));
FL_SIGNATURE(fl::roll, Tensor (*)(T, const int, const unsigned));
FL_SIGNATURE(fl::clip, Tensor (*)(T, T, T));
FL_SIGNATURE(fl::clip, Tensor (*)(T, T, const double&));
FL_SIGNATURE(fl::clip, Tensor (*)(T, const double&, T));
FL_SIGNATURE(fl::clip, Tensor (*)(T, const double&, const double&));
FL_SIGNATURE(fl::where, Tensor (*)(T, T, T));
FL_SIGNATURE(fl::where, Tensor (*)(T, T, const double&));
FL_SIGNATURE(fl::where, Tensor (*)(T, const double&, T));

// ---- Order ----
FL_SIGNATURE(fl::topk, void (*)(Tensor&, Tensor&, T, const unsigned, const Dim, const SortMode));
FL_CALL(fl::topk(declval<Tensor&>(), declval<Tensor&>(), declval<T>(), 1, 0), void);
FL_SIGNATURE(fl::sort, Tensor (*)(T, const Dim, const SortMode));
FL_CALL(fl::sort(declval<T>(), 0), Tensor);
FL_SIGNATURE(fl::sort, void (*)(Tensor&, Tensor&, T, const Dim, const SortMode));
FL_CALL(fl::sort(declval<Tensor&>(), declval<Tensor&>(), declval<T>(), 0), void);
FL_SIGNATURE(fl::argsort, Tensor (*)(T, const Dim, const SortMode));
FL_CALL(fl::argsort(declval<T>(), 0), Tensor);

// ---- Binary: the function and its operator in 27 forms each ----
#define FL_WITH_NUMBER(name, N)                \
  FL_SIGNATURE(name, Tensor (*)(T, const N&)); \
  FL_SIGNATURE(name, Tensor (*)(const N&, T));
#define FL_FORMS(name)                     \
  FL_SIGNATURE(name, Tensor (*)(T, T));    \
  FL_WITH_NUMBER(name, bool)               \
  FL_WITH_NUMBER(name, int)                \
  FL_WITH_NUMBER(name, unsigned)           \
  FL_WITH_NUMBER(name, char)               \
  FL_WITH_NUMBER(name, unsigned char)      \
  FL_WITH_NUMBER(name, long)               \
  FL_WITH_NUMBER(name, unsigned long)      \
  FL_WITH_NUMBER(name, long long)          \
  FL_WITH_NUMBER(name, unsigned long long) \
  FL_WITH_NUMBER(name, double)             \
  FL_WITH_NUMBER(name, float)              \
  FL_WITH_NUMBER(name, short)              \
  FL_WITH_NUMBER(name, unsigned short)
#define FL_BINARY(name, op) FL_FORMS(fl::name) FL_FORMS(fl::operator op)
FL_FOR_EACH_BINARY_OPERATOR(FL_BINARY)
#undef FL_BINARY
#undef FL_FORMS
#undef FL_WITH_NUMBER
#define FL_EXTREME(name)                                \
  FL_SIGNATURE(fl::name, Tensor (*)(T, T));             \
  FL_SIGNATURE(fl::name, Tensor (*)(T, const double&)); \
  FL_SIGNATURE(fl::name, Tensor (*)(const double&, T));
FL_EXTREME(minimum)
FL_EXTREME(maximum)
FL_EXTREME(power)
#undef FL_EXTREME
FL_SIGNATURE(fl::matmul, Tensor (*)(T, T, MatrixProperty, MatrixProperty));
FL_CALL(fl::matmul(declval<T>(), declval<T>()), Tensor);

// ---- Reductions ----
#define FL_REDUCTION(name)                                 \
  FL_SIGNATURE(fl::name, Tensor (*)(T, Axes, const bool)); \
  FL_CALL(fl::name(declval<T>()), Tensor);
FL_REDUCTION(amin)
FL_REDUCTION(amax)
FL_REDUCTION(sum)
FL_REDUCTION(mean)
FL_REDUCTION(median)
FL_REDUCTION(std)
FL_REDUCTION(countNonzero)
FL_REDUCTION(any)
FL_REDUCTION(all)
#undef FL_REDUCTION
FL_SIGNATURE(fl::var, Tensor (*)(T, Axes, const bool, const bool));
FL_CALL(fl::var(declval<T>()), Tensor);
FL_SIGNATURE(fl::norm, Tensor (*)(T, Axes, double, const bool));
FL_CALL(fl::norm(declval<T>()), Tensor);
FL_SIGNATURE(fl::cumsum, Tensor (*)(T, const unsigned));
FL_SIGNATURE(fl::argmax, Tensor (*)(T, const unsigned, const bool));
FL_CALL(fl::argmax(declval<T>(), 0), Tensor);
FL_SIGNATURE(fl::argmin, Tensor (*)(T, const unsigned, const bool));
FL_CALL(fl::argmin(declval<T>(), 0), Tensor);
FL_SIGNATURE(fl::min, void (*)(Tensor&, Tensor&, T, const unsigned, const bool));
FL_CALL(fl::min(declval<Tensor&>(), declval<Tensor&>(), declval<T>(), 0), void);
FL_SIGNATURE(fl::max, void (*)(Tensor&, Tensor&, T, const unsigned, const bool));
FL_CALL(fl::max(declval<Tensor&>(), declval<Tensor&>(), declval<T>(), 0), void);

// ---- Computation, devices, utilities ----
FL_SIGNATURE(fl::sync, void (*)());
FL_SIGNATURE(fl::sync, void (*)(const int));
FL_SIGNATURE(fl::sync, void (*)(const std::unordered_set<DeviceType>&));
FL_SIGNATURE(fl::sync, void (*)(const std::unordered_set<const Device*>&));
FL_SIGNATURE(fl::relativeSync, void (*)(const Stream&, const std::vector<const Tensor*>&));
FL_SIGNATURE(fl::relativeSync, void (*)(const Stream&, const std::vector<Tensor>&));
FL_SIGNATURE(fl::relativeSync, void (*)(const std::vector<Tensor>&, const Stream&));
FL_SIGNATURE(fl::eval, void (*)(Tensor&));
FL_SIGNATURE(fl::getDevice, int (*)());
FL_SIGNATURE(fl::setDevice, void (*)(const int));
FL_SIGNATURE(fl::getDeviceCount, int (*)());
FL_SIGNATURE(fl::detail::getMemMgrInfo, void (*)(const char*, const int, std::ostream*));
FL_CALL(fl::detail::getMemMgrInfo("", 0), void);
FL_SIGNATURE(fl::detail::setMemMgrLogStream, void (*)(std::ostream*));
FL_SIGNATURE(fl::detail::setMemMgrLoggingEnabled, void (*)(const bool));
FL_SIGNATURE(fl::detail::setMemMgrFlushInterval, void (*)(const size_t));
FL_SIGNATURE(fl::init, void (*)());
FL_SIGNATURE(fl::allClose, bool (*)(T, T, const double));
FL_CALL(fl::allClose(declval<T>(), declval<T>()), bool);
FL_SIGNATURE(fl::isInvalidArray, bool (*)(T));
FL_SIGNATURE(fl::print, void (*)(T));
FL_SIGNATURE(fl::operator<<, std::ostream& (*)(std::ostream&, T));
FL_SIGNATURE(fl::tensorBackendTypeToString, std::string (*)(const TensorBackendType));
FL_SIGNATURE(fl::getTypeSize, size_t (*)(dtype));
FL_SIGNATURE(fl::dtypeToString, const std::string& (*)(dtype));
FL_SIGNATURE(fl::stringToDtype, dtype (*)(const std::string&));

// ---- backend/af/mem: memory managers, where dim_t is Dim ----
static_assert(std::is_same_v<Dim, long long>);
using MemoryDevice = std::shared_ptr<MemoryManagerDeviceInterface>;
FL_CALL(std::declval<MemoryManagerDeviceInterface>().getActiveDeviceId, GetActiveDeviceIdFn);
FL_CALL(std::declval<MemoryManagerDeviceInterface>().getMaxMemorySize, GetMaxMemorySizeFn);
FL_CALL(std::declval<MemoryManagerDeviceInterface>().nativeAlloc, NativeAllocFn);
FL_CALL(std::declval<MemoryManagerDeviceInterface>().nativeFree, NativeFreeFn);
FL_CALL(std::declval<MemoryManagerDeviceInterface>().getMemoryPressureThreshold,
        GetMemoryPressureThresholdFn);
FL_CALL(std::declval<MemoryManagerDeviceInterface>().setMemoryPressureThreshold,
        SetMemoryPressureThresholdFn);
static_assert(std::is_same_v<GetMaxMemorySizeFn, std::function<size_t(int)>>);
static_assert(std::is_same_v<NativeAllocFn, std::function<void*(size_t)>>);
static_assert(std::is_same_v<NativeFreeFn, std::function<void(void*)>>);

#define FL_OF_MANAGER(M)                                                         \
  FL_METHOD(M::initialize, void (M::*)());                                       \
  FL_METHOD(M::shutdown, void (M::*)());                                         \
  FL_METHOD(M::alloc, void* (M::*)(bool, const unsigned, Dim*, const unsigned)); \
  FL_METHOD(M::allocated, size_t (M::*)(void*));                                 \
  FL_METHOD(M::unlock, void (M::*)(void*, bool));                                \
  FL_METHOD(M::signalMemoryCleanup, void (M::*)());                              \
  FL_METHOD(M::printInfo, void (M::*)(const char*, const int, std::ostream*));   \
  FL_CALL(declval<M&>().printInfo("", 0), void);                                 \
  FL_METHOD(M::userLock, void (M::*)(const void*));                              \
  FL_METHOD(M::userUnlock, void (M::*)(const void*));                            \
  FL_METHOD(M::isUserLocked, bool (M::*)(const void*));                          \
  FL_METHOD(M::getMemoryPressure, float (M::*)());                               \
  FL_METHOD(M::jitTreeExceedsMemoryPressure, bool (M::*)(size_t));               \
  FL_METHOD(M::addMemoryManagement, void (M::*)(int));                           \
  FL_METHOD(M::removeMemoryManagement, void (M::*)(int));
FL_OF_MANAGER(MemoryManagerAdapter)
FL_OF_MANAGER(CachingMemoryManager)
FL_OF_MANAGER(DefaultMemoryManager)
#undef FL_OF_MANAGER
FL_METHOD(MemoryManagerAdapter::getMemStepSize, size_t (MemoryManagerAdapter::*)());
FL_METHOD(MemoryManagerAdapter::setMemStepSize, void (MemoryManagerAdapter::*)(size_t));
FL_METHOD(MemoryManagerAdapter::log<int>, void (MemoryManagerAdapter::*)(std::string, int));
FL_METHOD(MemoryManagerAdapter::setLogStream, void (MemoryManagerAdapter::*)(std::ostream*));
FL_METHOD(MemoryManagerAdapter::getLogStream, std::ostream* (MemoryManagerAdapter::*)() const);
FL_METHOD(MemoryManagerAdapter::setLoggingEnabled, void (MemoryManagerAdapter::*)(bool));
FL_METHOD(MemoryManagerAdapter::setLogFlushInterval, void (MemoryManagerAdapter::*)(size_t));
static_assert(std::is_same_v<decltype(MemoryManagerAdapter::deviceInterface), const MemoryDevice>);
static_assert(std::is_abstract_v<MemoryManagerAdapter>);
FL_TAKES(CachingMemoryManager, 2, int, MemoryDevice);
FL_METHOD(CachingMemoryManager::setRecyclingSizeLimit, void (CachingMemoryManager::*)(size_t));
FL_METHOD(CachingMemoryManager::setSplitSizeLimit, void (CachingMemoryManager::*)(size_t));
FL_TAKES(DefaultMemoryManager, 4, int, unsigned, bool, MemoryDevice);
FL_METHOD(DefaultMemoryManager::setMaxMemorySize, void (DefaultMemoryManager::*)());
FL_METHOD(DefaultMemoryManager::getMaxBytes, size_t (DefaultMemoryManager::*)());
FL_METHOD(DefaultMemoryManager::getMaxBuffers, unsigned (DefaultMemoryManager::*)());
FL_METHOD(DefaultMemoryManager::checkMemoryLimit, bool (DefaultMemoryManager::*)());
using Installer = MemoryManagerInstaller;
FL_TAKES(Installer, 1, std::shared_ptr<MemoryManagerAdapter>);
FL_METHOD(Installer::getMemoryManager<DefaultMemoryManager>,
          std::shared_ptr<DefaultMemoryManager> (Installer::*)() const);
FL_METHOD(Installer::setAsMemoryManager, void (Installer::*)());
FL_METHOD(Installer::setAsMemoryManagerPinned, void (Installer::*)());
FL_SIGNATURE(Installer::currentlyInstalledMemoryManager, MemoryManagerAdapter* (*)());
FL_SIGNATURE(Installer::installDefaultMemoryManager, void (*)());
FL_SIGNATURE(Installer::unsetMemoryManager, void (*)());

// ---- TensorBase.h: helpers of functions that take several tensors ----
FL_SIGNATURE(fl::concatenate, Tensor (*)(unsigned, T, T, T));
FL_SIGNATURE(fl::operator<<, std::ostream& (*)(std::ostream&, const TensorBackendType));
FL_SIGNATURE(fl::detail::areTensorTypesEqual, bool (*)(T, T));
FL_SIGNATURE(fl::detail::areBackendsEqual, bool (*)(T, T));
FL_SIGNATURE(fl::defaultTensorBackend, TensorBackend& (*)());
using Registrar = detail::TensorExtensionRegistrar;
FL_SIGNATURE(Registrar::getInstance, Registrar& (*)());
FL_METHOD(Registrar::registerTensorExtension,
          bool (Registrar::*)(TensorBackendType, TensorExtensionType,
                              detail::TensorExtensionCallback&&));
FL_METHOD(Registrar::isTensorExtensionRegistered,
          bool (Registrar::*)(TensorBackendType, TensorExtensionType));
FL_METHOD(Registrar::getTensorExtensionCreationFunc,
          detail::TensorExtensionCallback& (Registrar::*)(TensorBackendType, TensorExtensionType));
FL_SIGNATURE(fl::registerTensorExtension<AutogradExtension>, bool (*)(TensorBackendType));
FL_TAKES(TensorExtensionRegisterer<AutogradExtension>, 1, TensorBackendType);
FL_METHOD(TensorBackend::isDataTypeSupported, bool (TensorBackend::*)(const dtype&) const);
FL_METHOD(TensorBackend::supportsDataType, bool (TensorBackend::*)(const dtype&) const);
FL_METHOD(TensorBackend::getExtension<AutogradExtension>, AutogradExtension& (TensorBackend::*)());
FL_METHOD(TensorExtensionBase::isDataTypeSupported,
          bool (TensorExtensionBase::*)(const dtype&) const);
FL_SIGNATURE(fl::detail::releaseAdapter, TensorValue (*)(Tensor&&));
FL_SIGNATURE(fl::detail::releaseAdapterUnsafe, TensorValue (*)(Tensor&));
FL_SIGNATURE((fl::toTensor<TensorAdapterBase, const Shape&, dtype>),
             Tensor (*)(const Shape&, dtype&&));
FL_SIGNATURE(fl::to<DefaultTensorType_t>, Tensor (*)(Tensor&&));
FL_SIGNATURE(fl::toTensorType<DefaultTensorType_t>, Tensor (*)(Tensor&&));
FL_SIGNATURE(fl::setDefaultTensorType<DefaultTensorType_t>, void (*)());
FL_SIGNATURE((fl::withTensorType<DefaultTensorType_t, void (*)()>), void (*)(void (*)()));

// ---- TensorBase.h: Tensor ----
static_assert(std::is_nothrow_move_constructible_v<Tensor>);
static_assert(std::is_copy_constructible_v<Tensor> && std::is_default_constructible_v<Tensor>);
static_assert(std::is_constructible_v<Tensor, const Shape&> &&
              std::is_constructible_v<Tensor, const Shape&, dtype> &&
              std::is_constructible_v<Tensor, dtype> &&
              std::is_constructible_v<Tensor, std::unique_ptr<TensorAdapterBase>> &&
              std::is_constructible_v<Tensor, const Dim, const Dim, T, T, T, StorageType>);
// No number, dtype or shape becomes a tensor by itself.
static_assert(!std::is_convertible_v<Shape, Tensor> && !std::is_convertible_v<dtype, Tensor> &&
              !std::is_convertible_v<double, Tensor>);
#define FL_FACTORIES(N)                                                                \
  FL_SIGNATURE(Tensor::fromVector<N>, Tensor (*)(Shape, std::vector<N>));              \
  FL_SIGNATURE(Tensor::fromVector<N>, Tensor (*)(Shape, std::vector<N>, dtype));       \
  FL_SIGNATURE(Tensor::fromVector<N>, Tensor (*)(std::vector<N>));                     \
  FL_SIGNATURE((Tensor::fromArray<N, 3>), Tensor (*)(Shape, std::array<N, 3>));        \
  FL_SIGNATURE((Tensor::fromArray<N, 3>), Tensor (*)(Shape, std::array<N, 3>, dtype)); \
  FL_SIGNATURE((Tensor::fromArray<N, 3>), Tensor (*)(std::array<N, 3>));               \
  FL_SIGNATURE(Tensor::fromBuffer<N>, Tensor (*)(Shape, const N*, Location));          \
  FL_METHOD(Tensor::scalar<N>, N (Tensor::*)() const);                                 \
  FL_METHOD(Tensor::asScalar<N>, N (Tensor::*)() const);                               \
  FL_METHOD(Tensor::device<N>, N* (Tensor::*)() const);                                \
  FL_METHOD(Tensor::device<N>, void (Tensor::*)(N**) const);                           \
  FL_METHOD(Tensor::host<N>, N* (Tensor::*)() const);                                  \
  FL_METHOD(Tensor::host<N>, void (Tensor::*)(N*) const);                              \
  FL_METHOD(Tensor::toHostVector<N>, std::vector<N> (Tensor::*)() const);
FL_FACTORIES(int)
FL_FACTORIES(unsigned)
FL_FACTORIES(char)
FL_FACTORIES(unsigned char)
FL_FACTORIES(long)
FL_FACTORIES(unsigned long)
FL_FACTORIES(long long)
FL_FACTORIES(unsigned long long)
FL_FACTORIES(double)
FL_FACTORIES(float)
FL_FACTORIES(short)
FL_FACTORIES(unsigned short)
#undef FL_FACTORIES
FL_SIGNATURE(Tensor::fromBuffer, Tensor (*)(Shape, dtype, const uint8_t*, Location));
FL_METHOD(Tensor::device<void>, void* (Tensor::*)() const);
FL_METHOD(Tensor::device<void>, void (Tensor::*)(void**) const);
FL_METHOD(Tensor::host<void>, void* (Tensor::*)() const);
FL_METHOD(Tensor::host<void>, void (Tensor::*)(void*) const);
FL_METHOD(Tensor::copy, Tensor (Tensor::*)() const);
FL_METHOD(Tensor::shape, const Shape& (Tensor::*)() const);
FL_METHOD(Tensor::location, Location (Tensor::*)() const);
FL_METHOD(Tensor::elements, size_t (Tensor::*)() const);
FL_METHOD(Tensor::dim, Dim (Tensor::*)(const size_t) const);
FL_METHOD(Tensor::ndim, int (Tensor::*)() const);
FL_METHOD(Tensor::isEmpty, bool (Tensor::*)() const);
FL_METHOD(Tensor::hasAdapter, bool (Tensor::*)() const);
FL_METHOD(Tensor::bytes, size_t (Tensor::*)() const);
FL_METHOD(Tensor::type, dtype (Tensor::*)() const);
FL_METHOD(Tensor::isSparse, bool (Tensor::*)() const);
FL_METHOD(Tensor::strides, Shape (Tensor::*)() const);
FL_METHOD(Tensor::stream, const Stream& (Tensor::*)() const);
FL_METHOD(Tensor::astype, Tensor (Tensor::*)(const dtype) const);
FL_METHOD(Tensor::operator(), Tensor (Tensor::*)(const std::vector<Index>&) const);
FL_METHOD(Tensor::operator(), Tensor (Tensor::*)(const int&, const range&, T) const);
FL_METHOD(Tensor::flatten, Tensor (Tensor::*)() const);
FL_METHOD(Tensor::flat, Tensor (Tensor::*)(const Index&) const);
FL_METHOD(Tensor::asContiguousTensor, Tensor (Tensor::*)() const);
FL_METHOD(Tensor::backendType, TensorBackendType (Tensor::*)() const);
FL_METHOD(Tensor::getAdapter<DefaultTensorType_t>, DefaultTensorType_t& (Tensor::*)() const);
FL_METHOD(Tensor::backend, TensorBackend& (Tensor::*)() const);
FL_METHOD(Tensor::unlock, void (Tensor::*)() const);
FL_METHOD(Tensor::isLocked, bool (Tensor::*)() const);
FL_METHOD(Tensor::isContiguous, bool (Tensor::*)() const);
FL_METHOD(Tensor::setContext, void (Tensor::*)(void*));
FL_METHOD(Tensor::getContext, void* (Tensor::*)() const);
FL_METHOD(Tensor::toString, std::string (Tensor::*)() const);
FL_METHOD(Tensor::operator<<, std::ostream& (Tensor::*)(std::ostream&) const);
#define FL_ASSIGNMENTS(N)                                       \
  FL_METHOD(Tensor::operator=, Tensor& (Tensor::*)(const N&));  \
  FL_METHOD(Tensor::operator+=, Tensor& (Tensor::*)(const N&)); \
  FL_METHOD(Tensor::operator-=, Tensor& (Tensor::*)(const N&)); \
  FL_METHOD(Tensor::operator*=, Tensor& (Tensor::*)(const N&)); \
  FL_METHOD(Tensor::operator/=, Tensor& (Tensor::*)(const N&));
FL_FOR_EACH_SCALAR_TYPE(FL_ASSIGNMENTS)
#undef FL_ASSIGNMENTS
FL_METHOD(Tensor::operator+=, Tensor& (Tensor::*)(T));
FL_METHOD(Tensor::operator-=, Tensor& (Tensor::*)(T));
FL_METHOD(Tensor::operator*=, Tensor& (Tensor::*)(T));
FL_METHOD(Tensor::operator/=, Tensor& (Tensor::*)(T));
FL_METHOD(Tensor::operator=, Tensor& (Tensor::*)(Tensor&&)&);
FL_METHOD(Tensor::operator=, Tensor& (Tensor::*)(Tensor&&) &&);
FL_METHOD(Tensor::operator=, Tensor& (Tensor::*)(T) &);
FL_METHOD(Tensor::operator=, Tensor& (Tensor::*)(T) &&);

// ---- Shape.h ----
static_assert(std::is_same_v<Dim, long long>);
static_assert(std::is_same_v<decltype(Shape::kMaxDims), const size_t>);
static_assert(std::is_default_constructible_v<Shape> &&
              std::is_constructible_v<Shape, std::vector<Dim>> &&
              !std::is_convertible_v<std::vector<Dim>, Shape> &&
              std::is_convertible_v<std::initializer_list<Dim>, Shape>);
FL_METHOD(Shape::elements, Dim (Shape::*)() const);
FL_METHOD(Shape::ndim, int (Shape::*)() const);
FL_METHOD(Shape::dim, Dim (Shape::*)(const size_t) const);
FL_METHOD(Shape::operator[], Dim& (Shape::*)(const size_t));
FL_METHOD(Shape::operator[], const Dim& (Shape::*)(const size_t) const);
FL_METHOD(Shape::operator==, bool (Shape::*)(const Shape&) const);
FL_METHOD(Shape::operator!=, bool (Shape::*)(const Shape&) const);
FL_METHOD(Shape::operator==, bool (Shape::*)(const std::initializer_list<Dim>&) const);
FL_METHOD(Shape::operator!=, bool (Shape::*)(const std::initializer_list<Dim>&) const);
FL_METHOD(Shape::get, const std::vector<Dim>& (Shape::*)() const);
FL_METHOD(Shape::get, std::vector<Dim>& (Shape::*)());
FL_METHOD(Shape::toString, std::string (Shape::*)() const);
FL_SIGNATURE(fl::operator<<, std::ostream& (*)(std::ostream&, const Shape&));

// ---- Types.h ----
FL_SIGNATURE(fl::operator<<, std::ostream& (*)(std::ostream&, const dtype&));
#define FL_TRAITS(N)                                                              \
  static_assert(std::is_same_v<decltype(dtype_traits<N>::fl_type), const dtype>); \
  static_assert(std::is_same_v<decltype(dtype_traits<N>::ctype), const dtype>);   \
  static_assert(std::is_same_v<dtype_traits<N>::base_type, N>);                   \
  FL_SIGNATURE(dtype_traits<N>::getName, const char* (*)());
FL_FOR_EACH_SCALAR_TYPE(FL_TRAITS)
#undef FL_TRAITS

// ---- Index.h ----
static_assert(std::is_same_v<decltype(fl::end), const end_t>);
static_assert(std::is_same_v<decltype(fl::span), const range>);
static_assert(std::is_default_constructible_v<range> && std::is_constructible_v<range, Dim> &&
              !std::is_convertible_v<Dim, range> && std::is_constructible_v<range, Dim, Dim> &&
              std::is_constructible_v<range, Dim, end_t> &&
              std::is_constructible_v<range, Dim, end_t, Dim>);
FL_METHOD(range::start, Dim (range::*)() const);
FL_METHOD(range::end, const std::optional<Dim>& (range::*)() const);
FL_METHOD(range::endVal, Dim (range::*)() const);
FL_METHOD(range::stride, Dim (range::*)() const);
FL_METHOD(range::operator==, bool (range::*)(const range&) const);
FL_METHOD(range::operator!=, bool (range::*)(const range&) const);
static_assert(std::is_same_v<Index::IndexVariant, std::variant<Dim, range, Tensor>>);
static_assert(std::is_convertible_v<Tensor, Index> && std::is_convertible_v<range, Index> &&
              std::is_convertible_v<Dim, Index> && std::is_convertible_v<int, Index> &&
              !std::is_default_constructible_v<Index>);
FL_METHOD(Index::type, detail::IndexType (Index::*)() const);
FL_METHOD(Index::isSpan, bool (Index::*)() const);
FL_METHOD(Index::get<Dim>, const Dim& (Index::*)() const);
FL_METHOD(Index::get<range>, const range& (Index::*)() const);
FL_METHOD(Index::get<Tensor>, const Tensor& (Index::*)() const);
FL_METHOD(Index::get<Tensor>, Tensor& (Index::*)());
FL_METHOD(Index::getVariant, Index::IndexVariant (Index::*)() const);

// ---- Device.h, DeviceType.h, DeviceManager.h ----
using Streams = std::unordered_set<std::shared_ptr<Stream>>;
FL_SIGNATURE(fl::deviceTypeToString, std::string (*)(const DeviceType));
FL_SIGNATURE(fl::operator<<, std::ostream& (*)(std::ostream&, const DeviceType&));
FL_SIGNATURE(fl::getDeviceTypes, const std::unordered_set<DeviceType>& (*)());
FL_SIGNATURE(fl::deviceImplTypeCheck, void (*)(DeviceType, DeviceType));
static_assert(std::is_same_v<decltype(kDefaultDeviceType), const DeviceType>);
static_assert(std::is_same_v<decltype(kX64DeviceId), const int>);
static_assert(std::is_abstract_v<Device> && !std::is_copy_constructible_v<Device> &&
              !std::is_move_constructible_v<Device> && !std::is_copy_assignable_v<Device>);
FL_METHOD(Device::getStreams, const Streams& (Device::*)() const);
FL_METHOD(Device::addStream, void (Device::*)(std::shared_ptr<Stream>));
FL_METHOD(Device::sync, void (Device::*)() const);
FL_METHOD(Device::nativeId, int (Device::*)() const);
FL_METHOD(Device::type, DeviceType (Device::*)() const);
FL_METHOD(Device::setActive, void (Device::*)() const);
FL_METHOD(Device::addSetActiveCallback, void (Device::*)(std::function<void(int)>));
FL_METHOD(Device::impl<X64Device>, const X64Device& (Device::*)() const);
FL_METHOD(Device::impl<X64Device>, X64Device& (Device::*)());
static_assert(std::is_base_of_v<DeviceTrait<X64Device>, X64Device> &&
              std::is_default_constructible_v<X64Device>);
static_assert(std::is_same_v<decltype(X64Device::type), const DeviceType>);
FL_METHOD(X64Device::nativeId, int (X64Device::*)() const);
FL_METHOD(X64Device::setActiveImpl, void (X64Device::*)() const);
static_assert(!std::is_default_constructible_v<DeviceManager> &&
              !std::is_copy_constructible_v<DeviceManager>);
FL_SIGNATURE(DeviceManager::getInstance, DeviceManager& (*)());
FL_METHOD(DeviceManager::isDeviceTypeAvailable, bool (DeviceManager::*)(const DeviceType) const);
FL_METHOD(DeviceManager::getDeviceCount, unsigned (DeviceManager::*)(const DeviceType) const);
FL_METHOD(DeviceManager::getDevicesOfType,
          std::vector<Device*> (DeviceManager::*)(const DeviceType));
FL_METHOD(DeviceManager::getDevicesOfType,
          std::vector<const Device*> (DeviceManager::*)(const DeviceType) const);
FL_METHOD(DeviceManager::getDevice, Device& (DeviceManager::*)(const DeviceType, int) const);
FL_METHOD(DeviceManager::getActiveDevice, Device& (DeviceManager::*)(const DeviceType) const);

// ---- Stream.h, SynchronousStream.h ----
using WaitOns = const std::unordered_set<const Stream*>&;
static_assert(std::is_abstract_v<Stream> && !std::is_copy_constructible_v<Stream> &&
              !std::is_move_constructible_v<Stream> && !std::is_copy_assignable_v<Stream>);
FL_METHOD(Stream::impl<SynchronousStream>, const SynchronousStream& (Stream::*)() const);
FL_METHOD(Stream::type, StreamType (Stream::*)() const);
FL_METHOD(Stream::device, Device& (Stream::*)());
FL_METHOD(Stream::device, const Device& (Stream::*)() const);
FL_METHOD(Stream::sync, void (Stream::*)() const);
FL_METHOD(Stream::relativeSync, void (Stream::*)(const Stream&) const);
FL_METHOD(Stream::relativeSync, void (Stream::*)(WaitOns) const);
static_assert(std::is_base_of_v<StreamTrait<SynchronousStream>, SynchronousStream> &&
              std::is_default_constructible_v<SynchronousStream>);
static_assert(std::is_same_v<decltype(SynchronousStream::type), const StreamType>);
FL_METHOD(SynchronousStream::device, X64Device& (SynchronousStream::*)());
FL_METHOD(SynchronousStream::device, const X64Device& (SynchronousStream::*)() const);
FL_METHOD(SynchronousStream::relativeSync,
          void (SynchronousStream::*)(const SynchronousStream&) const);
FL_METHOD(SynchronousStream::relativeSync, void (SynchronousStream::*)(const Stream&) const);

// ---- Profile.h ----
static_assert(std::is_default_constructible_v<detail::ScopedProfiler> &&
              std::is_constructible_v<detail::ProfileTracer, const std::string&> &&
              !std::is_convertible_v<std::string, detail::ProfileTracer>);

// ---- AutogradOps.h ----
FL_SIGNATURE(fl::conv2d, Tensor (*)(T, T, const int, const int, const int, const int, const int,
                                    const int, const int));
FL_SIGNATURE(fl::conv2d, Tensor (*)(T, T, T, const int, const int, const int, const int, const int,
                                    const int, const int));
FL_CALL(fl::conv2d(declval<T>(), declval<T>()), Tensor);
FL_CALL(fl::conv2d(declval<T>(), declval<T>(), declval<T>()), Tensor);
FL_SIGNATURE(fl::pool2d, Tensor (*)(T, const int, const int, const int, const int, const int,
                                    const int, const PoolingMode));
FL_CALL(fl::pool2d(declval<T>(), 1, 1), Tensor);
FL_SIGNATURE(fl::batchnorm,
             Tensor (*)(T, T, T, Tensor&, Tensor&, Axes, const bool, const double, const double));
FL_SIGNATURE(fl::batchnorm, Tensor (*)(Tensor&, Tensor&, T, T, T, Tensor&, Tensor&, Axes,
                                       const bool, const double, const double));
FL_SIGNATURE(fl::rnn,
             std::tuple<Tensor, Tensor, Tensor> (*)(T, T, T, T, const int, const int, const RnnMode,
                                                    const bool, const float));
using Payload = std::shared_ptr<detail::AutogradPayload>;
using Benchmark = std::shared_ptr<DynamicBenchmark>;
FL_SIGNATURE(fl::detail::conv2d, Tensor (*)(T, T, T, const int, const int, const int, const int,
                                            const int, const int, const int, Payload));
FL_SIGNATURE(fl::detail::pool2d, Tensor (*)(T, const int, const int, const int, const int,
                                            const int, const int, const PoolingMode, Payload));
FL_SIGNATURE(fl::detail::batchnorm, Tensor (*)(Tensor&, Tensor&, T, T, T, Tensor&, Tensor&, Axes,
                                               const bool, const double, const double, Payload));
FL_SIGNATURE(fl::detail::rnn,
             std::tuple<Tensor, Tensor, Tensor> (*)(T, T, T, T, const int, const int, const RnnMode,
                                                    const bool, const float, Payload));
FL_SIGNATURE(fl::detail::conv2dBackwardData,
             Tensor (*)(T, T, T, const int, const int, const int, const int, const int, const int,
                        const int, Benchmark, Payload));
FL_SIGNATURE(fl::detail::conv2dBackwardFilterBias,
             std::pair<Tensor, Tensor> (*)(T, T, T, T, const int, const int, const int, const int,
                                           const int, const int, const int, Benchmark, Benchmark,
                                           Payload));
FL_SIGNATURE(fl::detail::pool2dBackward,
             Tensor (*)(T, T, T, const int, const int, const int, const int, const int, const int,
                        const PoolingMode, Payload));
FL_SIGNATURE(fl::detail::batchnormBackward,
             std::tuple<Tensor, Tensor, Tensor> (*)(T, T, T, T, T, Axes, const bool, const float,
                                                    Payload));
FL_SIGNATURE(fl::detail::rnnBackward,
             std::tuple<Tensor, Tensor, Tensor, Tensor> (*)(
                 T, T, T, T, const std::shared_ptr<detail::RNNGradData>, T, const int, const int,
                 const RnnMode, const bool, const float, Payload));

// ---- AutogradExtension.h ----
using Extension = AutogradExtension;
static_assert(std::is_abstract_v<Extension> &&
              std::is_base_of_v<TensorExtension<Extension>, Extension>);
static_assert(Extension::extensionType == TensorExtensionType::Autograd);
FL_METHOD(Extension::createBenchmarkOptions, Benchmark (Extension::*)());
FL_METHOD(Extension::conv2d,
          Tensor (Extension::*)(T, T, T, const int, const int, const int, const int, const int,
                                const int, const int, Payload));
FL_METHOD(Extension::pool2d,
          Tensor (Extension::*)(T, const int, const int, const int, const int, const int, const int,
                                const PoolingMode, Payload));
FL_METHOD(Extension::batchnorm,
          Tensor (Extension::*)(Tensor&, Tensor&, T, T, T, Tensor&, Tensor&, Axes, const bool,
                                const double, const double, Payload));
FL_METHOD(Extension::rnn,
          std::tuple<Tensor, Tensor, Tensor> (Extension::*)(T, T, T, T, const int, const int,
                                                            const RnnMode, const bool, const float,
                                                            Payload));
FL_METHOD(Extension::conv2dBackwardData,
          Tensor (Extension::*)(T, T, T, const int, const int, const int, const int, const int,
                                const int, const int, Benchmark, Payload));
FL_METHOD(Extension::conv2dBackwardFilterBias,
          std::pair<Tensor, Tensor> (Extension::*)(T, T, T, T, const int, const int, const int,
                                                   const int, const int, const int, const int,
                                                   Benchmark, Benchmark, Payload));
FL_METHOD(Extension::pool2dBackward,
          Tensor (Extension::*)(T, T, T, const int, const int, const int, const int, const int,
                                const int, const PoolingMode, Payload));
FL_METHOD(Extension::batchnormBackward,
          std::tuple<Tensor, Tensor, Tensor> (Extension::*)(T, T, T, T, T, Axes, const bool,
                                                            const float, Payload));
FL_METHOD(Extension::rnnBackward,
          std::tuple<Tensor, Tensor, Tensor, Tensor> (Extension::*)(
              T, T, T, T, const std::shared_ptr<detail::RNNGradData>, T, const int, const int,
              const RnnMode, const bool, const float, Payload));

#undef FL_METHOD
#undef FL_SIGNATURE

}  // namespace fl::testing
