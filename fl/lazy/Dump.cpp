#include "fl/lazy/Dump.h"

#include <algorithm>
#include <exception>
#include <filesystem>
#include <unordered_map>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "fl/base/AtomicFile.h"
#include "fl/base/Flags.h"
#include "fl/base/Log.h"
#include "fl/lazy/KernelCompiler.h"
#include "fl/view/Page.h"

namespace fl::lazy {
namespace {

// What this process knows of a folder of plans.
struct Folder {
  int next = 0;  // plans below have their number
  bool failed = false;
};

// That of FL_DUMP.
Folder& folderOfPlans() {
  static auto& folders = *new std::unordered_map<std::string, Folder>();
  return folders[flags().dump];
}

// Runs `write`; the first failure is the folder's last.
template <typename Write>
void attempt(Write write) {
  if (folderOfPlans().failed) return;
  try {
    write();
  } catch (const std::exception& error) {
    folderOfPlans().failed = true;
    logWarning(std::string("FL_DUMP: ") + error.what() + "; nothing more is dumped");
  }
}

std::string makePlanFolder() {
  std::filesystem::create_directories(flags().dump);
  std::string folder;
  do {
    folder = absl::StrFormat("%s/plan%04d", flags().dump, folderOfPlans().next++);
  } while (!std::filesystem::create_directory(folder));
  return folder;
}

// In digits that read back to the same number.
std::string digitsOf(const Number& number) {
  if (isFloating(number.type())) return absl::StrFormat("%.17g", number.toDouble());
  return isSigned(number.type()) ? absl::StrCat(number.toInt()) : absl::StrCat(number.bits());
}

}  // namespace

PlanDump::PlanDump(const Numbers& numbers) {
  if (flags().dump.empty()) return;
  attempt([&] { folder_ = makePlanFolder(); });
  for (size_t i = 0; i < numbers.size(); ++i)
    if (numbers[i]) absl::StrAppend(&numbers_, " p", i, "=", digitsOf(*numbers[i]));
  if (!numbers_.empty()) numbers_ = "// numbers:" + numbers_ + "\n";
}

std::function<void(int, const std::string&, const std::string&)> PlanDump::observer() const {
  if (folder_.empty()) return nullptr;
  return [*this](int number, const std::string& pass, const std::string& text) {
    const std::string file = absl::StrFormat("%s/%02d_%s.flir", folder_, number, pass);
    attempt([&] { AtomicFile::write(file, numbers_ + text); });
  };
}

void PlanDump::writeCode(const runtime::LoadedSchedule& plan, const ir::Target& target) const {
  if (folder_.empty()) return;
  const std::vector<ir::Kernel>& kernels = plan.schedule().kernels;
  std::vector<int> variants(kernels.size(), 0);
  attempt([&] {
    for (const runtime::DeviceKernelPtr& made : plan.kernels()) {
      const auto i = std::ranges::find(kernels, made->kernel()) - kernels.begin();
      if (i == std::ssize(kernels)) continue;  // what the device makes of one
      const std::string variant = variants[i] ? absl::StrCat("_", variants[i]) : "";
      const std::string path = absl::StrCat(folder_, "/k", i, variant), name = entryOf(kernels[i]);
      ++variants[i];
      for (const auto& [level, text] : view::codeOf(kernels[i], made->stores(), target, name))
        AtomicFile::write(path + "." + level, text);
    }
  });
}

}  // namespace fl::lazy
