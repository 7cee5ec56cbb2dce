#include "fl/view/Page.h"

#include <map>
#include <unordered_map>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "fl/codegen/Compilation.h"
#include "fl/codegen/cpu/Emitter.h"
#include "fl/codegen/cuda/Emitter.h"
#include "fl/codegen/cuda/KernelCode.h"
#include "fl/kernel/cuda/Launch.h"
#include "fl/view/PageTemplate.h"
#include "fl/view/Timeline.h"
#include "nlohmann/json.hpp"

namespace fl::view {
namespace {

using Json = nlohmann::ordered_json;

// Texts that many items share, as numbers.
class Texts {
 public:
  size_t numberOf(const std::string& text) {
    const auto [found, isNew] = numbers_.try_emplace(text, texts_.size());
    if (isNew) texts_.push_back(text);
    return found->second;
  }
  const std::vector<std::string>& all() const { return texts_; }

 private:
  std::unordered_map<std::string, size_t> numbers_;
  std::vector<std::string> texts_;
};

class PlanWriter {
 public:
  explicit PlanWriter(const Plan& plan) : plan_(plan) {}

  Json write() {
    Json stages = Json::array();
    for (size_t i = 0; i < plan_.stages.size(); ++i) {
      stages.push_back(writeStage(i));
    }
    const auto& last = plan_.stages.back().stage.schedule;
    return {{"name", plan_.name},
            {"stages", stages},
            {"kernels", kernels_},
            {"memory", last && !last->temporaries.empty() ? timelineOf(*last) : Json()},
            {"texts", texts_.all()}};
  }

 private:
  Json writeStage(size_t index) {
    const auto& [name, stage] = plan_.stages[index];
    Json json{{"name", name}, {"why", reasonOf(name.substr(name.find('_') + 1))}};
    const Stage* before = index > 0 ? &plan_.stages[index - 1].stage : nullptr;
    const bool isTimed = index + 1 == plan_.stages.size() && !plan_.times.empty();
    if (!isTimed && before && saysTheSame(*before, stage)) {
      json["same"] = true;  // as the stage before
      return json;
    }
    // A schedule of steps has no item of a graph.
    const bool compares = before && before->form == stage.form;
    const std::vector<Change> changes =
        compares ? changesBetween(*before, stage) : std::vector<Change>();
    json["form"] = stage.form;
    json["compares"] = compares;
    json["items"] = Json::array();
    for (size_t i = 0; i < stage.items.size(); ++i) {
      json["items"].push_back(writeItem(stage, stage.items[i]));
      if (compares) addChange(changes[i], &json["items"].back());
    }
    if (isTimed) addTimes(stage, &json["items"]);
    for (const Group& group : stage.groups) {
      json["groups"].push_back(
          {{"title", group.title}, {"again", group.again}, {"cost", group.cost}});
    }
    json["results"] = stage.results;
    return json;
  }

  static std::string reasonOf(const std::string& pass) {
    for (const codegen::PassInfo& info : codegen::passes()) {
      if (pass == info.name) return info.why;
    }
    return "";
  }

  Json writeItem(const Stage& stage, const Item& item) {
    Json json{{"name", item.name}, {"op", texts_.numberOf(item.op)}, {"bytes", item.bytes}};
    const auto add = [&](const char* key, const std::string& text) {
      if (!text.empty()) json[key] = texts_.numberOf(text);
    };
    add("attrs", item.attrs);
    add("type", item.type);
    add("line", item.line);
    add("buffers", item.buffers);
    if (!item.operands.empty()) json["in"] = item.operands;
    if (item.parameter) json["parameter"] = true;
    if (item.library) json["library"] = true;
    if (item.group >= 0) json["group"] = item.group;
    if (item.kernel >= 0) {
      json["kernel"] = numberOf(stage.schedule->kernels[item.kernel], item.stores);
    }
    return json;
  }

  static void addChange(const Change& change, Json* item) {
    if (change.before >= 0) (*item)["before"] = change.before;
    if (change.kind != Change::Kind::None) {
      (*item)["change"] = change.kind == Change::Kind::New ? "new" : "changed";
    }
  }

  void addTimes(const Stage& stage, Json* items) const {
    for (const StepTime& time : plan_.times) {
      Json& item = (*items)[stage.schedule->parameters.size() + time.begin];
      item["us"] = time.microseconds;
      item["together"] = time.end - time.begin;
    }
  }

  // Where the kernel stands in `kernels_`.
  size_t numberOf(const ir::Kernel& kernel, ir::Stores stores) {
    const std::string text = ir::printKernel(kernel, "k");
    const auto [found, isNew] = numbers_.try_emplace({text, stores}, kernels_.size());
    if (isNew) kernels_.push_back(writeKernel(kernel, stores, text));
    return found->second;
  }

  Json writeKernel(const ir::Kernel& kernel, ir::Stores stores, const std::string& text) {
    Json items = Json::array();
    for (const Item& item : kernelItems(kernel)) {
      items.push_back(writeItem({}, item));
    }
    Json json{{"text", text}, {"items", items}};
    if (!isLast(kernel)) return json;
    for (auto& [level, code] : codeOf(kernel, stores, plan_.target, "k")) json[level] = code;
    return json;
  }

  // Passes make kernels that later ones replace: code is made of those that run.
  bool isLast(const ir::Kernel& kernel) const {
    const auto& last = plan_.stages.back().stage.schedule;
    return last && std::ranges::find(last->kernels, kernel) != last->kernels.end();
  }

  const Plan& plan_;
  Texts texts_;
  Json kernels_ = Json::array();
  std::map<std::pair<std::string, ir::Stores>, size_t> numbers_;
};

}  // namespace

std::vector<std::pair<std::string, std::string>> codeOf(const ir::Kernel& kernel, ir::Stores stores,
                                                        const ir::Target& target,
                                                        const std::string& name) {
  if (ir::cuda::isGpu(target)) {
    std::vector<std::pair<std::string, std::string>> levels = {
        {"cu", codegen::cuda::emitCuda({{name, &kernel}})}};
    std::string ptx = codegen::cuda::ptxOf(kernel, target, name);
    if (!ptx.empty()) levels.emplace_back("ptx", std::move(ptx));
    return levels;
  }
  if (target.vectorBits == 0) return {};
  return {{"ll", codegen::cpu::emitLlvmText(kernel, target, name, stores)},
          {"s", codegen::cpu::emitAssemblyText(kernel, target, name, stores)}};
}

void Page::add(const Plan& plan) {
  // No text in it ends the element of the page that it is in.
  plans_.push_back(absl::StrReplaceAll(PlanWriter(plan).write().dump(), {{"<", "\\u003c"}}));
}

std::string Page::html(const std::string& note) const {
  std::string elements;
  for (const std::string& plan : plans_) {
    absl::StrAppend(&elements, "<script type=\"application/json\" class=\"plan\">", plan,
                    "</script>\n");
  }
  return absl::StrReplaceAll(kPageTemplate,
                             {{"<!-- plans -->", elements}, {"<!-- note -->", note}});
}

}  // namespace fl::view
