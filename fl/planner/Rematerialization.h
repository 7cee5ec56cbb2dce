// One run of a schedule's steps within so many bytes: where their values would take more, those
// that are cheap to compute again for the bytes and the time that they would lie unused are
// dropped, and computed again, to the same bits, where a step reads them. M. Kirisame et al.,
// "Dynamic tensor rematerialization", ICLR 2021, with the next use in the place of the last. Of a
// device with memory of its own they may also move to the host, and back where a step reads them,
// as in M. Rhu et al., "vDNN", MICRO 2016: what takes less time.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <map>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "fl/base/Error.h"
#include "fl/planner/Memory.h"
#include "fl/planner/Reuse.h"

namespace fl::planner {

using Space = ir::BufferRef::Space;

constexpr int kForever = std::numeric_limits<int>::max();
// How many of these take as long as moving a byte.
constexpr double kMultipliesInAByte = 10;
// How many bytes may be moved while a kernel applies one operator to an element: a simple one, and
// a function or a random number.
constexpr double kBytesASimple = 0.25, kBytesAFunction = 8;
// A value of which more others have to be computed first is never dropped; and so many values stand
// between one in memory and what it is needed for.
constexpr int kMostAgain = 200, kMostBetween = 2;
// Of steps that are considered to run again, one is as so many values that are looked at; and so
// many are at each look.
constexpr int64_t kLooksAStep = 4;
constexpr size_t kMostPresent = 1000;
// Values that are, all together, this many times smaller than what is computed of them stay for it.
constexpr int64_t kSmall = 64;
// A plan with more steps than this for each of its own is no better than none.
constexpr size_t kMostSteps = 4;

inline double multipliesOf(const ir::LibraryStep& call) {
  const auto elements = [](const ir::ValueType& type) { return 1.0 * type.shape.elements(); };
  if (call.operandTypes.size() < 2) return 0;
  const ir::ValueType &x = call.operandTypes[0], &y = call.operandTypes[1], &z = call.resultType;
  const bool isForward = call.op == ir::Op::Conv2d;
  if (isForward || call.op == ir::Op::Conv2dBackwardData ||
      call.op == ir::Op::Conv2dBackwardFilter) {
    const ir::ValueType& filter = call.op == ir::Op::Conv2dBackwardFilter ? z : y;
    return elements(isForward ? z : x) * elements(filter) / filter.shape[3];
  }
  return std::sqrt(elements(x) * elements(y) * elements(z));  // exact for a product of matrices
}

inline double arithmeticOf(const ir::Kernel& kernel, const ir::LaunchStep& launch) {
  double perElement = 0;
  for (const ir::KernelValue& value : kernel.values) {
    if (value.form != ir::KernelValue::Form::Apply) continue;
    const bool isFunction = value.op == ir::Op::Random || ir::opInfo(value.op).ulp > 0.5;
    perElement += isFunction ? kBytesAFunction : kBytesASimple;
  }
  return std::accumulate(launch.extents.begin(), launch.extents.end(), perElement,
                         [](double product, Dim extent) { return product * extent; });
}

// In the time that it takes to move a byte.
inline double costOf(const ir::Schedule& schedule, const ir::Step& step) {
  const auto* call = std::get_if<ir::LibraryStep>(&step);
  const auto* launch = std::get_if<ir::LaunchStep>(&step);
  const double arithmetic = launch ? arithmeticOf(schedule.kernels[launch->kernel], *launch) : 0;
  return std::max(static_cast<double>(stepBytes(schedule, step)), arithmetic) +
         (call ? multipliesOf(*call) / kMultipliesInAByte : 0);
}

// A temporary of the schedule: a value, which is in memory at times.
struct Value {
  int64_t bytes = 0;
  std::vector<int> writers;  // steps
  std::vector<int> uses;     // steps that read or write it
  std::vector<int> makes;    // values that are computed of it
  int keptUntil = -1;        // the last step that may compute something of it again
  // Steps at and behind this one must find it in memory, if it was there before: what it is
  // computed of is gone. Nothing computes it again if that is 0, as where a later step uses it: so
  // it is in memory from its last writer to its last use.
  int deadline = 0;
};

// What can be computed again, and until when.
class Values {
 public:
  explicit Values(const ir::Schedule& schedule) : values(schedule.temporaries.size()) {
    for (size_t i = 0; i < values.size(); ++i)
      values[i].bytes = static_cast<int64_t>(schedule.temporaries[i].bytes);
    for (int i = 0; i < std::ssize(schedule.steps); ++i) {
      buffers.push_back(stepBuffers(schedule, schedule.steps[i]));
      for (const ir::BufferRef& ref : buffers[i].writes) {
        addOnce(&writes_[ref], i);
        if (ref.space != Space::Temporary) continue;
        addOnce(&values[ref.index].writers, i);
        for (const ir::BufferRef& read : buffers[i].reads)
          if (read.space == Space::Temporary) addOnce(&values[read.index].makes, ref.index);
      }
      touches.push_back(temporariesOf(schedule, schedule.steps[i]));
      for (int temporary : touches[i]) values[temporary].uses.push_back(i);
      costs.push_back(costOf(schedule, schedule.steps[i]));
    }
    findOverwriting(schedule);
    for (int i = 0; i < std::ssize(schedule.steps); ++i) {
      // First for all that a step writes: they have one deadline.
      for (Value* value : completedBy(i)) keepSmallOperands(buffers[i], *value);
      for (Value* value : completedBy(i)) value->deadline = deadlineOf(schedule, *value);
    }
  }

