#include "benchmarks/Peer.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstdlib>
#include <stdexcept>

#include "absl/strings/str_cat.h"
#include "benchmarks/Report.h"

namespace fl::bench {

std::string peerPython() {
  const char* const home = std::getenv("HOME");
  return absl::StrCat(home != nullptr ? home : "", "/.cache/fl-peers/bin/python");
}

Peer::Peer(std::string name, const std::string& python, const std::string& script, int threads)
    : name_(std::move(name)) {
  const std::string count = absl::StrCat(threads);
  std::array<int, 2> in{}, out{};
  // Other peers' processes must not hold an end, or this one would never find that it is closed.
  if (access(python.c_str(), X_OK) != 0 || pipe2(in.data(), O_CLOEXEC) != 0 ||
      pipe2(out.data(), O_CLOEXEC) != 0) {
    throw std::runtime_error("--peers: " + python + " is not there; ./setup.sh --peers makes it");
  }
  std::signal(SIGPIPE, SIG_IGN);  // a peer that has ended is an error of block()
  process_ = fork();
  if (process_ == 0) {
    dup2(in[0], STDIN_FILENO);
    dup2(out[1], STDOUT_FILENO);
    execl(python.c_str(), python.c_str(), script.c_str(), name_.c_str(), count.c_str(), nullptr);
    _exit(127);
  }
  close(in[0]);
  close(out[1]);
  requests_ = in[1];
  answers_ = fdopen(out[0], "r");
}

Peer::~Peer() {
  close(requests_);
  std::fclose(answers_);
  waitpid(process_, nullptr, 0);
}

std::optional<double> Peer::block(const std::string& opCase, Dim elements) {
  const std::string request = absl::StrCat(opCase, "\t", elements, "\n");
  std::array<char, 100> answer{};
  if (write(requests_, request.data(), request.size()) != static_cast<ssize_t>(request.size()) ||
      std::fgets(answer.data(), answer.size(), answers_) == nullptr) {
    throw std::runtime_error("--peers: " + name_ + " has ended");
  }
  const Json time = Json::parse(answer.data());
  return time.is_null() ? std::nullopt : std::optional(time.get<double>());
}

}  // namespace fl::bench
