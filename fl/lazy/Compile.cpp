#include "fl/lazy/Compile.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <mutex>
#include <unordered_map>
#include <unordered_set>

#include "absl/cleanup/cleanup.h"
#include "absl/functional/function_ref.h"
#include "fl/base/CallSite.h"
#include "fl/base/Error.h"
#include "fl/base/WordCache.h"
#include "fl/ir/Slot.h"
#include "fl/lazy/Engine.h"
#include "fl/plans/Difference.h"
#include "fl/plans/Report.h"
#include "fl/runtime/MemoryManager.h"

namespace fl::lazy {
namespace {

using detail::TensorRef;

// Calls that are recorded before it counts as hopeless that two record the same.
constexpr int kMostRecorded = 4;

// Of a function; those not used for longest are recorded anew when they are needed again.
constexpr size_t kMostPlans = 64;

// A number that each replay has anew: what `next` gives, or an earlier one of them in its dtype.
struct HostNumber {
  detail::NextNumber next;
  size_t from = 0;
  dtype type;
};

using ArgumentIndex = std::unordered_map<const TensorAdapterBase*, size_t>;

// What the function knows of a tensor, which replays therefore have to find in it.
struct Known {
  std::weak_ptr<TensorAdapterBase> value;
  bool onHost = false;  // it read that there, not only as a constant of the plan
  CallSite site;        // where
};
using KnownTensors = std::map<TensorRef, Known>;

// A tensor that the function assigns to. It has another storage then, or the same one, which views
// of the tensor show, too.
struct Assigned {
  TensorRef tensor;
  bool rebinds;
  std::optional<TensorRef> from = {};  // it shares the value that this had before the call
  size_t result = 0;                   // or this result of the graph

  bool exists() const { return tensor.exists() && (!from || from->exists()); }
  bool operator==(const Assigned&) const = default;
};

// Where a parameter of the graph comes from.
struct Input {
  enum class Kind { Argument, Stored, HostNumber, Constant };
  Kind kind = Kind::Constant;
  size_t index = 0;                      // of the argument or the number
  std::optional<TensorRef> tensor = {};  // that it is the value of
  bool assigned = false;                 // the function assigns to that
  LazyNodePtr value;                     // when it was recorded
};

struct Recording {
  ir::Graph graph;
  std::vector<Input> inputs;
  std::vector<HostNumber> numbers;
  // Of the graph's results: what the function returned, then what is assigned.
  size_t returned = 0;
  std::vector<Assigned> assigned;
  KnownTensors known;
  std::map<TensorRef, ir::ValueType> types;
  std::map<TensorRef, uint64_t> views;  // TensorRef::views()
};

// What a recorded function does to tensors and numbers outside it.
class Recorder final : public detail::Capture {
 public:
  Recorder(TensorBackend& backend, Engine& engine, const ArgumentIndex& arguments,
           const CallSite& site)
      : backend_(backend), engine_(engine), arguments_(arguments), site_(site) {}

  TensorValue onRead(const TensorRef& tensor, TensorValue value, uint64_t madeIn) override {
    met_.try_emplace(tensor, met_.size());
    const bool isOutside = madeIn != detail::activeRecording;
    if (isOutside) onType(tensor, value->valueType());
    const auto* node = dynamic_cast<const LazyNode*>(value.get());
    if (isOutside && node && engine_.isOthers(*node)) unheard([&] { return value->data(), value; });
    // What the function has assigned is its own.
    if ((!node || !node->pending()) && !assigned_.contains(tensor)) {
      // What it copies follows what it copied. Tensors outside that share a value are several: a
      // later call may find others in them.
      const auto [read, isNew] = reads_.try_emplace(value.get(), value, value, tensor, isOutside);
      if (isOutside && !isNew && read->second.tensor != tensor) value = valueOf(tensor, value);
    }
    // Another backend's, or another computes with it, here.
    if (&value->backend() != &backend_ || &defaultTensorBackend() != &backend_) know(*value, false);
    return value;
  }
  void onHostRead(const TensorAdapterBase& value) override {
    const std::lock_guard lock(engineMutex());
    std::vector<const TensorAdapterBase*> values = {&value};
    std::unordered_set<const TensorAdapterBase*> seen;
    while (!values.empty()) {
      const TensorAdapterBase& next = *values.back();
      values.pop_back();
      if (!seen.insert(&next).second) continue;
      if (const auto* node = dynamic_cast<const LazyNode*>(&next); node && node->pending()) {
        for (const LazyNodePtr& operand : node->operands) values.push_back(operand.get());
      } else {
        know(next, true);
      }
    }
  }
  void onView(const TensorRef& tensor) override { recording_.views.try_emplace(tensor); }
  void onType(const TensorRef& tensor, const ir::ValueType& type) override {
    if (!assigned_.contains(tensor)) recording_.types.try_emplace(tensor, type);
  }
  void onAssign(const TensorRef& tensor, bool rebinds) override {
    met_.try_emplace(tensor, met_.size());
    assigned_[tensor] |= rebinds;
  }
  void onNumber(const TensorValue& number, detail::NextNumber next) override {
    addNumber(number, {std::move(next), 0, number->type()});
  }
  void onCast(const TensorValue& from, const TensorValue& number) override {
    const std::optional<size_t> source = numberOf(from.get());
    source ? addNumber(number, {nullptr, *source, number->type()}) : know(*from, false);
  }

