#include "tests/codegen/cuda/HostModule.h"

#include <dlfcn.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <regex>
#include <sstream>

#include "fl/base/Error.h"
#define FL_HOST_MODULE
#include "tests/codegen/cuda/KernelSide.h"

namespace fl::testing {
namespace {

constexpr int kWarp = 32;

// Kernels are watched as their tests are; what watches them needs larger stacks.
#ifdef __SANITIZE_ADDRESS__
constexpr char kSanitizer[] = "-fsanitize=address ";
constexpr size_t kStackBytes = 512 << 10;
#else
constexpr char kSanitizer[] = "";
constexpr size_t kStackBytes = 64 << 10;
#endif

ShimBlock block;

// ---- fibers ----

enum class State { Ready, WaitsForBlock, WaitsForWarp, Ended };

struct Fiber {
  void* stack = nullptr;  // its top while another runs
  State state = State::Ready;
  ShimThread thread = {};
  struct Fetch {
    void* to;
    const void* from;
    int bytes;
  };
  std::vector<Fetch> fetches;
  std::vector<unsigned char> memory = std::vector<unsigned char>(kStackBytes);
};

std::vector<Fiber> fibers;
void* schedulerStack;
std::function<void()> body;

// Saves what the System V ABI asks a callee to keep, and goes on on the other stack.
extern "C" void flSwitchStack(void** save, void* load);
asm(R"(
.text
flSwitchStack:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
)");

void pause(State state) {
  Fiber& fiber = fibers[block.thread->rank];
  fiber.state = state;
  flSwitchStack(&fiber.stack, schedulerStack);
}

void fetch(void* to, const void* from, int bytes) {
  const auto isAligned = [&](const void* at) {
    return reinterpret_cast<uintptr_t>(at) % bytes == 0;
  };
  FL_INTERNAL_CHECK(isAligned(to) && isAligned(from), "a fetch of ", bytes,
                    " bytes that are not aligned");
  fibers[block.thread->rank].fetches.push_back({to, from, bytes});
}

void endFetches() {
  auto& fetches = fibers[block.thread->rank].fetches;
  for (const Fiber::Fetch& each : fetches) std::memcpy(each.to, each.from, each.bytes);
  fetches.clear();
}

void runBody() {
  body();
  pause(State::Ended);
  std::abort();
}

void start(Fiber& fiber, unsigned rank) {
  const ShimIndex size = block.size;
  fiber.thread = {{rank % size.x, rank / size.x % size.y, rank / size.x / size.y}, rank, 0};
  fiber.state = State::Ready;
  fiber.fetches.clear();  // of a block before that did not wait for them
  unsigned char* const end = fiber.memory.data() + fiber.memory.size();
  void** top = reinterpret_cast<void**>(reinterpret_cast<uintptr_t>(end) & ~uintptr_t{15});
  *--top = nullptr;  // the stack is aligned as behind a call
  *--top = reinterpret_cast<void*>(&runBody);
  constexpr int kSaved = 6;
  for (int i = 0; i < kSaved; ++i) *--top = nullptr;
  fiber.stack = top;
}

// ---- a block ----

size_t countOf(State state) { return std::ranges::count(fibers, state, &Fiber::state); }

// Runs every ready thread of the warp once; false if none was.
bool runWarp(size_t first, size_t last, bool reversed) {
  bool ran = false;
  for (size_t i = first; i < last; ++i) {
    Fiber& fiber = fibers[reversed ? first + last - 1 - i : i];
    if (fiber.state != State::Ready) continue;
    block.thread = &fiber.thread;
    flSwitchStack(&schedulerStack, fiber.stack);
    ran = true;
  }
  const auto waits = [](const Fiber& fiber) { return fiber.state == State::WaitsForWarp; };
  const auto begin = fibers.begin() + first, end = fibers.begin() + last;
  if (std::all_of(begin, end, waits)) {
    std::for_each(begin, end, [](Fiber& fiber) { fiber.state = State::Ready; });
  }
  return ran;
}

// What a block shares, unwritten, and behind it what nobody may write.
class SharedMemory {
 public:
  explicit SharedMemory(int bytes) : bytes_(bytes), memory_(bytes / sizeof(Word) + 2) {
    block.shared = memory_[0].bytes;
  }
  void clear() { std::memset(memory_.data(), kUnwritten, memory_.size() * sizeof(Word)); }
  void check() const {
    const unsigned char* end = memory_[0].bytes + memory_.size() * sizeof(Word);
    FL_INTERNAL_CHECK(std::all_of(memory_[0].bytes + bytes_, end,
                                  [](unsigned char byte) { return byte == kUnwritten; }),
                      "a write beyond ", bytes_, " bytes of shared memory");
  }

