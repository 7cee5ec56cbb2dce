// The fuzzer: bazel run //tests/fuzz -- --programs=100000 --seed=N. Shows progress, replays and
// shrinks what is wrong, and ends with the calls by op or Composite, and dtype; the exit code is 1
// if anything was, and if a long run called one of them too seldom. Programs are shared out to
// processes, each of which writes a Progress after every program.
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <iostream>
#include <sstream>
#include <vector>

#include "absl/flags/flag.h"
#include "fl/base/CommandLine.h"
#include "fl/base/Error.h"
#include "fl/base/Flags.h"
#include "fl/runtime/Counters.h"
#include "tests/fuzz/Differential.h"

ABSL_FLAG(uint64_t, programs, 1000, "how many programs to run");
ABSL_FLAG(uint64_t, seed, 1, "the first program's seed; each has the next one");
ABSL_FLAG(int, jobs, 2, "how many processes run them");
ABSL_FLAG(std::string, dump, "fuzz_failures", "folder for the plans of programs that are wrong");

namespace fl::testing {
namespace {

// So many programs call every op and Composite on every dtype that it takes so often.
constexpr uint64_t kLongRun = 100000;
constexpr uint64_t kFewestCalls = 1000;

struct Progress {
  uint64_t programs = 0;
  uint64_t wrongs = 0;
  uint64_t recomputed = 0;  // steps that plans run again
  HeldCounts held = {};
};

void report(uint64_t seed, const std::string& wrong) {
  const Cut cut = shrinkProgram(seed);
  const std::string folder = absl::GetFlag(FLAGS_dump) + "/seed" + std::to_string(seed);
  dumpProgram(seed, cut, folder);
  std::ostringstream os;
  os << "\nprogram " << seed << ": " << wrong << "\n"
     << cut.statements - static_cast<int>(cut.without.size()) << " statements are enough:\n"
     << checkProgram(seed, cut) << "their plans are in " << folder
     << "; `fl reduce` makes those smaller"
     << "\nreplay with --programs=1 --seed=" << seed << "\n";
  std::cout << os.str() << std::flush;
}

template <typename T>
void send(int pipe, const T& value) {
  FL_INTERNAL_CHECK(write(pipe, &value, sizeof value) == sizeof value, "the fuzzer's pipe");
}

// Every jobs-th program from `job` on; the calls at the end.
void work(int job, int jobs, int pipe) {
  flags().check = "verify";
  Progress progress;
  for (uint64_t i = job; i < absl::GetFlag(FLAGS_programs); i += jobs) {
    const uint64_t seed = absl::GetFlag(FLAGS_seed) + i;
    const std::string wrong = checkProgram(seed);
    if (!wrong.empty()) {
      report(seed, wrong);
    }
    ++progress.programs;
    progress.wrongs += !wrong.empty();
    progress.recomputed = runtime::counters().stepsRecomputed;
    progress.held = heldCounts();
    send(pipe, progress);
  }
  send(pipe, Progress{});  // no more of them
  send(pipe, callCounts());
}

struct Worker {
  pid_t process;
  int pipe;
  Progress progress;
  bool done = false;
};

Worker start(int job, int jobs) {
  int ends[2];
  FL_INTERNAL_CHECK(pipe(ends) == 0, "the fuzzer's pipe");
  const pid_t process = fork();
  if (process == 0) {
    close(ends[0]);
    work(job, jobs, ends[1]);
    std::cout << std::flush;
    _exit(0);
  }
  close(ends[1]);
  return {process, ends[0], {}};
}

// All of a value, which may come in parts; false at the end of the pipe.
template <typename T>
bool receive(int pipe, T* value) {
  auto* bytes = reinterpret_cast<char*>(value);
  for (size_t have = 0; have < sizeof *value;) {
    const ssize_t got = read(pipe, bytes + have, sizeof *value - have);
    if (got <= 0) {
      return false;
    }
    have += got;
  }
  return true;
}

void addCalls(CallCounts* total, const CallCounts& calls) {
  for (size_t op = 0; op < calls.size(); ++op) {
    for (size_t type = 0; type < calls[op].size(); ++type) {
      (*total)[op][type] += calls[op][type];
    }
  }
}

// Takes what a worker wrote. One that ended early counts as a program that is wrong.
void take(Worker* worker, CallCounts* calls) {
  Progress progress;
  if (!receive(worker->pipe, &progress)) {
    worker->done = true;
    ++worker->progress.wrongs;
    std::cout << "\na process ended early, after " << worker->progress.programs << " programs\n";
  } else if (progress.programs > 0) {
    worker->progress = progress;
  } else {
    CallCounts its{};
    worker->done = receive(worker->pipe, &its);
    addCalls(calls, its);
  }
}

Progress sum(const std::vector<Worker>& workers) {
  Progress all;
  for (const Worker& worker : workers) {
    all.programs += worker.progress.programs;
    all.wrongs += worker.progress.wrongs;
    all.recomputed += worker.progress.recomputed;
    const HeldCounts& held = worker.progress.held;
    all.held.programs += held.programs;
    all.held.wild += held.wild;
    all.held.withinBudget += held.withinBudget;
    all.held.exact += held.exact;
    all.held.bounded += held.bounded;
    all.held.unbounded += held.unbounded;
    all.held.wildExact += held.wildExact;
    all.held.wildTyped += held.wildTyped;
  }
  return all;
}

// Until all workers have ended; returns their calls.
CallCounts watch(std::vector<Worker>* workers) {
  CallCounts calls{};
  const auto running = [&] {
    std::vector<pollfd> pipes;
    for (const Worker& worker : *workers) {
      pipes.push_back({worker.done ? -1 : worker.pipe, POLLIN, 0});
    }
    return pipes;
  };
  for (bool more = true; more;) {
    std::vector<pollfd> pipes = running();
    poll(pipes.data(), pipes.size(), -1);
    more = false;
    for (size_t i = 0; i < pipes.size(); ++i) {
      if (pipes[i].revents != 0) {
        take(&(*workers)[i], &calls);
      }
      more = more || !(*workers)[i].done;
    }
    const Progress all = sum(*workers);
    if (isatty(STDOUT_FILENO) && all.programs % 10 == 0) {
      std::cout << "\r" << all.programs << " of " << absl::GetFlag(FLAGS_programs) << " programs, "
                << all.wrongs << " wrong" << std::flush;
    }
  }
  return calls;
}

bool isThin(const CallCounts& calls) {
  const std::vector<std::string> thin = thinCells(calls, kFewestCalls);
  for (const std::string& cell : thin) {
    std::cout << "fewer than " << kFewestCalls << " calls: " << cell << "\n";
  }
  return !thin.empty();
}

int run() {
  const auto begin = std::chrono::steady_clock::now();
  std::vector<Worker> workers;
  const int jobs = std::max(absl::GetFlag(FLAGS_jobs), 1);
  for (int job = 0; job < jobs; ++job) {
    workers.push_back(start(job, jobs));
  }
  const CallCounts calls = watch(&workers);
  for (const Worker& worker : workers) {
    waitpid(worker.process, nullptr, 0);
  }
  const double seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  const Progress all = sum(workers);
  std::cout << "\ncalls by op or Composite, and dtype:\n"
            << describe(calls) << all.programs << " programs from seed "
            << absl::GetFlag(FLAGS_seed) << " in " << seconds << " s, " << all.wrongs << " wrong, "
            << all.recomputed << " steps of plans computed again, within budgets in "
            << all.held.withinBudget << " programs\n"
            << all.held.programs << " programs were held against the reference device: of their "
            << all.held.exact + all.held.bounded + all.held.unbounded << " values "
            << all.held.exact << " are exact, " << all.held.bounded << " within a bound, "
            << all.held.unbounded << " anything but NaN for a number; of the "
            << all.held.wildExact + all.held.wildTyped << " of " << all.held.wild
            << " other programs " << all.held.wildExact
            << " are exact, the rest of the same dtype and shape\n";
  return all.wrongs > 0 || (all.programs >= kLongRun && isThin(calls)) ? 1 : 0;
}

}  // namespace
}  // namespace fl::testing

int main(int argc, char** argv) {
  fl::parseCommandLine("fuzz [--programs=N] [--seed=N] [--jobs=N] [--dump=FOLDER]", __FILE__, argc,
                       argv);
  return fl::testing::run();
}
