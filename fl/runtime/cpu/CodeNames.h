// Tells perf and gdb the names of compiled kernels.
//
// perf reads lines "address size name", in hex, of /tmp/perf-PID.map. gdb reads the list of
// __jit_debug_descriptor ("JIT Compilation Interface" of its manual), whose entries are ELF files
// in memory: here ones with a symbol for the code and nothing else.
#pragma once

#include <cstddef>
#include <memory>
#include <string>

namespace fl::runtime::cpu {

// While it lives, gdb knows the code. Thread-safe.
class NamedCode {
 public:
  // Nothing goes wrong without /tmp: perf then lacks the name.
  NamedCode(const std::string& name, const void* address, size_t size);
  ~NamedCode();
  NamedCode(const NamedCode&) = delete;
  NamedCode& operator=(const NamedCode&) = delete;

 private:
  struct Entry;
  const std::unique_ptr<Entry> entry_;
};

}  // namespace fl::runtime::cpu
