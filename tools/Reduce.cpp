#include "tools/Reduce.h"

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iostream>
#include <set>
#include <unordered_set>
#include <utility>

#include "absl/flags/flag.h"
#include "absl/strings/str_replace.h"
#include "fl/base/Error.h"
#include "fl/ir/Text.h"
#include "fl/kernel/Schedule.h"
#include "tools/Arguments.h"
#include "tools/Files.h"
#include "tools/GraphEdit.h"
#include "tools/ScheduleEdit.h"

ABSL_FLAG(std::string, command, "",
          "shell command that exits with 0 if the failure shows for the file {}");

namespace fl::tools {
namespace {

// A file that exists as long as this.
class ScratchFile {
 public:
  ScratchFile() : path_(std::filesystem::temp_directory_path() / "fl_reduce_XXXXXX.flir") {
    const int file = mkstemps(path_.data(), 5);
    FL_USER_CHECK(file >= 0, path_, ": cannot be made");
    close(file);
  }
  ~ScratchFile() { std::remove(path_.c_str()); }
  ScratchFile(const ScratchFile&) = delete;
  ScratchFile& operator=(const ScratchFile&) = delete;

  const std::string& path() const { return path_; }
  void write(const std::string& text) const {
    std::ofstream file(path_);
    file << text;
    FL_USER_CHECK(file.flush(), path_, ": cannot be written");
  }

 private:
  std::string path_;
};

// Asks the command about texts, about each once.
class Oracle {
 public:
  explicit Oracle(const std::string& command) {
    const std::string quoted = "'" + absl::StrReplaceAll(file_.path(), {{"'", "'\\''"}}) + "'";
    command_ = "{ " + absl::StrReplaceAll(command, {{"{}", quoted}}) + "\n} >/dev/null 2>&1";
  }

  bool failureShows(const std::string& text) {
    if (stopped_ || !asked_.insert(text).second) {
      return false;
    }
    file_.write(text);
    const int status = std::system(command_.c_str());
    const bool killed = WIFSIGNALED(status) && WTERMSIG(status) == SIGINT;
    const int code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    stopped_ = killed || code == 128 + SIGINT;
    missing_ = code == 126 || code == 127;
    return code == 0;
  }
  size_t asked() const { return asked_.size(); }
  // Somebody interrupted the command, and means all of it.
  bool stopped() const { return stopped_; }
  // There was nothing to run, when the command was asked last; a shell has two exit codes for it.
  bool missing() const { return missing_; }

 private:
  const ScratchFile file_;
  std::string command_;
  std::unordered_set<std::string> asked_;
  bool stopped_ = false, missing_ = false;
};

// True where an attribute of an operator is an extent.
bool isExtent(ir::Op op, const ir::Attrs& attrs, size_t position) {
  const std::vector<std::string>& names = ir::attrNames(op);
  const std::string& name = names[std::min(position, names.size() - 1)];
  if (name == "sizesThenStrides*") {
    return position <= static_cast<size_t>(attrs[0]);
  }
  return name == "shape*" || name == "sizeX" || name == "sizeY";
}

// The search, for a form of which sizeOf says which of two is smaller.
template <typename Form, typename Edit>
class Reducer {
 public:
  using Print = std::string (*)(const Form& form);
  using Parse = Form (*)(const std::string& text);
  // `text` was read from `path`.
  Reducer(Print print, Parse parse, const std::string& path, const std::string& text,
          const std::string& command)
      : form_(parseInput(path, text, parse)), print_(print), parse_(parse), oracle_(command) {}
  virtual ~Reducer() = default;

  // The text of the smallest form.
  std::string run() {
    const bool shows = oracle_.failureShows(print_(form_));
    FL_USER_CHECK(!oracle_.missing(),
                  "--command: the shell finds no such command, or may not run it");
    FL_USER_CHECK(shows, "--command: the failure does not show for the input itself");
    report("the input");
    attempt({}, "what no result needs dropped");
    while (makeSmaller()) {
    }
    report(oracle_.stopped() ? "interrupted" : "nothing smaller found");
    return print_(form_);
  }

