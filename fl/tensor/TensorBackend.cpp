#include "fl/tensor/TensorBackend.h"

#include <unistd.h>

#include <atomic>
#include <cstring>
#include <map>
#include <mutex>
#include <thread>

#include "fl/base/CallSite.h"
#include "fl/base/Error.h"
#include "fl/base/Flags.h"
#include "fl/base/ForkSafeMutex.h"
#include "fl/tensor/Composite.h"
#include "fl/tensor/Detail.h"

namespace fl {
namespace {

struct Made {
  std::unique_ptr<TensorBackend> backend;  // null while it is made
  std::thread::id by = std::this_thread::get_id();
  pid_t process = getpid();
};

// Locked while nothing is made.
struct Registry {
  ForkSafeMutex mutex;
  std::map<std::string, BackendFactory> factories;
  std::map<std::pair<std::string, std::string>, Made> backends;
};

Registry& registry() {
  static auto& instance = *new Registry();
  return instance;
}

thread_local TensorBackend* scoped = nullptr;
thread_local bool isTf32Allowed = false;
std::atomic<TensorBackend*> processDefault = nullptr;

}  // namespace

void registerBackend(const std::string& name, BackendFactory factory) {
  std::lock_guard lock(registry().mutex);
  FL_USER_CHECK(registry().factories.emplace(name, std::move(factory)).second,
                "registerBackend: \"", name, "\" is registered already");
}

TensorBackend& getBackend(const std::string& askedName, const std::string& askedDevice) {
  FL_API_ENTRY();
  const std::string name = askedName.empty() ? flags().backend : askedName;
  const std::string device = askedDevice.empty() ? flags().device : askedDevice;
  std::unique_lock lock(registry().mutex);
  const auto factory = registry().factories.find(name);
  if (factory == registry().factories.end()) {
    std::string known;
    for (const auto& [each, _] : registry().factories) known += (known.empty() ? "" : ", ") + each;
    const bool isFlag = askedName.empty() && !known.empty();
    throwUser(isFlag ? "FL_BACKEND: " : "", "backend \"", name, "\" does not exist; there are: ",
              known.empty() ? "none before main() has begun" : known);
  }
  auto& backends = registry().backends;
  for (;; lock.unlock(), std::this_thread::yield(), lock.lock()) {
    const auto [found, isNew] = backends.try_emplace({name, device});
    Made& made = found->second;
    if (made.backend) return *made.backend;
    // A child of fork() has none of the threads that were making one.
    if (!isNew && made.process == getpid()) {
      FL_USER_CHECK(made.by != std::this_thread::get_id(), "backend \"", name,
                    "\": its factory asks for the default, or by name, for the backend that it is "
                    "to make; it has to name another one");
      continue;
    }
    made = Made();
    lock.unlock();
    std::unique_ptr<TensorBackend> backend;
    try {
      backend = factory->second(device);
    } catch (...) {
      lock.lock();
      backends.erase(found);
      throw;
    }
    lock.lock();
    made.backend = std::move(backend);
  }
}

void syncBackends() {
  std::vector<TensorBackend*> backends;
  std::unique_lock lock(registry().mutex);
  for (const auto& [_, made] : registry().backends)
    if (made.backend) backends.push_back(made.backend.get());
  lock.unlock();
  for (TensorBackend* backend : backends) backend->sync();
}

TensorBackend& defaultTensorBackend() {
  if (scoped) return *scoped;
  TensorBackend* backend = processDefault.load(std::memory_order_acquire);
  if (!backend) processDefault = backend = &getBackend();
  return *backend;
}

void setDefaultTensorBackend(TensorBackend& backend) { processDefault = &backend; }

BackendScope::BackendScope(const std::string& name, const std::string& device) : outer_(scoped) {
  FL_API_ENTRY();
  scoped = &getBackend(name, device);
}

BackendScope::BackendScope(TensorBackend& backend) : outer_(scoped) { scoped = &backend; }

BackendScope::~BackendScope() { scoped = outer_; }

Tf32Scope::Tf32Scope() : outer_(isTf32Allowed) { isTf32Allowed = true; }
Tf32Scope::~Tf32Scope() { isTf32Allowed = outer_; }
bool Tf32Scope::isActive() { return isTf32Allowed; }

bool TensorBackend::isDataTypeSupported(const dtype& type) const {
  return supportsDataType(type) && extensions_.supportDataType(type);
}

std::vector<Tensor> TensorBackend::applyComposite(const CompositeCall& call) {
  return call.run({call.operands.begin(), call.operands.end()});
}

void TensorBackend::toHost(const TensorValue& value, void* data) {
  std::memcpy(data, value->data()->onHost()->data(), value->bytes());
}

}  // namespace fl
