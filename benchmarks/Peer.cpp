#include "benchmarks/Peer.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string_view>
#include <thread>

#include "absl/strings/str_cat.h"
#include "benchmarks/Report.h"

namespace fl::bench {

namespace {

// How long a block waits for a peer's threads to rest, and how often it looks.
constexpr std::chrono::milliseconds kMostSpin(1000), kLook(1);
constexpr char kDebianPython[] = "/usr/bin/python3";

// The interpreter of the virtual environment.
std::string newestPython() {
  const char* const home = std::getenv("HOME");
  return absl::StrCat(home != nullptr ? home : "", "/.cache/fl-peers/bin/python");
}

bool canRun(const std::string& python) { return access(python.c_str(), X_OK) == 0; }

// Whether the interpreter has the library that a peer's name begins with.
bool hasLibrary(const std::string& python, const std::string& peer) {
  const std::string library = peer.substr(0, peer.find(' '));
  return canRun(python) &&
         std::system(absl::StrCat("'", python, "' -c 'import importlib.util as u, sys; ",
                                  "sys.exit(u.find_spec(\"", library, "\") is None)'")
                         .c_str()) == 0;
}

// Whether no thread of a process runs, or would if it had a processor.
bool isIdle(int process) {
  std::error_code ended;
  const std::string tasks = absl::StrCat("/proc/", process, "/task");
  for (const auto& task : std::filesystem::directory_iterator(tasks, ended)) {
    std::string stat;
    std::getline(std::ifstream(task.path() / "stat"), stat);
    const size_t name = stat.rfind(')');  // the state comes behind it
    if (name != std::string::npos && stat.substr(name).starts_with(") R")) return false;
  }
  return true;
}

}  // namespace

Peer::Peer(std::string name, const std::string& python, const std::string& script, int threads)
    : name_(std::move(name)) {
  const std::string count = absl::StrCat(threads);
  std::array<int, 2> in{}, out{};
  // Other peers' processes must not hold an end, or this one would never find that it is closed.
  if (!canRun(python) || pipe2(in.data(), O_CLOEXEC) != 0 || pipe2(out.data(), O_CLOEXEC) != 0) {
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
  const auto start = Clock::now();
  while (!isIdle(process_) && Clock::now() - start < kMostSpin) std::this_thread::sleep_for(kLook);
  const Json time = Json::parse(answer.data());
  return time.is_null() ? std::nullopt : std::optional(time.get<double>());
}

Peers startPeers(bool wanted, const std::string& script, int threads, bool compiled) {
  return startPeers(wanted, script, threads, compiled, kDebianPython, newestPython());
}

Peers startPeers(bool wanted, const std::string& script, int threads, bool compiled,
                 const std::string& debianPython, const std::string& newestPython) {
  Peers peers;
  const auto start = [&](const char* name, const std::string& python) {
    if (wanted && hasLibrary(python, name)) {
      peers.push_back(std::make_unique<Peer>(name, python, script, threads));
    }
  };
  start("torch 1.13", debianPython);
  for (const char* name : {"torch", "torch compile", "jax", "mlx"}) {
    if (compiled || name != std::string_view("torch compile")) {
      start(name, newestPython);
    }
  }
  if (wanted && peers.empty()) {
    throw std::runtime_error("--peers: none is there; ./setup.sh --peers installs them");
  }
  return peers;
}

void PeerTimes::block(const Peers& peers, const std::string& opCase, Dim elements) {
  for (const std::unique_ptr<Peer>& peer : peers) {
    if (const std::optional<double> time = peer->block(opCase, elements)) {
      blocks_[peer->name()].push_back(*time);
    }
  }
}

std::map<std::string, double> PeerTimes::medians() const {
  std::map<std::string, double> medians;
  for (const auto& [name, times] : blocks_) {
    medians[name] = median(times);
  }
  return medians;
}

}  // namespace fl::bench
