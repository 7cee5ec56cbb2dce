#include "fl/lazy/Dump.h"

#include <cstdio>
#include <exception>
#include <filesystem>
#include <unordered_map>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "fl/base/AtomicFile.h"
#include "fl/base/Flags.h"
#include "fl/base/Log.h"
#include "fl/codegen/cpu/Emitter.h"
#include "fl/codegen/cuda/Emitter.h"
#include "fl/kernel/cuda/Launch.h"
#include "fl/lazy/KernelCompiler.h"

namespace fl::lazy {
namespace {

// What this process knows of a folder of plans.
struct Folder {
  int next = 0;  // plans below have their number
  bool failed = false;
};

Folder& folderOf(const std::string& path) {
  static auto& folders = *new std::unordered_map<std::string, Folder>();
  return folders[path];
}

// Runs `write`; the first failure is the folder's last.
template <typename Write>
void attempt(const std::string& path, Write write) {
  if (folderOf(path).failed) return;
  try {
    write();
  } catch (const std::exception& error) {
    folderOf(path).failed = true;
    logWarning(std::string("FL_DUMP: ") + error.what() + "; nothing more is dumped");
  }
}

std::string numbered(const char* format, int number) {
  char text[32];
  std::snprintf(text, sizeof(text), format, number);
  return text;
}

std::string makePlanFolder(const std::string& path) {
  std::filesystem::create_directories(path);
  std::string folder;
  do {
    folder = path + "/plan" + numbered("%04d", folderOf(path).next++);
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
  const std::string& path = flags().dump;
  if (path.empty()) return;
  attempt(path, [&] { folder_ = makePlanFolder(path); });
  for (size_t i = 0; i < numbers.size(); ++i) {
    if (numbers[i]) absl::StrAppend(&numbers_, " p", i, "=", digitsOf(*numbers[i]));
  }
  if (!numbers_.empty()) numbers_ = "// numbers:" + numbers_ + "\n";
}

std::function<void(int, const std::string&, const std::string&)> PlanDump::observer() const {
  if (folder_.empty()) return nullptr;
  return
      [path = flags().dump, *this](int number, const std::string& pass, const std::string& text) {
        const std::string file = folder_ + "/" + numbered("%02d_", number) + pass + ".flir";
        attempt(path, [&] { AtomicFile::write(file, numbers_ + text); });
      };
}

void PlanDump::writeCode(const ir::Schedule& schedule, const ir::Target& target) const {
  if (folder_.empty()) return;
  attempt(flags().dump, [&] {
    for (size_t i = 0; i < schedule.kernels.size(); ++i) {
      const std::string path = folder_ + "/" + numbered("k%d", static_cast<int>(i));
      const ir::Kernel& kernel = schedule.kernels[i];
      const std::string name = entryOf(kernel);
      if (ir::cuda::isGpu(target)) {
        AtomicFile::write(path + ".cu", codegen::cuda::emitCuda({{name, &kernel}}));
        continue;
      }
      AtomicFile::write(path + ".ll", codegen::cpu::emitLlvmText(kernel, target, name));
      AtomicFile::write(path + ".s", codegen::cpu::emitAssemblyText(kernel, target, name));
    }
  });
}

}  // namespace fl::lazy
