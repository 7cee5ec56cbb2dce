// What threads have recorded and not realized: segments of nodes, and when they run. Engine.cpp
// makes their plans.
#include <algorithm>
#include <atomic>
#include <ranges>
#include <string_view>
#include <unordered_set>

#include "fl/base/Error.h"
#include "fl/base/Flags.h"
#include "fl/base/Log.h"
#include "fl/check/CheckedPlan.h"
#include "fl/lazy/Engine.h"
#include "fl/planner/Planner.h"
#include "fl/profile/Profile.h"
#include "fl/runtime/Counters.h"
#include "fl/runtime/MemoryManager.h"
#include "fl/tensor/View.h"

namespace fl::lazy {
namespace {

// The program's own write, by an operator as x(i) = y or x(i) += y; the library's, as of gradients,
// are in the names of its functions.
bool writesToPart(const LazyNode& node) {
  const char* function = node.site.function();
  return !node.composite && node.site.writes() && ir::opKind(node.op) == ir::Kind::Update &&
         function && std::string_view(function).ends_with('=');
}

bool isDone(const std::weak_ptr<LazyNode>& node) {
  const LazyNodePtr it = node.lock();
  return !it || !it->pending();
}

// What a write that is held up gives back, and does not read, is computed for it.
void keepOld(const PendingList::Update& update) {
  const LazyNodePtr value = update.value.lock();
  if (!value || !value->isHeldUp) return;
  const auto old = std::dynamic_pointer_cast<LazyNode>(update.old.lock());
  if (!old || !old->pending() || old->isHeldUp) return;
  const auto isIt = [&](const LazyNodePtr& node) { return node == old; };
  if (std::ranges::none_of(value->operands, isIt) && std::ranges::none_of(value->olds, isIt))
    value->olds.push_back(old);
}

// Or that part of what is alive, where that is more.
constexpr size_t kDroppedPart = 8;
// Indices out of range that a realize finds in a segment, a run each. Others wait for the next one.
constexpr int kMostFaults = 4;

// A thread's segments that have not been realized; the last one records until it is ended.
struct ThreadSegments {
  std::vector<uint64_t> pending;
  bool ended = true;
  uint64_t refused = 0;             // the one that a realize ran last
  uint64_t told = 0;                // the last one of which a read told what FL_CHECK finds
  bool recording = false;           // a function: nothing runs
  Recorded recorded;                // since this thread's last realize
  int64_t since = 0;                // of a profile: when its first operator was recorded
  const void* lastFlush = nullptr;  // the site of the last automatic one
  static inline std::atomic<uint64_t> threads = 0;
  const uint64_t thread = ++threads;

