// What the library functions share: oneDNN primitives run on raw pointers, single-threaded, with
// scratch memory that the caller brings. Private to this folder; Library.h is the interface.
#pragma once

#include <algorithm>
#include <cstddef>
#include <initializer_list>
#include <oneapi/dnnl/dnnl.hpp>
#include <string>

namespace fl::library {

using Desc = dnnl::memory::desc;

// The CPU engine of the process.
const dnnl::engine& dnnlEngine();

// While it lives, oneDNN makes no OpenMP team on this thread. The user's setting comes back after.
class SingleThread {
 public:
  SingleThread();
  ~SingleThread();
  SingleThread(const SingleThread&) = delete;
  SingleThread& operator=(const SingleThread&) = delete;

 private:
  int before_;
};

// dnnl_sgemm reads matrices where they lie, and with AVX2, on caches of 8 ways, takes twice as long
// to cross columns that are half a page apart or a multiple of it: 38 against 80 GFLOP/s at
// M = 128, N = K = 1024.
constexpr int64_t kPageElements = 1024;
constexpr int64_t kGap = 16;
// Elements that copies of columns of a length leave between them; 0 where these do not conflict.
int64_t gapBehind(int64_t length);

// Whether instructions for vectors of bf16 take longer than those of f32 for the same product, as
// Intel's do: up to twice as long.
bool isBrainSlow();

// Attributes of all our primitives: scratchpads are the caller's.
const dnnl::primitive_attr& callerScratchpad();

// Throws OutOfMemory if there is none for the code of a primitive, and what it is made of: oneDNN
// writes to what it asks the system for without looking whether it got it.
void checkMemoryForCode();
// The same, after that check.
const dnnl::primitive_desc_base& withMemoryForCode(const dnnl::primitive_desc_base& desc);

struct Argument {
  int role;  // DNNL_ARG_*
  const Desc& desc;
  void* data;
};

// A primitive and the scratchpad it wants. run() may be called from any thread under SingleThread.
class Primitive {
 public:
  Primitive() = default;
  explicit Primitive(const dnnl::primitive_desc_base& desc)
      : primitive_(withMemoryForCode(desc).get()),
        scratchpad_(desc.scratchpad_desc()),
        name_(desc.impl_info_str()) {}

  size_t scratchBytes() const { return scratchpad_.get_size(); }
  const std::string& name() const { return name_; }
  // Throws InternalError if oneDNN fails.
  void run(std::initializer_list<Argument> arguments, void* scratchpad) const;

 private:
  dnnl::primitive primitive_;
  Desc scratchpad_;
  std::string name_;
};

// Copies a tensor into another layout.
class Reorder {
 public:
  Reorder() = default;
  Reorder(const Desc& from, const Desc& to);

  // False if the layouts are the same; run() must not be called then.
  bool needed() const { return needed_; }
  size_t scratchBytes() const { return needed_ ? primitive_.scratchBytes() : 0; }
  void run(const void* from, void* to, void* scratchpad) const;

 private:
  bool needed_ = false;
  Desc from_, to_;
  Primitive primitive_;
};

// Lays out parts of one scratch area, each 64-byte aligned.
class ScratchLayout {
 public:
  // Returns the part's offset.
  size_t add(size_t bytes) {
    const size_t offset = bytes_;
    bytes_ += (bytes + 63) / 64 * 64;
    return offset;
  }
  size_t bytes() const { return bytes_; }

 private:
  size_t bytes_ = 0;
};

// True for implementations that are written for clarity, not speed.
inline bool isReference(const std::string& implementation) {
  return implementation.starts_with("ref");
}

inline int64_t ceilDiv(int64_t a, int64_t b) { return (a + b - 1) / b; }

inline void* at(void* base, size_t bytes) { return static_cast<char*>(base) + bytes; }

}  // namespace fl::library
