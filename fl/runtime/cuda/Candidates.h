// Calls that NVIDIA's libraries make in several ways, by the one that is the fastest here.
//
// The ways are run on the GPU once, when a plan first asks for the workspace of such a call, on
// memory of their own. What is chosen is kept on disk, by the call, the library's version and the
// GPU: later processes take it unmeasured, if the library still offers it. So a call has the same
// bits in all of them; with FL_CACHE=off it has them in each.
#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "fl/runtime/cuda/DeviceCall.h"

namespace fl::runtime::cuda {

class Candidate : public DeviceCall {
 public:
  // What it is called on disk, as only it is among the candidates for a call.
  virtual std::string name() const = 0;
  // Makes it ready; false if the library does not do it here.
  virtual bool prepare(Context&) { return true; }
};
using Candidates = std::vector<std::shared_ptr<Candidate>>;

constexpr int kMostCandidates = 8;

class MeasuredCall : public DeviceCall {
 public:
  // `call` names the library, its version and all that the choice depends on; `bytes` are those of
  // the operands and the result. The candidates stand in the library's order. The first is
  // prepared; it is the one where nothing can be measured, for want of memory, and where others are
  // about as fast.
  MeasuredCall(Context& context, std::string call, std::vector<size_t> bytes, Candidates candidates)
      : context_(context),
        call_(std::move(call)),
        bytes_(std::move(bytes)),
        candidates_(std::move(candidates)) {}

  size_t workspaceBytes() const override { return fastest().workspaceBytes(); }
  void run(Context& context, void* const* operands, void* result, void* workspace) const override {
    fastest().run(context, operands, result, workspace);
  }

 protected:
  const Candidate& fastest() const {
    std::call_once(once_, [&] { candidates_ = {choose()}; });
    return *candidates_[0];
  }

 private:
  std::shared_ptr<Candidate> choose() const;

  Context& context_;
  const std::string call_;
  const std::vector<size_t> bytes_;
  mutable std::once_flag once_;
  mutable Candidates candidates_;  // the chosen one, once there is one
};

}  // namespace fl::runtime::cuda
