// One GPU: its context and the stream that everything on it runs in.
//
// The host puts work into the stream, and the GPU does it later, in order. So memory that is given
// back may be given out at once: what was put in before uses it before. What goes wrong in work
// that was put in is found when the stream is waited for.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "fl/base/CallSite.h"
#include "fl/base/Error.h"
#include "fl/kernel/cuda/Launch.h"
#include "fl/runtime/cuda/Driver.h"

namespace fl::runtime::cuda {

class Context {
 public:
  // That of a GPU, by its number for the driver; the first call takes some tenths of a second.
  // Throws std::runtime_error if there is no driver, and std::invalid_argument, which names those
  // that there are, if there is no such GPU. Never destroyed: blocks may outlive devices.
  static Context& of(int number);
  int number() const { return number_; }
  // "cuda" for the first one, "cuda:1"
  std::string name() const { return number_ == 0 ? "cuda" : detail::concat("cuda:", number_); }
  CUdevice device() const { return device_; }

  // The driver, for calls of this thread on this GPU. Throws std::runtime_error in a child of
  // fork(), which has nothing of its parent's GPU, nor anything to give back.
  const Driver& use() const;
  // Null where use() throws: for what gives memory back, which nobody is to be told of.
  const Driver* tryUse() const;
  // Or, for a thread that captures what it puts in, the one that it is captured from.
  CUstream stream() const { return isDiverted_ ? captured_ : stream_; }
  // For Capture, of the calling thread; of one at a time.
  void divert(bool isDiverted) const { isDiverted_ = isDiverted; }
  // "sm_90"
  const std::string& architecture() const { return architecture_; }
  size_t totalBytes() const { return totalBytes_; }
  // Waits, and gives the device's memory that is not in use back to the system.
  void trimMemory();
  // Shared memory that a launch may ask for, for each block.
  int sharedBytes() const { return sharedBytes_; }

  // For launches with splits (ir::cuda::LaunchMemory), which never run at the same time.
  uint32_t* counters();

  // Throws std::runtime_error "CUDA: WORDS: what the driver says, at the user's line", or as
  // finish() does for what the GPU met with before.
  template <class... Words>
  void check(CUresult result, const Words&... words) const {
    if (result != CUDA_SUCCESS) fail(result, detail::concat(words...));
  }

  // Puts a launch into the stream. `label` names its operators and `site` is the user's line, for
  // what goes wrong.
  void launch(CUfunction function, const ir::cuda::Launch& launch, std::vector<uint64_t>& words,
              const std::shared_ptr<const std::string>& label, const CallSite& site);
  // One was put in by other means than launch().
  void note(const std::shared_ptr<const std::string>& label, const CallSite& site);
  // How many there were.
  size_t launches() const { return launches_; }
  // Wait for all that is in the stream, or for what was put in before the event was recorded, when
  // there had been so many launches. Throw std::runtime_error that names the launches that were not
  // known to have gone well.
  void finish();
  void finish(CUevent event, size_t launches);

  // Whether copies from the other GPU's memory need no detour through the host's.
  bool reaches(const Context& other);
  // Puts such a copy into the stream, behind what is in the other's, which goes on behind it.
  void copyFrom(Context& other, CUdeviceptr to, CUdeviceptr from, size_t bytes);

 private:
  struct Launched {
    std::shared_ptr<const std::string> label;
    CallSite site;
  };
  static constexpr size_t kTold = 16;  // launches that an error names

  explicit Context(int number);
  // What is put into the stream from now on is done after what is in the other's.
  void follow(Context& other);
  [[noreturn]] void fail(CUresult result, const std::string& words) const;
  // "CUDA: ", and which GPU it is if that is not the first.
  std::string prefix() const;
  // Of a wait for so many launches.
  void checkLate(CUresult result, size_t launches);
  std::string describeLate(CUresult result) const;

  const Driver& driver_;
  const int number_;
  CUdevice device_ = 0;
  CUcontext context_ = nullptr;
  CUstream stream_ = nullptr, captured_ = nullptr;
  static inline thread_local bool isDiverted_ = false;
  static inline std::atomic<bool> isForked_ = false;
  std::string architecture_;
  size_t totalBytes_ = 0;
  CUmemoryPool pool_ = nullptr;
  CUevent reached_ = nullptr;    // follow()
  std::map<int, bool> reaches_;  // by GPU
  std::once_flag countersOnce_;
  CUdeviceptr counters_ = 0;
  int sharedBytes_ = 0;
  mutable std::recursive_mutex mutex_;
  std::vector<Launched> launched_;  // the last ones, in a ring
  std::atomic<size_t> launches_ = 0;
  size_t done_ = 0;  // of them, that is known
};

// A T for each GPU, made of its Context when it is first asked for and never destroyed.
template <class T>
class PerGpu {
 public:
  T& of(Context& context) {
    const std::lock_guard<std::mutex> lock(mutex_);
    std::unique_ptr<T>& made = all_[context.number()];
    if (!made) made = std::make_unique<T>(context);
    return *made;
  }

 private:
  std::mutex mutex_;
  std::map<int, std::unique_ptr<T>> all_;
};

}  // namespace fl::runtime::cuda
