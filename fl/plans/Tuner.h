// FL_TUNE=1: what shares a kernel is decided by measuring. Each kernel that fusion would make is
// timed beside its operators one by one, on elements of the same types and shapes; where it takes
// over kMostRatio of their time, fusion may not make it, and what it makes instead is measured in
// turn. Decisions are kept on disk by the text of the kernel's operators. Results are the same bits
// either way.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "fl/codegen/Compilation.h"
#include "fl/runtime/Device.h"
#include "fl/runtime/Store.h"

namespace fl::plans {

constexpr double kMostRatio = 1.2;

// The time of a graph as fusion makes kernels of it, over that of its operators one by one.
using Ratio = std::function<double(const ir::Graph& graph)>;

// Has code made of kernels, and returns when it is there.
using MakeCode = std::function<void(const std::vector<runtime::DeviceKernelPtr>&)>;

// Of plans that run on `device`, whose kernels `cache` holds: medians of interleaved runs, about
// 20 ms and three compiled kernels a graph. 0 where nothing is to be compared: no code was made, or
// memory is too short. The device and the cache outlive it.
Ratio measureOn(runtime::Device& device, runtime::KernelCache* cache, MakeCode makeCode);

// Not thread-safe.
class Tuner {
 public:
  // What ratios depend on, beside the graph, is in `key`. Without a store (FL_CACHE=off), or with
  // one that is damaged, all is measured again.
  Tuner(Ratio ratio, std::unique_ptr<runtime::Store> store, std::string key);

  // As codegen::compile().
  codegen::Compilation compile(const ir::Graph& graph, const codegen::CompileOptions& options);

 private:
  // `stored` of all values, by codegen::storedValues().
  bool isSplit(const codegen::Compilation& made, const std::vector<bool>& stored,
               const codegen::FusionGroup& group);

  const Ratio ratio_;
  const std::unique_ptr<runtime::Store> store_;
  const std::string key_;
  std::map<std::string, bool> split_;  // by the text of a kernel's operators
};

// As measureOn() has it, with decisions in the store. Null without FL_TUNE=1, and for devices that
// run no kernels.
std::unique_ptr<Tuner> makeTuner(runtime::Device& device, runtime::KernelCache* cache,
                                 MakeCode makeCode);

}  // namespace fl::plans