  // Nothing is pending. The segment that records goes on: it is another when it is realized.
  void realized() {
    pending.erase(pending.begin(), ended ? pending.end() : pending.end() - 1);
    recorded = {};
  }
};

using EngineSegments = std::unordered_map<const Engine*, ThreadSegments>;

// What threads that have ended had pending, under the engine's mutex.
struct LeftBehind {
  std::vector<uint64_t> segments;
  Recorded recorded;
};

std::unordered_map<const Engine*, LeftBehind>& leftBehind() {
  static auto& left = *new std::unordered_map<const Engine*, LeftBehind>();
  return left;
}

void leave(const ThreadSegments& mine, LeftBehind* left) {
  left->segments.insert(left->segments.end(), mine.pending.begin(), mine.pending.end());
  left->recorded.nodes += mine.recorded.nodes;
  left->recorded.bytes += mine.recorded.bytes;
  left->recorded.given += mine.recorded.given;
}

// Made anew where something still computes when the thread's objects are gone.
thread_local EngineSegments* ofThread = nullptr;
// Few programs use more than one engine at a time.
thread_local std::pair<const Engine*, ThreadSegments*> lastUsed = {nullptr, nullptr};

struct ThreadEnd {
  ~ThreadEnd() {
    const std::lock_guard<std::recursive_mutex> lock(engineMutex());
    try {
      for (const auto& [engine, segments] : *ofThread)
        if (segments.recorded.nodes > 0) leave(segments, &leftBehind()[engine]);
    } catch (const std::bad_alloc&) {  // then it waits until it is read
    }
    delete std::exchange(ofThread, nullptr);
    lastUsed = {nullptr, nullptr};
  }
};

ThreadSegments& threadSegments(const Engine* engine) {
  if (lastUsed.first == engine) return *lastUsed.second;
  if (!ofThread) {
    ofThread = new EngineSegments();
    thread_local const ThreadEnd end;
  }
  lastUsed = {engine, &(*ofThread)[engine]};
  return *lastUsed.second;
}

}  // namespace

void Engine::record(const LazyNodePtr& node, bool isWhole) {
  std::lock_guard<std::recursive_mutex> lock(engineMutex());
  ThreadSegments& segments = threadSegments(this);
  if (segments.ended && !segments.recording) realizeLeft();
  const auto flushIfDue = [&](LazyNode* last) {
    const bool isDue = last && segments.recorded.reaches(flushAt_, 1) && !segments.recording;
    if (isDue) flush(last, segments.recorded.reaches(flushAt_, 2));
  };
  const auto isGiven = [](const LazyNodePtr& operand) { return operand->id == 0; };
  if (segments.recorded.given >= segments.recorded.lookAt && !segments.recording &&
      StepScope::depth == 0 && std::ranges::any_of(node->operands, isGiven)) {
    flushDropped();
  }
  if (std::exchange(StepScope::isDue, false) && !segments.pending.empty())
    flushIfDue(segments_[segments.pending.back()].last());
  if (segments.ended) {
    segments.pending.push_back(nextSegment_++);
    segments.ended = false;
    if (segments_.size() > 2 * segmentsKept_ + 100) dropEmptySegments();
  }
  node->id = nextId_++;
  node->segment = segments.pending.back();
  PendingList& list = segments_[node->segment];
  list.append(node.get());
  list.isRecorded = segments.recording;
  list.thread = segments.thread;
  if (segments.recorded.nodes == 0 && profile::isActive()) segments.since = profile::now();
  segments.recorded.nodes += node->operators();
  // Views are no memory: kernels read through them.
  const size_t bytes = ir::opKind(node->op) == ir::Kind::View ? 0 : node->bytes();
  segments.recorded.bytes += node->composite ? node->composite->bytes : bytes;
  for (const LazyNodePtr& operand : node->operands) {
    node->isHeldUp |= operand->pending() && operand->isHeldUp;
    if (operand->buffer && operand->segment != node->segment) {
      operand->segment = node->segment;  // counts once
      segments.recorded.bytes += operand->buffer->bytes();
      if (operand->id == 0) segments.recorded.given += operand->buffer->bytes();
    }
  }
  if (StepScope::depth == 0 && isWhole) flushIfDue(node.get());
}

// When threads that have ended left as much as would make one of them run it. What has an error is
// for those who read it.
void Engine::realizeLeft() {
  const auto left = leftBehind().find(this);
  if (left == leftBehind().end()) return;
  const auto& [segments, recorded] = left->second;
  if (!recorded.reaches(flushAt_, 1) && recorded.given < Recorded::kMostDropped) return;
  const auto taken = leftBehind().extract(left);
  for (const uint64_t segment : taken.mapped().segments) {
    try {
      realizeSegment(segment);
    } catch (const std::exception&) {
    }
  }
}

// Ahead of an operator that reads what the program made of its data: a loop's next batch.
void Engine::flushDropped() {
  if (!flags().flushBytes.empty()) return;
  ThreadSegments& segments = threadSegments(this);
  const size_t live = runtime::hostMemoryManager()->stats().liveBytes;
  const size_t most = std::max(Recorded::kMostDropped, live / kDroppedPart);
  const size_t dropped = droppedBytes(segments.pending);
  segments.recorded.lookAt =
      segments.recorded.given + std::max<size_t>(most, dropped + 1) - dropped;
  LazyNode* const last = segments_[segments.pending.back()].last();
  if (last && dropped >= most) flush(last, dropped >= 2 * most);
}

// Of values that the program made of its data and only pending operators hold: eager mode would
// have freed them.
size_t Engine::droppedBytes(const std::vector<uint64_t>& segments) {
  ++visit_;
  std::vector<const LazyNodePtr*> given;
  for (const uint64_t segment : segments) {
    for (LazyNode* node = segments_[segment].first(); node; node = node->next()) {
      for (const LazyNodePtr& operand : node->operands) {
        if (operand->id != 0 || !operand->buffer) continue;
        if (std::exchange(operand->visit, visit_) != visit_) {
          operand->innerUses = 0;
          given.push_back(&operand);
        }
        ++operand->innerUses;
      }
    }
  }
  size_t bytes = 0;
  for (const LazyNodePtr* node : given)
    if (isHeldBy((*node)->innerUses, *node) && isHeldBy(1, (*node)->buffer))
      bytes += (*node)->bytes();
  return bytes;
}

void Engine::flush(LazyNode* node, bool late) {
  // Flushing where the previous flush happened lets a loop reuse its plan.
  ThreadSegments& segments = threadSegments(this);
  if (segments.lastFlush && segments.lastFlush != node->site.address() && !late) return;
  segments.lastFlush = node->site.address();
  try {
    realizePending(node);
  } catch (const std::exception& error) {
    // What failed is still pending, so the read that needs a value reports it to whoever can act.
    segments.recorded = {};
    segments.told = 0;
    logWarning(std::string("an automatic flush failed: ") + error.what());
  }
}

void Engine::endSegment() { threadSegments(this).ended |= !threadSegments(this).recording; }

void Engine::beginRecording() {
  takingBack(nullptr, [&] {
    try {
      realizeMine();
    } catch (const planner::OverBudget&) {  // stays for those who read it
    }
  });
  ThreadSegments& segments = threadSegments(this);
  segments.recording = segments.ended = true;
}

void Engine::endRecording() {
  std::lock_guard<std::recursive_mutex> lock(engineMutex());
  ThreadSegments& segments = threadSegments(this);
  if (!segments.pending.empty()) segments_[segments.pending.back()].isRecorded = false;
  segments.recording = false;
  segments.ended = true;
}

bool Engine::isOthers(const LazyNode& node) const {
  const std::lock_guard<std::recursive_mutex> lock(engineMutex());
  const ThreadSegments& mine = threadSegments(this);
  return node.pending() && (mine.ended || mine.pending.back() != node.segment);
}

void Engine::noteUpdate(const std::shared_ptr<detail::TensorStorage>& tensor,
                        const TensorValue& old, const LazyNodePtr& value) {
  std::lock_guard<std::recursive_mutex> lock(engineMutex());
  if (!value->pending()) return;
  auto* was = dynamic_cast<LazyNode*>(old.get());
  if (was && was->writers.size() == was->writers.capacity()) std::erase_if(was->writers, isDone);
  if (was) was->writers.push_back(value);
  segments_[value->segment].updates.push_back(
      {tensor, old, was ? was->buffer : nullptr, was ? was->channel : -1, value});
  if (value->isHeldUp) keepOld(segments_[value->segment].updates.back());
}

// Of tensors whose new value is lost, the last first, as one may have been written again and again.
size_t Engine::takeBack(absl::FunctionRef<bool(const LazyNode&)> isLost) {
  size_t count = 0;
  for (const auto& [number, segment] : segments_ | std::views::reverse) {
    for (const auto& [tensor, old, oldElements, oldChannel, value] :
         segment.updates | std::views::reverse) {
      const std::shared_ptr<detail::TensorStorage> storage = tensor.lock();
      const LazyNodePtr now = value.lock();
      // Asked first: a tensor of another thread's that is not lost may be assigned at this moment.
      if (!storage || !now || !isLost(*now) || storage->value != now) continue;
      TensorValue before = old.lock();
      if (MemoryBlockPtr elements = before ? nullptr : oldElements.lock())
        before = std::make_shared<LazyNode>(now->backend(), *this, now->valueType(), elements,
                                            oldChannel);
      count += before != nullptr;
      if (before) storage->value = std::move(before);
    }
  }
  return count;
}

// What reads `bad` is lost with it. Writes to a part of a tensor rather do not happen: what was
// recorded behind them is computed from what the tensor was before.
void Engine::lose(const LazyNode* bad) {
  std::unordered_set<const LazyNode*> lost;
  const auto isLost = [&](const LazyNodePtr& node) { return lost.contains(node.get()); };
  for (LazyNode* node : pendingNodes()) {
    if (node != bad && !std::ranges::any_of(node->operands, isLost)) continue;
    node->fault = node == bad ? LazyNode::Fault::Told : node->fault;
    if (writesToPart(*node) && !isLost(node->operands[0])) {
      node->fault = LazyNode::Fault::None;
      node->op = ir::Op::Reshape;
      node->attrs = ir::Attrs(node->shape().get());
      node->operands.resize(1);
    } else {
      lost.insert(node);
    }
  }
  findHeldUp();
  takeBack([&](const LazyNode& node) { return lost.contains(&node); });
}

Engine::Nodes Engine::pendingNodes() {
  Nodes nodes;
  for (const auto& [number, segment] : segments_)
    for (LazyNode* node = segment.first(); node; node = node->next()) nodes.push_back(node);
  std::ranges::sort(nodes, {}, &LazyNode::id);
  return nodes;
}

void Engine::findHeldUp() {
  const auto isHeldUp = [](const LazyNodePtr& node) { return node->pending() && node->isHeldUp; };
  for (LazyNode* node : pendingNodes())
    node->isHeldUp =
        node->fault != LazyNode::Fault::None || std::ranges::any_of(node->operands, isHeldUp);
  for (const auto& [number, segment] : segments_) std::ranges::for_each(segment.updates, keepOld);
}

template <typename Work>
void Engine::takingBack(const LazyNode* read, Work&& work) {
  std::lock_guard<std::recursive_mutex> lock(engineMutex());
  try {
    work();
  } catch (const BadIndexError& error) {
    lose(error.bad);
    throw;
  } catch (const std::bad_alloc& lack) {
    const std::vector<uint64_t>& mine = threadSegments(this).pending;
    const size_t count = takeBack([&](const LazyNode& node) {
      return node.pending() && &node != read && std::ranges::binary_search(mine, node.segment);
    });
    if (count == 0) throw;
    throw OutOfMemory(detail::concat(lack.what(), "\nWhat waits to be computed is not written: ",
                                     count, " tensors have their elements from before."));
  }
}

void Engine::noteRead() const {
  count(&runtime::counters().reads);
  const std::string& action = flags().onSync;
  if (action == "allow" && !profile::isActive()) return;
  if (action == "throw") throwUser("a read would run what is pending, which FL_ON_SYNC forbids");
  static auto& told = *new CallSites();
  const CallSite site = currentCallSite();
  profile::noteRead(site);
  if (action == "warn" && told.insert(site))
    logWarning("a read runs what is pending, at " + site.toString());
}

void Engine::realize(LazyNode* node) {
  const std::lock_guard<std::recursive_mutex> lock(engineMutex());
  takingBack(node, [&] {
    if (!node->pending()) return;
    noteRead();
    threadSegments(this).recording ? realizeTogether({node}) : realizePending(node);
  });
  putInOrder(node);
}

// What a budget refuses stays pending, as does all from what has another error on.
void Engine::realizeMine(const LazyNode* read) {
  ThreadSegments& segments = threadSegments(this);
  if (profile::isActive() && segments.recorded.nodes > 0 && segments.since > 0) {
    const std::string name = detail::concat(segments.recorded.nodes, " operators");
    profile::add(
        profile::label(profile::Lane::Recording, profile::Extent::Whole, name, currentCallSite()),
        std::exchange(segments.since, 0), profile::now());
  }
  std::vector<uint64_t> left;
  std::exception_ptr refusal;
  for (uint64_t segment : segments.pending) {
    segments.refused = segment;  // if it throws
    try {
      realizeSegment(segment, read);
    } catch (const BadIndexError&) {
      left.push_back(segment);
    } catch (const planner::OverBudget&) {
      left.push_back(segment);
      refusal = std::current_exception();
    }
  }
  segments.ended = segments.ended || !left.empty();  // what is recorded from now on may fit
  segments.realized();
  segments.pending.insert(segments.pending.begin(), left.begin(), left.end());
  if (refusal) std::rethrow_exception(refusal);
}

void Engine::realizePending(LazyNode* node) {
  try {
    realizeMine(node);
  } catch (const planner::OverBudget&) {
    // Alone, `node` might leave more in memory than all together.
    if (std::ranges::binary_search(threadSegments(this).pending, node->segment)) throw;
  } catch (const check::Finding&) {
    ThreadSegments& segments = threadSegments(this);
    segments.ended = true;
    // A smaller plan may hide it, and not begin with the first. Once it is told, `node` may do.
    if (std::exchange(segments.told, segments.refused) != segments.refused) throw;
  } catch (const std::exception&) {
    // What lacks memory or is found wrong stays pending; `node` may do without it.
  }
  if (node->pending()) realizeTogether({node});  // or another thread recorded it
}

// A thread that ends leaves its lists, which empty as its values die.
void Engine::dropEmptySegments() {
  std::erase_if(segments_, [](const auto& entry) { return entry.second.empty(); });
  segmentsKept_ = segments_.size();
}

void Engine::realizeAll() {
  FL_USER_CHECK(!threadSegments(this).recording,
                "sync: a function that fl::compile records computes nothing; sync after the call");
  takingBack(nullptr, [&] {
    // A node that another thread is destroying stays in its list until this lock is free, so a
    // segment may be left with such nodes.
    std::vector<uint64_t> segments;
    for (const auto& [segment, nodes] : segments_)
      if (!nodes.isRecorded) segments.push_back(segment);
    ThreadSegments& mine = threadSegments(this);
    for (uint64_t segment : segments) {
      try {
        realizeSegment(segment);
      } catch (const BadIndexError&) {  // more of them than are looked for at once
      }
    }
    dropEmptySegments();
    leftBehind().erase(this);
    mine.realized();
    // Another thread's stays pending, for those who read it.
    for (LazyNode* node : pendingNodes())
      if (node->fault == LazyNode::Fault::Found && segments_[node->segment].thread == mine.thread)
        realizeTogether({node});
  });
}

void Engine::realizeSegment(uint64_t segment, const LazyNode* read) {
  const auto found = segments_.find(segment);
  if (found == segments_.end()) return;
  for (int faults = 0;; ++faults) {
    Nodes nodes;
    for (LazyNode* node = found->second.first(); node; node = node->next())
      if (!node->isHeldUp) nodes.push_back(node);
    try {
      realizeTogether(std::move(nodes));
      break;
    } catch (const BadIndexError& error) {
      if (error.bad->fault != LazyNode::Fault::None || faults == kMostFaults) throw;
      error.bad->fault = LazyNode::Fault::Found;
      findHeldUp();
      if (read && read->isHeldUp) throw;
    }
  }
  std::erase_if(found->second.updates, [](const auto& each) { return isDone(each.value); });
}

}  // namespace fl::lazy
