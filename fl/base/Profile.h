// Time of named pieces of a program. While a ScopedProfiler lives, on any thread, the time that
// each ProfileTracer lives is added up under its name; when the last one ends, the sums are written
// to the log, a line a name, most time first: FL_LOG=2 shows them. With the lazy backend the time
// of a piece is that of recording, and of computing what it reads. Otherwise a tracer costs a few
// nanoseconds, and the macros cost nothing unless FL_BUILD_PROFILING is 1.
#pragma once

#include <chrono>
#include <string>

#ifndef FL_BUILD_PROFILING
#define FL_BUILD_PROFILING 0
#endif

namespace fl::detail {

class ScopedProfiler {
 public:
  ScopedProfiler();
  ~ScopedProfiler();
  ScopedProfiler(const ScopedProfiler&) = delete;
  ScopedProfiler& operator=(const ScopedProfiler&) = delete;
};

class ProfileTracer {
 public:
  explicit ProfileTracer(const std::string& name);
  ~ProfileTracer();
  ProfileTracer(const ProfileTracer&) = delete;
  ProfileTracer& operator=(const ProfileTracer&) = delete;

 private:
  std::string name_;  // empty: nobody asks
  std::chrono::steady_clock::time_point start_;
};

}  // namespace fl::detail

// Until the end of the block.
#if FL_BUILD_PROFILING
#define FL_PROFILE_JOIN_(a, b) a##b
#define FL_PROFILE_JOIN(a, b) FL_PROFILE_JOIN_(a, b)
#define FL_PROFILE_TRACE(name) \
  fl::detail::ProfileTracer FL_PROFILE_JOIN(profileTracer, __LINE__)(name);
#define FL_SCOPED_PROFILE() fl::detail::ScopedProfiler FL_PROFILE_JOIN(scopedProfiler, __LINE__);
#else
#define FL_PROFILE_TRACE(name)
#define FL_SCOPED_PROFILE()
#endif