 protected:
  // Tries all edits; false if none is accepted.
  virtual bool makeSmaller() = 0;
  // Nothing if the edit does not fit.
  virtual std::optional<Form> apply(const Edit& edit) = 0;
  virtual std::string count() const = 0;

  // Goes on with the edited form if it is smaller and still fails.
  bool attempt(const Edit& edit, const char* what) {
    const std::optional<Form> edited = apply(edit);
    if (!edited || !(sizeOf(*edited) < sizeOf(form_))) {
      return false;
    }
    const std::string text = print_(*edited);
    Form read = parse_(text);
    if (!oracle_.failureShows(text)) {
      return false;
    }
    form_ = std::move(read);
    report(what);
    return true;
  }

  struct PartEdit {
    const char* what;
    std::function<Edit(size_t begin, size_t end)> edit;
  };
  // Tries each edit of all places at once, then of halves, quarters and so on, the last places
  // first; what is accepted may take other places away.
  bool attemptParts(const std::function<size_t()>& count, const std::vector<PartEdit>& edits) {
    bool any = false;
    for (size_t part = count(); part > 0; part /= 2) {
      for (size_t end = count(); end > 0;) {
        const size_t begin = end > part ? end - part : 0;
        for (size_t i = 0; i < edits.size() && end <= count(); ++i) {
          any = attempt(edits[i].edit(begin, end), edits[i].what) || any;
        }
        end = std::min(begin, count());
      }
    }
    return any;
  }

  // Every extent of one size.
  bool shrinkSizes(const std::set<Dim>& sizes,
                   const std::function<Edit(Dim size, Dim smaller)>& resize) {
    for (Dim size : sizes) {
      for (Dim smaller : {Dim{1}, Dim{2}, size / 2, size - 1}) {
        if (attempt(resize(size, smaller), "extents shrunk")) {
          return true;
        }
      }
    }
    return false;
  }

  Form form_;

 private:
  void report(const std::string& what) const {
    std::cerr << "reduce: " << count() << " after " << oracle_.asked() << " candidates: " << what
              << std::endl;
  }

  const Print print_;
  const Parse parse_;
  Oracle oracle_;
};

class GraphReducer : public Reducer<ir::Graph, GraphEdit> {
 public:
  using Reducer::Reducer;

 private:
  bool makeSmaller() override {
    return dropResults() || dropNodes() || liftResults() || mergeInputs() || makeNumbers() ||
           shrinkExtents();
  }

  // A failure may be one of nodes that no result needs, which only the first edit drops.
  std::optional<ir::Graph> apply(const GraphEdit& edit) override {
    GraphEdit kept = edit;
    kept.keepsUnread = std::exchange(keepsUnread_, true);
    return applyEdit(graph_, kept);
  }

  std::string count() const override {
    return detail::concat(graph_.nodes().size(), " nodes, ", graph_.parameters().size(),
                          " inputs, ", graph_.results().size(), " results");
  }

  bool dropResults() {
    const auto drop = [&](size_t begin, size_t end) {
      std::vector<ir::ValueId> results = graph_.results();
      results.erase(results.begin() + begin, results.begin() + end);
      return results.empty() ? GraphEdit{} : GraphEdit{.results = std::move(results)};
    };
    return attemptParts([&] { return graph_.results().size(); }, {{"results dropped", drop}});
  }

  // The values of nodes become inputs, and what is above them goes; or a node is its first or its
  // last operand of the same type.
  bool dropNodes() {
    const auto cut = [&](size_t begin, size_t end) {
      GraphEdit edit;
      for (size_t i = begin; i < end; ++i) {
        edit.inputs[graph_.idOfNode(i)] = false;
      }
      return edit;
    };
    const auto bypassed = [&](bool last) {
      return [this, last](size_t begin, size_t end) {
        GraphEdit edit;
        for (size_t i = begin; i < end; ++i) {
          bypass(graph_.idOfNode(i), last, &edit);
        }
        return edit;
      };
    };
    return attemptParts([&] { return graph_.nodes().size(); },
                        {{"nodes made inputs", cut},
                         {"nodes bypassed", bypassed(false)},
                         {"nodes bypassed", bypassed(true)}});
  }

