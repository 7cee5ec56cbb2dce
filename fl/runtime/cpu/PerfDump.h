// Tells perf what compiled kernels are called and made of: a jitdump, which LLVM writes.
//
// `perf record -k mono PROGRAM`, then `perf inject --jit -i perf.data -o named.data`, and perf
// knows the code of named.data, also where one kernel lay after another in the same memory. The
// file is .debug/jit/*/jit-PID.dump of the folder JITDUMPDIR, a whole path, or of the home folder.
#pragma once

#include <cstddef>
#include <string>

namespace fl::runtime::cpu {

// `size` bytes of code at `address`, which are copied. Warns once if nothing can be written. A
// forked child dumps nothing. Thread-safe.
void dumpForPerf(const std::string& name, const void* address, size_t size);

}  // namespace fl::runtime::cpu
