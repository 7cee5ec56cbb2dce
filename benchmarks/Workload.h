// Cases that are timed lazy, eager, beside what no implementation can beat, and in other libraries,
// in turns and in one run, and what the programs print of them.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace fl::bench {

struct Workload {
  std::string name;
  // Makes data and models on the backend in scope, and what is timed: a call that does all of its
  // work before it returns.
  std::function<std::function<void()>()> make;
  // The limit is a CopyLimit of these bytes, or the time of these floating-point operations at the
  // rate of a large matrix product, or the Floor; none is known where all are 0.
  int64_t bytesRead = 0;
  int64_t bytesWritten = 0;
  double operations = 0;
  bool hasFloor = false;
};

// The main() of a benchmark `bench` that compares `workloads()` by the flags in Workload.cpp. The
// peers run benchmarks/peers/workloads.py.
int compareWorkloads(const char* bench, const char* usage, int argc, char** argv,
                     std::vector<Workload> (*workloads)());

}  // namespace fl::bench
