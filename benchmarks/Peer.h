// Another library that times the cases of `ops` in a process of its own (benchmarks/peers/ops.py),
// a block at a time, so that its blocks fall between ours.
#pragma once

#include <cstdio>
#include <optional>
#include <string>

#include "fl/base/Shape.h"

namespace fl::bench {

class Peer {
 public:
  // `name` is torch, jax or mlx, `script` the path of ops.py. Throws std::runtime_error if there is
  // no such interpreter.
  Peer(std::string name, const std::string& python, const std::string& script, int threads);
  ~Peer();
  Peer(const Peer&) = delete;
  Peer& operator=(const Peer&) = delete;

  const std::string& name() const { return name_; }
  // Microseconds a call in one block of calls; none if the peer has no such function or dtype.
  // Throws std::runtime_error if the process has ended.
  std::optional<double> block(const std::string& opCase, Dim elements);

 private:
  std::string name_;
  int process_ = -1;
  int requests_ = -1;  // a pipe's end
  std::FILE* answers_ = nullptr;
};

// The interpreter of the virtual environment that `./setup.sh --peers` makes.
std::string peerPython();

}  // namespace fl::bench