  std::vector<Value> values;
  std::vector<ir::StepBuffers> buffers;   // of each step
  std::vector<std::vector<int>> touches;  // of each step: the temporaries it uses
  std::vector<double> costs;              // of each step

 private:
  static void addOnce(std::vector<int>* list, int item) {
    if (list->empty() || list->back() != item) list->push_back(item);
  }

  std::vector<Value*> completedBy(int step) {
    std::vector<Value*> found;
    for (const ir::BufferRef& ref : buffers[step].writes)
      if (ref.space == Space::Temporary && values[ref.index].writers.back() == step)
        found.push_back(&values[ref.index]);
    return found;
  }

  // What computes a large value again finds those small operands that nothing computes again, such
  // as what a kernel made of a batch norm beside a result.
  void keepSmallOperands(const ir::StepBuffers& step, const Value& large) {
    std::vector<Value*> small;
    int64_t bytes = 0;
    for (const ir::BufferRef& read : step.reads) {
      if (read.space != Space::Temporary || values[read.index].deadline > 0) continue;
      small.push_back(&values[read.index]);
      bytes += small.back()->bytes;
    }
    if (large.writers.size() > 1 || bytes * kSmall > large.bytes) return;
    for (Value* value : small) value->keptUntil = std::max(value->keptUntil, large.uses.back());
  }

  // The first step that may write in the memory of each parameter, and the first of all.
  void findOverwriting(const ir::Schedule& schedule) {
    const std::vector<std::vector<int>> reusable = reusableParameters(schedule);
    for (int i = std::ssize(schedule.steps); i-- > 0;)
      for (const ir::BufferRef& ref : buffers[i].writes) {
        if (ref.space != Space::Output) continue;
        for (int parameter : reusable[ref.index]) overwritten_[parameter] = firstOverwriting_ = i;
      }
  }

