// What the benchmarks share: medians, and results as rows. A row is a JSON object: bench, case,
// unit, threads, ours (lazy), eager, limit (what no implementation can beat; null if not known),
// peers {name: value}; of times also spread, that of ours; of training steps also, in the same
// unit, what recording and running one take, record and run, and planning and compiling at first,
// plan and compile.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "nlohmann/json.hpp"

namespace fl::bench {

using Json = nlohmann::ordered_json;
using Clock = std::chrono::steady_clock;

// The middle value, or the upper one of the middle two. `values` must not be empty.
double median(std::vector<double> values);
// Where the middle half of the values lies: its width over the median.
double spread(std::vector<double> values);
double millisecondsSince(Clock::time_point start);

// What all programs do before they time anything: sets the number of threads (0: as it is), and has
// kernels compiled at their first run, not beside the timed ones.
void prepare(int threads);

// An object a line. Throws std::runtime_error if the file cannot be written.
void writeRows(const std::vector<Json>& rows, const std::string& path);

}  // namespace fl::bench
