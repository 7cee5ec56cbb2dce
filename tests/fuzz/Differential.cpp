#include "tests/fuzz/Differential.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <optional>
#include <sstream>
#include <stdexcept>
#include <string_view>
#include <type_traits>

#include "fl/base/Flags.h"
#include "fl/eager/EagerBackend.h"
#include "fl/host/ThreadPool.h"
#include "fl/lazy/LazyBackend.h"
#include "fl/runtime/Counters.h"
#include "tests/CountingBackend.h"
#include "tests/FlagScope.h"
#include "tests/fuzz/RandomProgram.h"

namespace fl::testing {
namespace {

// The lazy backend under each mode of its compiler, side by side in one process.
std::unique_ptr<TensorBackend> makeLazy(const std::string& jit, const std::string& device) {
  flags().jit = jit;
  return makeLazyBackend(device);
}
const BackendRegistration compiled("compiled", [](const std::string& device) {
  return makeLazy("sync", device);
});
// Runs without the passes that choose other library calls than the program's.
const BackendRegistration literal("literal", [](const std::string& device) {
  return makeLazy("sync", device);
});
// Computes again what it can, which the others do of large values alone.
const BackendRegistration trimmed("trimmed", [](const std::string& device) {
  return makeLazy("off", device);
});
// Reads within budgets.
const BackendRegistration budgeted("budgeted", [](const std::string& device) {
  return makeLazy("off", device);
});
// Plans nothing as a whole.
const BackendRegistration alone("alone",
                                [](const std::string& device) { return makeLazy("off", device); });
// Plans what it has seen before, as by default.
const BackendRegistration repeated("repeated", [](const std::string& device) {
  return makeLazy("off", device);
});
const BackendRegistration interpreted("interpreted", [](const std::string& device) {
  return makeLazy("off", device);
});

// The first operand's, or that of the result where there is none. Results that are arguments are
// no operands.
template <typename First, typename... Rest>
dtype countedType(First& first, Rest&... rest) {
  if constexpr (std::is_same_v<First, const Tensor>) {
    return first.type();
  } else if constexpr (std::is_same_v<std::remove_const_t<First>, dtype>) {
    return first;
  } else {
    return countedType(rest...);
  }
}

consteval int calledComposite(std::string_view name) {
  return ir::kOpCount + static_cast<int>(std::ranges::find(kComposites, name) - kComposites);
}

// The eager backend, counting what it is asked for by op or Composite, and dtype.
class CountingBackend : public ForwardingBackend {
 public:
  explicit CountingBackend(std::unique_ptr<TensorBackend> inner)
      : ForwardingBackend(*inner), inner_(std::move(inner)) {}