  // The tensor that was read as `value`, unless it is one of the function's that is gone. In the
  // place of one outside that is gone later calls find another.
  std::optional<TensorRef> tensorOf(const TensorAdapterBase* value) const {
    const auto read = reads_.find(value);
    const bool isThere =
        read != reads_.end() && (read->second.isOutside || read->second.tensor.exists());
    return isThere ? std::optional(read->second.tensor) : std::nullopt;
  }
  std::optional<size_t> numberOf(const TensorAdapterBase* value) const {
    const auto found = numberOf_.find(value);
    return found != numberOf_.end() ? std::optional(found->second) : std::nullopt;
  }
  bool assigns(const TensorRef& tensor) const { return assigned_.contains(tensor); }
  // In the order of first reads: a plan places results over inputs in their order.
  std::vector<Assigned> assigned() const {
    std::vector<Assigned> tensors;
    for (const auto& [tensor, rebinds] : assigned_) tensors.push_back({tensor, rebinds});
    std::ranges::sort(tensors, {}, [&](const Assigned& each) { return met_.at(each.tensor); });
    return tensors;
  }
  // Without what the graph tells: of tensors that are not gone. Throws if the function read one on
  // the host that it assigns to.
  Recording takeRecording() {
    const auto isGone = [](const auto& each) { return !each.first.exists(); };
    std::erase_if(recording_.types, isGone);
    std::erase_if(recording_.known, isGone);
    for (const auto& [tensor, known] : recording_.known)
      if (known.onHost && assigned_.contains(tensor))
        throwRead(known.site, "a tensor that it assigns to");
    for (auto& [tensor, views] : recording_.views) views = tensor.views();
    return std::move(recording_);
  }

 private:
  // Values are held, so that no other gets their address.
  struct Read {
    TensorValue value, stored;  // what the function computes with, and what is in the tensor
    TensorRef tensor;
    bool isOutside;
  };

  // No read of the function's.
  TensorValue unheard(absl::FunctionRef<TensorValue()> work) {
    const absl::Cleanup hears = [this] { detail::activeCapture = this; };
    detail::activeCapture = nullptr;
    return work();
  }

  // Of the tensor alone, with the elements of `stored`.
  TensorValue valueOf(const TensorRef& tensor, const TensorValue& stored) {
    for (const auto& [address, read] : reads_)
      if (read.tensor == tensor && read.stored == stored) return read.value;
    const TensorValue value = unheard([&] { return makeValueNode(backend_, engine_, *stored); });
    reads_.try_emplace(value.get(), value, stored, tensor, true);
    return value;
  }

  void know(const TensorAdapterBase& value, bool onHost) {
    if (const auto argument = arguments_.find(&value); argument != arguments_.end())
      throwRead(currentCallSite(), detail::concat("its argument ", argument->second));
    if (numberOf(&value)) throwRead(currentCallSite(), "a number of fl::hostNumber");
    const auto read = reads_.find(&value);
    if (read == reads_.end()) return;
    Known& known = recording_.known[read->second.tensor];
    known.value = read->second.stored;
    known.onHost = known.onHost || onHost;
    if (onHost) known.site = currentCallSite();
  }

