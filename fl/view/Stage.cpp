#include "fl/view/Stage.h"

#include <map>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "fl/base/Error.h"
#include "fl/base/Text.h"
#include "fl/ir/Text.h"
#include "fl/runtime/StepLabel.h"
#include "fl/runtime/cpu/LaunchShape.h"

namespace fl::view {
namespace {

using absl::StrCat;

std::vector<absl::string_view> linesOf(const std::string& text) {
  return absl::StrSplit(text, '\n');
}

bool definesItem(const std::string& form, absl::string_view line) {
  line = absl::StripLeadingAsciiWhitespace(line);
  return form == "graph" ? absl::StartsWith(line, "%")
                         : absl::StartsWith(line, "launch ") || absl::StartsWith(line, "library ");
}

// The comments behind nodes or steps, each on a line of its own as it is printed.
std::vector<std::string> commentsBehind(const std::string& form, const std::string& text) {
  std::vector<std::string> comments;
  constexpr absl::string_view kComment = "  // ";
  for (absl::string_view line : linesOf(text)) {
    if (definesItem(form, line)) {
      const size_t found = line.find(kComment);
      comments.emplace_back(found == line.npos ? "" : line.substr(found + kComment.size()));
    }
  }
  return comments;
}

void setLines(const std::string& text, size_t parameters, Stage* stage) {
  const std::vector<std::string> comments = commentsBehind(stage->form, text);
  // Those written by hand may have several on a line.
  if (comments.size() + parameters != stage->items.size()) return;
  for (size_t i = 0; i < comments.size(); ++i) stage->items[parameters + i].line = comments[i];
}

// Of "exp%9 sum%8". Throws ParseError for what names no node.
void addGroup(const std::string& text, absl::string_view nodes, size_t parameters, Stage* stage) {
  for (absl::string_view node : absl::StrSplit(nodes, ' ')) {
    size_t index = 0;
    if (!absl::SimpleAtoi(node.substr(node.find('%') + 1), &index) ||
        parameters + index >= stage->items.size()) {
      Lexer(text).failAt(node.data() - text.data(), StrCat("\"", node, "\" is no node"));
    }
    stage->items[parameters + index].group = static_cast<int>(stage->groups.size());
  }
  stage->groups.emplace_back();
}

// "// fuse space=(10, 32) reduced=[0]: exp%9 sum%8; again: iota%3", and costs on a line behind it.
void readGroups(const std::string& text, size_t parameters, Stage* stage) {
  using Halves = std::pair<absl::string_view, absl::string_view>;
  for (absl::string_view line : linesOf(text)) {
    if (absl::ConsumePrefix(&line, "// fuse space=")) {
      const Halves halves = absl::StrSplit(line, absl::MaxSplits("]: ", 1));
      const Halves nodes = absl::StrSplit(halves.second, absl::MaxSplits("; again: ", 1));
      addGroup(text, nodes.first, parameters, stage);
      stage->groups.back() = {.title = StrCat("space=", halves.first, "]"),
                              .again = std::string(nodes.second)};
    } else if (absl::ConsumePrefix(&line, "//   ") && !stage->groups.empty()) {
      stage->groups.back().cost = std::string(line);
    }
  }
}

Item parameterItem(const std::string& name, const ir::Parameter& parameter) {
  const ir::ValueType& type = parameter.type;
  return {.name = name,
          .op = parameter.number ? "number" : "parameter",
          .type = type.toString(),
          .bytes = bytesOf(type.type, type.shape),
          .parameter = true};
}

bool isLibrary(ir::Op op) {
  const ir::Kind kind = ir::opKind(op);
  return kind == ir::Kind::Contract || kind == ir::Kind::Library;
}

Stage graphStage(const std::string& text) {
  const ir::Graph graph = ir::parseGraph(text);
  Stage stage{.form = "graph"};
  for (const ir::Parameter& parameter : graph.parameters())
    stage.items.push_back(parameterItem(StrCat("%p", stage.items.size()), parameter));
  const size_t parameters = stage.items.size();
  for (const ir::Node& node : graph.nodes()) {
    stage.items.push_back({.name = StrCat("%", stage.items.size() - parameters),
                           .op = ir::opName(node.op),
                           .attrs = ir::printAttrs(node.op, node.attrs),
                           .type = node.type.toString(),
                           .bytes = bytesOf(node.type.type, node.type.shape),
                           .operands = node.operands,
                           .library = isLibrary(node.op)});
  }
  stage.results = graph.results();
  setLines(text, parameters, &stage);
  readGroups(text, parameters, &stage);
  return stage;
}

std::string nameOf(const ir::BufferRef& ref) {
  const char spaces[] = {'p', 'o', 't'};
  return StrCat(std::string(1, spaces[static_cast<int>(ref.space)]), ref.index);
}

std::string describeBuffer(const ir::Schedule& schedule, const ir::BufferRef& ref) {
  using Space = ir::BufferRef::Space;
  if (ref.space != Space::Temporary) {
    return StrCat(nameOf(ref), " ",
                  ref.space == Space::Parameter ? schedule.parameters[ref.index].type.toString()
                                                : schedule.outputs[ref.index].type.toString());
  }
  const ir::Temporary& buffer = schedule.temporaries[ref.index];
  return StrCat(nameOf(ref), " of ", buffer.bytes, " bytes ",
                buffer.onHost ? "on the host at " : "at ", buffer.offset, ", steps ", buffer.first,
                " to ", buffer.last);
}

std::string describeBuffers(const ir::Schedule& schedule, const ir::Step& step) {
  const ir::StepBuffers buffers = ir::stepBuffers(schedule, step);
  const ir::BufferRef scratch{ir::BufferRef::Space::Temporary, ir::scratchOf(step)};
  std::string text;
  for (const ir::BufferRef& ref : buffers.reads)
    absl::StrAppend(&text, "reads ", describeBuffer(schedule, ref), "\n");
  for (const ir::BufferRef& ref : buffers.writes) {
    absl::StrAppend(&text, ref == scratch ? "works in " : "writes ", describeBuffer(schedule, ref),
                    "\n");
  }
  return text;
}

Item stepItem(const ir::Schedule& schedule, const ir::Step& step) {
  Item item{.bytes = ir::stepBytes(schedule, step)};
  if (const auto* launch = std::get_if<ir::LaunchStep>(&step)) {
    item.op = runtime::kernelLabel(schedule.kernels[launch->kernel]);
    item.kernel = launch->kernel;
    item.stores = runtime::cpu::chooseStores(schedule, *launch);
    item.attrs =
        StrCat(" extents=", listToString(launch->extents), launch->epilogue ? " epilogue" : "");
  } else {
    const auto& call = std::get<ir::LibraryStep>(step);
    item.op = ir::opName(call.op);
    item.attrs = ir::printAttrs(call.op, call.attrs);
    item.type = call.resultType.toString();
    item.library = true;
  }
  return item;
}

Stage scheduleStage(const std::string& text) {
  Stage stage{.form = "schedule", .schedule = ir::parseSchedule(text)};
  const ir::Schedule& schedule = *stage.schedule;
  // The items that made what a buffer has, perhaps in parts: those since it was last read.
  struct Writers {
    std::vector<int> items;
    bool isRead = false;
  };
  std::map<ir::BufferRef, Writers> writers;
  for (const ir::Parameter& parameter : schedule.parameters) {
    const int index = static_cast<int>(stage.items.size());
    writers[{ir::BufferRef::Space::Parameter, index}].items = {index};
    stage.items.push_back(parameterItem(StrCat("p", index), parameter));
  }
  const size_t parameters = stage.items.size();
  for (const ir::Step& step : schedule.steps) {
    Item item = stepItem(schedule, step);
    const ir::StepBuffers buffers = ir::stepBuffers(schedule, step);
    item.name = StrCat("s", stage.items.size() - parameters);
    item.buffers = describeBuffers(schedule, step);
    for (const ir::BufferRef& ref : buffers.reads) {
      Writers& of = writers[ref];
      item.operands.insert(item.operands.end(), of.items.begin(), of.items.end());
      of.isRead = true;
    }
    const auto number = static_cast<int>(stage.items.size());
    for (const ir::BufferRef& ref : buffers.writes) {
      Writers& of = writers[ref];
      if (of.isRead) of = {};
      if (of.items.empty() || of.items.back() != number) of.items.push_back(number);
    }
    stage.items.push_back(std::move(item));
  }
  for (size_t i = 0; i < schedule.outputs.size(); ++i) {
    const auto& made = writers[{ir::BufferRef::Space::Output, static_cast<int>(i)}].items;
    stage.results.insert(stage.results.end(), made.begin(), made.end());
  }
  setLines(text, parameters, &stage);
  return stage;
}

Item valueItem(const ir::KernelValue& value) {
  using Form = ir::KernelValue::Form;
  Item item{.type = dtypeToString(value.type), .operands = value.args};
  switch (value.form) {
    case Form::Load:
      item.op = StrCat("load ", value.index);
      break;
    case Form::Scalar:
      item.op = StrCat("scalar ", value.index);
      break;
    case Form::Apply:
      item.op = ir::opName(value.op);
      break;
    case Form::Gather:
      item.op = StrCat("gather ", value.index);
      break;
    case Form::Total:
      item.op = StrCat("total ", value.index);
      break;
  }
  return item;
}

}  // namespace

bool saysTheSame(const Stage& x, const Stage& y) {
  const bool areSchedules = x.schedule && y.schedule;
  return x.form == y.form && x.items == y.items && x.groups == y.groups &&
         (!areSchedules || x.schedule->kernels == y.schedule->kernels);
}

std::vector<Item> kernelItems(const ir::Kernel& kernel) {
  std::vector<Item> items;
  for (const ir::KernelValue& value : kernel.values) {
    items.push_back(valueItem(value));
    items.back().name = StrCat("%", items.size() - 1);
  }
  for (const ir::KernelStage& stage : kernel.stages) {
    for (const ir::KernelStage::Reduce& reduce : stage.reduces) {
      for (size_t i = 0; i < items.size(); ++i) {
        const ir::KernelValue& value = kernel.values[i];
        if (value.form == ir::KernelValue::Form::Total && value.index == reduce.index) {
          items[i].op = StrCat("total ", ir::opName(reduce.op));
          items[i].operands.push_back(reduce.value);
        }
      }
    }
    for (const ir::KernelStage::Store& store : stage.stores) {
      absl::StrAppend(&items[store.value].attrs, " store ", store.operand);
    }
  }
  return items;
}

Stage readStage(const std::string& text) {
  const std::string form = Lexer(text).peek();
  if (form == "schedule") {
    return scheduleStage(text);
  }
  if (form == "kernel") {
    return {.form = form, .items = kernelItems(ir::parseKernel(text))};
  }
  return graphStage(text);
}

}  // namespace fl::view
