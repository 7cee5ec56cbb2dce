#include "fl/runtime/cuda/Driver.h"

#include <atomic>
#include <stdexcept>

#include "fl/base/CudaLibrary.h"
#include "fl/base/Error.h"

namespace fl::runtime::cuda {
namespace {

// Expands names that the header redefines before they become strings.
#define FL_STRING_OF(name) #name
#define FL_STRING(name) FL_STRING_OF(name)

constexpr int kMajor = 1000;  // 13.0 is 13000

struct Loaded {
  Driver table;
  std::string problem;
};

// What keeps a driver, `where`, from running code.
std::string problemOf(const Driver& table, const std::string& where) {
  const std::string built =
      detail::concat("CUDA: fl is built for CUDA ", cudaVersionText(CUDA_VERSION), ", and ", where);
  int version = 0, devices = 0;
  CUresult result = table.cuDriverGetVersion(&version);
  const std::string itself = detail::concat("a driver for CUDA ", cudaVersionText(version));
  if (result == CUDA_SUCCESS && version / kMajor < CUDA_VERSION / kMajor) {
    return built + " is " + itself + ", which is older";
  }
  const std::string known = result == CUDA_SUCCESS ? ", " + itself + "," : "";
  if (result == CUDA_SUCCESS) result = table.cuInit(0);
  if (result == CUDA_SUCCESS) result = table.cuDeviceGetCount(&devices);
  if (result == CUDA_SUCCESS && devices == 0) result = CUDA_ERROR_NO_DEVICE;
  return result == CUDA_SUCCESS ? "" : built + known + " has no device: " + describe(table, result);
}

Loaded* load() {
  auto* loaded = new Loaded();
  CudaLibrary library("cuda", 1, CUDA_VERSION);
  Driver& table = loaded->table;
#define FL_DRIVER(function) \
  table.function = reinterpret_cast<decltype(table.function)>(library.find(FL_STRING(function)));
#include "fl/runtime/cuda/Driver.def"
#undef FL_DRIVER
  loaded->problem =
      library.problem().empty() ? problemOf(table, library.path()) : library.problem();
  return loaded;
}

// The one that a test has installed, null at first.
std::atomic<const Loaded*> installed = nullptr;

const Loaded& loaded() {
  if (const Loaded* other = installed.load()) return *other;
  static const Loaded& own = *load();
  return own;
}

}  // namespace

const std::string& driverProblem() { return loaded().problem; }

const Driver& driver() {
  if (!driverProblem().empty()) throw std::runtime_error(driverProblem());
  return loaded().table;
}

void installDriver(const Driver& table) {
  installed = new Loaded{table, problemOf(table, "the installed one")};
}

std::string describe(const Driver& driver, CUresult error) {
  const char *words = nullptr, *name = nullptr;
  driver.cuGetErrorString(error, &words);
  driver.cuGetErrorName(error, &name);
  return words && name ? detail::concat(words, " (", name, ")")
                       : detail::concat("error ", static_cast<int>(error));
}

}  // namespace fl::runtime::cuda