  [[noreturn]] void throwRead(const CallSite& site, const std::string& what) const {
    const detail::CallSiteOverride reading(site);
    throwUser(calledAs("host"), ": the function that fl::compile was given at ", site_.toString(),
              " reads ", what,
              ", or what it computes from that, on the host, which replays would "
              "not repeat: return it and read it after the call, or choose with where()");
  }

  void addNumber(const TensorValue& number, HostNumber source) {
    numberOf_.emplace(number.get(), recording_.numbers.size());
    numberValues_.push_back(number);
    recording_.numbers.push_back(std::move(source));
  }

  TensorBackend& backend_;
  Engine& engine_;
  const ArgumentIndex& arguments_;
  const CallSite site_;  // of fl::compile
  std::unordered_map<const TensorAdapterBase*, Read> reads_;
  Recording recording_;
  std::map<TensorRef, bool> assigned_;  // whether it is rebound
  std::map<TensorRef, size_t> met_;     // how many others before
  std::unordered_map<const TensorAdapterBase*, size_t> numberOf_;
  std::vector<TensorValue> numberValues_;
};

// Views, or the host, show what they showed of a tensor that the function gives another storage. A
// replay would write to that.
bool rebindsWhatIsShown(const Recording& recording) {
  return std::ranges::any_of(recording.assigned, [](const Assigned& each) {
    return each.rebinds && each.tensor.isShown();
  });
}

bool sameElements(LazyNode& x, LazyNode& y) {
  if (x.number() || y.number())
    return x.number() && y.number() && x.number()->bits() == y.number()->bits();
  return x.data() == y.data() ||
         std::memcmp(x.data()->onHost()->data(), y.data()->onHost()->data(), x.bytes()) == 0;
}

// How parameter `i` differs from that of an equal graph, or "".
std::string inputDifference(const Recording& now, const Recording& before, size_t i) {
  const Input &input = now.inputs[i], &old = before.inputs[i];
  const auto readBy = [&] {
    return "; first read by\n  " + plans::userOf(now.graph, static_cast<ir::ValueId>(i));
  };
  if (input.tensor && !input.tensor->exists())
    return "a tensor outside is read and let go of, as by a Variable that is given another: hold "
           "a Tensor and assign to it" +
           readBy();
  if (input.kind != old.kind || input.index != old.index || input.tensor != old.tensor)
    return "another tensor than at the call before is" + readBy();
  if (input.kind != Input::Kind::Constant || sameElements(*input.value, *old.value)) return "";
  const Number *number = input.value->number(), *oldNumber = old.value->number();
  return number ? detail::concat("a number is ", number->toDouble(), " and was ",
                                 oldNumber->toDouble(), " at the call before", readBy())
                : "a tensor that the function makes has other elements" + readBy();
}

}  // namespace

// The calls of one function.
class CompiledFunction::Calls {
 public:
  explicit Calls(Function function) : function_(std::move(function)) {}

  std::vector<Tensor> run(int64_t times, TensorList arguments) {
    FL_USER_CHECK(times > 0, "fl::compile: run(", times, ") asks for no call");
    TensorBackend& backend = defaultTensorBackend();
    Engine* engine = engineOf(backend);
    std::vector<Tensor> results;
    for (; times > 0; --times) {
      // A function that is recorded records it itself.
      const bool replays = engine && !detail::activeCapture;
      Replay* replay = replays ? &findReplay(backend, *engine, arguments) : nullptr;
      if (!replay || (replay->plan && rebindsWhatIsShown(replay->recording))) {
        results = call(arguments);
      } else if (replay->plan && bind(replay, arguments)) {
        return replayTimes(replay, times);
      } else {
        results = record(replay, arguments);
      }
    }
    return results;
  }

  size_t plans() const {
    return replays_.countIf([](const auto& replay) { return replay->plan != nullptr; });
  }

 private:
  // The function with arguments of certain types.
  struct Replay {
    TensorBackend& backend;
    Engine& engine;
    Recording recording = {};  // the latest
    int recorded = 0;
    std::unique_ptr<runtime::LoadedSchedule> plan;
    // One a parameter, for the run.
    std::vector<MemoryBlockPtr> buffers;
    std::vector<Number> numbers, hostNumbers;
  };

