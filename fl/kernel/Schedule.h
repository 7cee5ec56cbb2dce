// The schedule: what the compiler makes of a graph and the executor runs. Kernels, the steps that
// launch them or call a library, and the buffers they use with lifetimes and offsets. Text form in
// ScheduleText.cpp.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "fl/ir/Graph.h"
#include "fl/ir/Text.h"
#include "fl/kernel/Kernel.h"

namespace fl::ir {

// A buffer: a parameter's, an output's own allocation, or an interval of an arena.
struct BufferRef {
  enum class Space : uint8_t { Parameter, Output, Temporary };
  Space space = Space::Parameter;
  int index = 0;
  auto operator<=>(const BufferRef&) const = default;
};

// An element offset that may depend on numbers (a slice's starts): constant + sum(number * factor).
struct ElementOffset {
  struct Term {
    int parameter;
    Dim factor;
    bool operator==(const Term&) const = default;
  };
  Dim constant = 0;
  std::vector<Term> terms;
  bool operator==(const ElementOffset&) const = default;
};

struct LaunchOperand {
  std::optional<BufferRef> buffer;  // none for an Index operand
  ElementOffset offset;
  std::vector<Dim> strides;  // [rank]
  bool operator==(const LaunchOperand&) const = default;
};

// In place of Node::origin, of a lookup that finds no bad index.
constexpr int kInside = -2;

struct LaunchStep {
  int kernel = 0;
  std::vector<Dim> extents;  // [rank]
  std::vector<LaunchOperand> operands;
  std::vector<int> numbers;  // parameters, one a scalar of the kernel
  CallSite site;
  std::vector<int> gathers;  // Node::origin or kInside, one a Gather; not part of the text
  // The node of the compiled graph that each value of the kernel was made for; not part of the
  // text, and empty if it was read from one.
  std::vector<ValueId> nodes;
  // Runs on each part of the result of the library call before it as soon as that is made.
  bool epilogue = false;
  int scratch = -1;  // as LibraryStep::scratch
};

// Where a call finds or leaves a value: its elements in order, from one of a buffer's on.
struct BufferPlace {
  BufferRef buffer;
  ElementOffset offset = {};
  bool operator==(const BufferPlace&) const = default;
};

struct LibraryStep {
  Op op = Op::Matmul;
  Attrs attrs;
  std::vector<ValueType> operandTypes;
  ValueType resultType;
  std::vector<BufferPlace> operands;
  BufferPlace result;
  CallSite site;
  int origin = -1;    // Node::origin or kInside
  ValueId node = -1;  // as LaunchStep::nodes
  // The temporary that it works in beside its operands and results, where the device asks for one,
  // and in which nobody finds a value; -1 for none.
  int scratch = -1;
};

using Step = std::variant<LaunchStep, LibraryStep>;
inline int scratchOf(const Step& step) {
  return std::visit([](const auto& s) { return s.scratch; }, step);
}

// Steps first..last (inclusive) use it; `offset` is its place in the arena. In what is given to the
// pass `pack`, it may have to be the place of an earlier temporary, with which it lives. One that
// is on the host lies in an arena there, and only library steps of reshape use it: they move values
// there and back.
struct Temporary {
  size_t bytes = 0;
  int first = 0;
  int last = 0;
  size_t offset = 0;
  int shares = -1;  // that one; -1 for none
  bool onHost = false;
  bool operator==(const Temporary&) const = default;
};

// A result of the plan: written by steps into an allocation of its own, or over a parameter's
// elements, or the same elements as another buffer (a reshape), which it then shares.
struct ScheduleOutput {
  ValueType type;
  bool shared = false;
  BufferRef source;  // if shared: a Parameter or an Output that is not shared
  // The parameter whose elements it has before the first step, so that steps need only write what
  // changes; -1 if there is none. A run may write it in that parameter's own buffer.
  int over = -1;
};

// What planning asks of a device.
struct Schedule;
using ScratchBytes = std::function<size_t(const Schedule& schedule, int step)>;
struct DeviceTraits {
  ScratchBytes scratchBytes = {};  // that a step wants of scratch memory; none if this is empty
  // How many bytes it moves in its memory while it moves one to the host or back; 0 if its memory
  // is the host's.
  double bytesAMove = 0;
};

struct Schedule {
  std::vector<Parameter> parameters;
  std::vector<ScheduleOutput> outputs;
  std::vector<Temporary> temporaries;
  std::vector<Kernel> kernels;
  std::vector<Step> steps;
  size_t arenaBytes = 0;
  size_t arenaBound = 0;      // most bytes of temporaries live at one step
  size_t recordedBound = 0;   // the same in the order of recording
  size_t unplannedBytes = 0;  // of all temporaries, each in memory of its own
  int recomputed = 0;         // steps that run again, rather than that their results are kept
  size_t budget = 0;          // the arena may take no more, unless it is 0; not part of the text
  bool trimAll = false;       // keeps nothing that it can compute again; not part of the text
  DeviceTraits device = {};   // that it is for; not part of the text
};

// Whether a call moves a value from the device's memory to the host or back.
inline bool isMove(const Schedule& schedule, const LibraryStep& call) {
  const auto isOnHost = [&](const BufferRef& ref) {
    return ref.space == BufferRef::Space::Temporary &&
           ref.index < static_cast<int>(schedule.temporaries.size()) &&
           schedule.temporaries[ref.index].onHost;
  };
  return call.op == Op::Reshape && call.operands.size() == 1 &&
         isOnHost(call.operands[0].buffer) != isOnHost(call.result.buffer);
}

struct StepBuffers {
  absl::InlinedVector<BufferRef, 4> reads, writes;
};
// What a step reads and writes, its scratch memory last; numbers and index operands are no buffers.
StepBuffers stepBuffers(const Schedule& schedule, const Step& step);

// A step's operator, or the last one of its kernel, in words; and the line that recorded it.
const char* stepName(const Schedule& schedule, const Step& step);
inline const CallSite& stepSite(const Step& step) {
  return std::visit([](const auto& s) -> const CallSite& { return s.site; }, step);
}

// Bytes that a step reads and writes: each operand once, and of tables what is looked up.
size_t stepBytes(const Schedule& schedule, const Step& step);

// How far the places of neighbours along each axis of a launch are apart (KernelArgs), in the
// column-major order of what the kernel was made for.
std::vector<int64_t> placesOf(const Kernel& kernel, const LaunchStep& launch);

// The elements of its buffer that an operand of a launch touches, from the lowest to behind the
// highest, for values of the numbers that its offset depends on (by parameter); the same twice if
// it touches none.
struct ElementRange {
  Dim begin;
  Dim end;
};
ElementRange touchedElements(const LaunchOperand& operand, const std::vector<Dim>& extents,
                             const std::vector<Number>& numbers);
// Whether a launch may be the epilogue of a call: it takes every element of the call's result once,
// in order, and writes none but in its place; writes nothing that the call reads, and finds no bad
// index.
bool fitsAsEpilogue(const Schedule& schedule, const LaunchStep& launch, const LibraryStep& call);
// How many elements of `type` a buffer has.
Dim bufferElements(const Schedule& schedule, const BufferRef& ref, dtype type);

// Throws InternalError unless steps use defined buffers of the right types, in range (where no
// number decides it) and in their lifetimes, read nothing before it is written, and write every
// output; and unless epilogues follow calls that they fit, whose operands and scratch memory
// outlive them.
void verifySteps(const Schedule& schedule);
// The same, and that temporaries which live together do not overlap.
void verify(const Schedule& schedule);

std::string printSchedule(const Schedule& schedule, const std::string& name,
                          const PrintOptions& options = {});
// Throws ParseError.
Schedule parseSchedule(const std::string& text);

}  // namespace fl::ir
