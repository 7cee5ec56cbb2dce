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

#include "absl/flags/flag.h"
#include "absl/strings/str_replace.h"
#include "fl/base/Error.h"
#include "fl/ir/Text.h"
#include "tools/Arguments.h"
#include "tools/Files.h"
#include "tools/GraphEdit.h"

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

// True where an attribute of a node is an extent.
bool isExtent(const ir::Node& node, size_t position) {
  const std::vector<std::string>& names = ir::attrNames(node.op);
  const std::string& name = names[std::min(position, names.size() - 1)];
  if (name == "sizesThenStrides*") {
    return position <= static_cast<size_t>(node.attrs[0]);
  }
  return name == "shape*" || name == "sizeX" || name == "sizeY";
}

class Reducer {
 public:
  Reducer(ir::Graph graph, const std::string& command)
      : graph_(std::move(graph)), oracle_(command) {}

  ir::Graph run() {
    const bool shows = oracle_.failureShows(printGraph(graph_, "g"));
    FL_USER_CHECK(!oracle_.missing(),
                  "--command: the shell finds no such command, or may not run it");
    FL_USER_CHECK(shows, "--command: the failure does not show for the input itself");
    report("the input");
    // A failure may be one of nodes that no result needs; else they go.
    attempt({}, "what no result needs dropped");
    keepsUnread_ = true;
    while (dropResults() || dropNodes() || liftResults() || mergeInputs() || makeNumbers() ||
           shrinkExtents()) {
    }
    report(oracle_.stopped() ? "interrupted" : "nothing smaller found");
    return std::move(graph_);
  }

 private:
  void report(const std::string& what) const {
    std::cerr << "reduce: " << graph_.nodes().size() << " nodes, " << graph_.parameters().size()
              << " inputs, " << graph_.results().size() << " results after " << oracle_.asked()
              << " candidates: " << what << std::endl;
  }

  // Goes on with the edited graph if it is smaller and still fails.
  bool attempt(GraphEdit edit, const char* what) {
    edit.keepsUnread = keepsUnread_;
    const std::optional<ir::Graph> edited = applyEdit(graph_, edit);
    if (!edited || !(sizeOf(*edited) < sizeOf(graph_))) {
      return false;
    }
    const std::string text = printGraph(*edited, "g");
    ir::Graph read = ir::parseGraph(text);
    if (!oracle_.failureShows(text)) {
      return false;
    }
    graph_ = std::move(read);
    report(what);
    return true;
  }

  struct PartEdit {
    const char* what;
    std::function<GraphEdit(size_t begin, size_t end)> edit;
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
        if (isExtent(node, position) && node.attrs[position] > 1) {
          sizes.insert(node.attrs[position]);
        }
      }
    }
    for (Dim size : sizes) {
      for (Dim smaller : {Dim{1}, Dim{2}, size / 2, size - 1}) {
        if (attempt(resize(size, smaller), "extents shrunk")) {
          return true;
        }
      }
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
        if (isExtent(node, position) && node.attrs[position] == size) {
          edit.attrs[{graph_.idOfNode(i), position}] = smaller;
        }
      }
    }
    return edit;
  }

  ir::Graph graph_;
  Oracle oracle_;
  bool keepsUnread_ = false;
};

}  // namespace

int runReduce(int argc, char** argv) {
  const std::vector<char*> arguments = parseArguments(
      "fl reduce --command='COMMAND {}' GRAPH.flir\n\nThe command runs in a shell, {} being the "
      "path of a candidate, and exits with 0 if the failure shows for it.",
      __FILE__, {}, argc, argv);
  FL_USER_CHECK(arguments.size() == 2, "reduce: expected one file");
  const std::string path = arguments[1], command = absl::GetFlag(FLAGS_command);
  FL_USER_CHECK(command.find("{}") != std::string::npos,
                "--command: expected a command with {} in it, for a candidate's path");
  const std::string text = readInput(path), form = parseInput(path, text, formOf);
  FL_USER_CHECK(form == "graph", path, ": is a ", form, "; only graphs are reduced");
  Reducer reducer(parseInput(path, text, ir::parseGraph), command);
  std::cout << printGraph(reducer.run(), "g");
  return 0;
}

}  // namespace fl::tools