  Replay& findReplay(TensorBackend& backend, Engine& engine, TensorList arguments) {
    absl::InlinedVector<int64_t, 64> words = {reinterpret_cast<intptr_t>(&backend),
                                              Tf32Scope::isActive(), ir::slotChanges(),
                                              static_cast<int64_t>(runtime::getMemoryBudget())};
    for (const Tensor* argument : arguments)
      ir::addWords(&words, {argument->type(), argument->shape()});
    if (const auto* found = replays_.find(words)) return **found;
    replays_.insert(words, std::make_unique<Replay>(backend, engine));
    return **replays_.find(words);
  }

  // What is returned are values, not views of what a later call assigns to.
  std::vector<Tensor> call(TensorList arguments) const {
    std::vector<Tensor> values;
    for (const Tensor& result : function_(arguments)) values.push_back(result.copy());
    return values;
  }

  // ---- Recording ----

  std::vector<Tensor> record(Replay* replay, TensorList arguments) {
    replay->plan = nullptr;
    // Values of their own tell arguments from whatever else the function reads.
    std::vector<TensorValue> values;
    ArgumentIndex indexOf;
    for (const Tensor* argument : arguments) {
      const TensorValue value = argument->value();
      const auto node = std::make_shared<LazyNode>(replay->backend, replay->engine,
                                                   value->valueType(), value->data());
      indexOf.emplace(node.get(), values.size());
      values.push_back(node);
    }
    Recorder recorder(replay->backend, replay->engine, indexOf, site_);
    replay->engine.beginRecording();
    const absl::Cleanup recorded = [&] { replay->engine.endRecording(); };
    std::vector<Tensor> results;
    {
      const detail::CaptureScope capture(recorder);
      // None of the tensors outside.
      const std::vector<Tensor> tensors(values.begin(), values.end());
      std::vector<const Tensor*> pointers;
      for (const Tensor& tensor : tensors) pointers.push_back(&tensor);
      results = call(pointers);
    }
    Recording recording = describe(replay, &recorder, results, indexOf);
    const std::string difference =
        replay->recorded == 0 ? "it is the first" : compare(recording, replay->recording);
    replay->recording = std::move(recording);
    // One that moves what a view shows need not do the same again.
    replay->recorded = rebindsWhatIsShown(replay->recording) ? 1 : replay->recorded + 1;
    if (difference.empty()) {
      prepare(replay);
    } else {
      FL_USER_CHECK(replay->recorded < kMostRecorded, "fl::compile: ", kMostRecorded,
                    " calls of a function recorded no two that are the same: ", difference);
    }
    for (Input& input : replay->recording.inputs)
      if (replay->plan || input.kind != Input::Kind::Constant) input.value = nullptr;
    return results;
  }

  // The node of a value as a result of the graph: what was not computed is a view of itself.
  static LazyNodePtr resultNode(const Replay& replay, const TensorValue& value) {
    auto node = std::dynamic_pointer_cast<LazyNode>(value);
    if (!node) node = makeValueNode(replay.backend, replay.engine, *value);
    if (node->pending()) return node;
    auto view = std::make_shared<LazyNode>(replay.backend, replay.engine, ir::Op::Reshape,
                                           LazyOperands{node}, ir::Attrs(node->shape().get()),
                                           node->valueType());
    replay.engine.record(view);
    return view;
  }

