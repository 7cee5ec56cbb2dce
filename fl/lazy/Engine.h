// Realizes recorded nodes: turns a segment into a graph, finds or builds its plan, runs it.
//
// One mutex guards the pending nodes and the plan cache of all threads. A read realizes the reading
// thread's segments in order, and whatever they reach of other threads'.
#pragma once

#include <atomic>
#include <exception>
#include <map>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/functional/function_ref.h"
#include "fl/base/WordCache.h"
#include "fl/lazy/Dump.h"
#include "fl/lazy/KernelCompiler.h"
#include "fl/lazy/LazyNode.h"
#include "fl/lazy/Sightings.h"
#include "fl/plans/Explain.h"
#include "fl/plans/PlanStore.h"
#include "fl/plans/Tuner.h"
#include "fl/runtime/Device.h"

namespace fl::lazy {

class Engine;

std::recursive_mutex& engineMutex();
// One more of what is counted under that mutex alone.
inline void count(std::atomic<uint64_t>* counter) {
  counter->store(counter->load() + 1, std::memory_order_relaxed);
}
// That of a lazy backend, null for others.
Engine* engineOf(TensorBackend& backend);

// The user's error of an index that an operator with these attributes, recorded at `site`, looked
// up in a table.
std::string describeBadIndex(const ir::IndexOutOfRange& error, const CallSite& site,
                             const ir::ValueType& table, const ir::Attrs& attrs);

// Data held an index that is out of range, in node `bad`; the words are the user's error.
struct BadIndexError : std::invalid_argument {
  BadIndexError(const std::string& words, LazyNode* bad) : std::invalid_argument(words), bad(bad) {}
  LazyNode* bad;
};

// What a thread has recorded, or may.
struct Recorded {
  size_t nodes = 0;
  size_t bytes = 0;  // of their results, and of the values that they keep in memory
  size_t given = 0;  // of those values, what the program made of its data
  // So much of that at which the engine looks what of it the program has let go of: that may be so
  // many bytes. Larger steps than a batch of images of this size are not cut in two.
  static constexpr size_t kMostDropped = size_t{32} << 20;
  size_t lookAt = kMostDropped;

  // True if either is `times` the limit's.
  bool reaches(const Recorded& limit, size_t times) const {
    return nodes >= times * limit.nodes || bytes >= times * limit.bytes;
  }
};

class Engine {
 public:
  explicit Engine(const std::string& device);

  runtime::Device& device() { return *device_; }
  // Adds a pending node; may flush if too many are pending, unless parts of the call follow.
  void record(const LazyNodePtr& node, bool isWhole = true);
  // A tensor was written in place: it has `value`, one of this engine's, and had `old`.
  void noteUpdate(const std::shared_ptr<detail::TensorStorage>& tensor, const TensorValue& old,
                  const LazyNodePtr& value);
  // Nodes recorded from now on belong to another plan.
  void endSegment();
  // Makes sure that `node`, which the caller holds, has a buffer or a number. Throws the user's
  // error of an index that is out of range in data. What has it stays pending, but a write that
  // needs it is taken back: the error is thrown once, and then the tensor has its old elements.
  // Where memory is short, all that this thread wrote in place and that is pending is, but `node`.
  void realize(LazyNode* node);
  // Realizes everything that is pending, of all threads; throws as realize() does, but not for an
  // index of another thread's.
  void realizeAll();
  // Waits until no kernel is waiting to be compiled.
  void waitForCompiler() { compiler_.wait(); }

  // Recording a function on this thread (Compile.h). What is pending is run first; then, until the
  // recording ends, all nodes are of one segment, what is read is realized alone, and realizeAll()
  // throws; on another thread it leaves them pending.
  void beginRecording();
  void endRecording();
  // True of a node that is pending and not of this thread's recording.
  bool isOthers(const LazyNode& node) const;
  // The graph of `results`, which are pending, and the values it reads, in the parameters' order.
  ir::Graph graphOf(const std::vector<LazyNode*>& results, std::vector<LazyNodePtr>* inputs);
  // A plan of its own, whose kernels are asked for; numbers are for a dump.
  std::unique_ptr<runtime::LoadedSchedule> makePlan(const ir::Graph& graph,
                                                    const PlanDump::Numbers& numbers);

