#include "fl/tile/HostTarget.h"

#include "fl/base/Error.h"
#include "fl/base/Flags.h"

namespace fl::tile {
namespace {

constexpr const char* kLevel3 =
    "+sse3,+ssse3,+sse4.1,+sse4.2,+popcnt,+cx16,+sahf,+movbe,+lzcnt,+bmi,+bmi2,+xsave,+avx,+avx2,"
    "+f16c,+fma";
constexpr const char* kLevel4 = ",+avx512f,+avx512bw,+avx512cd,+avx512dq,+avx512vl,+prfchw";
// Beyond the levels; the emitter asks for it by name.
constexpr const char* kBfloat16 = ",+avx512bf16";

bool supportsLevel3() {
  return __builtin_cpu_supports("popcnt") && __builtin_cpu_supports("sse4.2") &&
         __builtin_cpu_supports("bmi") && __builtin_cpu_supports("bmi2") &&
         __builtin_cpu_supports("lzcnt") && __builtin_cpu_supports("movbe") &&
         __builtin_cpu_supports("avx2") && __builtin_cpu_supports("f16c") &&
         __builtin_cpu_supports("fma");
}

bool supportsLevel4() {
  return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
         __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("avx512dq") &&
         __builtin_cpu_supports("avx512vl");
}

}  // namespace

ir::Target hostTarget() {
  const std::string& limit = flags().cpu;
  FL_USER_CHECK(limit.empty() || limit == "x86-64-v3", "FL_CPU: \"", limit,
                "\" is neither empty nor x86-64-v3");
  ir::Target target{.triple = "x86_64-pc-linux-gnu", .features = "", .tuning = "generic"};
  if (!supportsLevel3()) return target;
  target.features = kLevel3;
  target.vectorBits = 256;
  if (limit.empty() && supportsLevel4()) {
    target.features += kLevel4;
    if (__builtin_cpu_supports("avx512bf16")) target.features += kBfloat16;
    target.vectorBits = 512;
  }
  return target;
}

}  // namespace fl::tile
