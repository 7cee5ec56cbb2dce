// Times on the device `cuda`, by CUDA events: from where the stream gets to the first of some calls
// to where the last is done. Relies on the backend in scope being lazy on that device, which must
// be there.
#pragma once

#include <functional>
#include <vector>

#include "benchmarks/Report.h"
#include "benchmarks/Workload.h"
#include "fl/base/Shape.h"

namespace fl::bench {

class GpuSubject {
 public:
  // Calls `call` a few times, until all that it compiles is there.
  explicit GpuSubject(std::function<void()> call);
  // Times calls for about 5 ms, one at least, and waits.
  void block();
  // The median of the blocks, of a call.
  double microseconds() const { return median(times_); }

 private:
  double timed(int calls) const;

  std::function<void()> call_;
  int calls_ = 1;
  std::vector<double> times_;
};

// What the GPU reaches, by which limits are known.
struct GpuLimits {
  double copyRate;     // bytes read or written a microsecond by a copy on the GPU
  double productRate;  // floating-point operations a microsecond in an f32 product
};
// By copies of so many bytes and products of matrices of this size.
GpuLimits measureLimits(int64_t copyBytes, Dim productSize, int rounds);

// What no implementation can beat; null where it is not known.
Json limitOf(const Workload& workload, const GpuLimits& limits);

// The limits themselves, and what plans of one and of many kernels of a few elements cost, as rows
// of Report.h.
std::vector<Json> rowsOfGpu(const GpuLimits& limits, int rounds);

// Attention of bf16 by 16 heads of 64 features, of so many queries and keys.
Workload attentionOf(Dim time, Dim batch, bool isMasked, bool hasGradients);

// Kernels, products and steps at sizes that keep a GPU busy, beside those of the CPU's benchmarks.
std::vector<Workload> gpuCases();

// A row of Report.h; of another device than the GPU nothing is measured.
Json gpuRow(const std::string& name, const std::string& unit, double ours);

}  // namespace fl::bench