  void bypass(ir::ValueId id, bool last, GraphEdit* edit) const {
    for (ir::ValueId operand : graph_.node(id).operands) {
      if (!graph_.isNumber(operand) && graph_.type(operand) == graph_.type(id) &&
          (last || !edit->replaced.contains(id))) {
        edit->replaced[id] = operand;
      }
    }
  }

  // The operands of a result are results in its place, one of them or all.
  bool liftResults() {
    for (size_t i = 0; i < graph_.results().size(); ++i) {
      const ir::ValueId id = graph_.results()[i];
      if (graph_.isParameter(id)) {
        continue;
      }
      std::vector<std::vector<ir::ValueId>> choices(1);
      for (ir::ValueId operand : graph_.node(id).operands) {
        if (!graph_.isNumber(operand)) {
          choices[0].push_back(operand);
          choices.push_back({operand});
        }
      }
      std::rotate(choices.begin(), choices.begin() + 1, choices.end());
      for (const std::vector<ir::ValueId>& choice : choices) {
        std::vector<ir::ValueId> results = graph_.results();
        results.erase(results.begin() + i);
        results.insert(results.begin() + i, choice.begin(), choice.end());
        if (!results.empty() &&
            attempt({.results = std::move(results)}, "a result's operands made results")) {
          return true;
        }
      }
    }
    return false;
  }

  bool mergeInputs() {
    for (size_t i = graph_.parameters().size(); i-- > 1;) {
      const auto& all = graph_.parameters();
      const auto same = std::find(all.begin(), all.begin() + i, all[i]);
      const auto target = static_cast<ir::ValueId>(same - all.begin());
      if (same != all.begin() + i &&
          attempt({.replaced = {{static_cast<ir::ValueId>(i), target}}}, "inputs merged")) {
        return true;
      }
    }
    return false;
  }

  // Inputs that elementwise ops alone read.
  bool makeNumbers() {
    std::vector<bool> possible(graph_.parameters().size());
    for (size_t i = 0; i < possible.size(); ++i) {
      possible[i] = !graph_.parameters()[i].number;
    }
    for (const ir::Node& node : graph_.nodes()) {
      for (ir::ValueId operand : node.operands) {
        if (graph_.isParameter(operand) && !ir::isElementwise(node.op)) {
          possible[operand] = false;
        }
      }
    }
    for (size_t i = 0; i < possible.size(); ++i) {
      if (possible[i] &&
          attempt({.inputs = {{static_cast<ir::ValueId>(i), true}}}, "an input made a number")) {
        return true;
      }
    }
    return false;
  }

  // Every extent of one size, or one alone.
  bool shrinkExtents() {
    std::set<Dim> sizes;
    std::vector<std::pair<ir::ValueId, int>> places;
    for (size_t i = 0; i < graph_.parameters().size(); ++i) {
      const Shape& shape = graph_.parameters()[i].type.shape;
      for (int axis = 0; axis < shape.ndim(); ++axis) {
        if (shape[axis] > 1) {
          sizes.insert(shape[axis]);
          places.emplace_back(static_cast<ir::ValueId>(i), axis);
        }
      }
    }
    for (size_t i = 0; i < graph_.nodes().size(); ++i) {
      const ir::Node& node = graph_.nodes()[i];
      for (size_t position = 0; position < node.attrs.size(); ++position) {
        if (isExtent(node.op, node.attrs, position) && node.attrs[position] > 1) {
          sizes.insert(node.attrs[position]);
        }
      }
    }
    if (shrinkSizes(sizes, [&](Dim size, Dim smaller) { return resize(size, smaller); })) {
      return true;
    }
    for (const auto& place : places) {
      const Dim size = graph_.parameters()[place.first].type.shape[place.second];
      for (Dim smaller : {Dim{1}, size / 2, size - 1}) {
        if (attempt({.extents = {{place, smaller}}}, "an extent shrunk")) {
          return true;
        }
      }
    }
    return false;
  }