 private:
  static constexpr unsigned char kUnwritten = 0xa5;
  struct alignas(16) Word {
    unsigned char bytes[16];
  };
  int bytes_;
  std::vector<Word> memory_;
};

void runBlock(bool reversed) {
  const size_t threads = fibers.size(), warps = (threads + kWarp - 1) / kWarp;
  for (size_t i = 0; i < threads; ++i) start(fibers[i], static_cast<unsigned>(i));
  while (countOf(State::Ended) < threads) {
    bool ran = false;
    for (size_t i = 0; i < warps; ++i) {
      const size_t first = (reversed ? warps - 1 - i : i) * kWarp;
      while (runWarp(first, std::min(first + kWarp, threads), reversed)) ran = true;
    }
    const size_t waiting = countOf(State::WaitsForBlock);
    if (waiting == threads) {
      for (Fiber& fiber : fibers) fiber.state = State::Ready;
    } else {
      FL_INTERNAL_CHECK(ran, waiting, " of ", threads, " threads wait at __syncthreads(), ",
                        countOf(State::WaitsForWarp), " for their warp, ", countOf(State::Ended),
                        " have ended");
    }
  }
}

// ---- modules ----

std::string readFile(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

std::string pathOfNext() {
  static std::atomic<int> modules = 0;
  const char* folder = std::getenv("TEST_TMPDIR");
  return detail::concat(folder != nullptr ? folder : "/tmp", "/module", getpid(), "_", modules++);
}

// What calls each kernel with the words of its parameter, whose number it gives.
std::string callersIn(const std::string& source) {
  static const std::regex kKernel(R"(__global__ void (?:__launch_bounds__\([^)]*\) )?(\w+)\()");
  std::string callers;
  for (std::sregex_iterator each(source.begin(), source.end(), kKernel), end; each != end; ++each) {
    const std::string name = (*each)[1];
    callers += detail::concat("extern \"C\" u64 call_", name,
                              "(const u64* words) { return callKernel(", name, ", words); }\n");
  }
  return callers;
}

void* compile(const std::string& source) {
  const std::string path = pathOfNext();
  std::ofstream(path + ".cpp") << source << callersIn(source);
  const std::string command =
      "g++ -std=c++20 -Og -w -mfma -mf16c -ffp-contract=off -fno-strict-aliasing -shared -fPIC " +
      std::string(kSanitizer) + "-include tests/codegen/cuda/KernelSide.h -o " + path + ".so " +
      path + ".cpp 2> " + path + ".log";
  FL_INTERNAL_CHECK(std::system(command.c_str()) == 0, readFile(path + ".log"));
  void* library = dlopen((path + ".so").c_str(), RTLD_NOW | RTLD_LOCAL);
  FL_INTERNAL_CHECK(library != nullptr, dlerror());
  *static_cast<ShimBlock**>(dlsym(library, "shimBlock")) = &block;
  return library;
}

}  // namespace

HostModule::HostModule(const std::vector<codegen::cuda::NamedKernel>& kernels)
    : HostModule(codegen::cuda::emitCuda(kernels)) {}

HostModule::HostModule(const std::string& source) : library_(compile(source)) {}

HostModule::~HostModule() { dlclose(library_); }

HostModule::Call HostModule::callOf(const std::string& function) const {
  void* const call = dlsym(library_, ("call_" + function).c_str());
  FL_INTERNAL_CHECK(call != nullptr, function, " is no function of the module");
  return reinterpret_cast<Call>(call);
}

size_t HostModule::words(const std::string& function) const { return callOf(function)(nullptr); }

void HostModule::launch(const codegen::cuda::NamedKernel& kernel, const ir::cuda::Launch& launch,
                        const std::vector<uint64_t>& words, bool reversed) const {
  this->launch(functionName(kernel.name, variantOf(*kernel.kernel, launch)), launch, words,
               reversed);
}

void HostModule::launch(const std::string& function, const ir::cuda::Launch& launch,
                        const std::vector<uint64_t>& words, bool reversed) const {
  const Call call = callOf(function);
  FL_INTERNAL_CHECK(call(nullptr) == words.size(), function, " has ", call(nullptr), " words, not ",
                    words.size());
  const auto [x, y, z] = std::to_array(launch.threads);
  const auto size = [](int64_t count) { return static_cast<unsigned>(count); };
  block.size = {size(x), size(y), size(z)};
  block.grid = {size(launch.blocks), size(launch.splits), 1};
  block.syncBlock = [] { pause(State::WaitsForBlock); };
  block.syncWarp = [] { pause(State::WaitsForWarp); };
  block.fetch = fetch;
  block.endFetches = endFetches;
  SharedMemory shared(launch.sharedBytes);
  fibers.resize(x * y * z);
  body = [&] { call(words.data()); };
  const int64_t blocks = launch.blocks * launch.splits;
  for (int64_t i = 0; i < blocks; ++i) {
    const int64_t number = reversed ? blocks - 1 - i : i;
    block.index = {size(number % launch.blocks), size(number / launch.blocks), 0};
    shared.clear();
    runBlock(reversed);
    shared.check();
  }
}

}  // namespace fl::testing
