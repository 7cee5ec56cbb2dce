// Values by the words that describe them; beyond its capacity, in values or in what they weigh,
// those not used for longest go. A hash finds a value, equality of all words decides. Not
// thread-safe.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <list>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include "fl/base/Flags.h"
#include "fl/base/Hash.h"

namespace fl {

template <typename Value>
class WordCache {
 public:
  using Words = std::span<const int64_t>;

  explicit WordCache(size_t capacity, size_t mostWeight = SIZE_MAX)
      : capacity_(capacity), mostWeight_(mostWeight) {}

  // Null if there is none; valid until insert(). Allocates nothing.
  Value* find(Words words) {
    // What was found last is often wanted again; that needs no hash.
    if (!entries_.empty() && std::ranges::equal(entries_.front().words, words))
      return &entries_.front().value;
    const auto found = index_.find(words);
    if (found == index_.end()) return nullptr;
    entries_.splice(entries_.begin(), entries_, found->second);
    return &found->second->value;
  }

  // Adds a value whose words are not there yet; it stays, however many they are. True if another
  // value had to go.
  bool insert(Words words, Value value, size_t weight = 0) {
    entries_.push_front({{words.begin(), words.end()}, std::move(value), weight});
    index_.emplace(entries_.front().words, entries_.begin());
    weight_ += weight;
    const size_t before = entries_.size();
    while (entries_.size() > 1 && (entries_.size() > capacity_ || weight_ > mostWeight_)) {
      weight_ -= entries_.back().weight;
      index_.erase(entries_.back().words);
      entries_.pop_back();
    }
    return entries_.size() < before;
  }

  size_t size() const { return entries_.size(); }
  size_t countIf(auto is) const { return std::ranges::count_if(entries_, is, &Entry::value); }

 private:
  struct Entry {
    std::vector<int64_t> words;
    Value value;
    size_t weight;
  };
  struct Compare {
    // FL_FAULT: all words share one.
    bool isConstant = flags().fault == "hash";
    size_t operator()(Words words) const {
      return isConstant ? 0 : hashBytes(words.data(), words.size_bytes()).low;
    }
    bool operator()(Words x, Words y) const { return std::ranges::equal(x, y); }
  };

  size_t capacity_, mostWeight_, weight_ = 0;
  std::list<Entry> entries_;  // the last used first
  // By the words in `entries_`.
  std::unordered_map<Words, typename std::list<Entry>::iterator, Compare, Compare> index_;
};

}  // namespace fl