  static Recording describe(Replay* replay, Recorder* recorder, const std::vector<Tensor>& results,
                            const ArgumentIndex& argumentOf) {
    Recording recording = recorder->takeRecording();
    std::vector<LazyNodePtr> nodes;
    for (const Tensor& result : results) nodes.push_back(resultNode(*replay, result.value()));
    recording.returned = nodes.size();
    for (Assigned& each : recorder->assigned()) {
      const TensorValue value = each.tensor.value();
      if (!value) continue;
      each.from = recorder->tensorOf(value.get());
      if (!each.from) nodes.push_back(resultNode(*replay, value));
      recording.assigned.push_back(std::move(each));
    }
    std::vector<LazyNode*> pointers;
    for (const LazyNodePtr& node : nodes) pointers.push_back(node.get());
    std::vector<LazyNodePtr> values;
    recording.graph = replay->engine.graphOf(pointers, &values);
    const std::vector<ir::ValueId>& made = recording.graph.results();
    const auto first = made.begin() + static_cast<ptrdiff_t>(recording.returned);
    auto next = first;
    for (Assigned& each : recording.assigned)
      if (!each.from) each.result = std::find(first, made.end(), *next++) - made.begin();
    for (LazyNodePtr& value : values) {
      Input input;
      if (const auto argument = argumentOf.find(value.get()); argument != argumentOf.end()) {
        input.kind = Input::Kind::Argument;
        input.index = argument->second;
      } else if (const auto number = recorder->numberOf(value.get())) {
        input.kind = Input::Kind::HostNumber;
        input.index = *number;
      } else if (input.tensor = recorder->tensorOf(value.get()); input.tensor) {
        input.kind = Input::Kind::Stored;
        input.assigned = recorder->assigns(*input.tensor);
        recording.types.erase(*input.tensor);  // bind() looks at it
      }
      input.value = std::move(value);
      recording.inputs.push_back(std::move(input));
    }
    return recording;
  }

  // What `now` records otherwise than `before`, or "". Throws if a number does.
  static std::string compare(const Recording& now, const Recording& before) {
    std::string difference = plans::firstDifference(now.graph, before.graph);
    if (!difference.empty()) return difference;
    for (size_t i = 0; i < now.inputs.size(); ++i) {
      difference = inputDifference(now, before, i);
      const bool number = now.graph.parameters()[i].number;
      FL_USER_CHECK(difference.empty() || !number || now.inputs[i].kind != Input::Kind::Constant,
                    "fl::compile: ", difference,
                    "\nA number that changes is an argument, a tensor of one element, or made by "
                    "fl::hostNumber.");
      if (!difference.empty()) return difference;
    }
    return now.returned == before.returned && now.assigned == before.assigned
               ? ""
               : "it assigns to other tensors";
  }

  // Makes the plan of the latest recording.
  static void prepare(Replay* replay) {
    const Recording& recording = replay->recording;
    PlanDump::Numbers numbers;
    for (const Input& input : recording.inputs) numbers.push_back(input.value->number());
    replay->plan = replay->engine.makePlan(recording.graph, numbers);
    replay->recorded = 0;  // of another one, should this come to an end
    replay->buffers.assign(numbers.size(), nullptr);
    replay->numbers.assign(numbers.size(), Number());
    replay->hostNumbers.assign(recording.numbers.size(), Number());
    for (size_t i = 0; i < numbers.size(); ++i)
      if (const Input& input = recording.inputs[i]; input.kind == Input::Kind::Constant)
        setInput(replay, i, input.value);
  }

  static void setInput(Replay* replay, size_t i, const TensorValue& value) {
    const Number* number = value->number();
    replay->numbers[i] = number ? *number : Number();
    replay->buffers[i] = number ? nullptr : value->data();
  }

  // ---- Replaying ----

  // Takes the arguments, and makes sure of the stored tensors. False if one of these is gone or of
  // another type than it was, if a view is one no more, or if one that the function knows has
  // another value.
  static bool bind(Replay* replay, TensorList arguments) {
    for (size_t i = 0; i < replay->recording.inputs.size(); ++i) {
      const Input& input = replay->recording.inputs[i];
      if (input.kind == Input::Kind::Argument) {
        replay->buffers[i] = arguments[input.index]->value()->data();
      } else if (input.kind == Input::Kind::Stored) {
        const TensorValue value = input.tensor->value();
        const ir::Parameter& parameter = replay->recording.graph.parameters()[i];
        if (!value || !(value->valueType() == parameter.type) ||
            (value->number() != nullptr) != parameter.number)
          return false;
        value->data();  // computes it
      }
    }
    const auto isSame = [](const auto& known) {
      return known.first.exists() && known.first.value() == known.second.value.lock();
    };
    const auto hasType = [](const auto& each) { return each.first.type() == each.second; };
    const auto hasViews = [](const auto& each) { return each.first.views() == each.second; };
    return std::ranges::all_of(replay->recording.assigned, &Assigned::exists) &&
           std::ranges::all_of(replay->recording.known, isSame) &&
           std::ranges::all_of(replay->recording.types, hasType) &&
           std::ranges::all_of(replay->recording.views, hasViews);
  }