  int deadlineOf(const ir::Schedule& schedule, const Value& value) const {
    // Nobody reads it before it is complete.
    int deadline = value.uses[value.writers.size() - 1] == value.writers.back() ? kForever : 0;
    for (int writer : value.writers) {
      // What else it writes must be complete by it alone.
      for (const ir::BufferRef& ref : buffers[writer].writes)
        if (ref.space != Space::Temporary ||
            (&values[ref.index] != &value && values[ref.index].writers.size() > 1))
          deadline = 0;
      for (const ir::BufferRef& ref : buffers[writer].reads) {
        const bool isOwn = ref.space == Space::Temporary && &values[ref.index] == &value;
        deadline = std::min(deadline, isOwn ? 0 : availableUntil(schedule, ref, writer));
      }
      if (mayFail(schedule.steps[writer])) deadline = std::min(deadline, firstOverwriting_);
    }
    return deadline > value.uses.back() ? deadline : 0;
  }

  // Until when the buffer has what `reader` finds in it.
  int availableUntil(const ir::Schedule& schedule, const ir::BufferRef& ref, int reader) const {
    const auto writes = writes_.find(ref);
    if (writes != writes_.end() && writes->second.back() > reader)
      return *std::ranges::upper_bound(writes->second, reader);
    if (ref.space == Space::Parameter) {
      const auto found = overwritten_.find(ref.index);
      return found == overwritten_.end() ? kForever : found->second;
    }
    if (ref.space == Space::Output) return schedule.outputs[ref.index].over < 0 ? kForever : 0;
    const Value& value = values[ref.index];
    return value.writers.empty() ? kForever  // without elements
           : value.deadline > 0  ? value.deadline
                                 : std::max(value.uses.back(), value.keptUntil) + 1;
  }

  std::map<ir::BufferRef, std::vector<int>> writes_;  // steps that write a buffer
  std::map<int, int> overwritten_;                    // by parameter
  int firstOverwriting_ = kForever;
};

// What a run may take: the time of what runs again and of moves, and values looked at. With
// thinning it keeps one value in so many of what is not needed within as many steps and can be
// computed again.
struct Limits {
  double mostAgain = INFINITY;
  int64_t looks = INT64_MAX;
  int thinning = 0;
  double bytesAMove = 0;  // as DeviceTraits::bytesAMove; nothing is moved if it is 0
};

// One run of the steps within `target` bytes.
class Rematerialization {
 public:
  Rematerialization(const ir::Schedule& schedule, const Values& values, int64_t target,
                    const Limits& limits = {})
      : schedule_(schedule), values_(values), target_(target), limits_(limits) {
    for (size_t i = 0; i < all_.size(); ++i) {
      if (!all_[i].uses.empty()) next_[i] = all_[i].uses[0];
      if (all_[i].keptUntil >= 0) keptUntil_.emplace(all_[i].keptUntil, static_cast<int>(i));
    }
  }

  // Whether there is a way.
  bool run() {
    for (; now_ < std::ssize(schedule_.steps); ++now_) {
      for (int value : values_.touches[now_])
        next_[value] =
            ++used_[value] < all_[value].uses.size() ? all_[value].uses[used_[value]] : kForever;
      runWithReads(now_);
      if (failed_) return false;
      const auto [begin, end] = keptUntil_.equal_range(now_);
      for (const auto& [until, value] : std::ranges::subrange(begin, end))
        if (places_[value] >= 0 && next_[value] == kForever) drop(value);
      if (limits_.thinning > 0) thin();
      if (schedule_.trimAll) dropAll();
    }
    return true;
  }

  // What ran.
  ir::Schedule schedule() const {
    ir::Schedule result = schedule_;
    result.steps.clear();
    result.temporaries = temporaries_;
    List places = places_;
    std::vector<bool> isMoved(temporaries_.size());  // back
    for (const Move& move : moves_) isMoved[move.from] = true;
    auto name = names_.begin();
    for (int step : steps_) {
      if (step < 0) {
        const Move& move = moves_[-1 - step];
        if (!temporaries_[move.to].onHost || isMoved[move.to]) result.steps.push_back(stepOf(move));
        continue;
      }
      for (int value : values_.touches[step]) places[value] = *name++;
      renameTemporaries(&result.steps.emplace_back(schedule_.steps[step]), places);
    }
    result.recomputed = static_cast<int>(steps_.size() - moves_.size() - schedule_.steps.size());
    computeLifetimes(&result);
    return result;
  }

