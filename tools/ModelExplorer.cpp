#include "tools/ModelExplorer.h"

#include "absl/strings/str_cat.h"
#include "nlohmann/json.hpp"

namespace fl::tools {
namespace {

using absl::StrCat;
using view::Item;
using Json = nlohmann::ordered_json;

// By the ids of graphs and nodes; a colour says where a value lies between 0 and the largest.
class NodeData {
 public:
  explicit NodeData(const char* name) : name_(name) {}
  void add(const std::string& graph, const std::string& node, double value) {
    Json& data = graphs_[graph];
    data["name"] = name_;
    data["results"][node]["value"] = value;
    data["gradient"] = {{{"stop", 0}, {"bgColor", "#ffffff"}},
                        {{"stop", 1}, {"bgColor", "#f0a35e"}}};
  }
  std::string text() const { return graphs_.empty() ? "" : graphs_.dump(); }

 private:
  const char* name_;
  Json graphs_ = Json::object();
};

// Of attributes that say something.
Json listOf(const std::vector<std::pair<const char*, std::string>>& attributes) {
  Json list = Json::array();
  for (const auto& [key, value] : attributes) {
    if (!value.empty()) list.push_back({{"key", key}, {"value", value}});
  }
  return list;
}

Json nodeOf(const std::vector<Item>& items, const Item& item) {
  Json edges = Json::array();
  for (size_t i = 0; i < item.operands.size(); ++i) {
    edges.push_back({{"sourceNodeId", items[item.operands[i]].name},
                     {"sourceNodeOutputId", "0"},
                     {"targetNodeInputId", StrCat(i)}});
  }
  return {{"id", item.name},
          {"label", item.op},
          {"namespace", item.group < 0 ? "" : StrCat("kernel ", item.group)},
          {"attrs", listOf({{"attributes", item.attrs},
                            {"bytes", item.bytes > 0 ? StrCat(item.bytes) : ""},
                            {"buffers", item.buffers},
                            {"line", item.line}})},
          {"incomingEdges", edges},
          {"outputsMetadata", {{{"id", "0"}, {"attrs", listOf({{"type", item.type}})}}}}};
}

Json graphOf(const std::string& id, const std::vector<Item>& items) {
  Json nodes = Json::array();
  for (const Item& item : items) {
    nodes.push_back(nodeOf(items, item));
  }
  return {{"id", id}, {"nodes", nodes}};
}

// With the graphs of its kernels.
void addStage(const std::string& id, const view::Stage& stage, Json* graphs, NodeData* bytes) {
  Json graph = graphOf(id, stage.items);
  for (size_t i = 0; i < stage.groups.size(); ++i) {
    const view::Group& group = stage.groups[i];
    graph["groupNodeAttributes"][StrCat("kernel ", i)] = {
        {"space", group.title}, {"computes again", group.again}, {"cost", group.cost}};
  }
  const auto kernelId = [&](size_t kernel) { return StrCat(id, " k", kernel); };
  for (size_t i = 0; i < stage.items.size(); ++i) {
    const Item& item = stage.items[i];
    bytes->add(id, item.name, static_cast<double>(item.bytes));
    if (item.kernel >= 0) graph["nodes"][i]["subgraphIds"] = {kernelId(item.kernel)};
  }
  graphs->push_back(std::move(graph));
  for (size_t i = 0; stage.schedule && i < stage.schedule->kernels.size(); ++i) {
    graphs->push_back(graphOf(kernelId(i), view::kernelItems(stage.schedule->kernels[i])));
  }
}

}  // namespace

ModelExplorerFiles modelExplorerFiles(const std::vector<view::Plan>& plans) {
  Json graphs = Json::array();
  NodeData bytes("bytes"), times("microseconds");
  for (const view::Plan& plan : plans) {
    for (size_t i = 0; i < plan.stages.size(); ++i) {
      const bool isLast = i + 1 == plan.stages.size();
      const auto& [name, stage] = plan.stages[i];
      if (i > 0 && !isLast && view::saysTheSame(plan.stages[i - 1].stage, stage)) continue;
      const std::string id = StrCat(plan.name, " ", name);
      addStage(id, stage, &graphs, &bytes);
      if (!isLast || !plan.times) continue;
      for (const view::StepTime& time : plan.times->medians()) {
        const Item& item = stage.items[stage.schedule->parameters.size() + time.begin];
        times.add(id, item.name, time.microseconds);
      }
    }
  }
  return {Json{{"label", "fl"}, {"graphs", graphs}}.dump(), bytes.text(), times.text()};
}

}  // namespace fl::tools
