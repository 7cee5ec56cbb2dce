#include "tools/Dot.h"

#include "absl/strings/str_cat.h"

namespace fl::tools {
namespace {

using absl::StrAppend;
using absl::StrCat;

std::string quoted(const std::string& text) {
  std::string result = "\"";
  for (char c : text) {
    if (c == '"' || c == '\\') result += '\\';
    result += c;
  }
  return result + "\"";
}

// A node of its own name, which `prefix` keeps apart from those of other kernels.
std::string printItem(const std::string& prefix, const view::Item& item) {
  const std::string label = StrCat(item.name, " ", item.op, item.attrs, "\n", item.type);
  return StrCat("  ", quoted(prefix + item.name), " [label=", quoted(label),
                item.parameter ? ", style=rounded" : "",
                item.line.empty() ? "" : ", tooltip=" + quoted(item.line), "];\n");
}

std::string printEdges(const std::string& prefix, const std::vector<view::Item>& items) {
  std::string text;
  for (const view::Item& item : items) {
    for (int operand : item.operands) {
      StrAppend(&text, "  ", quoted(prefix + items[operand].name), " -> ",
                quoted(prefix + item.name), ";\n");
    }
  }
  return text;
}

std::string printGroups(const view::Stage& stage) {
  std::vector<std::string> members(stage.groups.size());
  for (const view::Item& item : stage.items)
    if (item.group >= 0) members[item.group] += printItem("", item);
  std::string text;
  for (size_t i = 0; i < stage.groups.size(); ++i) {
    StrAppend(&text, "  subgraph cluster_", i, " {\n  label=", quoted(stage.groups[i].title), ";\n",
              members[i], "  }\n");
  }
  return text;
}

// The step itself is a node in the cluster, at which edges to other steps end.
std::string printLaunch(const view::Stage& stage, const view::Item& item) {
  const std::string prefix = item.name + ".";
  const std::vector<view::Item> body = view::kernelItems(stage.schedule->kernels[item.kernel]);
  std::string text = StrCat("  subgraph cluster_", item.name, " {\n  label=\"kernel ", item.kernel,
                            "\";\n", printItem("", item));
  for (const view::Item& value : body) {
    text += printItem(prefix, value);
  }
  return text + printEdges(prefix, body) + "  }\n";
}

}  // namespace

std::string printDot(const view::Stage& stage) {
  std::string text = "digraph {\n  node [shape=box];\n" + printGroups(stage);
  for (const view::Item& item : stage.items) {
    if (item.kernel >= 0) {
      text += printLaunch(stage, item);
    } else if (item.group < 0) {
      text += printItem("", item);
    }
  }
  return text + printEdges("", stage.items) + "}\n";
}

}  // namespace fl::tools
