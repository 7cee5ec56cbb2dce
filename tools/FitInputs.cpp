#include "tools/FitInputs.h"

#include <algorithm>
#include <limits>
#include <optional>

#include "fl/base/Error.h"
#include "tools/Values.h"

namespace fl::tools {
namespace {

void setStart(NpyArray* input, Dim start) {
  *input = arrayOf(Number::fromSigned(start, dtype::s64));
}

// Drawn integers are not negative.
void wrapIndices(NpyArray* input, Dim bound) {
  if (!isFloating(input->type) && bound > 0) {
    *input = mapped(*input, [&](const Number& index) {
      return Number::fromSigned(index.toInt() % bound, input->type);
    });
  }
}

bool takesIndices(ir::Op op) {
  return op == ir::Op::Gather || op == ir::Op::Scatter || op == ir::Op::ScatterAdd;
}

// A slice or an update of `shape` whose starts are operands.
struct Box {
  const Shape& shape;
  const Shape& sizes;
  std::vector<Dim> strides;
  std::vector<int> starts;  // the parameter that is each one's number, -1 where there is none
};

// parameterOf(k) is the parameter that operand k is, if that is a number.
template <typename TypeOf, typename ParameterOf>
std::optional<Box> boxOf(ir::Op op, const ir::Attrs& attrs, const ir::ValueType& result,
                         TypeOf&& typeOf, ParameterOf&& parameterOf) {
  const bool slices = op == ir::Op::Slice;
  if (!slices && op != ir::Op::Update) return std::nullopt;
  const Shape& sizes = slices ? result.shape : typeOf(1).shape;
  const int rank = sizes.ndim();
  if (slices && ir::statesStarts(attrs, rank)) return std::nullopt;
  Box box{typeOf(0).shape, sizes, attrs.list(1 + (slices ? rank : 0)), {}};
  for (int i = 0; i < rank; ++i) box.starts.push_back(parameterOf((slices ? 1 : 2) + i));
  return box;
}

std::optional<Box> boxOf(const ir::Graph& graph, const ir::Node& node) {
  return boxOf(
      node.op, node.attrs, node.type,
      [&](int k) -> const ir::ValueType& { return graph.type(node.operands[k]); },
      [&](int k) { return graph.isNumber(node.operands[k]) ? node.operands[k] : -1; });
}

std::optional<Box> boxOf(const ir::Schedule& schedule, const ir::LibraryStep& call) {
  return boxOf(
      call.op, call.attrs, call.resultType,
      [&](int k) -> const ir::ValueType& { return call.operandTypes[k]; },
      [&](int k) {
        const ir::BufferRef& ref = call.operands[k].buffer;
        const bool isNumber =
            ref.space == ir::BufferRef::Space::Parameter && schedule.parameters[ref.index].number;
        return isNumber ? ref.index : -1;
      });
}

// A box begins at 0, or where one that runs backwards reaches 0.
void fitBox(const Box& box, const std::vector<bool>& drawn, std::vector<NpyArray>* inputs) {
  for (size_t i = 0; i < box.starts.size(); ++i) {
    if (box.starts[i] >= 0 && drawn[box.starts[i]]) {
      const Dim reach = std::max<Dim>(box.sizes[i] - 1, 0) * box.strides[i];
      setStart(&(*inputs)[box.starts[i]], std::max<Dim>(-reach, 0));
    }
  }
}

// `name` is how errors call the operator.
void checkBox(const Box& box, const std::string& name, const std::vector<NpyArray>& inputs) {
  for (size_t i = 0; i < box.starts.size(); ++i) {
    const int start = box.starts[i];
    FL_USER_CHECK(start >= 0, name, ": its starts have to be parameters that are numbers");
    const Dim first = numberOf(inputs[start]).toInt(), extent = box.shape[i];
    const Dim reach = box.strides[i] * (box.sizes[i] - 1);  // no more than the extent
    const bool fits = first >= std::max<Dim>(0, -reach) && first < extent - std::max<Dim>(0, reach);
    FL_USER_CHECK(fits || box.sizes.elements() == 0, "the number given as p", start, ", ", first,
                  ", lets ", name, " reach out of the ", extent, " elements of dimension ", i);
  }
}

// The parameter whose elements a value has, under another index or dtype.
std::optional<ir::ValueId> sourceOf(const ir::Graph& graph, ir::ValueId id) {
  while (!graph.isParameter(id)) {
    const ir::Node& node = graph.node(id);
    if (ir::opKind(node.op) != ir::Kind::View && node.op != ir::Op::Cast) {
      return std::nullopt;
    }
    id = node.operands[0];
  }
  return id;
}

using Launch = ir::LaunchStep;

// Calls visit(step, operand, extents, type) for every buffer of a launch whose first element
// numbers decide, and for those of calls, which are as operands of launches that take elements in
// order.
template <typename Visit>
void forEachPlace(const ir::Schedule& schedule, Visit&& visit) {
  for (size_t step = 0; step < schedule.steps.size(); ++step) {
    if (const auto* launch = std::get_if<Launch>(&schedule.steps[step])) {
      for (size_t i = 0; i < launch->operands.size(); ++i) {
        const ir::LaunchOperand& operand = launch->operands[i];
        if (operand.buffer && !operand.offset.terms.empty()) {
          visit(step, operand, launch->extents, schedule.kernels[launch->kernel].operands[i].type);
        }
      }
      continue;
    }
    const auto& call = std::get<ir::LibraryStep>(schedule.steps[step]);
    const auto see = [&](const ir::BufferPlace& place, const ir::ValueType& type) {
      if (!place.offset.terms.empty()) {
        visit(step, ir::LaunchOperand{place.buffer, place.offset, {1}}, {type.shape.elements()},
              type.type);
      }
    };
    for (size_t i = 0; i < call.operands.size(); ++i) see(call.operands[i], call.operandTypes[i]);
    see(call.result, call.resultType);
  }
}

std::vector<Number> numbersOf(const ir::Schedule& schedule, const std::vector<NpyArray>& inputs) {
  std::vector<Number> numbers(inputs.size());
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (schedule.parameters[i].number) {
      numbers[i] = numberOf(inputs[i]);
    }
  }
  return numbers;
}

// An axis that runs backwards is taken back by the start with the largest factor that does not go
// too far.
void fitPlace(const ir::Schedule& schedule, const ir::LaunchOperand& operand,
              const std::vector<Dim>& extents, const std::vector<bool>& drawn,
              std::vector<NpyArray>* inputs) {
  const std::vector<Number> numbers = numbersOf(schedule, *inputs);
  const Dim begin = touchedElements(operand, extents, numbers).begin;
  Dim missing = begin < -std::numeric_limits<Dim>::max() ? 0 : -begin;
  std::vector<ir::ElementOffset::Term> terms = operand.offset.terms;
  std::sort(terms.begin(), terms.end(),
            [](const auto& a, const auto& b) { return a.factor > b.factor; });
  for (const ir::ElementOffset::Term& term : terms) {
    if (drawn[term.parameter] && term.factor > 0 && missing >= term.factor) {
      setStart(&(*inputs)[term.parameter], numbers[term.parameter].toInt() + missing / term.factor);
      missing %= term.factor;
    }
  }
}

// The operand of a launch that a value of its kernel loads, perhaps in another dtype.
const ir::LaunchOperand* loadedOperand(const ir::Kernel& kernel, const Launch& launch, int value) {
  const ir::KernelValue* source = &kernel.values[value];
  while (source->form == ir::KernelValue::Form::Apply && source->op == ir::Op::Cast) {
    source = &kernel.values[source->args[0]];
  }
  return source->form == ir::KernelValue::Form::Load ? &launch.operands[source->index] : nullptr;
}

void fitGathers(const ir::Schedule& schedule, const Launch& launch, const std::vector<bool>& drawn,
                std::vector<NpyArray>* inputs) {
  const ir::Kernel& kernel = schedule.kernels[launch.kernel];
  for (const ir::KernelValue& value : kernel.values) {
    if (value.form != ir::KernelValue::Form::Gather) {
      continue;
    }
    const ir::LaunchOperand* index = loadedOperand(kernel, launch, value.args[1]);
    const ir::LaunchOperand* bound = loadedOperand(kernel, launch, value.args[2]);
    if (index && bound && !bound->buffer && index->buffer &&
        index->buffer->space == ir::BufferRef::Space::Parameter && drawn[index->buffer->index]) {
      wrapIndices(&(*inputs)[index->buffer->index], bound->offset.constant);
    }
  }
}

}  // namespace

