#include "fl/tensor/TensorBackend.h"

#include <atomic>
#include <cstring>
#include <map>
#include <mutex>

#include "fl/base/Error.h"
#include "fl/base/Flags.h"
#include "fl/tensor/Detail.h"

namespace fl {
namespace {

struct Registry {
  std::mutex mutex;
  std::map<std::string, BackendFactory> factories;
  std::map<std::pair<std::string, std::string>, std::unique_ptr<TensorBackend>> backends;
};

Registry& registry() {
  static auto& instance = *new Registry();
  return instance;
}

thread_local TensorBackend* scoped = nullptr;
std::atomic<TensorBackend*> processDefault = nullptr;

}  // namespace

void registerBackend(const std::string& name, BackendFactory factory) {
  std::lock_guard<std::mutex> lock(registry().mutex);
  FL_USER_CHECK(registry().factories.emplace(name, std::move(factory)).second,
                "registerBackend: \"", name, "\" is registered already");
}

TensorBackend& getBackend(const std::string& askedName, const std::string& askedDevice) {
  const std::string name = askedName.empty() ? flags().backend : askedName;
  const std::string device = askedDevice.empty() ? flags().device : askedDevice;
  std::lock_guard<std::mutex> lock(registry().mutex);
  const auto factory = registry().factories.find(name);
  if (factory == registry().factories.end()) {
    std::string known;
    for (const auto& entry : registry().factories) {
      known += (known.empty() ? "" : ", ") + entry.first;
    }
    throwUser("backend \"", name, "\" does not exist; there are: ", known);
  }
  auto& backend = registry().backends[{name, device}];
  if (!backend) {
    backend = factory->second(device);
  }
  return *backend;
}

void syncBackends() {
  std::vector<TensorBackend*> backends;
  {
    std::lock_guard<std::mutex> lock(registry().mutex);
    for (const auto& entry : registry().backends) {
      backends.push_back(entry.second.get());
    }
  }
  for (TensorBackend* backend : backends) {
    backend->sync();
  }
}

TensorBackend& defaultTensorBackend() {
  if (scoped) {
    return *scoped;
  }
  TensorBackend* backend = processDefault.load(std::memory_order_acquire);
  if (!backend) {
    backend = &getBackend();
    processDefault.store(backend, std::memory_order_release);
  }
  return *backend;
}

void setDefaultTensorBackend(TensorBackend& backend) { processDefault = &backend; }

BackendScope::BackendScope(const std::string& name, const std::string& device) : outer_(scoped) {
  scoped = &getBackend(name, device);
}

BackendScope::~BackendScope() { scoped = outer_; }

bool TensorBackend::isDataTypeSupported(const dtype& type) const {
  return supportsDataType(type) && extensions_.supportDataType(type);
}

void TensorBackend::toHost(const TensorValue& value, void* data) {
  std::memcpy(data, value->data()->data(), value->bytes());
}

namespace {

Tensor unary(ir::Op op, const Tensor& tensor) {
  const bool toFloat = ir::opInfo(op).types == ir::Types::Float && !isFloating(tensor.type());
  return detail::applyOp(op, {toFloat ? tensor.astype(dtype::f32) : tensor});
}

Tensor reduce(ir::Op op, const Tensor& input, const std::vector<int>& axes, bool keepDims) {
  const Tensor operand = op == ir::Op::Sum ? detail::widenForSum(input) : input;
  const std::vector<Dim> list(axes.begin(), axes.end());
  return detail::applyOp(op, {operand}, ir::Attrs({keepDims}, list));
}

}  // namespace

#define FL_NONE
#define FL_DEFINE_Source(Name, name)
#define FL_DEFINE_Random(Name, name)
#define FL_DEFINE_Unary(Name, name) \
  Tensor TensorBackend::name(const Tensor& tensor) { return unary(ir::Op::Name, tensor); }
#define FL_DEFINE_Binary(Name, name)                                 \
  Tensor TensorBackend::name(const Tensor& lhs, const Tensor& rhs) { \
    return detail::binary(ir::Op::Name, lhs, rhs);                   \
  }
#define FL_DEFINE_Select(Name, name)
#define FL_DEFINE_Cast(Name, name)
#define FL_DEFINE_View(Name, name)
#define FL_DEFINE_Index(Name, name)
#define FL_DEFINE_Join(Name, name)
#define FL_DEFINE_Update(Name, name)
#define FL_DEFINE_Reduce(Name, name)                                            \
  Tensor TensorBackend::name(const Tensor& input, const std::vector<int>& axes, \
                             const bool keepDims) {                             \
    return reduce(ir::Op::Name, input, axes, keepDims);                         \
  }
#define FL_DEFINE_Scan(Name, name)
#define FL_DEFINE_Order(Name, name)
#define FL_DEFINE_Contract(Name, name)
#define FL_DEFINE_Library(Name, name)
#define FL_OP(Name, name, kind, ...) FL_DEFINE_##kind(Name, name)
#include "fl/ir/Ops.def"
#undef FL_OP
#undef FL_NONE

}  // namespace fl
