// Which steps of a schedule are graphs, and runs of those (CudaSchedule::Chain).
#include <algorithm>
#include <set>

#include "fl/base/Log.h"
#include "fl/planner/Memory.h"
#include "fl/runtime/Counters.h"
#include "fl/runtime/cuda/CudaSchedule.h"
#include "fl/runtime/cuda/Range.h"

namespace fl::runtime::cuda {

using ir::BufferRef;

// Up to where the reports of lookups set out for the host, and behind it.
void CudaSchedule::findChains() {
  constexpr size_t kFewest = 3;  // fewer cost less one by one
  const auto isInStream = [&](size_t i) {
    const auto* call = std::get_if<PreparedCall>(&steps_[i]);
    return !call || call->call;
  };
  chains_.resize(steps_.size());
  for (size_t begin = 0; begin < steps_.size();) {
    size_t end = begin, count = 0;
    const size_t last = begin < reported_ ? std::min(reported_, steps_.size()) : steps_.size();
    for (; end < last && isInStream(end); ++count) end += stepsAt(end);
    if (count >= kFewest) chains_[begin] = makeChain(begin, end);
    begin = std::max(end, begin + 1);
  }
}

std::unique_ptr<CudaSchedule::Chain> CudaSchedule::makeChain(size_t begin, size_t end) const {
  auto chain = std::make_unique<Chain>(begin, end);
  std::set<int> fixed;
  for (size_t i = begin; i < end; i += stepsAt(i)) {
    const std::vector<int> sources = sourcesOf(i, i + stepsAt(i));
    const auto* launch = std::get_if<PreparedLaunch>(&steps_[i]);
    if (launch && !isFused(i)) {
      if (launch->shape.blocks > 0) chain->launches.push_back({i, sources});
    } else {
      fixed.insert(sources.begin(), sources.end());
    }
  }
  chain->fixed.assign(fixed.begin(), fixed.end());
  return chain;
}

std::vector<int> CudaSchedule::sourcesOf(size_t begin, size_t end) const {
  const int outputs = static_cast<int>(schedule_.parameters.size());
  const int arena = outputs + static_cast<int>(schedule_.outputs.size()), hostArena = arena + 1;
  std::set<int> sources;
  const auto add = [&](const std::optional<BufferRef>& buffer, const ir::ElementOffset& offset) {
    for (const auto& term : offset.terms) sources.insert(term.parameter);
    if (buffer) {
      sources.insert(buffer->space == BufferRef::Space::Parameter  ? buffer->index
                     : buffer->space == BufferRef::Space::Output   ? outputs + buffer->index
                     : schedule_.temporaries[buffer->index].onHost ? hostArena
                                                                   : arena);
    }
  };
  for (size_t i = begin; i < end; ++i) {
    sources.insert(arena);  // of scratch memory and reports
    if (const auto* launch = std::get_if<ir::LaunchStep>(&schedule_.steps[i])) {
      for (const ir::LaunchOperand& operand : launch->operands) add(operand.buffer, operand.offset);
      sources.insert(launch->numbers.begin(), launch->numbers.end());
    } else {
      const auto& call = std::get<ir::LibraryStep>(schedule_.steps[i]);
      for (const ir::BufferPlace& place : call.operands) add(place.buffer, place.offset);
      add(call.result.buffer, call.result.offset);
    }
  }
  return {sources.begin(), sources.end()};
}

CudaSchedule::Sources CudaSchedule::sourcesOf(const Frame& frame) const {
  Sources sources;
  for (size_t i = 0; i < schedule_.parameters.size(); ++i) {
    sources.push_back(schedule_.parameters[i].number
                          ? frame.numberBits[i]
                          : reinterpret_cast<uint64_t>(frame.parameters[i]));
  }
  for (void* output : frame.outputs) sources.push_back(reinterpret_cast<uint64_t>(output));
  sources.push_back(reinterpret_cast<uint64_t>(frame.arena));
  sources.push_back(reinterpret_cast<uint64_t>(frame.hostArena));
  return sources;
}

// Who looks at every step sees them one by one.
CudaSchedule::ReadyGraph CudaSchedule::prepared(Chain* chain, const Frame& frame,
                                                const Sources& sources) const {
  const auto isCompiled = [&](const auto& step) {
    const auto* launch = std::get_if<PreparedLaunch>(&step);
    return !launch || launch->kernel->compiled();
  };
  if (!chain || frame.observer || frame.poisons) return {};
  const std::span steps(steps_.begin() + chain->begin, steps_.begin() + chain->end);
  if (!std::ranges::all_of(steps, isCompiled)) return {};
  ReadyGraph ready{std::unique_lock<std::mutex>(chain->mutex)};
  ready.graph = findGraph(*chain, frame, sources);
  if (!ready.graph) return {};
  const detail::CallSiteOverride recorded(stepSite(schedule_.steps[chain->end - 1]));
  try {
    for (size_t i = 0; i < chain->launches.size(); ++i) {
      const auto isOther = [&](int s) { return sources[s] != ready.graph->sources[s]; };
      if (std::ranges::any_of(chain->launches[i].sources, isOther))
        ready.graph->graph.set(ready.graph->nodes[i], launchAt(chain->launches[i].step, frame));
    }
  } catch (...) {  // it has words of two runs
    chain->graphs.pop_front();
    throw;
  }
  ready.graph->sources = sources;
  return ready;
}

size_t CudaSchedule::launch(const Chain& chain, const ReadyGraph& ready) const {
  const detail::CallSiteOverride recorded(stepSite(schedule_.steps[chain.end - 1]));
  const Range range("graph");
  ready.graph->graph.launch();
  for (const Chain::Launch& each : chain.launches) {
    const auto& launch = std::get<PreparedLaunch>(steps_[each.step]);
    context_.note(launch.kernel->label(), launch.step->site);
  }
  if (ready.graph->runs++ > 0) {  // capture() has counted the first
    counters().kernelLaunches += ready.graph->kernelLaunches;
    counters().libraryCalls += ready.graph->libraryCalls;
  }
  return chain.end;
}

// The one whose libraries work in these places; made when they come for the second time.
CudaSchedule::Chain::Graph* CudaSchedule::findGraph(Chain& chain, const Frame& frame,
                                                    const Sources& sources) const {
  constexpr size_t kMost = 4, kManyMisses = 50;
  const auto isFixed = [&](const Chain::Graph& graph) {
    return std::ranges::all_of(chain.fixed, [&](int i) { return graph.sources[i] == sources[i]; });
  };
  ++chain.runs;
  const auto found = std::ranges::find_if(chain.graphs, isFixed);
  if (found != chain.graphs.end()) {
    chain.graphs.splice(chain.graphs.begin(), chain.graphs, found);
    return &chain.graphs.front();
  }
  if (++chain.misses == kManyMisses && 2 * kManyMisses > chain.runs) {
    logWarning(detail::concat("CUDA: of ", chain.runs, " runs of the steps up to ",
                              planner::describeStep(schedule_, static_cast<int>(chain.end) - 1),
                              ", ", kManyMisses,
                              " were no graph's: what libraries read and write "
                              "is at other places each time"));
  }
  std::vector<uint64_t> fixed;
  for (const int source : chain.fixed) fixed.push_back(sources[source]);
  const bool isNew = std::erase(chain.seen, fixed) == 0;
  if (isNew) chain.seen.push_front(std::move(fixed));
  if (chain.seen.size() > kMost) chain.seen.pop_back();
  if (isNew || chain.isRefused) return nullptr;
  try {
    capture(chain, frame, sources);
  } catch (const std::runtime_error&) {
    chain.isRefused = true;  // one by one, what is wrong is told
    return nullptr;
  }
  if (chain.graphs.size() > kMost) chain.graphs.pop_back();
  return &chain.graphs.front();
}

void CudaSchedule::capture(Chain& chain, const Frame& frame, const Sources& sources) const {
  Capture capture(context_);
  std::vector<CUgraphNode> nodes;
  size_t kernelLaunches = 0, libraryCalls = 0;
  for (size_t i = chain.begin; i < chain.end;) {
    const auto* call = std::get_if<PreparedCall>(&steps_[i]);
    const bool isNothing = !call && std::get<PreparedLaunch>(steps_[i]).shape.blocks == 0;
    (call && !call->call->isKernel() ? libraryCalls : kernelLaunches) += !isNothing;
    const size_t next = nodes.size();
    const bool isSet = next < chain.launches.size() && chain.launches[next].step == i;
    i = runNext(i, frame);
    if (isSet) nodes.push_back(capture.last());
  }
  Chain::Graph& graph = chain.graphs.emplace_front(context_, capture);
  graph.nodes = std::move(nodes);
  graph.sources = sources;
  graph.kernelLaunches = kernelLaunches;
  graph.libraryCalls = libraryCalls;
}

}  // namespace fl::runtime::cuda