void fitInputs(const ir::Graph& graph, const std::vector<bool>& drawn,
               std::vector<NpyArray>* inputs) {
  for (const ir::Node& node : graph.nodes()) {
    if (const std::optional<Box> box = boxOf(graph, node)) {
      fitBox(*box, drawn, inputs);
    } else if (takesIndices(node.op)) {
      const std::optional<ir::ValueId> source = sourceOf(graph, node.operands[1]);
      if (source && drawn[*source]) {
        wrapIndices(&(*inputs)[*source], graph.type(node.operands[0]).shape[node.attrs[0]]);
      }
    }
  }
}

void fitInputs(const ir::Schedule& schedule, const std::vector<bool>& drawn,
               std::vector<NpyArray>* inputs) {
  forEachPlace(schedule,
               [&](size_t, const ir::LaunchOperand& operand, const std::vector<Dim>&, dtype) {
                 for (const ir::ElementOffset::Term& term : operand.offset.terms) {
                   if (drawn[term.parameter]) setStart(&(*inputs)[term.parameter], 0);
                 }
               });
  forEachPlace(schedule,
               [&](size_t, const ir::LaunchOperand& operand, const std::vector<Dim>& extents,
                   dtype) { fitPlace(schedule, operand, extents, drawn, inputs); });
  for (const ir::Step& step : schedule.steps) {
    if (const auto* launch = std::get_if<Launch>(&step)) {
      fitGathers(schedule, *launch, drawn, inputs);
      continue;
    }
    const auto& call = std::get<ir::LibraryStep>(step);
    if (const std::optional<Box> box = boxOf(schedule, call)) fitBox(*box, drawn, inputs);
    if (!takesIndices(call.op)) continue;
    const ir::BufferRef& indices = call.operands[1].buffer;
    if (indices.space == ir::BufferRef::Space::Parameter && drawn[indices.index]) {
      wrapIndices(&(*inputs)[indices.index], call.operandTypes[0].shape[call.attrs[0]]);
    }
  }
}