  TensorValue apply(ir::Op op, std::vector<TensorValue> operands, const ir::Attrs& attrs,
                    ir::ValueType type) override {
    const bool select = ir::opKind(op) == ir::Kind::Select;
    const dtype typed = operands.empty() ? type.type : operands[select ? 1 : 0]->type();
    ++callCounts()[static_cast<int>(op)][static_cast<int>(typed)];
    return ForwardingBackend::apply(op, std::move(operands), attrs, std::move(type));
  }
#define FL_COUNTED_Composite(Result, name, parameters, arguments)     \
  Result name parameters override {                                   \
    constexpr int kCalled = calledComposite(#name #arguments);        \
    ++callCounts()[kCalled][static_cast<int>(countedType arguments)]; \
    return TensorBackend::name arguments;                             \
  }
#define FL_COUNTED_Primitive(Result, name, parameters, arguments)
#define FL_COUNTED_Library(Result, name, parameters, arguments)
#define FL_FUNCTION(Kind, Result, name, parameters, arguments) \
  FL_COUNTED_##Kind(Result, name, parameters, arguments)
#include "fl/tensor/Functions.def"

 private:
  const std::unique_ptr<TensorBackend> inner_;
};
const BackendRegistration counting("counting", [](const std::string& device) {
  return std::make_unique<CountingBackend>(makeEagerBackend(device));
});

struct Mode {
  const char* backend;
  const char* device;
  int threads;
  bool poison = false;
};
constexpr Mode kExpected = {"counting", "cpu", 1};
constexpr Mode kSameBits[] = {
    {"eager", "cpu", 2},       {"compiled", "cpu", 1},      {"compiled", "cpu", 2},
    {"interpreted", "cpu", 1}, {"interpreted", "cpu", 2},   {"compiled", "cpu", 1, true},
    {"trimmed", "cpu", 1},     {"trimmed", "cpu", 2, true},
};
constexpr Mode kLiteral = {"literal", "cpu", 2};
constexpr Mode kAlone = {"alone", "cpu", 2};        // each operator
constexpr Mode kRepeated = {"repeated", "cpu", 2};  // or what comes again together
constexpr Mode kBudgeted = {"budgeted", "cpu", 1};
constexpr Mode kReference = {"eager", "ref", 1};

std::string nameOf(const Mode& mode) {
  return std::string(mode.backend) + " on " + mode.device + ", " + std::to_string(mode.threads) +
         (mode.threads == 1 ? " thread" : " threads") + (mode.poison ? ", poisoned memory" : "");
}

struct Run {
  std::vector<HostValue> values;
  std::string text;
  bool tame;
  std::string failure;  // what it threw
};

Run execute(const Mode& mode, const ProgramOptions& options) {
  if (host::getNumThreads() != mode.threads) {
    host::setNumThreads(mode.threads);
  }
  const std::string_view backend = mode.backend;
  const FlagScope poison(&Flags::poison, mode.poison ? "1" : "0");
  const FlagScope trim(&Flags::trim, backend == "trimmed" ? "all" : "on");
  const FlagScope skip(&Flags::skip, backend == kLiteral.backend ? "layout,library" : "");
  const FlagScope plan(&Flags::plan, backend == kAlone.backend      ? "none"
                                     : backend == kRepeated.backend ? "repeated"
                                                                    : "all");
  const BackendScope scope(mode.backend, mode.device);
  RandomProgram program(options);
  Run run;
  try {
    run.values = program.run();
  } catch (const std::exception& error) {
    run.failure = error.what();
  }
  run.text = program.text();
  run.tame = program.tame();
  return run;
}

Number elementAt(const HostValue& value, size_t index) {
  const size_t size = getTypeSize(value.type);
  uint64_t bits = 0;
  std::memcpy(&bits, &value.bytes[index * size], size);
  return Number(value.type, bits);
}

// Of which type and shape a value is, where it should be of another.
std::string typeDifference(const HostValue& actual, const HostValue& expected) {
  return actual.type == expected.type && actual.shape == expected.shape
             ? ""
             : "is " + typeToString(actual.type, actual.shape) + ", not " +
                   typeToString(expected.type, expected.shape);
}

// Whether x may stand for y, an element of `expected`: where that is not exact, as far as errors
// explain, and always as zero of either sign, since of equal zeros the order in which amin() and
// amax() compare chooses. NaN stands for NaN and, where errors have no bound, for infinity: zero,
// and what is next to it, divided by zero.
bool isNear(double x, double y, const HostValue& expected) {
  const bool areNone = std::isinf(expected.error) && !std::isfinite(x) && !std::isfinite(y);
  return x == y || (!expected.exact && (areNone || std::fabs(x - y) <= 2 * expected.error));
}

}  // namespace

std::string difference(const HostValue& actual, const HostValue& expected, bool near) {
  std::string type = typeDifference(actual, expected);
  if (!type.empty()) {
    return type;
  }
  if (actual.bytes == expected.bytes) {
    return "";
  }
  if (actual.bytes.size() != expected.bytes.size()) {
    return "is \"" + actual.bytes + "\", not \"" + expected.bytes + "\"";
  }
  const size_t count = expected.bytes.size() / getTypeSize(expected.type);
  for (size_t i = 0; i < count; ++i) {
    const Number a = elementAt(actual, i), e = elementAt(expected, i);
    const double x = a.toDouble(), y = e.toDouble();
    const bool equal = a.bits() == e.bits() || (std::isnan(x) && std::isnan(y));
    if (equal || (near && isNear(x, y, expected))) {
      continue;
    }
    std::ostringstream os;
    os.precision(17);
    os << "element " << i << " of " << typeToString(actual.type, actual.shape) << " is " << x
       << ", not " << y;
    if (near) {
      os << (expected.exact ? " (exact)" : " (bound " + std::to_string(expected.error) + ")");
    }
    return os.str();
  }
  return "";
}

namespace {

// Of a program that is not tame nobody knows how far its values may be apart, but for exact ones.
bool isHeld(const Run& run, const HostValue& value) { return run.tame || value.exact; }

std::string difference(const Run& actual, const Run& expected, bool near) {
  if (!actual.failure.empty() || !expected.failure.empty()) {
    return "threw \"" + actual.failure + "\", expected \"" + expected.failure + "\"";
  }
  if (actual.values.size() != expected.values.size()) {
    return "read another number of values";
  }
  for (size_t i = 0; i < expected.values.size(); ++i) {
    const HostValue &value = actual.values[i], &wanted = expected.values[i];
    const std::string text = near && !isHeld(expected, wanted) ? typeDifference(value, wanted)
                                                               : difference(value, wanted, near);
    if (!text.empty()) {
      return wanted.name + ": " + text;
    }
  }
  return "";
}

// The same program on the reference device, with bounds of errors where they hold.
Run executeReference(const Run& run, ProgramOptions options) {
  options.measure = run.tame;
  return execute(kReference, options);
}

std::string holdToReference(const Run& run, const ProgramOptions& options) {
  const Run reference = executeReference(run, options);
  heldCounts().add(reference.values, reference.tame);
  const std::string wrong = difference(run, reference, true);
  return wrong.empty() ? "" : "against the reference: " + wrong + "\n" + run.text;
}

// True if the compiler may choose other library calls for the program than the ones it asks for:
// channels-last convolutions, products that read their operands transposed.
bool callsMayChange(const Run& run) {
  return run.text.find("conv2d") != std::string::npos ||
         run.text.find("matmul") != std::string::npos;
}

}  // namespace

std::string checkProgram(uint64_t seed, const Cut& cut) {
  runtime::Counters& counters = runtime::counters();
  for (uint64_t variant = 0; variant < 2; ++variant) {
    const ProgramOptions options{seed, variant, false, cut};
    const Run expected = execute(kExpected, options);
    if (!expected.failure.empty()) {
      return "threw " + expected.failure + "\n" + expected.text;
    }
    const Mode& other = callsMayChange(expected) ? kLiteral : kRepeated;
    for (const Mode& mode : {kAlone, other}) {
      const Run actual = execute(mode, options);
      const std::string wrong = difference(actual, expected, false);
      if (!wrong.empty()) {
        return nameOf(mode) + ", variant " + std::to_string(variant) + ": " + wrong + "\n" +
               actual.text;
      }
    }
    // The first lazy run of a program whose calls may change; all others have its bits.
    std::optional<Run> changed;
    for (const Mode& mode : kSameBits) {
      const uint64_t fallbacks = counters.fallbacks, plans = counters.plansBuilt;
      const Run actual = execute(mode, options);
      std::string wrong = difference(actual, changed ? *changed : expected, false);
      const bool mayChange = callsMayChange(expected) && std::string(mode.backend) != "eager";
      if (mayChange && !changed) {
        if (!wrong.empty()) {
          wrong = difference(actual, executeReference(expected, options), true);
        }
        changed = actual;
      }
      if (flags().fault.empty() && counters.fallbacks != fallbacks) {
        wrong += " a region ran unfused";
      }
      if ((variant > 0 || mode.threads > 1 || mode.poison) && counters.plansBuilt != plans) {
        wrong += " a plan was built anew";
      }
      if (!wrong.empty()) {
        return nameOf(mode) + ", variant " + std::to_string(variant) + ": " + wrong + "\n" +
               actual.text;
      }
    }
    if (variant == 0) {
      const uint64_t recomputed = counters.stepsRecomputed;
      const Run actual = execute(kBudgeted, {seed, variant, false, cut, /*budgets=*/true});
      heldCounts().withinBudget += counters.stepsRecomputed != recomputed;
      const std::string wrong = difference(actual, changed ? *changed : expected, false);
      if (!wrong.empty()) {
        return "within budgets: " + wrong + "\n" + actual.text;
      }
      const std::string far = holdToReference(expected, options);
      if (!far.empty()) {
        return far;
      }
    }
  }
  return "";
}

std::optional<std::string> compareWithReference(uint64_t seed, const char* backend) {
  const Run reference = execute(kReference, {seed, 0, true, {}});
  if (!reference.tame) {
    return std::nullopt;
  }
  const Run actual = execute({backend, "cpu", 1}, {seed, 0, false, {}});
  const std::string wrong = difference(actual, reference, true);
  return wrong.empty() ? "" : wrong + "\n" + actual.text;
}

std::string comparePoisoned(uint64_t seed) {
  for (Mode mode : {Mode{"eager", "cpu", 2}, {"compiled", "cpu", 2}, {"trimmed", "cpu", 1}}) {
    const Run plain = execute(mode, {seed});
    mode.poison = true;
    const Run poisoned = execute(mode, {seed});
    std::string wrong = difference(poisoned, plain, false);
    for (size_t i = 0; wrong.empty() && i < plain.values.size(); ++i) {
      if (poisoned.values[i].bytes != plain.values[i].bytes) wrong = plain.values[i].name + ": NaN";
    }
    if (!wrong.empty()) return nameOf(mode) + ": " + wrong + "\n" + poisoned.text;
  }
  return "";
}

Cut shrinkProgram(uint64_t seed) {
  Cut cut{1, {}};
  while (cut.statements < kMostStatements && checkProgram(seed, cut).empty()) {
    ++cut.statements;
  }
  for (int number = cut.statements - 2; number >= 0; --number) {
    Cut less = cut;
    less.without.insert(number);
    if (!checkProgram(seed, less).empty()) {
      cut = less;
    }
  }
  return cut;
}

void dumpProgram(uint64_t seed, const Cut& cut, const std::string& folder) {
  const std::string before = flags().dump;
  flags().dump = folder;
  {
    const BackendRegistration dumped(
        "dumped " + folder, [](const std::string& device) { return makeLazy("sync", device); });
    execute({("dumped " + folder).c_str(), "cpu", 1}, {seed, 0, false, cut});
  }
  flags().dump = before;
}

void HeldCounts::add(const std::vector<HostValue>& values, bool tame) {
  ++(tame ? programs : wild);
  for (const HostValue& value : values) {
    if (tame) {
      ++(value.exact ? exact : std::isfinite(value.error) ? bounded : unbounded);
    } else {
      ++(value.exact ? wildExact : wildTyped);
    }
  }
}

HeldCounts& heldCounts() {
  static auto& counts = *new HeldCounts();
  return counts;
}

CallCounts& callCounts() {
  static auto& counts = *new CallCounts();
  return counts;
}

std::string calledName(int called) {
  return called < ir::kOpCount ? ir::opName(static_cast<ir::Op>(called))
                               : kComposites[called - ir::kOpCount];
}

std::string describe(const CallCounts& calls) {
  std::ostringstream os;
  for (int called = 0; called < kCalledCount; ++called) {
    os << calledName(called) << ":";
    for (int type = 0; type < kDtypeCount; ++type) {
      if (calls[called][type] > 0) {
        os << " " << dtypeToString(static_cast<dtype>(type)) << " " << calls[called][type];
      }
    }
    os << "\n";
  }
  return os.str();
}

namespace {

bool isOf(ir::Types types, dtype type) {
  return types == ir::Types::All || isFloating(type) == (types == ir::Types::Float);
}

// False for what no function of the API asks a backend for.
bool isMeant(ir::Op op, dtype type) {
  const bool small = type == dtype::b8 || getTypeSize(type) < 4;
  switch (op) {
    case ir::Op::Iota:
      return !(isFloating(type) && small);  // counts of 16-bit floats are made in f32
    case ir::Op::Random:
      return type == dtype::u64;  // its seed's; other dtypes are made of its words
    case ir::Op::Sum:
    case ir::Op::Cumsum:
      return isFloating(type) ? op == ir::Op::Cumsum || !small
                              : !small;  // sums are made in 32 bits
    default:
      return isOf(ir::opInfo(op).types, type);
  }
}

// False if it refuses the dtype.
bool isDefined(int composite, dtype type) {
  const BackendScope scope("eager", "cpu");
  try {
    callComposite(composite, {{full({3, 3, 3}, 1, type)}, {3}, type});
    return true;
  } catch (const std::invalid_argument&) {
    return false;
  }
}

bool isCallable(int called, dtype type) {
  return called < ir::kOpCount ? isMeant(static_cast<ir::Op>(called), type)
                               : isDefined(called - ir::kOpCount, type);
}

}  // namespace

std::vector<std::string> thinCells(const CallCounts& calls, uint64_t fewest) {
  std::vector<std::string> thin;
  for (int called = 0; called < kCalledCount; ++called) {
    for (int i = 0; i < kDtypeCount; ++i) {
      const auto type = static_cast<dtype>(i);
      if (calls[called][i] < fewest && isCallable(called, type)) {
        thin.push_back(calledName(called) + " " + dtypeToString(type) + " " +
                       std::to_string(calls[called][i]));
      }
    }
  }
  return thin;
}

}  // namespace fl::testing
