#include "fl/library/Library.h"

#include <algorithm>
#include <atomic>
#include <mutex>

#include "absl/container/flat_hash_map.h"
#include "fl/base/Error.h"
#include "fl/base/Fault.h"
#include "fl/base/ForkSafeMutex.h"
#include "fl/library/Functions.h"
#include "fl/library/OneDnn.h"

namespace fl::library {

namespace {

// A function holds up to some 100 KiB of machine code.
constexpr size_t kCacheSize = 1024;

using Key = std::vector<int64_t>;

// Equal exactly for equal calls: every part says its length.
Key keyOf(const LibraryCall& call) {
  Key key = {static_cast<int64_t>(call.op), static_cast<int64_t>(call.operands.size()),
             static_cast<int64_t>(call.attrs.size())};
  key.insert(key.end(), call.attrs.values().begin(), call.attrs.values().end());
  for (const ir::ValueType& operand : call.operands) ir::addWords(&key, operand);
  ir::addWords(&key, call.result);
  return key;
}

struct Cache {
  ForkSafeMutex mutex;
  ForkSafeMutex making;  // held while one is made: oneDNN has locks that a child would find taken
  // Null: the call is not supported.
  absl::flat_hash_map<Key, std::shared_ptr<LibraryFunction>> functions;
  std::atomic<uint64_t> made = 0;
};

Cache& cache() {
  static auto* instance = new Cache;
  return *instance;
}

// One dtype of f32, f16 and bf16, for products also f64, and nothing empty.
bool typesFit(const LibraryCall& call) {
  const dtype type = call.result.type;
  const auto fits = [&](const ir::ValueType& value) {
    return value.type == type && value.shape.elements() > 0;
  };
  const bool isProduct = call.op == ir::Op::Matmul;
  return (type == dtype::f32 || type == dtype::f16 || type == dtype::bf16 ||
          (isProduct && type == dtype::f64)) &&
         std::ranges::all_of(call.operands, fits) && fits(call.result);
}

std::shared_ptr<LibraryFunction> tryOneDnn(const LibraryCall& call) {
  checkMemoryForCode();
  switch (call.op) {
    case ir::Op::Matmul:
      return prepareMatmul(call);
    case ir::Op::Conv2d:
    case ir::Op::Conv2dBackwardData:
    case ir::Op::Conv2dBackwardFilter:
      return prepareConvolution(call);
    case ir::Op::Attention:
    case ir::Op::AttentionBackward:
      return isFasterInBlocks(call) ? prepareAttention(call) : nullptr;
    case ir::Op::Pool2d:
    case ir::Op::Pool2dBackward:
      return preparePool(call);
    default:
      return nullptr;
  }
}

// Null if the call is not supported.
std::shared_ptr<LibraryFunction> tryPrepare(const LibraryCall& call) {
  switch (call.op) {
    case ir::Op::Cumsum:
      return prepareCumsum(call);
    case ir::Op::Argsort:
      return prepareArgsort(call);
    case ir::Op::Scatter:
    case ir::Op::ScatterAdd:
      return prepareScatter(call);
    default:
      return typesFit(call) ? tryOneDnn(call) : nullptr;
  }
}

// For tests of what finds it: the first element of the result is another one.
class WrongFunction final : public LibraryFunction {
 public:
  WrongFunction(std::shared_ptr<LibraryFunction> right, dtype type)
      : right_(std::move(right)), type_(type) {}
  size_t scratchBytes() const override { return right_->scratchBytes(); }
  void run(void* const* operands, void* result, void* scratch,
           host::ThreadPool& pool) const override {
    right_->run(operands, result, scratch, pool);
    auto* const bytes = static_cast<uint8_t*>(result);
    isFloating(type_) ? bytes[getTypeSize(type_) - 1] ^= 0x80 : bytes[0] ^= 1;  // the sign
  }
  std::string implementation() const override { return "wrong"; }

 private:
  const std::shared_ptr<LibraryFunction> right_;
  const dtype type_;
};

}  // namespace

bool librarySupports(const LibraryCall& call) { return cachedLibrary(call) != nullptr; }

std::shared_ptr<LibraryFunction> prepareLibrary(const LibraryCall& call) {
  std::shared_ptr<LibraryFunction> function = cachedLibrary(call);
  FL_INTERNAL_CHECK(function != nullptr, ir::opName(call.op), " of ", call.operands[0].toString(),
                    " has no library implementation");
  return function;
}

std::shared_ptr<LibraryFunction> cachedLibrary(const LibraryCall& call) {
  const Key key = keyOf(call);
  Cache& all = cache();
  {
    std::lock_guard lock(all.mutex);
    const auto found = all.functions.find(key);
    if (found != all.functions.end()) return found->second;
  }
  const std::lock_guard making(all.making);
  std::shared_ptr<LibraryFunction> made = tryPrepare(call);
  if (made && isWrong(ir::opName(call.op)))
    made = std::make_shared<WrongFunction>(std::move(made), call.result.type);
  std::lock_guard lock(all.mutex);
  ++all.made;
  if (all.functions.size() >= kCacheSize) all.functions.clear();
  return all.functions.try_emplace(key, std::move(made)).first->second;
}

uint64_t functionsMade() { return cache().made; }

std::shared_ptr<LibraryFunction> functionOf(const ir::LibraryStep& step) {
  return cachedLibrary({step.op, step.attrs, step.operandTypes, step.resultType});
}

size_t scratchBytes(const ir::Schedule& schedule, int step) {
  const auto* call = std::get_if<ir::LibraryStep>(&schedule.steps[step]);
  const auto function = call ? functionOf(*call) : nullptr;
  return function ? function->scratchBytes() : 0;
}

}  // namespace fl::library
