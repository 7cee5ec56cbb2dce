// Which items of a stage stand for which of the stage before.
#include <deque>
#include <unordered_map>

#include "absl/strings/str_cat.h"
#include "fl/view/Stage.h"

namespace fl::view {
namespace {

using absl::StrAppend;
using absl::StrCat;

std::string looksOf(const Stage& stage, const Item& item) {
  const std::string kernel =
      item.kernel < 0 ? "" : ir::printKernel(stage.schedule->kernels[item.kernel], "k");
  return StrCat(item.op, "|", item.attrs, "|", item.type, "|", kernel);
}

// Of a launch without its kernel, which a pass may have changed.
std::string placeOf(const Item& item) {
  return StrCat(item.kernel < 0 ? item.op : "launch", "|", item.line);
}

// Items of the stage before that are not matched yet, by a text that says what they are.
class Unmatched {
 public:
  void add(const std::string& key, int item) { items_[key].push_back(item); }
  // The first one with the key that is free, or -1.
  int take(const std::string& key, const std::vector<bool>& taken) {
    const auto found = items_.find(key);
    if (found == items_.end()) return -1;
    std::deque<int>& items = found->second;
    while (!items.empty() && taken[items.front()]) items.pop_front();
    return items.empty() ? -1 : items.front();
  }

 private:
  std::unordered_map<std::string, std::deque<int>> items_;
};

class Matching {
 public:
  Matching(const Stage& before, const Stage& after)
      : after_(after), changes_(after.items.size()), taken_(before.items.size()) {
    for (size_t i = 0; i < before.items.size(); ++i) {
      const Item& item = before.items[i];
      const std::string looks = looksOf(before, item);
      same_.add(sameKey(looks, item, item.operands), static_cast<int>(i));
      alike_.add(StrCat(looks, "|", item.line), static_cast<int>(i));
      near_.add(placeOf(item), static_cast<int>(i));
    }
  }

  std::vector<Change> run() {
    for (size_t i = 0; i < changes_.size(); ++i) matchSame(i);
    // Once more, as operands that changed are matched now.
    for (size_t i = 0; i < changes_.size(); ++i) {
      if (changes_[i].before < 0 && !matchSame(i)) matchChanged(i);
    }
    markMoved();
    return std::move(changes_);
  }

 private:
  static std::string sameKey(const std::string& looks, const Item& item,
                             const std::vector<int>& operands) {
    std::string key = StrCat(looks, "|", item.parameter ? item.name : "", "|", item.buffers);
    for (int operand : operands) StrAppend(&key, " ", operand);
    return key;
  }

  bool match(size_t i, int before, Change::Kind kind) {
    if (before < 0) return false;
    changes_[i] = {kind, before};
    taken_[before] = true;
    return true;
  }

  bool matchSame(size_t i) {
    const Item& item = after_.items[i];
    std::vector<int> operands;
    for (int operand : item.operands) operands.push_back(changes_[operand].before);
    const std::string key = sameKey(looksOf(after_, item), item, operands);
    return match(i, same_.take(key, taken_), Change::Kind::None);
  }

  void matchChanged(size_t i) {
    const Item& item = after_.items[i];
    const std::string looks = StrCat(looksOf(after_, item), "|", item.line);
    if (!match(i, alike_.take(looks, taken_), Change::Kind::Changed))
      match(i, near_.take(placeOf(item), taken_), Change::Kind::Changed);
  }

  void markMoved() {
    for (size_t i = 1; after_.schedule && i < changes_.size(); ++i) {
      Change& change = changes_[i];
      const bool follows = change.before == changes_[i - 1].before + 1;
      if (change.kind == Change::Kind::None && !follows) change.kind = Change::Kind::Changed;
    }
  }

  const Stage& after_;
  std::vector<Change> changes_;
  std::vector<bool> taken_;
  Unmatched same_, alike_, near_;
};

}  // namespace

std::vector<Change> changesBetween(const Stage& before, const Stage& after) {
  return Matching(before, after).run();
}

}  // namespace fl::view
