#include "tools/View.h"

#include <algorithm>
#include <filesystem>
#include <iostream>
#include <regex>

#include "absl/flags/declare.h"
#include "absl/flags/flag.h"
#include "absl/strings/str_format.h"
#include "fl/base/AtomicFile.h"
#include "fl/codegen/Compilation.h"
#include "fl/ir/Text.h"
#include "fl/kernel/cuda/Launch.h"
#include "fl/runtime/Device.h"
#include "fl/tile/HostTarget.h"
#include "fl/view/Page.h"
#include "tools/Arguments.h"
#include "tools/Dot.h"
#include "tools/Files.h"
#include "tools/ModelExplorer.h"
#include "tools/StepTimes.h"

ABSL_FLAG(bool, dot, false, "print a file, of any form, as Graphviz's DOT");
ABSL_DECLARE_FLAG(int, time);
ABSL_FLAG(std::string, page, "view.html", "the page to write");
ABSL_FLAG(std::string, model_explorer, "",
          "a .json to write in place of a page, for Model Explorer; bytes and times, to colour its "
          "nodes by, are written beside it, as NAME.bytes.json and NAME.times.json");

namespace fl::tools {
namespace {

namespace fs = std::filesystem;

// What is below a folder, by name, of which `test` is true.
template <typename Test>
std::vector<fs::path> entriesOf(const fs::path& folder, Test test) {
  std::vector<fs::path> paths;
  for (const auto& entry : fs::directory_iterator(folder)) {
    if (test(entry)) paths.push_back(entry.path());
  }
  std::ranges::sort(paths);
  return paths;
}

std::vector<fs::path> stagesIn(const fs::path& folder) {
  return entriesOf(folder, [](const fs::directory_entry& entry) {
    return entry.is_regular_file() && entry.path().extension() == ".flir";
  });
}

view::Stage readStage(const std::string& path) {
  return parseInput(path, readInput(path), view::readStage);
}

// That a plan's kernels were compiled for, as the dump has their code. CUDA's text is of no
// architecture; PTX says which one it is for.
ir::Target targetOf(const fs::path& folder) {
  const auto isCuda = [](const fs::directory_entry& entry) {
    return entry.path().extension() == ".cu";
  };
  const std::vector<fs::path> codes = entriesOf(folder, isCuda);
  if (codes.empty()) return tile::hostTarget();
  ir::Target target{.triple = ir::cuda::kTriple, .features = "sm_90"};
  fs::path assembled = codes.front();
  assembled.replace_extension(".ptx");
  if (!fs::exists(assembled)) return target;
  const std::string text = readInput(assembled);
  const std::regex words("\\.target (sm_\\w+)");
  if (std::smatch found; std::regex_search(text, found, words)) target.features = found[1];
  return target;
}

view::Plan readPlan(const fs::path& folder) {
  view::Plan plan{.name = fs::canonical(folder).filename(), .target = targetOf(folder)};
  for (const fs::path& path : stagesIn(folder)) {
    plan.stages.push_back({path.stem(), readStage(path)});
  }
  return plan;
}

// The folder is a plan's, or one of such folders.
std::vector<view::Plan> readDump(const fs::path& folder) {
  const auto holdsStages = [](const fs::directory_entry& entry) {
    return entry.is_directory() && !stagesIn(entry.path()).empty();
  };
  std::vector<fs::path> folders = entriesOf(folder, holdsStages);
  if (!stagesIn(folder).empty()) folders = {folder};
  FL_USER_CHECK(!folders.empty(), folder.string(),
                ": no dump: neither it nor a folder in it has .flir files");
  std::vector<view::Plan> plans;
  std::ranges::transform(folders, std::back_inserter(plans), readPlan);
  return plans;
}

// The stages that a graph goes through; another form is the only one.
view::Plan planOf(const std::string& path) {
  view::Plan plan{.name = fs::path(path).filename(), .target = tile::hostTarget()};
  const std::string text = readInput(path);
  if (parseInput(path, text, formOf) != "graph") {
    plan.stages.push_back({fs::path(path).stem(), parseInput(path, text, view::readStage)});
    return plan;
  }
  codegen::CompileOptions options;
  options.device = runtime::makeDevice("cpu")->traits();
  options.observe = [&](int number, const std::string& pass, const std::string& stage) {
    plan.stages.push_back({absl::StrFormat("%02d_%s", number, pass), view::readStage(stage)});
  };
  codegen::compile(parseInput(path, text, ir::parseGraph), options);
  return plan;
}

void timePlan(view::Plan* plan, int runs) {
  const auto& schedule = plan->stages.back().stage.schedule;
  FL_USER_CHECK(schedule, "--time: ", plan->name, " has no schedule to run");
  plan->times = timeSteps(plan->name, *schedule, runs);
}

void writePage(const std::vector<view::Plan>& plans) {
  view::Page page;
  for (const view::Plan& plan : plans) {
    page.add(plan);
  }
  AtomicFile::write(absl::GetFlag(FLAGS_page), page.html());
  std::cout << absl::GetFlag(FLAGS_page) << "\n";
}

void writeForModelExplorer(const std::vector<view::Plan>& plans, const fs::path& path) {
  FL_USER_CHECK(path.extension() == ".json", "--model_explorer: ", path.string(), ": not a .json");
  const ModelExplorerFiles files = modelExplorerFiles(plans);
  const std::pair<const char*, const std::string*> parts[] = {
      {".json", &files.graphs}, {".bytes.json", &files.bytes}, {".times.json", &files.times}};
  for (const auto& [extension, text] : parts) {
    if (text->empty()) continue;
    const std::string part = fs::path(path).replace_extension(extension);
    AtomicFile::write(part, *text);
    std::cout << part << "\n";
  }
}

// Of flags that exclude one another.
void checkFlags() {
  const bool isPage = absl::GetFlag(FLAGS_page) != "view.html", isTimed = absl::GetFlag(FLAGS_time);
  const bool explores = !absl::GetFlag(FLAGS_model_explorer).empty();
  FL_USER_CHECK(!absl::GetFlag(FLAGS_dot) || !(isPage || isTimed || explores),
                "--dot: takes no other flag");
  FL_USER_CHECK(!explores || !isPage, "--model_explorer: writes no page");
}

}  // namespace

int runView(int argc, char** argv) {
  const std::vector<char*> arguments = parseArguments(
      "fl view [flags] DIR|FILE.flir   (- reads standard input)\n\nShows what FL_DUMP wrote below "
      "DIR, or a graph and what each pass makes of it, in a page for a browser.\n--time=N runs "
      "each "
      "plan N times on drawn inputs and shows the median time of each step.",
      __FILE__, {"time"}, argc, argv);
  FL_USER_CHECK(arguments.size() == 2, "view: expected one folder or file");
  checkFlags();
  const std::string path = arguments[1];
  if (absl::GetFlag(FLAGS_dot)) {
    FL_USER_CHECK(!fs::is_directory(path), path, ": is a folder; --dot is for a file");
    std::cout << printDot(readStage(path));
    return 0;
  }
  const int runs = absl::GetFlag(FLAGS_time);
  FL_USER_CHECK(runs >= 0, "--time: ", runs, " is negative");
  std::vector<view::Plan> plans =
      fs::is_directory(path) ? readDump(path) : std::vector{planOf(path)};
  for (view::Plan& plan : plans) {
    if (runs > 0) timePlan(&plan, runs);
  }
  const std::string explorer = absl::GetFlag(FLAGS_model_explorer);
  explorer.empty() ? writePage(plans) : writeForModelExplorer(plans, explorer);
  return 0;
}

}  // namespace fl::tools
