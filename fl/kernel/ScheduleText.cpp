// Text of schedules:
//
//   schedule @s arena=4096 bound=4096 recorded=8192 unplanned=16384 {
//     parameter f32[4,8]
//     parameter number f32
//     output f32[8]
//     output f32[4,2] shares p0
//     output f32[4,8] over p0
//     temporary bytes=128 first=0 last=1 offset=0
//     temporary bytes=128 first=1 last=2 offset=0 host
//     kernel rank=1 reduced=[] { ... }
//     launch 0 extents=[32] operands(p0+0+1*p1[1], 5[1], t0+0[1]) numbers=[1]
//     library matmul (p0: f32[4,8], t0: f32[8,4]) -> o0: f32[4,4]
//   }
//
// An operand of a launch is a buffer, the element it begins at, and strides; an Index operand (5[1]
// above) has no buffer. One of a call begins at the buffer's first element unless it says another
// one, as in t0+0+8*p1: f32[8,4]. A step may say in which temporary it works: scratch t1.
#include <cctype>
#include <limits>

#include "fl/base/Text.h"
#include "fl/ir/Text.h"
#include "fl/kernel/Schedule.h"

namespace fl::ir {
namespace {

std::string printRef(const BufferRef& ref) {
  static const char kSpaces[] = {'p', 'o', 't'};
  return kSpaces[static_cast<int>(ref.space)] + std::to_string(ref.index);
}

BufferRef parseRef(Lexer& lexer) {
  const char space = lexer.peek().empty() ? ' ' : lexer.peek()[0];
  BufferRef ref;
  ref.space = space == 'p'   ? BufferRef::Space::Parameter
              : space == 'o' ? BufferRef::Space::Output
                             : BufferRef::Space::Temporary;
  const char prefix = space == 'p' || space == 'o' ? space : 't';
  ref.index = lexer.takeNumbered(prefix, "a buffer (p, o or t and a number)");
  return ref;
}

std::string printScratch(int scratch) {
  return scratch < 0 ? "" : " scratch t" + std::to_string(scratch);
}

int parseScratch(Lexer& lexer) {
  return lexer.accept("scratch") ? lexer.takeNumbered('t', "a temporary (t and its index)") : -1;
}

std::string printParameter(const Parameter& parameter) {
  return "  parameter " +
         (parameter.number ? "number " + dtypeToString(parameter.type.type)
                           : parameter.type.toString()) +
         "\n";
}

std::string printOffset(const ElementOffset& offset) {
  std::string text = std::to_string(offset.constant);
  for (const ElementOffset::Term& term : offset.terms)
    text += "+" + std::to_string(term.factor) + "*p" + std::to_string(term.parameter);
  return text;
}

ElementOffset parseOffset(Lexer& lexer) {
  ElementOffset offset{lexer.takeInteger(), {}};
  while (lexer.accept("+")) {
    const Dim factor = lexer.takeInteger();
    lexer.expect("*");
    offset.terms.push_back({lexer.takeNumbered('p', "a number (p and its index)"), factor});
  }
  return offset;
}

std::string printLaunchOperand(const LaunchOperand& operand) {
  return (operand.buffer ? printRef(*operand.buffer) + "+" : "") + printOffset(operand.offset) +
         listToString(operand.strides);
}

LaunchOperand parseLaunchOperand(Lexer& lexer) {
  LaunchOperand operand;
  if (std::isalpha(static_cast<unsigned char>(lexer.peek().c_str()[0]))) {
    operand.buffer = parseRef(lexer);
    lexer.expect("+");
  }
  operand.offset = parseOffset(lexer);
  operand.strides = lexer.takeList();
  return operand;
}

std::string printStep(const LaunchStep& launch) {
  std::string text = "  launch " + std::to_string(launch.kernel) +
                     " extents=" + listToString(launch.extents) + " operands(";
  for (size_t i = 0; i < launch.operands.size(); ++i)
    text += (i ? ", " : "") + printLaunchOperand(launch.operands[i]);
  return text + ") numbers=" +
         listToString(std::vector<Dim>(launch.numbers.begin(), launch.numbers.end())) +
         printScratch(launch.scratch) + (launch.epilogue ? " epilogue" : "");
}

LaunchStep parseLaunch(Lexer& lexer) {
  LaunchStep launch;
  launch.kernel = lexer.takeIndex();
  launch.extents = lexer.takeListField("extents");
  lexer.expect("operands");
  lexer.expect("(");
  while (!lexer.accept(")")) {
    launch.operands.push_back(parseLaunchOperand(lexer));
    lexer.accept(",");
  }
  const size_t position = lexer.position();
  for (Dim number : lexer.takeListField("numbers")) {
    if (number < 0 || number > std::numeric_limits<int>::max())
      lexer.failAt(position, std::to_string(number) + " is no parameter");
    launch.numbers.push_back(static_cast<int>(number));
  }
  launch.scratch = parseScratch(lexer);
  launch.epilogue = lexer.accept("epilogue");
  return launch;
}

std::string printPlace(const BufferPlace& place, const ValueType& type) {
  return printRef(place.buffer) +
         (place.offset == ElementOffset() ? "" : "+" + printOffset(place.offset)) + ": " +
         type.toString();
}

std::string printStep(const LibraryStep& call) {
  std::string text =
      std::string("  library ") + opName(call.op) + printAttrs(call.op, call.attrs) + " (";
  for (size_t i = 0; i < call.operands.size(); ++i)
    text += (i ? ", " : "") + printPlace(call.operands[i], call.operandTypes[i]);
  return text + ") -> " + printPlace(call.result, call.resultType) + printScratch(call.scratch);
}

void parsePlace(Lexer& lexer, BufferPlace* place, ValueType* type) {
  place->buffer = parseRef(lexer);
  if (lexer.accept("+")) place->offset = parseOffset(lexer);
  lexer.expect(":");
  lexer.takeType(&type->type, &type->shape);
}

LibraryStep parseLibrary(Lexer& lexer) {
  LibraryStep call;
  const size_t position = lexer.position();
  const std::string name = lexer.takeName("an op");
  if (!findOp(name, &call.op)) lexer.failAt(position, "\"" + name + "\" is no op");
  call.attrs = parseAttrs(lexer, call.op);
  lexer.expect("(");
  while (!lexer.accept(")")) {
    call.operands.emplace_back();
    call.operandTypes.emplace_back();
    parsePlace(lexer, &call.operands.back(), &call.operandTypes.back());
    lexer.accept(",");
  }
  lexer.expect("-");
  lexer.expect(">");
  parsePlace(lexer, &call.result, &call.resultType);
  call.scratch = parseScratch(lexer);
  return call;
}

ScheduleOutput parseOutput(Lexer& lexer) {
  ScheduleOutput output;
  lexer.takeType(&output.type.type, &output.type.shape);
  output.shared = lexer.accept("shares");
  if (output.shared) {
    output.source = parseRef(lexer);
  } else if (lexer.accept("over")) {
    output.over = lexer.takeNumbered('p', "a parameter (p and its index)");
  }
  return output;
}

Parameter parseParameter(Lexer& lexer) {
  Parameter parameter;
  parameter.number = lexer.accept("number");
  if (parameter.number) {
    parameter.type.type = lexer.takeDtype();
  } else {
    lexer.takeType(&parameter.type.type, &parameter.type.shape);
  }
  return parameter;
}

Temporary parseTemporary(Lexer& lexer, size_t earlier) {
  Temporary temporary;
  temporary.bytes = lexer.takeSizeField("bytes");
  const size_t position = lexer.position();
  const int64_t first = lexer.takeField("first"), last = lexer.takeField("last");
  if (first < 0 || last < first || last >= std::numeric_limits<int>::max())
    lexer.failAt(position, "first and last are no steps in order");
  temporary.first = static_cast<int>(first);
  temporary.last = static_cast<int>(last);
  temporary.offset = lexer.takeSizeField("offset");
  if (lexer.peek() == "shares") {
    const size_t other = lexer.takeSizeField("shares");
    if (other >= earlier) lexer.failAt(position, "it shares the memory of no earlier temporary");
    temporary.shares = static_cast<int>(other);
  }
  temporary.onHost = lexer.accept("host");
  return temporary;
}

void parseEntry(Lexer& lexer, Schedule* schedule) {
  if (lexer.accept("parameter")) {
    schedule->parameters.push_back(parseParameter(lexer));
  } else if (lexer.accept("output")) {
    schedule->outputs.push_back(parseOutput(lexer));
  } else if (lexer.accept("temporary")) {
    schedule->temporaries.push_back(parseTemporary(lexer, schedule->temporaries.size()));
  } else if (lexer.accept("kernel")) {
    lexer.takeSigil('@', "the kernel's name");
    schedule->kernels.push_back(parseKernel(lexer));
  } else if (lexer.accept("launch")) {
    schedule->steps.push_back(parseLaunch(lexer));
  } else {
    lexer.expect("library");
    schedule->steps.push_back(parseLibrary(lexer));
  }
}

}  // namespace

std::string printSchedule(const Schedule& schedule, const std::string& name,
                          const PrintOptions& options) {
  std::string text = "schedule @" + name + " arena=" + std::to_string(schedule.arenaBytes) +
                     " bound=" + std::to_string(schedule.arenaBound);
  if (schedule.unplannedBytes > 0) {
    text += " recorded=" + std::to_string(schedule.recordedBound) +
            " unplanned=" + std::to_string(schedule.unplannedBytes);
  }
  if (schedule.recomputed > 0) text += " recomputed=" + std::to_string(schedule.recomputed);
  text += " {\n";
  for (const Parameter& parameter : schedule.parameters) text += printParameter(parameter);
  for (const ScheduleOutput& output : schedule.outputs) {
    text += "  output " + output.type.toString() +
            (output.shared ? " shares " + printRef(output.source) : "") +
            (output.over >= 0 ? " over p" + std::to_string(output.over) : "") + "\n";
  }
  for (const Temporary& t : schedule.temporaries) {
    text += "  temporary bytes=" + std::to_string(t.bytes) + " first=" + std::to_string(t.first) +
            " last=" + std::to_string(t.last) + " offset=" + std::to_string(t.offset) +
            (t.shares >= 0 ? " shares=" + std::to_string(t.shares) : "") +
            (t.onHost ? " host" : "") + "\n";
  }
  for (size_t i = 0; i < schedule.kernels.size(); ++i)
    text += printKernel(schedule.kernels[i], "k" + std::to_string(i));
  for (const Step& step : schedule.steps) {
    const std::string site = options.callSites ? stepSite(step).toString() : "";
    text += std::visit([](const auto& s) { return printStep(s); }, step) +
            (site.empty() ? "" : "  // " + site) + "\n";
  }
  return text + "}\n";
}

Schedule parseSchedule(const std::string& text) {
  Lexer lexer(text);
  Schedule schedule;
  lexer.expect("schedule");
  lexer.takeSigil('@', "the schedule's name");
  schedule.arenaBytes = lexer.takeSizeField("arena");
  schedule.arenaBound = lexer.takeSizeField("bound");
  if (lexer.peek() == "recorded") {
    schedule.recordedBound = lexer.takeSizeField("recorded");
    schedule.unplannedBytes = lexer.takeSizeField("unplanned");
  }
  if (lexer.peek() == "recomputed")
    schedule.recomputed = static_cast<int>(lexer.takeSizeField("recomputed"));
  lexer.expect("{");
  while (!lexer.accept("}")) parseEntry(lexer, &schedule);
  if (!lexer.atEnd()) lexer.fail("expected the end");
  verifySteps(schedule);
  for (Step& step : schedule.steps) {
    if (auto* launch = std::get_if<LaunchStep>(&step))
      launch->gathers.assign(schedule.kernels[launch->kernel].gatherCount(), -1);
  }
  return schedule;
}

}  // namespace fl::ir