  // Of the steps that run again and the moves; values that it looked at; the most bytes alive.
  double costAgain() const { return costAgain_; }
  size_t moves() const { return moves_.size(); }
  int64_t looks() const { return looks_; }
  int64_t most() const { return most_; }

  // Why there is no way, and what is largest then, a line each.
  std::pair<std::string, std::string> explain() const {
    List there = present_;
    if (places_[asked_] < 0) there.push_back(asked_);
    std::erase_if(there, [&](int value) { return all_[value].writers.empty(); });
    const int64_t needed = alive_ + (places_[asked_] < 0 ? all_[asked_].bytes : 0);
    const std::string what = looks_ > limits_.looks ? "none of the ways that were tried fits"
                             : needed > target_     ? absl::StrCat(needed, " are needed")
                                                    : "too much is computed again";
    return {absl::StrCat(what, " while ", describeStep(schedule_, now_), " runs"),
            describeLargest(schedule_, std::move(there))};
  }

 private:
  // Of a value, from one temporary of the result to another.
  struct Move {
    int value, from, to;
  };
  // What leaves the device's memory, if anything; it moves to the host, or is computed again.
  struct Victim {
    int value = -1;
    bool moves = false;
  };

  // Runs a step of the schedule, for the first time or again, behind those that make what it reads.
  void runWithReads(int last) {
    std::vector<std::pair<int, size_t>> open = {{last, 0}};  // steps, and how many reads are there
    while (!open.empty() && !failed_) {
      auto& [step, there] = open.back();
      if (there == 0) std::ranges::for_each(values_.touches[step], [&](int i) { ++locks_[i]; });
      if (there == buffers_[step].reads.size()) {
        runStep(step);
        open.pop_back();
        continue;
      }
      const ir::BufferRef& ref = buffers_[step].reads[there++];
      if (ref.space != Space::Temporary || places_[ref.index] >= 0) continue;
      if (onHost_[ref.index] >= 0) {
        bring(ref.index);
        continue;
      }
      const std::vector<int>& writers = all_[ref.index].writers;
      FL_INTERNAL_CHECK(writers.empty() || now_ < all_[ref.index].deadline,
                        "what is gone is needed");
      if (writers.empty()) reserve(ref.index);  // has no elements
      for (size_t i = writers.size(); i-- > 0;) open.emplace_back(writers[i], 0);
    }
  }

  // All that it reads is there.
  void runStep(int step) {
    for (int written : values_.touches[step])
      if (places_[written] < 0) reserve(written);
    costAgain_ += step < now_ ? costs_[step] : 0;
    const bool isLong = steps_.size() > kMostSteps * schedule_.steps.size();
    failed_ = failed_ || isLong || costAgain_ > limits_.mostAgain;
    if (failed_) return;
    steps_.push_back(step);
    for (int value : values_.touches[step]) {
      names_.push_back(places_[value]);
      --locks_[value];
      release(value, step);
    }
  }

  // A value whose writers have not all run, or that a step still reads, stays.
  void release(int value, int step) {
    const std::vector<int>& writers = all_[value].writers;
    const bool isWritten = writers.empty() || step >= writers.back();
    const bool isKept = all_[value].keptUntil >= now_ || neededAt(value) != kForever;
    if (locks_[value] == 0 && places_[value] >= 0 && isWritten && !isKept) drop(value);
  }

  // All that can be computed again, unless that is a lot already.
  void dropAll() {
    if (steps_.size() > kMostSteps / 2 * schedule_.steps.size()) return;
    for (int value : List(present_.rbegin(), present_.rend()))
      if (mayDrop(value)) drop(value);
  }

