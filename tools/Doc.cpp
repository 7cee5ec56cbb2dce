#include "tools/Doc.h"

#include <iostream>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "fl/base/Error.h"
#include "fl/codegen/Compilation.h"
#include "fl/ir/Op.h"
#include "tools/Arguments.h"

namespace fl::tools {
namespace {

struct KindText {
  ir::Kind kind;
  const char* title;
};

constexpr KindText kKinds[] = {
    {ir::Kind::Source, "Source: made of attributes alone"},
    {ir::Kind::Random, "Random: the same bits on every device, fused or not"},
    {ir::Kind::Unary, "Unary: elementwise, of one operand"},
    {ir::Kind::Binary, "Binary: elementwise, of two operands of one dtype"},
    {ir::Kind::Select, "Select: elementwise, by a condition"},
    {ir::Kind::Cast, "Cast: elementwise, to another dtype"},
    {ir::Kind::View, "View: the same elements under another index"},
    {ir::Kind::Index, "Index: elements at places that data gives"},
    {ir::Kind::Join, "Join: of several operands, side by side"},
    {ir::Kind::Update, "Update: a new value that differs in some places"},
    {ir::Kind::Reduce, "Reduce: over axes, in one order for all executors"},
    {ir::Kind::Scan, "Scan: along one axis"},
    {ir::Kind::Order, "Order: by size along one axis"},
    {ir::Kind::Contract, "Contract: sums of products"},
    {ir::Kind::Library, "Library: by a library, or by a definition in the operators above"},
};

// Empty for what is no elementwise function.
std::string meaning(ir::Op op) {
  static constexpr const char* kMeanings[] = {
#define FL_OP(Name, name, Kind, meaning, ...) #meaning,
#include "fl/ir/Ops.def"
#undef FL_OP
  };
  const std::string text = kMeanings[static_cast<int>(op)];
  return text == "FL_NONE" ? "" : text;
}

// A cell's |, which would end it.
std::string cell(const std::string& text) {
  std::string result;
  for (const char c : text) {
    result += c == '|' ? "\\|" : std::string(1, c);
  }
  return result;
}

std::string code(const std::string& text) { return text.empty() ? "" : "`" + cell(text) + "`"; }

const char* typesOf(const ir::OpInfo& info) {
  return info.types == ir::Types::Float     ? "floating"
         : info.types == ir::Types::Integer ? "integers, b8"
                                            : "all";
}

std::string rowOf(const ir::OpInfo& info) {
  std::ostringstream row;
  row << "| `" << info.name << "` | " << code(info.attrs) << " | " << typesOf(info)
      << (info.result == ir::Result::Bool ? " to b8" : "") << " | ";
  if (info.ulp > 0) {
    row << info.ulp;
  }
  const std::string formula = code(meaning(info.op));
  row << " | " << formula << (formula.empty() || *info.doc == '\0' ? "" : "; ") << cell(info.doc)
      << " |\n";
  return row.str();
}

std::string ops() {
  std::string text =
      R"(Operators of the IR, from `fl/ir/Ops.def`: the name stands in `.flir` text, with the attributes in
order (`*` takes the rest, `?` may be left out and is 0 then). `x`, `y` and `z` are the operands, `b`
is the builder with which every executor expands a meaning. The error is that of f32, in ulp; none
stands where a result is exact.
)";
  for (const KindText& kind : kKinds) {
    text += std::string("\n## ") + kind.title +
            "\n\n| operator | attributes | dtypes | ulp | meaning |\n|---|---|---|--:|---|\n";
    for (int op = 0; op < ir::kOpCount; ++op) {
      const ir::OpInfo& info = ir::opInfo(static_cast<ir::Op>(op));
      if (info.kind == kind.kind) {
        text += rowOf(info);
      }
    }
  }
  return text;
}

std::string passes() {
  std::string text =
      R"(Passes of the compiler in their order, from `fl/codegen/Pipeline.def`. The stage is what a pass
changes: the graph, what fuses, or the schedule of kernels and calls.

| | pass | stage | why here |
|--:|---|---|---|
)";
  int number = 0;
  for (const codegen::PassInfo& pass : codegen::passes()) {
    text += "| " + std::to_string(++number) + " | `" + pass.name + "` | " + pass.stage + " | " +
            cell(pass.why) + " |\n";
  }
  return text;
}

std::string flagRow(const char* env, const char* initial, const std::string& values,
                    const char* doc) {
  return std::string("| `") + env + "` | " + code(initial) + " | " +
         (values == "number" ? values : code(values)) + " | " + cell(doc) + " |\n";
}

std::string flagTable() {
  std::string text =
      R"(Environment variables, from `fl/base/Flags.def`, read when one of them is needed first. A value that
a variable cannot have is an error.

| variable | default | values | |
|---|---|---|---|
)";
#define FL_FLAG(member, env, initial, values, doc) text += flagRow(env, initial, values, doc);
#include "fl/base/Flags.def"
#undef FL_FLAG
  return text;
}

struct Page {
  const char* name;
  const char* title;
  std::string (*make)();
};
constexpr Page kPages[] = {
    {"ops", "Operators", ops}, {"passes", "Passes", passes}, {"flags", "Flags", flagTable}};

}  // namespace

int runDoc(int argc, char** argv) {
  const std::vector<char*> arguments = parseArguments(
      "fl doc ops|passes|flags\n\nPrints a page of docs/ that a table of the source makes.",
      __FILE__, {}, argc, argv);
  FL_USER_CHECK(arguments.size() == 2, "doc: expected one of ops, passes and flags");
  for (const Page& page : kPages) {
    if (std::string(arguments[1]) == page.name) {
      std::cout << "# " << page.title << "\n\nMade by `fl doc " << page.name
                << "`; do not edit.\n\n"
                << page.make();
      return 0;
    }
  }
  throw std::invalid_argument(
      detail::concat("doc: \"", arguments[1], "\" is not ops, passes or flags"));
}

}  // namespace fl::tools