void checkBoxes(const ir::Graph& graph, const std::vector<NpyArray>& inputs) {
  for (size_t i = 0; i < graph.nodes().size(); ++i) {
    const ir::Node& node = graph.nodes()[i];
    if (const std::optional<Box> box = boxOf(graph, node)) {
      checkBox(*box, detail::concat(ir::opName(node.op), " %", i), inputs);
    }
  }
}

void checkBoxes(const ir::Schedule& schedule, const std::vector<NpyArray>& inputs) {
  for (size_t step = 0; step < schedule.steps.size(); ++step) {
    const auto* call = std::get_if<ir::LibraryStep>(&schedule.steps[step]);
    const std::optional<Box> box = call ? boxOf(schedule, *call) : std::nullopt;
    if (box) checkBox(*box, detail::concat("step ", step), inputs);
  }
  const std::vector<Number> numbers = numbersOf(schedule, inputs);
  forEachPlace(schedule, [&](size_t step, const ir::LaunchOperand& operand,
                             const std::vector<Dim>& extents, dtype type) {
    const ir::ElementRange range = touchedElements(operand, extents, numbers);
    const Dim count = bufferElements(schedule, *operand.buffer, type);
    FL_USER_CHECK(range.begin == range.end || (range.begin >= 0 && range.end <= count),
                  "the numbers given make step ", step, " touch elements ", range.begin, " to ",
                  range.end - 1, " of ", count);
  });
}

}  // namespace fl::tools