  // Of what the current step has used.
  void thin() {
    for (int value : values_.touches[now_])
      if (places_[value] >= 0 && mayDrop(value) && neededAt(value) - now_ > limits_.thinning)
        if (++thinned_ % limits_.thinning > 0) drop(value);
  }

  // Its elements, whatever they are.
  ir::LibraryStep stepOf(const Move& move) const {
    const auto bytes = static_cast<Dim>(temporaries_[move.from].bytes);
    const ir::ValueType type{dtype::u8, {bytes}};
    const ir::Step& maker = schedule_.steps[all_[move.value].writers.back()];
    return {.op = ir::Op::Reshape,
            .attrs = {bytes},
            .operandTypes = {type},
            .resultType = type,
            .operands = {{{Space::Temporary, move.from}}},
            .result = {{Space::Temporary, move.to}},
            .site = stepSite(maker)};
  }

  void addMove(int value, int from, int to) {
    moves_.push_back({value, from, to});
    steps_.push_back(static_cast<int>(-std::ssize(moves_)));
    costAgain_ += costOfMove(value);
    failed_ = failed_ || costAgain_ > limits_.mostAgain;
  }

  double costOfMove(int value) const {
    return limits_.bytesAMove * static_cast<double>(all_[value].bytes);
  }

  // What it takes to have it back, if it goes to the host or is there; INFINITY where it may not.
  double costOfMoves(int value) const {
    if (limits_.bytesAMove == 0 || !mayLeave(value)) return INFINITY;
    return (onHost_[value] >= 0 ? 1 : 2) * costOfMove(value);
  }

  void moveOut(int value) {
    if (onHost_[value] < 0) {
      onHost_[value] = static_cast<int>(temporaries_.size());
      temporaries_.push_back({.bytes = static_cast<size_t>(all_[value].bytes), .onHost = true});
      addMove(value, places_[value], onHost_[value]);
    }
    drop(value);
    forgetCosts(value);  // of what is computed of it: this is there, at the cost of a move
  }

  void bring(int value) {
    reserve(value);
    if (failed_) return;
    addMove(value, onHost_[value], places_[value]);
    forgetCosts(value);
  }

  void drop(int value) {
    const auto found = std::find(present_.rbegin(), present_.rend(), value);  // mostly a new one
    present_.erase(std::next(found).base());
    places_[value] = -1;
    alive_ -= all_[value].bytes;
  }

  // The first step behind the current one that needs it: for itself, or to have something computed
  // of it that is gone, by `more` others at most. Without the latter, what comes back of a chain
  // would start at its beginning each time.
  int neededAt(int value, int more = kMostBetween) const {
    int first = next_[value];
    if (first != kForever) return first;
    for (int made : all_[value].makes) {
      const bool isGone =
          places_[made] < 0 && onHost_[made] < 0 && all_[made].writers.back() < now_;
      if (isGone) first = std::min(first, more > 0 ? neededAt(made, more - 1) : next_[made]);
    }
    return first;
  }

  void reserve(int value) {
    const int64_t bytes = all_[value].bytes;
    for (asked_ = value; !failed_ && alive_ + bytes > target_;) {
      const auto [victim, moves] = limits_.thinning > 0 ? Victim() : cheapest();
      victim < 0 ? void(failed_ = true) : moves ? moveOut(victim) : drop(victim);
    }
    if (failed_) return;
    if (std::exchange(takes_[value], -1) >= 0) forgetCosts(value);
    alive_ += bytes;
    most_ = std::max(most_, alive_);
    present_.push_back(value);
    places_[value] = static_cast<int>(temporaries_.size());
    temporaries_.push_back({static_cast<size_t>(bytes)});
  }

