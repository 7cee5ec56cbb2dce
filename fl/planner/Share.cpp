// Elementwise chains that fusion left apart need one buffer, not two: a map writes in the memory of
// a temporary that nobody reads after it.
#include <algorithm>
#include <numeric>

#include "fl/planner/Memory.h"
#include "fl/planner/Planner.h"
#include "fl/planner/Reuse.h"

namespace fl::planner {
namespace {

class Sharing {
 public:
  explicit Sharing(ir::Schedule* schedule)
      : schedule_(*schedule), home_(schedule->temporaries.size()) {
    std::iota(home_.begin(), home_.end(), 0);
  }

  void run() {
    for (int i = 0; i < std::ssize(schedule_.steps); ++i) {
      renameTemporaries(&schedule_.steps[i], home_);
      if (const auto* launch = std::get_if<ir::LaunchStep>(&schedule_.steps[i])) {
        share(*launch, i);
        renameTemporaries(&schedule_.steps[i], home_);
      }
    }
    dropEmpty();
    schedule_.arenaBound = mostAlive(schedule_);
  }

 private:
  void share(const ir::LaunchStep& launch, int step) {
    ir::StepBuffers buffers = stepBuffers(schedule_, launch);
    // The result of a call first: the launch may then become its epilogue.
    if (const auto* call =
            step > 0 ? std::get_if<ir::LibraryStep>(&schedule_.steps[step - 1]) : nullptr) {
      std::ranges::partition(buffers.reads,
                             [&](const ir::BufferRef& ref) { return ref == call->result.buffer; });
    }
    for (const ir::BufferRef& to : buffers.writes) {
      const auto may = [&](const ir::BufferRef& from) { return mayShare(launch, step, from, to); };
      const auto from = std::ranges::find_if(buffers.reads, may);
      if (from == buffers.reads.end()) continue;
      home_[to.index] = from->index;
      temporary(*from).last = temporary(to).last;
    }
  }

  bool mayShare(const ir::LaunchStep& launch, int step, const ir::BufferRef& from,
                const ir::BufferRef& to) {
    return from.space == ir::BufferRef::Space::Temporary && to.space == from.space &&
           temporary(from).last == step && temporary(to).first == step &&
           temporary(to).last > step && temporary(from).bytes == temporary(to).bytes &&
           !isReadBeside(schedule_, step, from) && readsWhereItWrites(schedule_, launch, from, to);
  }

  ir::Temporary& temporary(const ir::BufferRef& ref) { return schedule_.temporaries[ref.index]; }

  // Of those that have no memory of their own any more.
  void dropEmpty() {
    std::vector<int> places(home_.size(), -1);
    std::vector<ir::Temporary> kept;
    for (size_t i = 0; i < home_.size(); ++i) {
      if (home_[i] != static_cast<int>(i)) continue;
      places[i] = static_cast<int>(kept.size());
      kept.push_back(schedule_.temporaries[i]);
    }
    for (ir::Step& step : schedule_.steps) renameTemporaries(&step, places);
    schedule_.temporaries = std::move(kept);
  }

  ir::Schedule& schedule_;
  std::vector<int> home_;  // the temporary in whose memory each one is
};

}  // namespace

void shareMemory(ir::Schedule* schedule) { Sharing(schedule).run(); }

}  // namespace fl::planner
