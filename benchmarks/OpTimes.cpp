#include "benchmarks/OpTimes.h"

#include <algorithm>
#include <memory>
#include <random>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "benchmarks/Subject.h"
#include "benchmarks/TracedPlan.h"
#include "fl/host/ThreadPool.h"
#include "fl/ir/Rewrite.h"

namespace fl::bench {
namespace {

std::vector<Tensor> makeInputs(const OpCase& opCase, Dim elements, const std::string& backend) {
  const BackendScope scope(backend);
  std::vector<Tensor> inputs = opCase.inputs(elements);
  for (const Tensor& input : inputs) {
    input.value()->data();
  }
  return inputs;
}

size_t bytesOfAll(const std::vector<Tensor>& tensors) {
  size_t bytes = 0;
  for (const Tensor& tensor : tensors) {
    bytes += tensor.bytes();
  }
  return bytes;
}

Caches cachesOf(Dim elements) { return elements < kOutOfCache ? Caches::Warm : Caches::Cold; }

Subject calling(const OpCase& opCase, const std::vector<Tensor>& inputs, Caches caches) {
  const auto call = [&opCase, &inputs] {
    for (const Tensor& result : opCase.run(inputs)) {
      result.value()->data();
    }
  };
  return Subject(call, caches);
}

// Uniform numbers in [0, 1) from the C++ library's generator, on its one thread.
Subject standardRandom(Dim elements) {
  const auto generator = std::make_shared<std::mt19937>();
  const auto numbers = std::make_shared<std::vector<float>>(elements);
  return Subject([=] {
    for (float& number : *numbers) {
      number = static_cast<float>((*generator)() >> 8) * 0x1p-24f;
    }
  });
}

// At indices that it checks.
bool looksUp(const ir::Node& node) { return node.op == ir::Op::Gather && node.attrs[1] == 0; }

// The kernels of a case for indices that nobody checks.
Subject uncheckedKernels(Trace traced, Caches caches) {
  ir::rewriteGraph(&traced.graph, [](ir::Graph& graph, ir::Node node) {
    if (looksUp(node)) {
      node.attrs = {node.attrs[0], 1};
    }
    return graph.addNode(std::move(node));
  });
  const auto plan = std::make_shared<TracedPlan>(traced);
  return Subject([=] { plan->run(); }, caches);
}

}  // namespace

// Each subject has inputs of its own, so that none finds in the caches what another left there.
OpTimes timeOp(const OpCase& opCase, Dim elements, int rounds, const Peers& peers) {
  const auto lazyInputs = makeInputs(opCase, elements, "lazy");
  const auto eagerInputs = makeInputs(opCase, elements, "eager");
  const auto kernelInputs = makeInputs(opCase, elements, "eager");
  const Caches caches = cachesOf(elements);
  std::optional<BackendScope> scope(std::in_place, "lazy");
  Subject lazy = calling(opCase, lazyInputs, caches);
  scope.emplace("eager");
  Subject eager = calling(opCase, eagerInputs, caches);
  const int64_t inputBytes = bytesOfAll(eagerInputs);
  const int64_t resultBytes = bytesOfAll(opCase.run(eagerInputs));
  scope.reset();

  std::optional<Subject> kernel, unchecked, standard;
  std::unique_ptr<TracedPlan> plan;
  try {
    const Trace traced = trace(opCase, kernelInputs);
    plan = std::make_unique<TracedPlan>(traced);
    kernel.emplace([&] { plan->run(); }, caches);
    if (std::ranges::any_of(traced.graph.nodes(), looksUp)) {
      unchecked = uncheckedKernels(trace(opCase, makeInputs(opCase, elements, "eager")), caches);
    }
  } catch (const ElementsRead&) {
  }
  if (opCase.name == "rand f32") {
    standard = standardRandom(elements);
  }
  CopyLimit limit(inputBytes, resultBytes, caches);

  PeerTimes peerTimes;
  const uint64_t made = madeSoFar();
  for (int round = 0; round < rounds; ++round) {
    scope.emplace("lazy");
    lazy.block();
    scope.emplace("eager");
    eager.block();
    scope.reset();
    for (std::optional<Subject>* each : {&kernel, &unchecked, &standard}) {
      if (*each) {
        (*each)->block();
      }
    }
    limit.block();
    peerTimes.block(peers, opCase.name, elements);
  }
  std::map<std::string, double> medians = peerTimes.medians();
  if (standard) {
    medians["std::mt19937"] = standard->microseconds();
  }
  const auto medianOf = [](const std::optional<Subject>& subject) {
    return subject ? std::optional(subject->microseconds()) : std::nullopt;
  };
  return {.name = opCase.name,
          .type = opCase.type,
          .memoryBound = opCase.memoryBound,
          .elements = elements,
          .kernel = medianOf(kernel),
          .unchecked = medianOf(unchecked),
          .lazy = lazy.microseconds(),
          .eager = eager.microseconds(),
          .limit = limit.microseconds(),
          .compiled = madeSoFar() - made,
          .peers = std::move(medians)};
}

Json toRow(const OpTimes& times) {
  Json peers = Json::object();
  for (const auto& [name, time] : times.peers) {
    peers[name] = time;
  }
  const auto orNull = [](std::optional<double> time) { return time ? Json(*time) : Json(nullptr); };
  return {{"bench", "ops"},
          {"case", absl::StrCat(times.name, ", ", times.elements)},
          {"unit", "us"},
          {"threads", host::getNumThreads()},
          {"ours", times.lazy},
          {"eager", times.eager},
          {"limit", times.limit},
          {"peers", std::move(peers)},
          {"kernel", orNull(times.kernel)},
          {"unchecked", orNull(times.unchecked)},
          {"single", orNull(times.single)},
          {"memory_bound", times.memoryBound}};
}

namespace {

// A case without its dtype, which is the last word.
std::string stem(const std::string& name) { return name.substr(0, name.rfind(' ')); }

const OpTimes* inSingle(const OpTimes& times, const std::vector<OpTimes>& all) {
  const auto found = std::find_if(all.begin(), all.end(), [&](const OpTimes& each) {
    return each.type == dtype::f32 && each.elements == times.elements &&
           stem(each.name) == stem(times.name);
  });
  return found == all.end() ? nullptr : &*found;
}

}  // namespace

bool isSingleOf(const OpCase& single, const OpCase& other) {
  return single.type == dtype::f32 && other.type != dtype::f32 &&
         stem(single.name) == stem(other.name);
}

OpTimes timeBeside(const OpCase& single, const OpCase& opCase, Dim elements, int rounds,
                   const Peers& peers) {
  constexpr int kTurns = 5;
  std::vector<double> singles;
  std::vector<OpTimes> times;
  for (int turn = 0; turn < kTurns; ++turn) {
    singles.push_back(timeOp(single, elements, rounds).lazy);
    times.push_back(timeOp(opCase, elements, rounds, peers));
  }
  std::ranges::sort(times, {}, &OpTimes::lazy);
  OpTimes result = times[kTurns / 2];
  result.single = median(singles);
  return result;
}

std::vector<std::string> brokenBounds(const OpTimes& times, const std::vector<OpTimes>& all) {
  std::vector<std::string> broken;
  const auto check = [&](double time, double bound, double factor, const char* of) {
    if (time > factor * bound) {
      broken.push_back(absl::StrFormat("%.2f of %s, at most %.2f", time / bound, of, factor));
    }
  };
  if (times.compiled > 0) {
    broken.push_back(absl::StrCat(times.compiled, " plans and kernels made while timed"));
  }
  check(times.kernel.value_or(times.lazy), times.eager, 1.05, "eager");
  if (times.unchecked) {
    check(*times.kernel, *times.unchecked, 1.05, "the kernel without checks");
  }
  if (times.elements >= kRecordingIsSmall) {
    check(times.lazy, times.eager, 1.05, "eager, recording included");
  }
  if (times.memoryBound && times.elements >= kOutOfCache) {
    check(times.lazy, times.limit, 1.18, "the copy");
  }
  const bool half = times.type == dtype::f16, brain = times.type == dtype::bf16;
  if (const OpTimes* single = half || brain ? inSingle(times, all) : nullptr) {
    const double factor = half && times.elements < kOutOfCache ? 1.2 : 1.0;
    const double noise = times.single ? 1.03 : 1.1;
    check(times.lazy, times.single.value_or(single->lazy), factor * noise, "f32");
  }
  return broken;
}

}  // namespace fl::bench
