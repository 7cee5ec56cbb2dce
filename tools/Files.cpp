#include "tools/Files.h"

#include <filesystem>
#include <fstream>
#include <iostream>
#include <sstream>
#include <system_error>

#include "fl/planner/Memory.h"

namespace fl::tools {

std::string readInput(const std::string& path) {
  std::ostringstream text;
  if (path == "-") {
    text << std::cin.rdbuf();
    return text.str();
  }
  std::error_code error;
  if (std::filesystem::is_directory(path, error)) {
    throw std::runtime_error(path + ": cannot be read: it is a directory");
  }
  std::ifstream file(path);
  if (!file) {
    throw std::runtime_error(path + ": cannot be read");
  }
  text << file.rdbuf();
  return text.str();
}

void flushOutput() {
  if (!std::cout.flush()) {
    throw std::runtime_error("standard output: cannot be written; not all of it is there");
  }
}

std::string formOf(const std::string& text) {
  const Lexer lexer(text);
  const std::string& form = lexer.peek();
  if (form != "graph" && form != "schedule" && form != "kernel") {
    lexer.fail("expected \"graph\", \"schedule\" or \"kernel\"");
  }
  return form;
}

ir::Schedule parsePackedSchedule(const std::string& text) {
  ir::Schedule schedule = ir::parseSchedule(text);
  if (schedule.arenaBytes == 0) {
    for (ir::Temporary& temporary : schedule.temporaries) {
      temporary.offset = schedule.arenaBytes;
      schedule.arenaBytes += planner::aligned(temporary.bytes);
    }
  }
  verify(schedule);
  return schedule;
}

std::string reasonOf(const InternalError& error) {
  // "internal error at <file:line>: <condition> does not hold: <reason>. Please report it ..."
  // (fl/base/Error.cpp).
  const std::string words = error.what(), before = " does not hold: ";
  const size_t place = words.find(before);
  const size_t begin = place == std::string::npos ? 0 : place + before.size();
  return words.substr(begin, words.rfind(". Please report") - begin);
}

}  // namespace fl::tools
