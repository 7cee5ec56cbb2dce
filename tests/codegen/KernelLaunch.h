// One launch of a kernel in memory of its own, for tests.
//
// Every operand ends (or begins) exactly at a page that cannot be read, and what lies between
// strided elements is known, so that an access outside the elements either ends the test or shows
// in outputs(). Relies on the kernel form only.
#pragma once

#include <memory>
#include <random>
#include <string>
#include <vector>

#include "fl/kernel/Kernel.h"

namespace fl::testing {

struct LaunchOptions {
  // Strides of class Any may be negative and leave gaps.
  bool irregular = true;
  // NaN, infinities, -0 and the limits of integers are among the numbers.
  bool special = false;
  // Where the unreadable page lies.
  bool guardAfter = true;
  // Floats are drawn from here.
  double low = -4, high = 4;
};

class KernelLaunch {
 public:
  KernelLaunch(const ir::Kernel& kernel, std::vector<int64_t> extents, std::mt19937_64& random,
               LaunchOptions options = {});
  // A copy in other memory with the same contents; never shares an input with an output.
  KernelLaunch(const KernelLaunch& other);
  ~KernelLaunch();
  KernelLaunch& operator=(const KernelLaunch&) = delete;

  // Makes the output use the input's memory and strides.
  void share(int output, int input);
  void setScalar(int index, Number number) { scalars_[index] = number.bits(); }

  const ir::Kernel& kernel() const { return kernel_; }
  const std::vector<int64_t>& extents() const { return extents_; }
  int64_t domain() const { return ir::kernelDomain(kernel_, extents_.data()); }
  // The scratch is one for all launches and holds kUnwritten.
  ir::KernelArgs args() const;
  static constexpr unsigned char kUnwritten = 0xff;
  int64_t stride(int operand, int axis) const { return strides_[operand * kernel_.rank + axis]; }
  // Memory of the element at index 0 of all axes; of an Index operand: its base.
  void* data(int operand) const { return data_[operand]; }
  uint64_t scalar(int index) const { return scalars_[index]; }

  // The bytes of all outputs, gaps included. NaNs are made equal.
  std::vector<std::string> outputs() const;
  // Empty if the outputs have the same bytes; else where they differ first.
  std::string difference(const KernelLaunch& expected) const;

 private:
  struct Memory;

  void layOut(int operand, std::mt19937_64& random);
  void allocate(int operand);
  void fill(int operand, std::mt19937_64& random);

  ir::Kernel kernel_;
  std::vector<int64_t> extents_;
  LaunchOptions options_;
  std::vector<int64_t> strides_;
  std::vector<uint64_t> scalars_;
  std::vector<std::shared_ptr<Memory>> memory_;
  std::vector<void*> data_;
};

// Runs the whole domain by the reference interpreter.
void runReference(const KernelLaunch& launch);

// A number of the type as LaunchOptions describe it.
Number drawNumber(dtype type, std::mt19937_64& random, const LaunchOptions& options);

}  // namespace fl::testing
