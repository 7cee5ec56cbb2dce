// A stage of a plan as the viewer shows it: what one .flir text says, as items that are computed of
// one another. Items of a graph are its values, those of a schedule its parameters and steps, those
// of a kernel the values of its body.
//
// Relies on the parsers of ir and kernel for the forms, and on the comments that their printers
// write: the user's line behind a node or step, and the groups of a fusion plan in front of its
// graph (codegen::printFusion). Dot.h and Page.h make text of it.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "fl/kernel/Artifact.h"
#include "fl/kernel/Schedule.h"

namespace fl::view {

struct Item {
  std::string name;           // "%3", "p1", or "s5" for the step 5
  std::string op;             // of a launch, what profiles call its kernel
  std::string attrs;          // a step's extents too
  std::string type;           // empty for a launch
  size_t bytes = 0;           // of the value; of a step, those that it moves
  std::string line;           // of the user's, empty where it is not known
  std::string buffers;        // what a step reads and writes, a buffer a line
  std::vector<int> operands;  // items, each before its users
  bool parameter = false;
  bool library = false;  // a call of a library, or what becomes one
  int group = -1;
  int kernel = -1;                         // of the stage's schedule
  ir::Stores stores = ir::Stores::Cached;  // how a CPU's code of it writes
  bool operator==(const Item&) const = default;
};

// Nodes that share a kernel.
struct Group {
  std::string title;  // "space=(10, 32) reduced=[0]"
  std::string again;  // "iota%3": what it computes again of other groups
  std::string cost;
  bool operator==(const Group&) const = default;
};

struct Stage {
  std::string form;  // graph, schedule or kernel
  std::vector<Item> items;
  std::vector<Group> groups;
  std::vector<int> results;              // items
  std::optional<ir::Schedule> schedule;  // if it is one
};

// Whether their items, groups and kernels are equal.
bool saysTheSame(const Stage& x, const Stage& y);

// Throws ParseError, or InternalError for a form that breaks a rule.
Stage readStage(const std::string& text);
// The body of a kernel.
std::vector<Item> kernelItems(const ir::Kernel& kernel);

// How an item came about since the stage before.
struct Change {
  enum class Kind : uint8_t { None, Changed, New };
  Kind kind = Kind::New;
  int before = -1;  // the item of the stage before
};
// One an item of `after`. Items are matched by what they compute of what, then by operator, type
// and line; where a step is behind another one than before, it changed. Linear in the items.
std::vector<Change> changesBetween(const Stage& before, const Stage& after);

}  // namespace fl::view
