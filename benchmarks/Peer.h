// Another library that times the cases of a benchmark in a process of its own (a script of
// benchmarks/peers), a block at a time, so that its blocks fall between ours.
#pragma once

#include <cstdio>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "fl/base/Shape.h"

namespace fl::bench {

class Peer {
 public:
  // Starts `python script name threads`. Throws std::runtime_error if there is no such interpreter.
  Peer(std::string name, const std::string& python, const std::string& script, int threads);
  ~Peer();
  Peer(const Peer&) = delete;
  Peer& operator=(const Peer&) = delete;

  const std::string& name() const { return name_; }
  // Microseconds a call in one block of calls; none if the peer has no such function or dtype.
  // Returns when its threads, some of which spin for a while, rest.
  // Throws std::runtime_error if the process has ended.
  std::optional<double> block(const std::string& opCase, Dim elements);

 private:
  std::string name_;
  int process_ = -1;
  int requests_ = -1;  // a pipe's end
  std::FILE* answers_ = nullptr;
};

using Peers = std::vector<std::unique_ptr<Peer>>;

// Those that `./setup.sh --peers` installs and that can be imported, or none if not `wanted`:
// Debian's PyTorch, and of a virtual environment PyTorch, the same with torch.compile if
// `compiled`, JAX and MLX. Throws std::runtime_error if they are wanted and none is there.
Peers startPeers(bool wanted, const std::string& script, int threads, bool compiled);
// With these interpreters.
Peers startPeers(bool wanted, const std::string& script, int threads, bool compiled,
                 const std::string& debianPython, const std::string& newestPython);

// The blocks of one case in several peers.
class PeerTimes {
 public:
  // One more of each.
  void block(const Peers& peers, const std::string& opCase, Dim elements);
  // Microseconds a call, by the names of the peers that have the case.
  std::map<std::string, double> medians() const;

 private:
  std::map<std::string, std::vector<double>> blocks_;
};

}  // namespace fl::bench
