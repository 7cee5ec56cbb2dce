#include "fl/lazy/Engine.h"

#include <algorithm>
#include <limits>
#include <unordered_set>

#include "absl/strings/str_format.h"
#include "fl/base/Error.h"
#include "fl/base/Flags.h"
#include "fl/base/Log.h"
#include "fl/check/CheckedPlan.h"
#include "fl/check/UnfusedPlan.h"
#include "fl/definitions/Trace.h"
#include "fl/ir/Inference.h"
#include "fl/ir/Slot.h"
#include "fl/ir/Text.h"
#include "fl/planner/Planner.h"
#include "fl/planner/Reuse.h"
#include "fl/profile/Profile.h"
#include "fl/runtime/Counters.h"
#include "fl/runtime/Failure.h"
#include "fl/runtime/SystemMemory.h"
#include "fl/view/LivePage.h"

namespace fl::lazy {
namespace {

// Plans beyond these are built again when they are needed again. A node is about twelve words; its
// part of a plan takes two kilobytes, so that all plans take 256 MB at most.
constexpr size_t kMaxPlans = 1024, kMaxPlanWords = size_t{3} << 19;

// Data held an index that is out of range, in node `bad` of `nodes`; the words are the user's
// error.
struct BadIndexError : std::invalid_argument {
  BadIndexError(const std::string& words, LazyNode* bad, std::vector<LazyNode*> nodes)
      : std::invalid_argument(words), bad(bad), nodes(std::move(nodes)) {}
  LazyNode* bad;
  std::vector<LazyNode*> nodes;  // in order of recording
};

// Takes back the writes that need the bad index, unless what they change needs it, too.
void takeBackWrites(const BadIndexError& error) {
  std::unordered_set<const LazyNode*> lost;
  for (LazyNode* node : error.nodes) {
    const auto isLost = [&](const LazyNodePtr& operand) { return lost.contains(operand.get()); };
    const bool isKept = node != error.bad && std::ranges::none_of(node->operands, isLost);
    if (isKept) continue;
    const bool write = node->site.writes() && ir::opKind(node->op) == ir::Kind::Update;
    if (write && !isLost(node->operands[0])) {
      node->takeBack();
    } else {
      lost.insert(node);
    }
  }
}

// Words that describe a segment.
using Structure = absl::InlinedVector<int64_t, 64>;

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

  // Nothing is pending. The segment that records goes on: it is another when it is realized.
  void realized() {
    pending.erase(pending.begin(), ended ? pending.end() : pending.end() - 1);
    recorded = {};
  }
};

ThreadSegments& threadSegments(const Engine* engine) {
  thread_local std::unordered_map<const Engine*, ThreadSegments> segments;
  // Few programs use more than one engine at a time.
  thread_local std::pair<const Engine*, ThreadSegments*> last = {nullptr, nullptr};
  if (last.first != engine) {
    last = {engine, &segments[engine]};
  }
  return *last.second;
}

// Views are no memory: kernels read through them.
size_t resultBytes(const LazyNode& node) {
  return ir::opKind(node.op) == ir::Kind::View ? 0 : node.bytes();
}

size_t flushLimit(const char* env, const std::string& value) {
  if (value.empty()) return runtime::systemMemory() / 2;
  const long limit = Flags::toInt(env, value);
  return limit > 0 ? static_cast<size_t>(limit) : std::numeric_limits<size_t>::max() / 2;
}

}  // namespace

std::recursive_mutex& engineMutex() {
  static auto& mutex = *new std::recursive_mutex();
  return mutex;
}

std::string describeBadIndex(const ir::IndexOutOfRange& error, const CallSite& site,
                             const ir::ValueType& table, const ir::Attrs& attrs) {
  const detail::CallSiteOverride recorded(site);
  return detail::withCallSite(badIndexMessage(error.bad, table, attrs[0]));
}

Engine::Engine(const std::string& device)
    : device_(runtime::makeDevice(device)),
      compiler_(*device_),
      plans_(kMaxPlans, kMaxPlanWords),
      flushAt_{flushLimit("FL_FLUSH_NODES", flags().flushNodes),
               flushLimit("FL_FLUSH_BYTES", flags().flushBytes)} {
  codegen::checkSkip(flags().skip);
}

