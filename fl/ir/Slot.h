// Slots: places of the compiler where code from outside of the tree takes part, one a type of
// extension. Each has a function of its own beside what it extends; docs/researching.md lists them.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "fl/base/Error.h"

namespace fl::ir {

// Changes whenever an extension is added or removed: what was planned before is planned anew.
inline std::atomic<int64_t>& slotChanges() {
  static std::atomic<int64_t> changes = 0;
  return changes;
}

// Extensions of one kind, in the order in which they were added. An `Extension` has a `name` and an
// `int version`: both are part of the keys under which plans and kernels are kept on disk, so that
// a new version does not meet what an old one made. A function `verifyList` beside it, if there is
// one, throws for a list that may not be, which then stays as it was. Thread-safe.
template <class Extension, class Function>
class Slot {
 public:
  using List = std::vector<Extension>;
  static constexpr char kPlain[] =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.";
  // `kind` is what one of them is called, `work` its function.
  Slot(std::string kind, Function Extension::* work) : kind_(std::move(kind)), work_(work) {}

  // Throws std::invalid_argument for an extension without a function, for a name that is taken, and
  // for one that is no plain word: files and lines of keys have it.
  void add(Extension extension) {
    std::lock_guard lock(mutex_);
    FL_USER_CHECK(
        !extension.name.empty() && extension.name.find_first_not_of(kPlain) == std::string::npos,
        "an extension of the compiler needs a name of letters, digits, _, - and .; \"",
        extension.name, "\" is none");
    FL_USER_CHECK(std::ranges::count(*list_, extension.name, &Extension::name) == 0,
                  "an extension named \"", extension.name, "\" is there already");
    Function& work = extension.*work_;
    FL_USER_CHECK(work, "the ", kind_, " ", extension.name, " has no function");
    work = [this, name = extension.name, work](auto&&... given) {
      return this->blame(name, [&] { return work(given...); });
    };
    auto longer = std::make_shared<List>(*list_);
    longer->push_back(std::move(extension));
    set(std::move(longer), "");
  }

  // Runs what the extension of this name does, or what checks that: an error begins with its name.
  template <class Work>
  auto blame(const std::string& name, Work work) const {
    std::string words = "what was thrown is no std::exception";
    try {
      return work();
    } catch (const std::exception& error) {
      words = error.what();
      words.erase(std::min(words.find(fl::detail::kReportIt), words.size()));
      if (words.starts_with(fl::detail::kInternal)) words.erase(0, strlen(fl::detail::kInternal));
    } catch (...) {
    }
    throw InternalError(kind_ + " " + name + ": " + words);
  }

  // Nothing if there is none of that name. Throws std::invalid_argument if another one needs it.
  void remove(const std::string& name) {
    std::lock_guard lock(mutex_);
    auto shorter = std::make_shared<List>(*list_);
    std::erase_if(*shorter, [&](const Extension& each) { return each.name == name; });
    if (shorter->size() < list_->size()) set(std::move(shorter), name);
  }

  // As they are now.
  std::shared_ptr<const List> all() const {
    std::lock_guard lock(mutex_);
    return list_;
  }

  // Names and versions.
  std::string key() const {
    std::string text;
    for (const Extension& each : *all())
      text += each.name + " " + std::to_string(each.version) + "\n";
    return text;
  }

 private:
  void set(std::shared_ptr<const List> list, const std::string& removed) {
    if constexpr (requires { verifyList(*list, removed); }) verifyList(*list, removed);
    list_ = std::move(list);
    ++slotChanges();
  }

  const std::string kind_;
  Function Extension::* const work_;
  mutable std::mutex mutex_;
  std::shared_ptr<const List> list_ = std::make_shared<List>();
};

// The one of its type; never destroyed.
template <class Extension, class Function>
auto& slotOf(const char* kind, Function Extension::* work) {
  static auto& slot = *new Slot<Extension, Function>(kind, work);
  return slot;
}

}  // namespace fl::ir
