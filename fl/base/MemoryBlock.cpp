#include "fl/base/MemoryBlock.h"

#include <algorithm>

namespace fl {

MemoryBlockPtr MemoryBlock::inForm(const std::string& form,
                                   const std::function<MemoryBlockPtr()>& make) const {
  const std::unique_lock<std::mutex> lock(mutex_, std::try_to_lock);
  if (!lock) return nullptr;
  const auto found = std::ranges::find(forms_, form, &Form::name);
  if (found == forms_.end()) {
    forms_.push_back({form, nullptr});
    hasForms_ = true;
    return nullptr;
  }
  if (!found->elements) found->elements = make();
  return found->elements;
}

void MemoryBlock::willChange() {
  if (!hasForms_) return;
  const std::lock_guard<std::mutex> lock(mutex_);
  forms_.clear();
  hasForms_ = false;
}

}  // namespace fl
