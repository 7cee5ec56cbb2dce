// The interface under the tensor API. A backend implements apply(), fromNumber(), fromHost() and
// eval(), and toHost() unless its memory is the host's; every operator is a virtual of its own
// whose default goes to apply(), so that a researcher may override `add` alone. Backends register
// by name (registerBackend).
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "fl/base/CallSite.h"
#include "fl/tensor/TensorExtension.h"
#include "fl/tensor/TensorValue.h"

namespace fl {

namespace detail {
struct TensorStorage;
}
class Tensor;
struct CompositeCall;
enum class MatrixProperty;
enum class PadType;
enum class SortMode;
enum class TensorBackendType { Stub, Tracer, ArrayFire, OneDnn, Jit, Eager };

class TensorBackend {
 public:
  virtual ~TensorBackend() = default;

  virtual std::string name() const = 0;
  virtual TensorBackendType backendType() const = 0;
  virtual bool supportsDataType(const dtype& type) const = 0;
  virtual bool isOnHost() const { return true; }  // whether values lie in the host's memory
  // And its extensions that are in use do.
  bool isDataTypeSupported(const dtype& type) const;
  // The extension of interface T (TensorExtension.h) that is registered for backendType(), made
  // once a backend. Throws std::invalid_argument if there is none.
  template <typename T>
  [[gnu::noinline]] T& getExtension() {
    FL_API_ENTRY();
    return static_cast<T&>(extensions_.get(backendType(), T::getExtensionType()));
  }

  // The value of `op`; `type` is the inferred result type, operands are checked already. An operand
  // that is held by the vector alone may be overwritten, and so may the first of an Update whose
  // call site replaces it (CallSite.h). Where there is no library for an op of kind Library,
  // fl/definitions has its value in terms of other ops.
  virtual TensorValue apply(ir::Op op, std::vector<TensorValue> operands, const ir::Attrs& attrs,
                            ir::ValueType type) = 0;
  // What composite() (Composite.h) computes, for a backend that says that it runs these at once.
  virtual bool runsComposites() const { return false; }
  virtual std::vector<Tensor> applyComposite(const CompositeCall& call);
  // A tensor that is written in place has `value`, of this backend, and had `old`.
  virtual void onUpdate(const std::shared_ptr<detail::TensorStorage>& tensor,
                        const TensorValue& old, const TensorValue& value) {}
  // A scalar value that is an argument, never a constant of a plan.
  virtual TensorValue fromNumber(const Number& number) = 0;
  // One that is another at each call of the function it is made in: hostNumber()'s.
  virtual TensorValue fromHostNumber(const std::function<Number()>& next) {
    return fromNumber(next());
  }
  // Copies contiguous column-major elements in and out. A null pointer means uninitialised.
  virtual TensorValue fromHost(const void* data, const ir::ValueType& type) = 0;
  virtual void toHost(const TensorValue& value, void* data);
  // Ends the pending segment, if there is one; nothing has to run before a value is read.
  virtual void eval(const TensorValue& value) = 0;
  // Runs all pending work.
  virtual void sync() = 0;
  // What its memory manager holds; backends without one print and do nothing.
  virtual void getMemMgrInfo(const char* msg, const int nativeDeviceId, std::ostream* ostream) {}
  virtual void setMemMgrLogStream(std::ostream* stream) {}
  virtual void setMemMgrLoggingEnabled(const bool enabled) {}
  virtual void setMemMgrFlushInterval(const size_t interval) {}

#define FL_FUNCTION(Kind, Result, name, parameters, arguments) virtual Result name parameters;
#include "fl/tensor/Functions.def"

 private:
  detail::TensorExtensionCache extensions_;
};

// Backends by name. The factory runs at first use and receives the device's name. Registering a
// name twice throws std::invalid_argument.
using BackendFactory = std::function<std::unique_ptr<TensorBackend>(const std::string& device)>;
void registerBackend(const std::string& name, BackendFactory factory);
struct BackendRegistration {
  BackendRegistration(const std::string& name, BackendFactory factory) {
    registerBackend(name, std::move(factory));
  }
};

// The backend `name` on `device`, made once; empty ones are FL_BACKEND and FL_DEVICE. Throws
// std::invalid_argument naming those that exist.
TensorBackend& getBackend(const std::string& name = "", const std::string& device = "");

// Runs all pending work of every backend.
void syncBackends();

// The backend that operators on this thread use: the innermost BackendScope's, else the default.
TensorBackend& defaultTensorBackend();
// The process's default; FL_BACKEND and FL_DEVICE until it is set.
void setDefaultTensorBackend(TensorBackend& backend);

// Operators on this thread use another backend while the scope lives. Tensors are not bound to the
// backend that made them: BackendScope eager("eager") debugs a piece of a lazy program.
class BackendScope {
 public:
  explicit BackendScope(const std::string& name, const std::string& device = "");
  explicit BackendScope(TensorBackend& backend);
  ~BackendScope();
  BackendScope(const BackendScope&) = delete;
  BackendScope& operator=(const BackendScope&) = delete;

 private:
  TensorBackend* outer_;
};

// While it lives, matmul() and conv2d() of f32 on this thread, and the gradients of such calls that
// are recorded meanwhile, may round their operands to TF32, which has 11 digits for f32's 24: GPUs
// from sm_80 on are several times as fast with it, and results off by up to 2e-3 of the sum of
// magnitudes. Other devices compute in f32. In IR that is `matmul %x, %y {tf32=1}`.
class Tf32Scope {
 public:
  Tf32Scope();
  ~Tf32Scope();
  Tf32Scope(const Tf32Scope&) = delete;
  // On this thread.
  static bool isActive();

 private:
  const bool outer_;
};

}  // namespace fl
