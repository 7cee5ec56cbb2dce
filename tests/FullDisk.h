// A disk that fills up while this process writes: no file of it grows beyond a limit meanwhile.
#pragma once

#include <sys/resource.h>

#include <csignal>

namespace fl::testing {

class FullDisk {
 public:
  explicit FullDisk(rlim_t room) {
    std::signal(SIGXFSZ, SIG_IGN);  // so that a write fails
    getrlimit(RLIMIT_FSIZE, &before_);
    const rlimit now{room, before_.rlim_max};
    setrlimit(RLIMIT_FSIZE, &now);
  }
  ~FullDisk() { setrlimit(RLIMIT_FSIZE, &before_); }
  FullDisk(const FullDisk&) = delete;
  FullDisk& operator=(const FullDisk&) = delete;

 private:
  rlimit before_;
};

}  // namespace fl::testing