  GraphEdit resize(Dim size, Dim smaller) const {
    GraphEdit edit;
    for (size_t i = 0; i < graph_.parameters().size(); ++i) {
      const Shape& shape = graph_.parameters()[i].type.shape;
      for (int axis = 0; axis < shape.ndim(); ++axis) {
        if (shape[axis] == size) {
          edit.extents[{static_cast<ir::ValueId>(i), axis}] = smaller;
        }
      }
    }
    for (size_t i = 0; i < graph_.nodes().size(); ++i) {
      const ir::Node& node = graph_.nodes()[i];
      for (size_t position = 0; position < node.attrs.size(); ++position) {
        if (isExtent(node.op, node.attrs, position) && node.attrs[position] == size) {
          edit.attrs[{graph_.idOfNode(i), position}] = smaller;
        }
      }
    }
    return edit;
  }

  const ir::Graph& graph_ = form_;
  bool keepsUnread_ = false;
};

// Of a kernel alone, too.
class ScheduleReducer : public Reducer<ir::Schedule, ScheduleEdit> {
 public:
  using Reducer::Reducer;

 private:
  bool makeSmaller() override {
    bool any = dropSteps();
    // A kernel may go, and those behind it are numbered anew then.
    for (size_t i = form_.kernels.size(); i-- > 0;) any = reduceKernel(i) || any;
    return dropViews() || any || shrinkExtents();
  }

  std::optional<ir::Schedule> apply(const ScheduleEdit& edit) override {
    return applyEdit(form_, edit);
  }

  std::string count() const override {
    const auto [steps, instructions, stores, others, elements] = sizeOf(form_);
    return detail::concat(steps, " steps, ", instructions, " instructions, ", stores, " stores");
  }

  bool dropSteps() {
    const auto drop = [](size_t begin, size_t end) {
      return [=](ir::Schedule* schedule) { tools::dropSteps(schedule, begin, end); };
    };
    return attemptParts([&] { return form_.steps.size(); }, {{"steps dropped", drop}});
  }

  bool reduceKernel(size_t number) {
    const auto drop = [=](size_t begin, size_t end) {
      return [=](ir::Schedule* it) { dropStores(&it->kernels[number], begin, end); };
    };
    const auto bypassed = [=](bool last) {
      return [=](size_t begin, size_t end) {
        return [=](ir::Schedule* it) { bypass(&it->kernels[number], begin, end, last); };
      };
    };
    const auto count = [&](auto of) -> size_t {
      return number < form_.kernels.size() ? of(form_.kernels[number]) : 0;
    };
    const bool any = attemptParts([&] { return count(storesOf); }, {{"stores dropped", drop}});
    const auto values = [](const ir::Kernel& kernel) { return kernel.values.size(); };
    return attemptParts([&] { return count(values); }, {{"values bypassed", bypassed(false)},
                                                        {"values bypassed", bypassed(true)}}) ||
           any;
  }

  // Outputs without steps: what they share stays.
  bool dropViews() {
    const auto drop = [](size_t begin, size_t end) {
      return [=](ir::Schedule* schedule) {
        for (size_t i = begin; i < end; ++i) schedule->outputs[i].shared = false;
      };
    };
    return attemptParts([&] { return form_.outputs.size(); }, {{"views dropped", drop}});
  }

  bool shrinkExtents() {
    std::set<Dim> sizes, dims;
    ir::Schedule copy = form_;
    forEachExtent(&copy, [&](Dim* extent, bool mayBeProduct) {
      if (*extent > 1) sizes.insert(*extent);
      if (!mayBeProduct) dims.insert(*extent);
    });
    const auto attempt = [&](bool powers) {
      return shrinkSizes(sizes, [&, powers](Dim size, Dim smaller) {
        return [=](ir::Schedule* it) { resize(it, dims, size, smaller, powers); };
      });
    };
    return attempt(false) || attempt(true);
  }