  // Of many values each so-manieth is looked at, in turns.
  Victim cheapest() {
    Victim best;
    const size_t stride = present_.size() / kMostPresent + 1;
    looks_ += static_cast<int64_t>(present_.size() / stride);
    if (looks_ > limits_.looks) return best;
    double least = INFINITY;
    for (size_t k = steps_.size() % stride; k < present_.size(); k += stride) {
      const int i = present_[k];
      const double moves = costOfMoves(i);
      if (!mayDrop(i) && moves == INFINITY) continue;
      const double unused = static_cast<double>(all_[i].bytes) * (neededAt(i) - now_);
      if (moves / unused < least) {
        least = moves / unused;
        best = {i, true};
      }
      if (onHost_[i] >= 0 || !mayDrop(i) || takes_[i] / unused >= least) continue;
      ++search_;
      again_ = 0;
      takes_[i] = costAgain(i, 1.01 * least * unused);  // more than sums round
      looks_ += kLooksAStep * again_;
      if (takes_[i] / unused >= least) continue;
      least = takes_[i] / unused;
      best = {i, false};
    }
    return best;
  }

  // Whether it is complete, and no step works on it nor may have to find it.
  bool mayLeave(int value) const {
    const Value& it = all_[value];
    return locks_[value] == 0 && it.keptUntil < now_ && it.bytes > 0 && it.writers.back() < now_;
  }
  bool mayDrop(int value) const { return all_[value].deadline > 0 && mayLeave(value); }

  // What a value takes, with all that is gone and is computed before; a part, if that is `most`.
  double costAgain(int value, double most) {
    takes_[value] = std::max(takes_[value], 0.0);
    double cost = 0;
    for (int writer : all_[value].writers) {
      if (again_ > kMostAgain || cost >= most || searched_[writer] == search_) continue;
      searched_[writer] = search_;
      ++again_;
      cost += costs_[writer];
      for (const auto& [space, i] : buffers_[writer].reads)
        if (space == Space::Temporary && places_[i] < 0)
          cost += onHost_[i] < 0 ? costAgain(i, most - cost) : costOfMove(i);
    }
    return again_ > kMostAgain ? INFINITY : cost;
  }

  // Of all that was found to need a value that is back.
  void forgetCosts(int value) {
    for (List open = {value}; !open.empty();) {
      const int changed = open.back();
      open.pop_back();
      for (int made : all_[changed].makes)
        if (std::exchange(takes_[made], -1) >= 0 && places_[made] < 0) open.push_back(made);
    }
  }

  const ir::Schedule& schedule_;
  const Values& values_;
  const int64_t target_;
  const Limits limits_;
  const std::vector<Value>& all_ = values_.values;
  const std::vector<ir::StepBuffers>& buffers_ = values_.buffers;
  const std::vector<double>& costs_ = values_.costs;
  using List = std::vector<int>;
  List places_ = List(all_.size(), -1);  // of each value: its temporary of the result, or -1
  List onHost_ = List(all_.size(), -1);  // of each value: the same for its elements on the host
  List present_;                         // values in memory, oldest first
  List locks_ = List(all_.size(), 0);    // of each value: running steps that need it
  std::vector<size_t> used_ = std::vector<size_t>(all_.size(), 0);  // of each value: how often
  List next_ = List(all_.size(), kForever);  // of each value: the first step behind that uses it
  List searched_ = List(costs_.size(), 0);   // of each step: the last search that met it
  // Of each value that searches met: what it takes at least. -1 of others, and once that is less.
  std::vector<double> takes_ = std::vector<double>(all_.size(), -1);
  int search_ = 0, again_ = 0;         // for what a value takes, and the steps that it met
  std::multimap<int, int> keptUntil_;  // values
  List steps_;                         // those before 0 are moves: the first one is -1
  std::vector<Move> moves_;
  List names_;  // of all that the steps touch: temporaries of the result
  std::vector<ir::Temporary> temporaries_;
  int64_t alive_ = 0, most_ = 0, looks_ = 0;
  double costAgain_ = 0;
  int now_ = 0, thinned_ = 0, asked_ = 0;  // thinned: what might go; asked: for memory, last
  bool failed_ = false;
};

}  // namespace fl::planner