 private:
  // One segment's graph as it is collected from nodes.
  struct Segment;
  using Nodes = absl::InlinedVector<LazyNode*, 8>;

  // Runs `work`, for a read of `read` or all, and takes writes back if it throws as realize() says.
  template <typename Work>
  void takingBack(const LazyNode* read, Work&& work);
  void lose(const LazyNode* bad);
  size_t takeBack(absl::FunctionRef<bool(const LazyNode&)> isLost);
  void noteRead() const;
  // For a read of that: in vain if it is held up.
  void realizeMine(const LazyNode* read = nullptr);
  void realizePending(LazyNode* node);
  // Realizes `nodes` and everything pending that they reach, as one plan, unless comesOnce().
  void realizeTogether(Nodes&& nodes);
  // The same by a plan for each operator and call, which others like it share.
  void realizeOneByOne(const Segment& segment);
  // What is not held up. Finds out what is; throws BadIndexError if it finds too much at once.
  void realizeSegment(uint64_t segment, const LazyNode* read = nullptr);
  // Of all threads, operands first.
  Nodes pendingNodes();
  void findHeldUp();
  void realizeLeft();
  void dropEmptySegments();
  // Runs what this thread has pending when that has become too much; twice too much if it is late.
  void flush(LazyNode* node, bool late);
  void flushDropped();
  size_t droppedBytes(const std::vector<uint64_t>& segments);
  void collectReached(Nodes* nodes);
  // Of what the visit has collected.
  void describeStructure(Segment* segment);
  Segment described(Nodes&& nodes);
  static ir::Graph graphOf(const Segment& segment);
  static int64_t calls(const Segment& segment);
  // Whether to run what has no plan one by one.
  bool comesOnce(Segment* segment);
  // Whether a plan saves little, and has the bits of its operators one by one.
  static bool isWorthLittle(const Segment& segment);
  void keepOlds(Segment* segment);
  struct Plan {
    std::unique_ptr<runtime::LoadedSchedule> loaded;
    uint64_t sighting;  // its structure's number
    // By result, the dimension of the channels of an image that it leaves with them first; -1 of
    // others.
    std::vector<int> images;
  };
  // Adds it to those that are there.
  const Plan& addPlan(const Segment& segment);
  std::vector<int> leaveImages(const Segment& segment, ir::Graph* graph) const;
  std::unique_ptr<runtime::LoadedSchedule> buildPlan(const ir::Graph& graph, size_t budget,
                                                     const PlanDump::Numbers& numbers);
  void run(const Segment& segment, const Plan& plan);
  // Makes LazyNode::ordered of an image that a plan has left with its channels first.
  void putInOrder(LazyNode* node);
  // The elements of its results.
  using Buffers = absl::InlinedVector<MemoryBlockPtr, 4>;
  using Spare = absl::InlinedVector<bool, 4>;
  static runtime::LoadedSchedule::Outputs elementsOf(const Segment& segment,
                                                     const runtime::LoadedSchedule& plan,
                                                     const Buffers& buffers, const Spare& spare);

  std::unique_ptr<runtime::Device> device_;
  KernelCompiler compiler_;
  runtime::KernelCache kernels_;
  std::map<uint64_t, PendingList> segments_;  // by number, those that may have pending nodes
  WordCache<Plan> plans_;                     // by the structure they were built for
  Sightings sightings_;
  plans::PlanStore kept_;
  const std::unique_ptr<plans::Tuner> tuner_;  // with FL_TUNE=1
  // What a budget refused, by its last node, and the error: every realize of its thread would
  // plan it again.
  struct Refused {
    std::vector<int64_t> structure;
    std::exception_ptr error;
  };
  std::map<uint64_t, Refused> refused_;
  plans::PlanHistory history_;  // under FL_CACHE=explain
  size_t segmentsKept_ = 0;     // when empty ones were last dropped
  uint64_t nextId_ = 1;
  uint64_t nextSegment_ = 1;
  uint64_t visit_ = 0;
  const Recorded flushAt_;
};

}  // namespace fl::lazy