void Engine::record(const LazyNodePtr& node) {
  std::lock_guard<std::recursive_mutex> lock(engineMutex());
  ThreadSegments& segments = threadSegments(this);
  const auto flushIfDue = [&](LazyNode* last) {
    if (last && segments.recorded.reaches(flushAt_, 1) && !segments.recording) flush(last);
  };
  if (std::exchange(StepScope::isDue, false) && !segments.pending.empty()) {
    flushIfDue(segments_[segments.pending.back()].last());
  }
  if (segments.ended) {
    segments.pending.push_back(nextSegment_++);
    segments.ended = false;
    if (segments_.size() > 2 * segmentsKept_ + 100) dropEmptySegments();
  }
  node->id = nextId_++;
  node->segment = segments.pending.back();
  node->self = node;
  segments_[node->segment].append(node.get());
  if (segments.recorded.nodes++ == 0 && profile::isActive()) segments.since = profile::now();
  segments.recorded.bytes += resultBytes(*node);
  for (const LazyNodePtr& operand : node->operands) {
    if (operand->buffer && operand->segment != node->segment) {
      operand->segment = node->segment;  // counts once
      segments.recorded.bytes += operand->bytes();
    }
  }
  if (StepScope::depth == 0) flushIfDue(node.get());
}

void Engine::flush(LazyNode* node) {
  // Flushing where the previous flush happened lets a loop reuse its plan.
  ThreadSegments& segments = threadSegments(this);
  const bool late = segments.recorded.reaches(flushAt_, 2);
  if (segments.lastFlush && segments.lastFlush != node->site.address() && !late) return;
  segments.lastFlush = node->site.address();
  try {
    realizePending(node);
  } catch (const std::exception& error) {
    // Everything is still pending, so the read that needs a value reports it to whoever can act.
    segments.recorded = {};
    segments.told = 0;
    logWarning(std::string("an automatic flush failed: ") + error.what());
  }
}

void Engine::endSegment() {
  ThreadSegments& segments = threadSegments(this);
  segments.ended = segments.ended || !segments.recording;
}

void Engine::beginRecording() {
  reportingBadIndices([&] { realizeMine(); });
  ThreadSegments& segments = threadSegments(this);
  segments.recording = segments.ended = true;
}

void Engine::endRecording() {
  ThreadSegments& segments = threadSegments(this);
  segments.recording = false;
  segments.ended = true;
}

template <typename Work>
void Engine::reportingBadIndices(Work&& work) {
  std::lock_guard<std::recursive_mutex> lock(engineMutex());
  try {
    work();
  } catch (const BadIndexError& error) {
    takeBackWrites(error);
    throw;
  }
}

void Engine::checkReadable() const {
  FL_USER_CHECK(
      !threadSegments(this).recording,
      "a function that fl::compile records reads a value that it computes: it may only be "
      "returned, and read after the call");
}

void Engine::noteRead() const {
  static auto& told = *new CallSites();
  runtime::counters().reads++;
  if (flags().onSync == "throw") {
    throwUser("a read would run what is pending, which FL_ON_SYNC forbids");
  }
  const CallSite site = currentCallSite();
  if (flags().onSync == "warn" || profile::isActive()) profile::noteRead(site);
  if (flags().onSync == "warn" && told.insert(site)) {
    logWarning("a read runs what is pending, at " + site.toString());
  }
}

void Engine::realize(LazyNode* node) {
  reportingBadIndices([&] {
    if (node->pending()) {
      checkReadable();
      noteRead();
      realizePending(node);
    }
  });
}

// An error leaves everything pending as it is.
void Engine::realizeMine() {
  ThreadSegments& segments = threadSegments(this);
  if (profile::isActive() && segments.recorded.nodes > 0 && segments.since > 0) {
    const std::string name = detail::concat(segments.recorded.nodes, " operators");
    profile::add(
        profile::label(profile::Lane::Recording, profile::Extent::Whole, name, currentCallSite()),
        std::exchange(segments.since, 0), profile::now());
  }
  for (uint64_t segment : segments.pending) {
    segments.refused = segment;  // if it throws
    realizeSegment(segment);
  }
  segments.realized();
}

void Engine::realizePending(LazyNode* node) {
  try {
    realizeMine();
  } catch (const planner::OverBudget&) {
    ThreadSegments& segments = threadSegments(this);
    segments.ended = true;  // what is recorded from now on may fit
    if (node->segment <= segments.refused) {
      throw;  // alone, `node` might leave more in memory than all together
    }
  } catch (const check::Finding&) {
    ThreadSegments& segments = threadSegments(this);
    segments.ended = true;
    // A smaller plan may hide it, and not begin with the first. Once it is told, `node` may do.
    if (std::exchange(segments.told, segments.refused) != segments.refused) throw;
  } catch (const std::exception&) {
    // What has a bad index, lacks memory or is found wrong stays pending; `node` may do without it.
  }
  if (node->pending()) {
    realizeTogether({node});  // or another thread recorded it
  }
}

