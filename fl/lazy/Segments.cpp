// What threads have recorded and not realized: segments of nodes, and when they run. Engine.cpp
// makes their plans.
#include <algorithm>
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

bool waitsFor(LazyNode::Fault least, const LazyNode& node) {
  return node.fault >= least || std::ranges::any_of(node.operands, [](const LazyNodePtr& operand) {
           return operand->pending() && operand->isHeldUp;
         });
}

// Or that part of what is alive, where that is more.
constexpr size_t kDroppedPart = 8;

// A thread's segments that have not been realized; the last one records until it is ended.
struct ThreadSegments {
  std::vector<uint64_t> pending;
  bool ended = true;
  uint64_t refused = 0;             // the one that a realize ran last, or refused last
  uint64_t told = 0;                // the last one of which a read told what FL_CHECK finds
  bool recording = false;           // a function: nothing runs
  Recorded recorded;                // since this thread's last realize
  int64_t since = 0;                // of a profile: when its first operator was recorded
  const void* lastFlush = nullptr;  // the site of the last automatic one
  static inline uint64_t threads = 0;
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
      realizeSegment(segment, LazyNode::Fault::Found);
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
    realizeMine();
  } catch (const std::exception& error) {
    // What failed is still pending, so the read that needs a value reports it to whoever can act.
    segments.recorded = {};
    segments.told = 0;
    segments.ended = true;
    logWarning(std::string("an automatic flush failed: ") + error.what());
  }
}

void Engine::endSegment() {
  ThreadSegments& segments = threadSegments(this);
  segments.ended = segments.ended || !segments.recording;
}

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
  const std::vector<uint64_t>& mine = threadSegments(this).pending;
  return node.pending() && (mine.empty() || mine.back() != node.segment);
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
  Nodes pending;
  for (const auto& [number, segment] : segments_)
    for (LazyNode* node = segment.first(); node; node = node->next()) pending.push_back(node);
  std::ranges::sort(pending, {}, &LazyNode::id);
  std::unordered_set<const LazyNode*> lost;
  const auto isLost = [&](const LazyNodePtr& node) { return lost.contains(node.get()); };
  for (LazyNode* node : pending) {
    if (node == bad || std::ranges::any_of(node->operands, isLost)) {
      const bool isTaken = writesToPart(*node) && !isLost(node->operands[0]);
      if (node == bad) node->fault = isTaken ? LazyNode::Fault::None : LazyNode::Fault::Told;
      if (isTaken) {
        node->op = ir::Op::Reshape;
        node->attrs = ir::Attrs(node->shape().get());
        node->operands.resize(1);
      } else {
        lost.insert(node);
      }
    }
    node->isHeldUp = waitsFor(LazyNode::Fault::Found, *node);
  }
  takeBack([&](const LazyNode& node) { return lost.contains(&node); });
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
    if (node->pending()) {
      noteRead();
      threadSegments(this).recording ? realizeTogether({node}) : realizePending(node);
    }
  });
  putInOrder(node);
}

// What a budget refuses stays pending, as does all from what has another error on.
void Engine::realizeMine() {
  ThreadSegments& segments = threadSegments(this);
  if (profile::isActive() && segments.recorded.nodes > 0 && segments.since > 0) {
    const std::string name = detail::concat(segments.recorded.nodes, " operators");
    profile::add(
        profile::label(profile::Lane::Recording, profile::Extent::Whole, name, currentCallSite()),
        std::exchange(segments.since, 0), profile::now());
  }
  std::vector<uint64_t> refused;
  std::exception_ptr refusal;
  for (uint64_t segment : segments.pending) {
    segments.refused = segment;  // if it throws
    try {
      realizeSegment(segment, LazyNode::Fault::Found);
    } catch (const planner::OverBudget&) {
      refused.push_back(segment);
      refusal = std::current_exception();
    }
  }
  segments.ended = segments.ended || refusal;  // what is recorded from now on may fit
  segments.realized();
  if (!refusal) return;
  segments.refused = refused.back();
  segments.pending = std::move(refused);
  std::rethrow_exception(refusal);
}

void Engine::realizePending(LazyNode* node) {
  try {
    realizeMine();
  } catch (const planner::OverBudget&) {
    // Alone, `node` might leave more in memory than all together.
    if (node->pending() && node->segment <= threadSegments(this).refused) throw;
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
        realizeSegment(segment, LazyNode::Fault::Told);
      } catch (const BadIndexError&) {  // another thread's stays pending, for those who read it
        if (segments_[segment].thread == mine.thread) throw;
      }
    }
    dropEmptySegments();
    leftBehind().erase(this);
    mine.realized();
  });
}

void Engine::realizeSegment(uint64_t segment, LazyNode::Fault leaves) {
  const auto found = segments_.find(segment);
  if (found == segments_.end()) return;
  while (true) {
    Nodes nodes;
    for (LazyNode* node = found->second.first(); node; node = node->next()) {
      node->isHeldUp = waitsFor(leaves, *node);
      if (!node->isHeldUp) nodes.push_back(node);
    }
    try {
      realizeTogether(std::move(nodes));
      break;
    } catch (const BadIndexError& error) {
      if (leaves != LazyNode::Fault::Found || error.bad->fault != LazyNode::Fault::None) throw;
      error.bad->fault = LazyNode::Fault::Found;
    }
  }
  std::erase_if(found->second.updates, [](const auto& each) { return isDone(each.value); });
}

}  // namespace fl::lazy