  static TensorValue resultOf(const Replay& replay, runtime::LoadedSchedule::Outputs* outputs,
                              size_t i) {
    const ir::Graph& graph = replay.recording.graph;
    return std::make_shared<LazyNode>(replay.backend, replay.engine, graph.type(graph.results()[i]),
                                      std::move((*outputs)[i]));
  }

  static std::vector<Tensor> replayTimes(Replay* replay, int64_t times) {
    const Recording& recording = replay->recording;
    runtime::LoadedSchedule::Outputs outputs;
    for (; times > 0; --times) {
      // Handed over when this ends: the next run takes the place of what a tensor alone holds.
      std::vector<TensorValue> before, made(recording.graph.results().size());
      for (const Assigned& each : recording.assigned)
        before.push_back(each.from ? each.from->value() : nullptr);
      outputs = runOnce(replay);
      for (size_t i = 0; i < before.size(); ++i) {
        const auto& [tensor, rebinds, from, result] = recording.assigned[i];
        TensorValue& value = from ? before[i] : made[result];
        if (!value) value = resultOf(*replay, &outputs, result);
        tensor.assign(value);
      }
    }
    letGo(replay, Input::Kind::Argument);
    std::vector<Tensor> results;
    for (size_t i = 0; i < recording.returned; ++i)
      results.emplace_back(resultOf(*replay, &outputs, i));
    return results;
  }

  static runtime::LoadedSchedule::Outputs runOnce(Replay* replay) {
    const Recording& recording = replay->recording;
    for (size_t i = 0; i < recording.numbers.size(); ++i) {
      const HostNumber& number = recording.numbers[i];
      replay->hostNumbers[i] =
          number.next ? number.next() : replay->hostNumbers[number.from].cast(number.type);
    }
    absl::InlinedVector<bool, 64> spare(recording.inputs.size(), false);
    for (int parameter : replay->plan->reusable()) {
      // Whose place the result takes.
      const Input& input = recording.inputs[parameter];
      spare[parameter] = input.assigned && input.tensor->ownsData();
    }
    for (size_t i = 0; i < recording.inputs.size(); ++i) {
      const Input& input = recording.inputs[i];
      if (input.kind == Input::Kind::HostNumber) {
        replay->numbers[i] = replay->hostNumbers[input.index];
      } else if (input.kind == Input::Kind::Stored) {
        setInput(replay, i, input.tensor->value());
      }
    }
    const absl::Cleanup after = [=] { letGo(replay, Input::Kind::Stored); };
    try {
      return replay->plan->run(replay->buffers, replay->numbers, spare);
    } catch (const OutOfMemory& lack) {
      throw OutOfMemory(lack.what() + plans::describeNeed(replay->plan->schedule()));
    } catch (const ir::IndexOutOfRange& error) {
      const ir::Node& node =
          *std::ranges::find(recording.graph.nodes(), error.origin, &ir::Node::origin);
      throw std::invalid_argument(
          describeBadIndex(error, node.site, recording.graph.type(node.operands[0]), node.attrs));
    }
  }

  // Of buffers, whose tensors may then give them to the next run.
  static void letGo(Replay* replay, Input::Kind kind) {
    for (size_t i = 0; i < replay->buffers.size(); ++i)
      if (replay->recording.inputs[i].kind == kind) replay->buffers[i] = nullptr;
  }

  const Function function_;
  const CallSite site_ = currentCallSite();  // of fl::compile
  // By what a plan depends on beside the function.
  WordCache<std::unique_ptr<Replay>> replays_{kMostPlans};
};

CompiledFunction::CompiledFunction(Function function)
    : calls_(std::make_shared<Calls>(std::move(function))) {}

std::vector<Tensor> CompiledFunction::run(int64_t times, TensorList arguments) {
  return calls_->run(times, arguments);
}

size_t CompiledFunction::plans() const { return calls_->plans(); }

}  // namespace fl::lazy