// A thread that ends leaves its lists, which empty as its values die.
void Engine::dropEmptySegments() {
  std::erase_if(segments_, [](const auto& entry) { return entry.second.empty(); });
  segmentsKept_ = segments_.size();
}

void Engine::realizeAll() {
  checkReadable();
  reportingBadIndices([&] {
    // A node that another thread is destroying stays in its list until this lock is free, so a
    // segment may be left with such nodes.
    std::vector<uint64_t> segments;
    for (const auto& [segment, nodes] : segments_) segments.push_back(segment);
    for (uint64_t segment : segments) realizeSegment(segment);
    dropEmptySegments();
    threadSegments(this).realized();
  });
}

void Engine::realizeSegment(uint64_t segment) {
  const auto found = segments_.find(segment);
  if (found == segments_.end()) return;
  Nodes nodes;
  for (LazyNode* node = found->second.first(); node; node = node->next()) nodes.push_back(node);
  realizeTogether(std::move(nodes));
}

// One segment's nodes with everything a plan's key and a run need. That of one operator, which a
// program that reads each value realizes, fits inline. None of the nodes goes while the engine's
// mutex is held: the destructor of a pending one waits for it, and until then it has its operands.
struct Engine::Segment {
  Nodes nodes;  // in order of recording
  // Realized values and numbers by first use, where their first users hold them.
  absl::InlinedVector<const LazyNodePtr*, 8> inputs;
  Nodes results;
  Structure structure;  // equal structures may share a plan
  size_t budget = runtime::getMemoryBudget();
};

namespace {

void addType(Structure* words, const ir::ValueType& type) {
  words->push_back(static_cast<int64_t>(type.type));
  words->push_back(type.shape.ndim());
  words->insert(words->end(), type.shape.get().begin(), type.shape.get().end());
}

void addNode(Structure* words, const LazyNode& node) {
  words->push_back(static_cast<int64_t>(node.op));
  words->push_back(static_cast<int64_t>(node.operands.size()));
  for (const LazyNodePtr& operand : node.operands) words->push_back(operand->value);
  words->push_back(static_cast<int64_t>(node.attrs.size()));
  words->insert(words->end(), node.attrs.values().begin(), node.attrs.values().end());
}

std::string describe(const char* what, const ir::Schedule& schedule, size_t nodes, bool hit,
                     int compiled, const CallSite& site) {
  size_t launches = 0;
  for (const ir::Step& step : schedule.steps) {
    launches += std::holds_alternative<ir::LaunchStep>(step);
  }
  const std::string where = site.toString();
  const double arena = std::max(1.0, static_cast<double>(schedule.arenaBytes));
  const double bound = std::max(1.0, static_cast<double>(schedule.arenaBound));
  return detail::concat(
      what, ": ", nodes, " ops -> ", launches, " kernels + ", schedule.steps.size() - launches,
      " calls, compiled=", compiled, ", arena ", schedule.arenaBytes, " B (bound ",
      schedule.arenaBound, " B, ratio ", absl::StrFormat("%.3f", arena / bound), ", recorded ",
      schedule.recordedBound, " B, unplanned ", schedule.unplannedBytes, " B), plan ",
      hit ? "reused" : "built", where.empty() ? "" : ", at ", where);
}

}  // namespace

void Engine::collectReached(Nodes* nodes) {
  ++visit_;
  for (LazyNode* node : *nodes) node->visit = visit_;
  const size_t given = nodes->size();
  for (size_t i = 0; i < nodes->size(); ++i) {
    for (const LazyNodePtr& operand : (*nodes)[i]->operands) {
      if (operand->pending() && operand->visit != visit_) {
        operand->visit = visit_;
        nodes->push_back(operand.get());
      }
    }
  }
  if (nodes->size() > given) {
    std::sort(nodes->begin(), nodes->end(),
              [](const LazyNode* a, const LazyNode* b) { return a->id < b->id; });
  }
}

