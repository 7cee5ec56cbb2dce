#include "tools/FitInputs.h"

#include <algorithm>
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

// Calls visit(start, size, stride, dimension) for each dimension of the box of a slice or update.
template <typename Visit>
void forEachStart(const ir::Graph& graph, const ir::Node& node, Visit&& visit) {
  const bool slices = node.op == ir::Op::Slice;
  const Shape& sizes = slices ? node.type.shape : graph.type(node.operands[1]).shape;
  const int rank = sizes.ndim();
  for (int i = 0; i < rank; ++i) {
    visit(node.operands[(slices ? 1 : 2) + i], sizes[i], node.attrs[1 + (slices ? rank : 0) + i],
          i);
  }
}

bool hasBox(ir::Op op) { return op == ir::Op::Slice || op == ir::Op::Update; }

// A box begins at 0, or where one that runs backwards reaches 0.
void fitBox(const ir::Graph& graph, const ir::Node& node, const std::vector<bool>& drawn,
            std::vector<NpyArray>* inputs) {
  forEachStart(graph, node, [&](ir::ValueId start, Dim size, Dim stride, int) {
    if (graph.isParameter(start) && drawn[start]) {
      setStart(&(*inputs)[start], stride < 0 ? std::max<Dim>(size - 1, 0) * -stride : 0);
    }
  });
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

// Calls visit(step, launch, operand) for every buffer of a launch whose first element numbers
// decide.
template <typename Visit>
void forEachBox(const ir::Schedule& schedule, Visit&& visit) {
  for (size_t step = 0; step < schedule.steps.size(); ++step) {
    const auto* launch = std::get_if<Launch>(&schedule.steps[step]);
    for (size_t i = 0; launch && i < launch->operands.size(); ++i) {
      if (launch->operands[i].buffer && !launch->operands[i].offset.terms.empty()) {
        visit(step, *launch, i);
      }
    }
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
void fitBox(const ir::Schedule& schedule, const Launch& launch, size_t operand,
            const std::vector<bool>& drawn, std::vector<NpyArray>* inputs) {
  const std::vector<Number> numbers = numbersOf(schedule, *inputs);
  const ir::LaunchOperand& binding = launch.operands[operand];
  Dim missing = -touchedElements(binding, launch.extents, numbers).begin;
  std::vector<ir::ElementOffset::Term> terms = binding.offset.terms;
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
    if (hasBox(node.op)) {
      fitBox(graph, node, drawn, inputs);
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
  const auto startAt0 = [&](const ir::ElementOffset& offset) {
    for (const ir::ElementOffset::Term& term : offset.terms) {
      if (drawn[term.parameter]) setStart(&(*inputs)[term.parameter], 0);
    }
  };
  for (const ir::Step& step : schedule.steps) {
    if (const auto* call = std::get_if<ir::LibraryStep>(&step)) {
      for (const ir::BufferPlace& operand : call->operands) startAt0(operand.offset);
    }
  }
  forEachBox(schedule,
             [&](size_t, const Launch& launch, size_t i) { startAt0(launch.operands[i].offset); });
  forEachBox(schedule, [&](size_t, const Launch& launch, size_t i) {
    fitBox(schedule, launch, i, drawn, inputs);
  });
  for (const ir::Step& step : schedule.steps) {
    if (const auto* launch = std::get_if<Launch>(&step)) {
      fitGathers(schedule, *launch, drawn, inputs);
      continue;
    }
    const auto& call = std::get<ir::LibraryStep>(step);
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
    if (!hasBox(node.op)) continue;
    const Shape& shape = graph.type(node.operands[0]).shape;
    forEachStart(graph, node, [&](ir::ValueId start, Dim size, Dim stride, int dimension) {
      FL_USER_CHECK(graph.isParameter(start) && graph.parameters()[start].number,
                    ir::opName(node.op), " %", i,
                    ": its starts have to be parameters that are numbers");
      const Dim first = numberOf(inputs[start]).toInt(), extent = shape[dimension];
      const Dim reach = stride * (size - 1);  // no more than the extent
      const bool fits =
          first >= std::max<Dim>(0, -reach) && first < extent - std::max<Dim>(0, reach);
      FL_USER_CHECK(fits || node.type.shape.elements() == 0 || size == 0, "the number given as p",
                    start, ", ", first, ", lets ", ir::opName(node.op), " %", i,
                    " reach out of the ", extent, " elements of dimension ", dimension);
    });
  }
}

void checkBoxes(const ir::Schedule& schedule, const std::vector<NpyArray>& inputs) {
  const std::vector<Number> numbers = numbersOf(schedule, inputs);
  forEachBox(schedule, [&](size_t step, const Launch& launch, size_t i) {
    const ir::LaunchOperand& binding = launch.operands[i];
    const ir::ElementRange range = touchedElements(binding, launch.extents, numbers);
    const dtype type = schedule.kernels[launch.kernel].operands[i].type;
    const Dim count = bufferElements(schedule, *binding.buffer, type);
    FL_USER_CHECK(range.begin == range.end || (range.begin >= 0 && range.end <= count),
                  "the numbers given make step ", step, " touch elements ", range.begin, " to ",
                  range.end - 1, " of ", count);
  });
}

}  // namespace fl::tools
