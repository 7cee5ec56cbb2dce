#include "tests/codegen/KernelLaunch.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "fl/base/Error.h"
#include "tools/reference/KernelReference.h"

namespace fl::testing {

using ir::KernelOperand;
using ir::Stride;

// Whole pages with an unreadable one on each side.
struct KernelLaunch::Memory {
  Memory(size_t bytes, bool guardAfter) : size(bytes) {
    const size_t page = sysconf(_SC_PAGESIZE);
    const size_t inner = (std::max<size_t>(bytes, 1) + page - 1) / page * page;
    mappedSize = inner + 2 * page;
    mapped = static_cast<char*>(
        mmap(nullptr, mappedSize, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    FL_INTERNAL_CHECK(mapped != MAP_FAILED &&
                      mprotect(mapped + page, inner, PROT_READ | PROT_WRITE) == 0);
    begin = mapped + page + (guardAfter ? inner - bytes : 0);
    std::memset(begin, 0x5a, bytes);
  }
  ~Memory() { munmap(mapped, mappedSize); }

  char* mapped;
  size_t mappedSize;
  char* begin;
  size_t size;
  int64_t first = 0;  // byte offset of the element at index 0
};

Number drawNumber(dtype type, std::mt19937_64& random, const LaunchOptions& options) {
  if (options.special && random() % 4 == 0) {
    if (isFloating(type)) {
      const double infinity = std::numeric_limits<double>::infinity();
      const double specials[] = {NAN, infinity, -infinity, -0.0, 0.0, 1e-41,
                                 -1,  1,        3e9,       -3e9, 1e20};
      return Number::fromDouble(specials[random() % std::size(specials)], type);
    }
    const int bits = static_cast<int>(getTypeSize(type)) * 8;
    const uint64_t all = ~uint64_t{0} >> (64 - bits), top = uint64_t{1} << (bits - 1);
    const uint64_t specials[] = {0, all, top, top - 1, 1};
    return type == dtype::b8 ? Number::fromSigned(random() % 2, type)
                             : Number(type, specials[random() % std::size(specials)]);
  }
  if (isFloating(type)) {
    std::uniform_real_distribution<double> uniform(options.low, options.high);
    return Number::fromDouble(uniform(random), type);
  }
  if (type == dtype::b8) return Number::fromSigned(random() % 2, type);
  const int64_t low = isSigned(type) ? -100 : 0;
  return Number::fromSigned(low + static_cast<int64_t>(random() % (101 - low)), type);
}

KernelLaunch::KernelLaunch(const ir::Kernel& kernel, std::vector<int64_t> extents,
                           std::mt19937_64& random, LaunchOptions options)
    : kernel_(kernel),
      extents_(std::move(extents)),
      options_(options),
      strides_(kernel.operands.size() * kernel.rank),
      memory_(kernel.operands.size()),
      data_(kernel.operands.size()) {
  for (dtype type : kernel_.scalars) {
    scalars_.push_back(drawNumber(type, random, options).bits());
  }
  for (int i = 0; i < static_cast<int>(kernel_.operands.size()); ++i) {
    layOut(i, random);
    allocate(i);
    fill(i, random);
  }
}

KernelLaunch::KernelLaunch(const KernelLaunch& other)
    : kernel_(other.kernel_),
      extents_(other.extents_),
      options_(other.options_),
      strides_(other.strides_),
      scalars_(other.scalars_),
      memory_(other.memory_.size()),
      data_(other.data_) {
  for (size_t i = 0; i < memory_.size(); ++i) {
    if (other.memory_[i] == nullptr) continue;
    memory_[i] = std::make_shared<Memory>(other.memory_[i]->size, options_.guardAfter);
    std::memcpy(memory_[i]->begin, other.memory_[i]->begin, memory_[i]->size);
    memory_[i]->first = other.memory_[i]->first;
    data_[i] = memory_[i]->begin + memory_[i]->first;
  }
}

KernelLaunch::~KernelLaunch() = default;

// Axes of class Any come in random order around those of class One. Elements of outputs never
// overlap.
void KernelLaunch::layOut(int operand, std::mt19937_64& random) {
  const KernelOperand& described = kernel_.operands[operand];
  std::vector<int> order;
  int64_t next = 1;
  for (int axis = 0; axis < kernel_.rank; ++axis) {
    int64_t& stride = strides_[operand * kernel_.rank + axis];
    stride = described.strides[axis] == Stride::One ? 1 : 0;
    next += stride * (extents_[axis] - 1);
    if (described.strides[axis] == Stride::Any) order.push_back(axis);
  }
  next = std::max<int64_t>(next, 1);
  if (options_.irregular) std::shuffle(order.begin(), order.end(), random);
  for (int axis : order) {
    const int64_t gap = options_.irregular ? static_cast<int64_t>(random() % 3) : 0;
    const bool negative = options_.irregular && random() % 3 == 0;
    next += gap;
    strides_[operand * kernel_.rank + axis] = negative ? -next : next;
    next *= std::max<int64_t>(extents_[axis], 1);
  }
}

void KernelLaunch::allocate(int operand) {
  const KernelOperand& described = kernel_.operands[operand];
  if (described.role == KernelOperand::Role::Index) {
    data_[operand] = reinterpret_cast<void*>(int64_t{1000} * (operand + 1));
    return;
  }
  int64_t lowest = 0, highest = 0;
  bool empty = false;
  for (int axis = 0; axis < kernel_.rank; ++axis) {
    const int64_t reach = stride(operand, axis) * (extents_[axis] - 1);
    (reach < 0 ? lowest : highest) += reach;
    empty = empty || (extents_[axis] == 0 && described.strides[axis] != Stride::Zero);
  }
  const int64_t size = static_cast<int64_t>(getTypeSize(described.type));
  const int64_t count = empty ? 0 : highest - lowest + 1;
  memory_[operand] = std::make_shared<Memory>(count * size, options_.guardAfter);
  memory_[operand]->first = empty ? 0 : -lowest * size;
  data_[operand] = memory_[operand]->begin + memory_[operand]->first;
}

void KernelLaunch::fill(int operand, std::mt19937_64& random) {
  const KernelOperand& described = kernel_.operands[operand];
  if (described.role != KernelOperand::Role::Input) return;
  const size_t size = getTypeSize(described.type);
  for (size_t i = 0; i < memory_[operand]->size; i += size) {
    const uint64_t bits = drawNumber(described.type, random, options_).bits();
    std::memcpy(memory_[operand]->begin + i, &bits, size);
  }
}

void KernelLaunch::share(int output, int input) {
  memory_[output] = memory_[input];
  data_[output] = data_[input];
  for (int axis = 0; axis < kernel_.rank; ++axis) {
    strides_[output * kernel_.rank + axis] = strides_[input * kernel_.rank + axis];
  }
}

ir::KernelArgs KernelLaunch::args() const {
  static std::vector<unsigned char> scratch;
  scratch.assign(ir::kMaxKeptRows * ir::kKeptRowBytes, kUnwritten);
  return {.data = data_.data(),
          .extents = extents_.data(),
          .strides = strides_.data(),
          .scalars = scalars_.data(),
          .scratch = scratch.data()};
}

void runReference(const KernelLaunch& launch) {
  FL_INTERNAL_CHECK(tools::interpretKernel(launch.kernel(), launch.args(), 0, launch.domain()) ==
                    -1);
}

std::vector<std::string> KernelLaunch::outputs() const {
  std::vector<std::string> outputs;
  for (size_t i = 0; i < memory_.size(); ++i) {
    const KernelOperand& described = kernel_.operands[i];
    if (described.role != KernelOperand::Role::Output) continue;
    std::string bytes(memory_[i]->begin, memory_[i]->size);
    const size_t size = getTypeSize(described.type);
    for (size_t at = 0; isFloating(described.type) && at < bytes.size(); at += size) {
      uint64_t bits = 0;
      std::memcpy(&bits, &bytes[at], size);
      if (std::isnan(Number(described.type, bits).toDouble())) {
        std::memset(&bytes[at], 0xff, size);
      }
    }
    outputs.push_back(std::move(bytes));
  }
  return outputs;
}

std::string KernelLaunch::difference(const KernelLaunch& expected) const {
  const std::vector<std::string> mine = outputs(), theirs = expected.outputs();
  for (size_t i = 0; i < mine.size(); ++i) {
    const auto [at, other] = std::mismatch(mine[i].begin(), mine[i].end(), theirs[i].begin());
    if (at != mine[i].end()) {
      return detail::concat("byte ", at - mine[i].begin(), " of output ", i, " is ",
                            static_cast<int>(*at), " instead of ", static_cast<int>(*other), "\n",
                            ir::printKernel(kernel_, "k"));
    }
  }
  return "";
}

}  // namespace fl::testing
