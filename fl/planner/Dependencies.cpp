#include "fl/planner/Dependencies.h"

#include <algorithm>

#include "fl/planner/Reuse.h"

namespace fl::planner {

std::vector<std::vector<int>> dependencies(const ir::Schedule& schedule) {
  struct Users {
    int writer = -1;
    std::vector<int> readers;  // since then
  };
  using Space = ir::BufferRef::Space;
  // By space, of which that of parameters is 0.
  std::vector<Users> users[] = {std::vector<Users>(schedule.parameters.size()),
                                std::vector<Users>(schedule.outputs.size()),
                                std::vector<Users>(schedule.temporaries.size())};
  // An output that is over a parameter may be in its buffer.
  const auto usersOf = [&](const ir::BufferRef& ref) -> Users& {
    const int over = ref.space == Space::Output ? schedule.outputs[ref.index].over : -1;
    return over < 0 ? users[static_cast<int>(ref.space)][ref.index] : users[0][over];
  };
  const std::vector<std::vector<int>> reusable = reusableParameters(schedule);
  std::vector<std::vector<int>> before(schedule.steps.size());
  std::vector<int> failing;
  for (int i = 0; i < std::ssize(schedule.steps); ++i) {
    const ir::StepBuffers buffers = stepBuffers(schedule, schedule.steps[i]);
    const auto after = [&](int step) {
      if (step >= 0 && step != i) before[i].push_back(step);
    };
    for (const ir::BufferRef& ref : buffers.reads) {
      after(usersOf(ref).writer);
      usersOf(ref).readers.push_back(i);
    }
    for (const ir::BufferRef& ref : buffers.writes) {
      after(usersOf(ref).writer);
      std::ranges::for_each(usersOf(ref).readers, after);
      usersOf(ref) = {i, {}};
      if (ref.space == Space::Output) {
        for (int parameter : reusable[ref.index]) {
          std::ranges::for_each(users[0][parameter].readers, after);
          std::ranges::for_each(failing, after);
        }
      }
    }
    if (mayFail(schedule, schedule.steps[i])) failing.push_back(i);
    std::sort(before[i].begin(), before[i].end());
    before[i].erase(std::unique(before[i].begin(), before[i].end()), before[i].end());
  }
  return before;
}

}  // namespace fl::planner
