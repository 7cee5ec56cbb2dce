#include "fl/lazy/Engine.h"

#include <algorithm>
#include <cstdint>
#include <functional>

#include "absl/cleanup/cleanup.h"
#include "fl/base/Error.h"
#include "fl/base/Flags.h"
#include "fl/base/Log.h"
#include "fl/check/CheckedPlan.h"
#include "fl/check/UnfusedPlan.h"
#include "fl/definitions/Trace.h"
#include "fl/ir/ChannelOrder.h"
#include "fl/ir/Inference.h"
#include "fl/ir/Slot.h"
#include "fl/ir/Text.h"
#include "fl/planner/Planner.h"
#include "fl/plans/Report.h"
#include "fl/profile/Profile.h"
#include "fl/runtime/Counters.h"
#include "fl/runtime/Failure.h"
#include "fl/runtime/SystemMemory.h"
#include "fl/view/LivePage.h"

namespace fl::lazy {
namespace {

// Plans beyond these are built again when they are needed again: a loop over more shapes than plans
// builds each of them each time. An operator's part of a plan takes two kilobytes, so that all
// plans take 256 MB at most; a plan alone some eight.
constexpr size_t kMaxPlans = 8192, kMaxPlanOperators = size_t{1} << 17;

// A plan that runs once may pay where its operators make as many bytes as this each, or where one
// of them makes as many as that.
constexpr size_t kWorthPlanning = size_t{1} << 18, kLarge = size_t{1} << 22;
// Or where they would copy that many bytes each which a plan writes in place.
constexpr size_t kWorthWriting = size_t{1} << 17;
// Refusals that are remembered.
constexpr size_t kMostRefused = 64;

// Words that describe a segment.
using Structure = absl::InlinedVector<int64_t, 64>;

size_t flushLimit(const char* env, const std::string& value) {
  if (value.empty()) return runtime::systemMemory() / 2;
  const long limit = Flags::toInt(env, value);
  return limit > 0 ? static_cast<size_t>(limit) : SIZE_MAX / 2;
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
      plans_(kMaxPlans, kMaxPlanOperators),
      tuner_(plans::makeTuner(*device_, &kernels_,
                              [this](const std::vector<runtime::DeviceKernelPtr>& kernels) {
                                compiler_.request(kernels, currentCallSite());
                                compiler_.wait();
                              })),
      flushAt_{flushLimit("FL_FLUSH_NODES", flags().flushNodes),
               flushLimit("FL_FLUSH_BYTES", flags().flushBytes)} {
  codegen::checkSkip(flags().skip);
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
  size_t operators = 0;
  size_t bytes = 0, largest = 0;  // of what nodes make
  // Inputs that lie with their channels first; whether they are read so, by what computes with
  // images.
  int laidOut = 0;
  bool readsImages = false;
  uint64_t sighting = 0;          // Sightings, of one that has no plan
  std::vector<LazyNodePtr> held;  // nodes of it that would go if another thread had let go of them
  size_t budget = runtime::getMemoryBudget();

  int channelOf(const LazyNode& input) const { return readsImages ? input.channel : -1; }
  const MemoryBlockPtr& elementsOf(const LazyNode& input) const {
    return input.channel == channelOf(input) ? input.buffer : input.ordered;
  }
};

namespace {

// Both give the place behind what they write. Lists come behind their sizes.
int64_t* writeInput(int64_t* to, const LazyNode& input, int channel) {
  const std::vector<Dim>& dims = input.shape().get();
  *to++ = 2 * static_cast<int64_t>(input.type()) + (input.number() != nullptr);
  *to++ = std::ssize(dims) | static_cast<int64_t>(channel + 1) << 32;
  return std::ranges::copy(dims, to).out;
}

const std::vector<Dim>& wordsOf(const LazyNode& node) {
  return (node.composite ? node.composite->number : node.attrs).values();
}

int64_t* writeNode(int64_t* to, const LazyNode& node, bool isResult) {
  const std::vector<Dim>& words = wordsOf(node);
  *to++ = 2 * (node.composite ? -1 : static_cast<int64_t>(node.op)) + isResult;
  *to++ = static_cast<int64_t>(node.operands.size());
  for (const LazyNodePtr& operand : node.operands) *to++ = operand->value;
  *to++ = std::ssize(words);
  return std::ranges::copy(words, to).out;
}

// Whether those who hold an input, or its elements, let go of it after the run.
bool isSpare(const LazyNodePtr& input) {
  return isHeldBy(input->innerUses, input) && isHeldBy(1, input->buffer) &&
         (!input->ordered || isHeldBy(1, input->ordered));
}

// Whether an operator of a call is of a kind.
bool hasOp(const LazyNode& node, bool (*isOfKind)(ir::Op)) {
  if (!node.composite) return isOfKind(node.op);
  return std::ranges::any_of(node.composite->graph.nodes(), isOfKind, &ir::Node::op);
}

// Whether a plan may have the library compute it in another layout, and so other bits.
bool hasLayouts(ir::Op op) {
  return ir::isOnImages(op) || op == ir::Op::Attention || op == ir::Op::AttentionBackward;
}

// Adds what `node` computes from `operands`. Its value; of a call with parts, by how much values
// have larger numbers than in the call's own graph.
ir::ValueId addTo(ir::Graph* graph, const LazyNode& node, std::vector<ir::ValueId> operands) {
  if (node.isPart())
    return operands[0] + node.operands[0]->composite->graph.results()[node.attrs[0]];
  if (!node.composite)
    return graph->addNode({node.op, std::move(operands), node.attrs, node.valueType(), node.site,
                           static_cast<int>(graph->nodes().size())});
  const ir::Graph& called = node.composite->graph;
  const ir::ValueId shift = addCall(graph, called, operands, node.site);
  return node.hasParts() ? shift : called.results()[0] + shift;
}

}  // namespace

void Engine::collectReached(Nodes* nodes) {
  ++visit_;
  for (LazyNode* node : *nodes) node->visit = visit_;
  const size_t given = nodes->size();
  for (size_t i = 0; i < nodes->size(); ++i) {
    for (const LazyNodePtr& operand : (*nodes)[i]->operands) {
      if (operand->pending() && std::exchange(operand->visit, visit_) != visit_)
        nodes->push_back(operand.get());
    }
  }
  if (nodes->size() > given) std::ranges::sort(*nodes, {}, &LazyNode::id);
}

// Numbers inputs and nodes, finds the results, and writes down all that a plan depends on.
void Engine::describeStructure(Segment* segment) {
  for (LazyNode* node : segment->nodes) node->innerUses = 0;
  size_t count = 3;
  for (LazyNode* node : segment->nodes) {
    count += 3 + node->operands.size() + wordsOf(*node).size();
    segment->operators += node->operators();
    const size_t bytes = node->composite ? node->composite->bytes : node->bytes();
    segment->bytes += bytes;
    segment->largest = std::max(segment->largest, bytes);
    for (const LazyNodePtr& operand : node->operands) {
      if (std::exchange(operand->visit, visit_) != visit_) {
        count += 2 + operand->shape().ndim();
        operand->innerUses = 0;
        operand->value = static_cast<ir::ValueId>(segment->inputs.size());
        segment->laidOut += operand->channel >= 0;
        segment->inputs.push_back(&operand);
      }
      ++operand->innerUses;
      operand->holders = static_cast<int>(operand.use_count());
    }
  }
  const auto isOnImages = [](const LazyNode* node) { return hasOp(*node, ir::isOnImages); };
  segment->readsImages = segment->laidOut > 0 && std::ranges::any_of(segment->nodes, isOnImages);
  // Parts that stay pending, too, hold what their call reads.
  for (const LazyNode* node : segment->nodes) {
    if (!node->hasParts() || (node->innerUses > 0 && node->holders <= node->innerUses)) continue;
    for (const LazyNodePtr& operand : node->operands) --operand->innerUses;
  }
  segment->structure.resize(count);
  int64_t* words = segment->structure.data();
  *words++ = static_cast<int64_t>(segment->budget);
  *words++ = ir::slotChanges();
  *words++ = std::ssize(segment->inputs);
  for (const LazyNodePtr* input : segment->inputs)
    words = writeInput(words, **input, segment->channelOf(**input));
  ir::ValueId next = static_cast<ir::ValueId>(segment->inputs.size());
  for (LazyNode* node : segment->nodes) {
    node->value = next++;
    // Somebody outside holds it: a handle, a later segment, another thread. (Nobody does if its
    // last holder has let go of it on another thread; that one waits in the destructor.)
    const bool isResult =
        !node->hasParts() && (node->innerUses == 0 || node->holders > node->innerUses);
    words = writeNode(words, *node, isResult);
    if (isResult) segment->results.push_back(node);
  }
}

Engine::Segment Engine::described(Nodes&& nodes) {
  Segment segment{.nodes = std::move(nodes)};
  collectReached(&segment.nodes);
  describeStructure(&segment);
  return segment;
}

// What only this run holds stays with what is not of it, and gives it back if it has an error.
void Engine::keepOlds(Segment* segment) {
  for (const LazyNodePtr* input : segment->inputs) {
    if ((*input)->writers.empty() || !isSpare(*input)) continue;
    for (const std::weak_ptr<LazyNode>& each : (*input)->writers) {
      const LazyNodePtr writer = each.lock();
      if (!writer) continue;
      if (writer->pending() && writer->visit != visit_) writer->olds.push_back(*input);
      segment->held.push_back(writer);
    }
  }
}

int64_t Engine::calls(const Segment& segment) {
  return std::ranges::count_if(segment.nodes, std::not_fn(&LazyNode::isPart));
}

bool Engine::comesOnce(Segment* segment) {
  const bool isPlanned = flags().plan == "all" || flags().cache == "explain";
  if (segment->readsImages || calls(*segment) == 1 || isPlanned || segment->budget > 0)
    return false;
  const auto [number, isFirst] = sightings_.note(segment->structure);
  segment->sighting = number;
  if (!isFirst) sightings_.noteAgain(number);
  if (flags().plan == "none") return true;
  return isFirst && sightings_.areUnlike() && isWorthLittle(*segment);
}

bool Engine::isWorthLittle(const Segment& segment) {
  if (segment.bytes >= segment.operators * kWorthPlanning || segment.largest >= kLarge)
    return false;
  size_t written = 0;
  for (const LazyNode* node : segment.nodes) {
    if (!node->isPart() && hasOp(*node, hasLayouts)) return false;
    if (ir::opKind(node->op) != ir::Kind::Update) continue;
    // A plan writes to that in place; one by one, what a later error gives back is kept.
    const LazyNodePtr& old = node->operands[0];
    if (!old->pending() && isSpare(old)) written += node->bytes();
  }
  return written < segment.operators * kWorthWriting;
}

const Engine::Plan& Engine::addPlan(const Segment& segment) {
  PlanDump::Numbers numbers;
  for (const LazyNodePtr* input : segment.inputs) numbers.push_back((*input)->number());
  const uint64_t last = segment.nodes.back()->id;
  const auto refused = refused_.find(last);
  if (refused != refused_.end() && std::ranges::equal(refused->second.structure, segment.structure))
    std::rethrow_exception(refused->second.error);
  Plan plan{.sighting = segment.sighting};
  try {
    ir::Graph graph = graphOf(segment);
    plan.images = leaveImages(segment, &graph);
    plan.loaded = buildPlan(graph, segment.budget, numbers);
  } catch (const planner::OverBudget&) {
    if (refused_.size() >= kMostRefused) refused_.clear();
    refused_[last] = {{segment.structure.begin(), segment.structure.end()},
                      std::current_exception()};
    throw;
  }
  if (plans_.insert(segment.structure, std::move(plan), segment.operators))
    runtime::dropUnused(&kernels_);
  return *plans_.find(segment.structure);
}

// Images that a later plan is likely to read with their channels first, as this one does, lie so:
// gives Plan::images. Not of a call alone, whose result is read.
std::vector<int> Engine::leaveImages(const Segment& segment, ir::Graph* graph) const {
  if (device_->lowering() != ir::Lowering::Kernels || !flags().skip.empty() || calls(segment) < 2)
    return {};
  std::vector<int> images;
  try {
    images = codegen::imagesOfResults(*graph);
  } catch (const InternalError&) {  // which the passes tell that find it, too
    return {};
  }
  std::vector<ir::ValueId> results = graph->results();
  for (size_t i = 0; i < results.size(); ++i) {
    if (images[i] < 0) continue;
    const ir::Attrs axes(ir::axesToFront(graph->type(results[i]).shape.ndim(), images[i]));
    const CallSite site = graph->node(results[i]).site;
    results[i] = graph->addNode(ir::Op::Transpose, {results[i]}, axes, site);
  }
  graph->setResults(std::move(results));
  return images;
}

ir::Graph Engine::graphOf(const Segment& segment) {
  ir::Graph graph;
  std::vector<ir::ValueId> ids;
  for (const LazyNodePtr* each : segment.inputs) {
    const LazyNode& input = **each;
    ir::ValueType type = input.valueType();
    const int channel = segment.channelOf(input);
    if (channel >= 0) type.shape = ir::inFront(std::move(type.shape), channel);
    ids.push_back(graph.addParameter({std::move(type), input.number() != nullptr}));
  }
  for (size_t i = 0; i < ids.size(); ++i) {
    const LazyNode& input = **segment.inputs[i];
    if (segment.channelOf(input) < 0) continue;
    const ir::Attrs axes(ir::axesFromFront(input.shape().ndim(), input.channel));
    ids[i] = graph.addNode(ir::Op::Transpose, {ids[i]}, axes, input.site);
  }
  for (const LazyNode* node : segment.nodes) {
    std::vector<ir::ValueId> operands;
    for (const LazyNodePtr& operand : node->operands) operands.push_back(ids[operand->value]);
    ids.push_back(addTo(&graph, *node, std::move(operands)));
  }
  std::vector<ir::ValueId> results;
  for (const LazyNode* node : segment.results) results.push_back(ids[node->value]);
  graph.setResults(std::move(results));
  // What of a call nobody holds.
  if (std::ranges::any_of(segment.nodes, &LazyNode::hasParts)) ir::removeDeadNodes(&graph);
  return graph;
}

std::unique_ptr<runtime::LoadedSchedule> Engine::buildPlan(const ir::Graph& graph, size_t budget,
                                                           const PlanDump::Numbers& numbers) {
  if (flags().cache == "explain") logWarning(history_.explain(graph, budget));
  const profile::Scope scope([&] {
    return profile::label(profile::Lane::Planning, profile::Extent::Whole,
                          detail::concat("plan of ", graph.nodes().size(), " operators"),
                          graph.nodes().empty() ? CallSite() : graph.nodes().back().site);
  });
  const PlanDump dump(numbers);
  view::LivePlan viewed(device_->target());
  codegen::CompileOptions options{.lowering = device_->lowering(),
                                  .featuresFirst = device_->takesFeaturesFirst(),
                                  .skip = flags().skip,
                                  .budget = budget,
                                  .device = device_->traits(),
                                  .trimAll = flags().trim == "all",
                                  .observe = viewed.observer(dump.observer()),
                                  .verify = flags().check == "verify"};
  const bool checks = check::isWanted(flags().check) && device_->name() != "null";
  if (checks) check::prepareOptions(&options.skip, &options.budget);
  runtime::counters().plansBuilt++;
  try {
    codegen::Compilation compiled =
        tuner_ ? tuner_->compile(graph, options) : kept_.compile(graph, options);
    runtime::counters().stepsRecomputed += compiled.schedule.recomputed;
    auto plan = device_->load(std::move(compiled.schedule), &kernels_);
    plans::warnOfResults(plan->schedule(), budget);
    dump.writeCode(*plan, device_->target());
    if (!checks) return viewed.timed(std::move(plan));
    std::vector<check::PassedGraph> passed;
    if (flags().check == "ref") passed = plans::byPass(graph, std::move(options));
    passed.push_back({"the last", std::move(compiled.graph)});
    return check::makeCheckedPlan(graph, std::move(passed), std::move(plan), flags().check,
                                  *device_, &kernels_, interpretCall);
  } catch (const planner::OverBudget&) {
    throw;
  } catch (const OutOfMemory&) {  // there may be memory at the next try
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
  Nodes nodes(results.begin(), results.end());
  std::ranges::sort(nodes, {}, &LazyNode::id);
  nodes.erase(std::unique(nodes.begin(), nodes.end()), nodes.end());
  Segment segment = described(std::move(nodes));
  segment.readsImages = false;  // later calls give the function other values
  segment.results.assign(results.begin(), results.end());
  for (const LazyNodePtr* input : segment.inputs) inputs->push_back(*input);
  return graphOf(segment);
}

std::unique_ptr<runtime::LoadedSchedule> Engine::makePlan(const ir::Graph& graph,
                                                          const PlanDump::Numbers& numbers) {
  const std::lock_guard<std::recursive_mutex> lock(engineMutex());
  auto plan = buildPlan(graph, runtime::getMemoryBudget(), numbers);
  runtime::dropUnused(&kernels_);  // but those of the last plan that it has, too
  const CallSite site = graph.nodes().empty() ? CallSite() : graph.nodes().back().site;
  const int compiled = compiler_.request(plan->kernels(), site);
  if (logEnabled(1))
    logLine(1, plans::describeRun("compile", plan->schedule(), graph.nodes().size(), false,
                                  compiled, site));
  return plan;
}

void Engine::run(const Segment& segment, const Plan& plan) {
  Buffers buffers;
  const std::vector<int>& reusable = plan.loaded->reusable();
  Spare spare(reusable.empty() ? 0 : segment.inputs.size(), false);
  for (int parameter : reusable) spare[parameter] = isSpare(*segment.inputs[parameter]);
  for (const LazyNodePtr* input : segment.inputs) buffers.push_back(segment.elementsOf(**input));
  auto outputs = elementsOf(segment, *plan.loaded, buffers, spare);
  for (size_t i = 0; i < outputs.size(); ++i)
    segment.results[i]->realize(std::move(outputs[i]), plan.images.empty() ? -1 : plan.images[i]);
}

void Engine::putInOrder(LazyNode* node) {
  if (node->channel < 0 || node->ordered) return;
  const ir::ValueType type = {node->type(), ir::inFront(node->shape(), node->channel)};
  const ir::Attrs axes(ir::axesFromFront(node->shape().ndim(), node->channel));
  const auto image = std::make_shared<LazyNode>(node->backend(), *this, type, node->buffer);
  PendingList list;
  const auto ordered = std::make_shared<LazyNode>(node->backend(), *this, ir::Op::Transpose,
                                                  LazyOperands{image}, axes, node->valueType());
  ordered->site = node->site;
  list.append(ordered.get());
  realizeTogether({ordered.get()});
  node->ordered = ordered->buffer;
}

runtime::LoadedSchedule::Outputs Engine::elementsOf(const Segment& segment,
                                                    const runtime::LoadedSchedule& plan,
                                                    const Buffers& buffers, const Spare& spare) {
  absl::InlinedVector<Number, 4> numbers;
  for (const LazyNodePtr* input : segment.inputs)
    numbers.push_back((*input)->number() ? *(*input)->number() : Number());
  absl::InlinedVector<CallSite, 8> lines;
  for (const LazyNode* result : segment.results) lines.push_back(result->site);
  const absl::Cleanup restore = [outer = std::exchange(runtime::resultLines, lines)] {
    runtime::resultLines = outer;
  };
  try {
    return plan.run(buffers, numbers, spare);
  } catch (const ir::IndexOutOfRange& error) {
    LazyNode* const* node = segment.nodes.begin();
    const int transposes = segment.readsImages ? segment.laidOut : 0;
    for (size_t left = error.origin - transposes; left >= (*node)->operators(); ++node)
      left -= (*node)->operators();
    const LazyNode& read = **node;
    throw BadIndexError(
        describeBadIndex(error, read.site, read.operands[0]->valueType(), read.attrs), *node);
  }
}

void Engine::realizeTogether(Nodes&& nodes) {
  if (nodes.empty()) return;
  Segment segment = described(std::move(nodes));
  if (segment.results.empty()) return;  // calls whose parts die on another thread
  if (segment.laidOut > 0 && !segment.readsImages) {
    const uint64_t visit = visit_;
    for (const LazyNodePtr* input : segment.inputs) putInOrder(input->get());
    // Each copy that was made is a segment, too: its realize has used the same scratch.
    if (visit_ != visit) segment = described(std::move(segment.nodes));
  }
  keepOlds(&segment);
  const Plan* const known = plans_.find(segment.structure);
  if (!known && comesOnce(&segment)) {
    try {
      return realizeOneByOne(segment);
    } catch (const OutOfMemory&) {  // a plan may do with less
      Segment again = described(std::move(segment.nodes));
      again.sighting = segment.sighting;
      again.held = std::move(segment.held);
      segment = std::move(again);
    }
  }
  if (known) sightings_.noteAgain(known->sighting);
  const Plan& plan = known ? *known : addPlan(segment);
  const int compiled = known ? 0 : compiler_.request(plan.loaded->kernels(), currentCallSite());
  count(&runtime::counters().realizes);
  if (logEnabled(1))
    logLine(1, plans::describeRun("realize", plan.loaded->schedule(), segment.operators,
                                  known != nullptr, compiled, currentCallSite()));
  try {
    run(segment, plan);
  } catch (const OutOfMemory& lack) {
    // One that was there was made for other lines.
    const auto now = known ? buildPlan(graphOf(segment), segment.budget, {}) : nullptr;
    throw OutOfMemory(lack.what() + plans::describeNeed((now ? *now : *plan.loaded).schedule()));
  }
}

// An error leaves all as it is: nodes have their elements once all of them are computed, and only
// what is computed here is written over.
void Engine::realizeOneByOne(const Segment& segment) {
  Buffers values;
  for (const LazyNodePtr* input : segment.inputs) {
    (*input)->place = static_cast<ir::ValueId>(values.size());
    values.push_back(segment.elementsOf(**input));
  }
  std::unordered_map<const LazyNode*, Nodes> parts;  // by call
  for (LazyNode* node : segment.nodes) {
    node->place = static_cast<ir::ValueId>(values.size());
    values.emplace_back();
    if (node->isPart()) parts[node->operands[0].get()].push_back(node);
  }
  std::vector<const LazyNode*> lastReader(values.size(), nullptr);  // if its memory may be reused
  for (const LazyNode* node : segment.nodes)
    for (const LazyNodePtr& operand : node->operands) lastReader[operand->place] = node;
  for (const LazyNodePtr* input : segment.inputs) lastReader[(*input)->place] = nullptr;
  for (const LazyNode* result : segment.results) lastReader[result->place] = nullptr;
  size_t calls = 0, planned = 0;
  for (LazyNode* node : segment.nodes) {
    if (node->isPart()) continue;  // with its call
    Segment alone{.nodes = {node}, .budget = segment.budget};
    if (node->hasParts()) std::ranges::copy(parts[node], std::back_inserter(alone.nodes));
    ++visit_;
    for (LazyNode* each : alone.nodes) each->visit = visit_;
    describeStructure(&alone);
    if (alone.results.empty()) continue;
    const Plan* const known = plans_.find(alone.structure);
    const runtime::LoadedSchedule& plan = *(known ? *known : addPlan(alone)).loaded;
    if (!known) compiler_.request(plan.kernels(), node->site);
    planned += !known;
    Buffers buffers;
    Spare spare;
    for (const LazyNodePtr* input : alone.inputs) {
      MemoryBlockPtr& value = values[(*input)->place];
      const bool isLast = lastReader[(*input)->place] == node;
      buffers.push_back(isLast ? std::move(value) : value);
      spare.push_back(isLast && isHeldBy(1, buffers.back()));
    }
    auto outputs = elementsOf(alone, plan, buffers, spare);
    for (size_t i = 0; i < outputs.size(); ++i)
      values[alone.results[i]->place] = std::move(outputs[i]);
    ++calls;
  }
  sightings_.noteOneByOne(calls, planned);
  count(&runtime::counters().realizes);
  if (logEnabled(1))
    logLine(1, detail::concat("realize: ", segment.operators, " ops -> ", calls,
                              " plans one by one, at ", currentCallSite().toString()));
  for (LazyNode* result : segment.results) result->realize(std::move(values[result->place]), -1);
}

}  // namespace fl::lazy
