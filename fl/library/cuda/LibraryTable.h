// A library's functions as a table, opened at its first use; a test may put its own in their place.
// May be used from any thread. Relies on fl/base/CudaLibrary.h.
#pragma once

#include <mutex>
#include <string>

#include "fl/base/CudaLibrary.h"
#include "fl/base/Log.h"

namespace fl::library::cuda {

template <class Table>
class LibraryTable {
 public:
  using Fill = void (*)(CudaLibrary& library, Table& table);

  // libNAME.so.VERSION of CUDA `builtFor`, which makes `makes`.
  LibraryTable(const char* name, int version, int builtFor, const char* makes, Fill fill)
      : name_(name), version_(version), builtFor_(builtFor), makes_(makes), fill_(fill) {}

  // "" if the library can be used; else why not, in one sentence, of which the log warns once.
  const std::string& problem() { return loaded().problem; }
  bool isThere() { return problem().empty(); }
  // Only where it is there.
  const Table& table() { return loaded().table; }
  // Before any other call.
  void install(const Table& table) { loaded_ = new Loaded{table, ""}; }

 private:
  struct Loaded {
    Table table;
    std::string problem;
  };

  const Loaded& loaded() {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (loaded_ == nullptr) {
      loaded_ = new Loaded();
      CudaLibrary library(name_, version_, builtFor_);
      fill_(library, loaded_->table);
      loaded_->problem = library.problem();
      if (!loaded_->problem.empty()) {
        logWarning(loaded_->problem + "; " + makes_ + " are made of kernels");
      }
    }
    return *loaded_;
  }

  const char* const name_;
  const int version_, builtFor_;
  const char* const makes_;
  const Fill fill_;
  std::mutex mutex_;
  Loaded* loaded_ = nullptr;  // for the process's life
};

}  // namespace fl::library::cuda