// Numbers inputs and nodes, finds the results, and writes down all that a plan depends on.
void Engine::describeStructure(Segment* segment) {
  for (LazyNode* node : segment->nodes) node->innerUses = 0;
  for (LazyNode* node : segment->nodes) {
    for (const LazyNodePtr& operand : node->operands) {
      if (!operand->pending() && operand->visit != visit_) {
        operand->visit = visit_;
        operand->innerUses = 0;
        operand->value = static_cast<ir::ValueId>(segment->inputs.size());
        segment->inputs.push_back(&operand);
      }
      ++operand->innerUses;
    }
  }
  Structure& words = segment->structure;
  words.push_back(static_cast<int64_t>(segment->budget));
  words.push_back(ir::slotChanges());
  words.push_back(static_cast<int64_t>(segment->inputs.size()));
  for (const LazyNodePtr* input : segment->inputs) {
    words.push_back((*input)->number() != nullptr);
    addType(&words, (*input)->valueType());
  }
  ir::ValueId next = static_cast<ir::ValueId>(segment->inputs.size());
  for (LazyNode* node : segment->nodes) {
    node->value = next++;
    addNode(&words, *node);
    // Somebody outside holds it: a handle, a later segment, another thread. (Nobody does if its
    // last holder has let go of it on another thread; that one waits in the destructor.)
    if (node->self.use_count() > node->innerUses) {
      segment->results.push_back(node);
      words.push_back(-1);
    }
  }
}

const runtime::LoadedSchedule& Engine::findPlan(const Segment& segment, bool* hit) {
  if (const auto* plan = plans_.find(segment.structure)) {
    *hit = true;
    return **plan;
  }
  *hit = false;
  PlanDump::Numbers numbers;
  for (const LazyNodePtr* input : segment.inputs) numbers.push_back((*input)->number());
  auto plan = buildPlan(graphOf(segment), segment.budget, numbers);
  const runtime::LoadedSchedule& built = *plan;
  if (plans_.insert(segment.structure, std::move(plan))) runtime::dropUnused(&kernels_);
  return built;
}

ir::Graph Engine::graphOf(const Segment& segment) {
  ir::Graph graph;
  for (const LazyNodePtr* input : segment.inputs) {
    graph.addParameter({(*input)->valueType(), (*input)->number() != nullptr});
  }
  int origin = 0;
  for (const LazyNode* node : segment.nodes) {
    ir::Node copy{node->op, {}, node->attrs, node->valueType(), node->site, origin++};
    for (const LazyNodePtr& operand : node->operands) copy.operands.push_back(operand->value);
    graph.addNode(std::move(copy));
  }
  std::vector<ir::ValueId> results;
  for (const LazyNode* node : segment.results) results.push_back(node->value);
  graph.setResults(std::move(results));
  return graph;
}

namespace {

// What each pass over graphs leaves.
std::vector<check::PassedGraph> passedGraphs(const ir::Graph& graph,
                                             codegen::CompileOptions options) {
  options.observe = nullptr;
  std::vector<check::PassedGraph> passed;
  for (const codegen::PassInfo& pass : codegen::passes()) {
    if (pass.stage != "graph") continue;
    options.stopAfter = pass.name;
    passed.push_back({pass.name, codegen::compile(graph, options).graph});
  }
  return passed;
}

}  // namespace

// Results beyond the budget, which does not hold for them, but those that may be in the memory of
// parameters.
static void tellOfResults(const ir::Schedule& plan, size_t budget) {
  static auto& told = *new CallSites();
  if (budget == 0) return;
  const std::vector<std::vector<int>> reusable = planner::reusableParameters(plan);
  size_t bytes = 0;
  for (size_t i = 0; i < plan.outputs.size(); ++i) {
    const auto& [type, shared, source, over] = plan.outputs[i];
    if (!shared && reusable[i].empty()) bytes += bytesOf(type.type, type.shape);
  }
  const CallSite site = currentCallSite();
  if (bytes <= budget || !told.insert(site)) return;
  logWarning(detail::concat(
      "the results of a plan take ", bytes, " bytes beside the memory budget of ", budget,
      ", which bounds what dies in it: what is held, as by a history when its loss is read before "
      "backward(), is not computed again; at ",
      site.toString()));
}

