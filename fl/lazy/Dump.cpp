#include "fl/lazy/Dump.h"

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <stdexcept>

#include "fl/base/Flags.h"

namespace fl::lazy {
namespace {

std::string numbered(const char* format, int number) {
  char text[32];
  std::snprintf(text, sizeof(text), format, number);
  return text;
}

void writeFile(const std::string& path, const std::string& text) {
  std::ofstream file(path);
  file << text;
  if (!file.flush()) {
    throw std::runtime_error("FL_DUMP: cannot write " + path);
  }
}

}  // namespace

PlanDump::PlanDump(int number) {
  if (flags().dump.empty()) {
    return;
  }
  folder_ = flags().dump + "/plan" + numbered("%04d", number);
  std::error_code error;
  std::filesystem::create_directories(folder_, error);
  if (error) {
    throw std::runtime_error("FL_DUMP: cannot make " + folder_ + ": " + error.message());
  }
}

std::function<void(int, const std::string&, const std::string&)> PlanDump::observer() const {
  if (folder_.empty()) {
    return nullptr;
  }
  return [folder = folder_](int number, const std::string& pass, const std::string& text) {
    writeFile(folder + "/" + numbered("%02d_", number) + pass + ".flir", text);
  };
}

}  // namespace fl::lazy
