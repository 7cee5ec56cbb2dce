// Edit distances between outputs and targets: the fewest deletions, insertions and substitutions
// that make one sequence the other. Wagner and Fischer, "The string-to-string correction problem",
// 1974.
#pragma once

#include <algorithm>
#include <cstdint>
#include <type_traits>
#include <utility>
#include <vector>

#include "fl/tensor/TensorBase.h"

namespace fl {

// Tensors that are added are only kept; value() and errorRate() wait for them and compare.
class EditDistanceMeter {
 public:
  // Elements of the target that the output lacks, that it has beside them, and that it has others
  // for. Among equally short ways a deletion comes first, then an insertion.
  struct ErrorState {
    int64_t ndel = 0;
    int64_t nins = 0;
    int64_t nsub = 0;
    int64_t sum() const { return ndel + nins + nsub; }
  };

  // Two 1-D tensors of integers; else std::invalid_argument.
  void add(const Tensor& output, const Tensor& target);
  // Errors of targets whose lengths are n together.
  void add(const int64_t n, const int64_t ndel, const int64_t nins, const int64_t nsub);
  void add(const ErrorState& es, const int64_t n) { add(n, es.ndel, es.nins, es.nsub); }
  // Sequences given by forward iterators and lengths; takes time olen tlen.
  template <typename T, typename S>
    requires(!std::is_arithmetic_v<T> && !std::is_arithmetic_v<S>)
  void add(const T& output, const S& target, const size_t olen, const size_t tlen) {
    add(errors(output, target, olen, tlen), static_cast<int64_t>(tlen));
  }
  template <typename T>
  void add(const std::vector<T>& output, const std::vector<T>& target) {
    add(output.data(), target.data(), output.size(), target.size());
  }

  // {errors, length of all targets, deletions, insertions, substitutions}
  std::vector<int64_t> value() const;
  // The same in percent of the length of all targets, the length itself excepted. Of length 0, what
  // is not 0 is infinite.
  std::vector<double> errorRate() const;
  void reset();

 private:
  template <typename T, typename S>
  static ErrorState errors(const T& output, const S& target, size_t olen, size_t tlen);
  struct Totals {
    int64_t length = 0;
    ErrorState errors;
    void add(const ErrorState& more, int64_t n) {
      length += n;
      errors.ndel += more.ndel;
      errors.nins += more.nins;
      errors.nsub += more.nsub;
    }
  };
  // Compares what is pending.
  const Totals& totals() const;

  // The values are the same whether tensors have been compared or not.
  mutable Totals totals_;
  mutable std::vector<std::pair<Tensor, Tensor>> pending_;  // outputs and targets, s64
};

template <typename T, typename S>
EditDistanceMeter::ErrorState EditDistanceMeter::errors(const T& output, const S& target,
                                                        size_t olen, size_t tlen) {
  // Of the first i elements of the output, held against those of the target up to the current one.
  std::vector<ErrorState> best(olen + 1);
  for (size_t i = 0; i <= olen; ++i) {
    best[i].nins = static_cast<int64_t>(i);
  }
  auto wanted = target;
  for (size_t t = 0; t < tlen; ++t, ++wanted) {
    ErrorState previous = best[0];  // one element less on both sides
    ++best[0].ndel;
    auto given = output;
    for (size_t i = 1; i <= olen; ++i, ++given) {
      ErrorState substitution = std::exchange(previous, best[i]);
      substitution.nsub += *given == *wanted ? 0 : 1;
      ErrorState deletion = best[i], insertion = best[i - 1];
      ++deletion.ndel;
      ++insertion.nins;
      best[i] = std::min({deletion, insertion, substitution},
                         [](const auto& a, const auto& b) { return a.sum() < b.sum(); });
    }
  }
  return best[olen];
}

}  // namespace fl