std::unique_ptr<runtime::LoadedSchedule> Engine::buildPlan(const ir::Graph& graph, size_t budget,
                                                           const PlanDump::Numbers& numbers) {
  if (flags().cache == "explain") logWarning(history_.explain(graph));
  const profile::Scope scope([&] {
    return profile::label(profile::Lane::Planning, profile::Extent::Whole,
                          detail::concat("plan of ", graph.nodes().size(), " operators"),
                          graph.nodes().empty() ? CallSite() : graph.nodes().back().site);
  });
  const PlanDump dump(numbers);
  view::LivePlan viewed(device_->target());
  codegen::CompileOptions options;
  options.lowering = device_->lowering();
  options.verify = flags().check == "verify";
  options.skip = flags().skip;
  options.budget = budget;
  options.scratchBytes = device_->scratchBytes();
  options.trimAll = flags().trim == "all";
  options.observe = viewed.observer(dump.observer());
  const bool checks = check::isWanted(flags().check) && device_->name() != "null";
  if (checks) check::prepareOptions(&options.skip, &options.budget);
  runtime::counters().plansBuilt++;
  try {
    codegen::Compilation compiled = kept_.compile(graph, options);
    runtime::counters().stepsRecomputed += compiled.schedule.recomputed;
    auto plan = device_->load(std::move(compiled.schedule), &kernels_);
    tellOfResults(plan->schedule(), budget);
    dump.writeCode(*plan, device_->target());
    if (!checks) return plan;
    std::vector<check::PassedGraph> passed;
    if (flags().check == "ref") passed = passedGraphs(graph, std::move(options));
    passed.push_back({"the last", std::move(compiled.graph)});
    return check::makeCheckedPlan(graph, std::move(passed), std::move(plan), flags().check,
                                  *device_, &kernels_, interpretCall);
  } catch (const planner::OverBudget&) {
    throw;
  } catch (...) {
    runtime::reportFailure(
        detail::concat("a plan of ", graph.nodes().size(), " operators runs unfused"),
        runtime::caughtError(), ir::printGraph(graph, "g", {.callSites = true}),
        graph.nodes().back().site);
    return check::makeUnfusedPlan(graph, *device_, &kernels_);
  }
}

ir::Graph Engine::graphOf(const std::vector<LazyNode*>& results, std::vector<LazyNodePtr>* inputs) {
  const std::lock_guard<std::recursive_mutex> lock(engineMutex());
  Segment segment{.nodes = {results.begin(), results.end()}};
  const auto byId = [](const LazyNode* a, const LazyNode* b) { return a->id < b->id; };
  std::sort(segment.nodes.begin(), segment.nodes.end(), byId);
  segment.nodes.erase(std::unique(segment.nodes.begin(), segment.nodes.end()), segment.nodes.end());
  collectReached(&segment.nodes);
  describeStructure(&segment);
  segment.results.assign(results.begin(), results.end());
  for (const LazyNodePtr* input : segment.inputs) inputs->push_back(*input);
  return graphOf(segment);
}

std::unique_ptr<runtime::LoadedSchedule> Engine::makePlan(const ir::Graph& graph,
                                                          const PlanDump::Numbers& numbers) {
  const std::lock_guard<std::recursive_mutex> lock(engineMutex());
  auto plan = buildPlan(graph, runtime::getMemoryBudget(), numbers);
  const CallSite site = graph.nodes().empty() ? CallSite() : graph.nodes().back().site;
  const int compiled = compiler_.request(plan->kernels(), site);
  if (logEnabled(1)) {
    logLine(1, describe("compile", plan->schedule(), graph.nodes().size(), false, compiled, site));
  }
  return plan;
}

void Engine::run(const Segment& segment, const runtime::LoadedSchedule& plan) {
  absl::InlinedVector<MemoryBlockPtr, 4> buffers;
  absl::InlinedVector<Number, 4> numbers;
  absl::InlinedVector<bool, 4> spare(segment.inputs.size(), false);
  for (int parameter : plan.reusable()) {
    // Whoever holds it lets go of it after the run.
    const LazyNodePtr& input = *segment.inputs[parameter];
    spare[parameter] = isHeldBy(input->innerUses, input) && isHeldBy(1, input->buffer);
  }
  for (const LazyNodePtr* input : segment.inputs) {
    buffers.push_back((*input)->buffer);
    numbers.push_back((*input)->number() ? *(*input)->number() : Number());
  }
  runtime::LoadedSchedule::Outputs outputs;
  try {
    outputs = plan.run(buffers, numbers, spare);
  } catch (const ir::IndexOutOfRange& error) {
    LazyNode* node = segment.nodes[error.origin];
    throw BadIndexError(
        describeBadIndex(error, node->site, node->operands[0]->valueType(), node->attrs), node,
        {segment.nodes.begin(), segment.nodes.end()});
  }
  for (size_t i = 0; i < outputs.size(); ++i) segment.results[i]->realize(std::move(outputs[i]));
}

void Engine::realizeTogether(Nodes nodes) {
  if (nodes.empty()) return;
  Segment segment{.nodes = std::move(nodes)};
  collectReached(&segment.nodes);
  describeStructure(&segment);
  bool hit = false;
  const runtime::LoadedSchedule& plan = findPlan(segment, &hit);
  const int compiled = hit ? 0 : compiler_.request(plan.kernels(), currentCallSite());
  runtime::counters().realizes++;
  if (logEnabled(1)) {
    logLine(1, describe("realize", plan.schedule(), segment.nodes.size(), hit, compiled,
                        currentCallSite()));
  }
  run(segment, plan);
}

}  // namespace fl::lazy