  // Products of the size, or of powers of it, follow; a dimension of more than a vector is none.
  static void resize(ir::Schedule* schedule, const std::set<Dim>& dims, Dim size, Dim smaller,
                     bool powers) {
    const auto scale = [&](Dim* number, bool mayBeProduct) {
      if (*number != size && (!mayBeProduct || dims.contains(*number))) return;
      Dim factor = 1;
      for (bool again = true; again && *number != 0 && *number % size == 0; again = powers) {
        *number /= size;
        factor *= smaller;
      }
      *number *= factor;
    };
    forEachExtent(schedule, scale);
    for (ir::Step& step : schedule->steps) {
      auto* launch = std::get_if<ir::LaunchStep>(&step);
      if (!launch) continue;
      for (ir::LaunchOperand& operand : launch->operands) {
        scale(&operand.offset.constant, true);
        for (Dim& stride : operand.strides) scale(&stride, true);
      }
    }
  }

  // A launch, or a vector, may count along several dimensions as one.
  static void forEachExtent(ir::Schedule* schedule,
                            const std::function<void(Dim* extent, bool mayBeProduct)>& visit) {
    const auto visitShape = [&](Shape* shape) {
      for (Dim& dim : shape->get()) visit(&dim, shape->ndim() == 1);
    };
    for (ir::Parameter& parameter : schedule->parameters) visitShape(&parameter.type.shape);
    for (ir::ScheduleOutput& output : schedule->outputs) visitShape(&output.type.shape);
    for (ir::Step& step : schedule->steps) {
      if (auto* launch = std::get_if<ir::LaunchStep>(&step)) {
        for (Dim& extent : launch->extents) visit(&extent, true);
        continue;
      }
      auto& call = std::get<ir::LibraryStep>(step);
      for (ir::ValueType& type : call.operandTypes) visitShape(&type.shape);
      visitShape(&call.resultType.shape);
      std::vector<Dim> attrs = call.attrs.values();
      for (size_t i = 0; i < attrs.size(); ++i) {
        if (isExtent(call.op, call.attrs, i)) visit(&attrs[i], false);
      }
      call.attrs = ir::Attrs(std::move(attrs));
    }
  }
};

std::string print(const ir::Graph& graph) { return printGraph(graph, "g"); }
std::string print(const ir::Schedule& schedule) { return printSchedule(schedule, "s"); }
std::string printAlone(const ir::Schedule& kernel) { return printKernel(kernel.kernels[0], "k"); }
ir::Schedule parseAlone(const std::string& text) {
  ir::Schedule schedule;
  schedule.kernels.push_back(ir::parseKernel(text));
  return schedule;
}

std::string reduce(const std::string& path, const std::string& text, const std::string& command) {
  const std::string form = parseInput(path, text, formOf);
  if (form == "graph") return GraphReducer(print, ir::parseGraph, path, text, command).run();
  if (form == "kernel") return ScheduleReducer(printAlone, parseAlone, path, text, command).run();
  parseInput(path, text, parsePackedSchedule);
  return ScheduleReducer(print, ir::parseSchedule, path, text, command).run();
}

}  // namespace

int runReduce(int argc, char** argv) {
  const std::vector<char*> arguments = parseArguments(
      "fl reduce --command='COMMAND {}' FILE.flir\n\nThe command runs in a shell, {} being the "
      "path of a candidate, and exits with 0 if the failure shows for it.",
      __FILE__, {}, argc, argv);
  FL_USER_CHECK(arguments.size() == 2, "reduce: expected one file");
  const std::string path = arguments[1], command = absl::GetFlag(FLAGS_command);
  FL_USER_CHECK(command.find("{}") != std::string::npos,
                "--command: expected a command with {} in it, for a candidate's path");
  std::cout << reduce(path, readInput(path), command);
  return 0;
}

}  // namespace fl::tools
