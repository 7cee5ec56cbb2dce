#include "tools/Files.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <optional>
#include <regex>
#include <set>
#include <sstream>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "fl/planner/Memory.h"

namespace fl::tools {
namespace {

// Where a form, or what a schedule lists, begins.
struct Entry {
  std::string word;  // "" for the end
  size_t position;
};

std::vector<Entry> entriesOf(const std::string& text) {
  static const std::set<std::string> kWords = {"kernel",    "launch", "library",
                                               "parameter", "output", "temporary"};
  std::vector<Entry> entries;
  int depth = 0;
  Lexer lexer(text);
  const int level = lexer.peek() == "schedule" ? 1 : 0;
  try {
    while (!lexer.atEnd()) {
      const size_t position = lexer.position();
      const std::string word = lexer.take();
      depth += (word == "{") - (word == "}");
      if (depth == level && kWords.contains(word)) entries.push_back({word, position});
      if (depth < level && !entries.empty()) entries.push_back({"", position});
    }
  } catch (const ParseError&) {
    // What has been read before it is what was checked.
  }
  entries.push_back({"", text.size()});
  return entries;
}

bool isValidKernel(const std::string& text) {
  try {
    ir::parseKernel(text);
  } catch (const InternalError&) {
    return false;
  } catch (const ParseError&) {
  }
  return true;
}

// The entry that a check speaks of, and its name where the reason does not have it.
std::optional<std::pair<size_t, std::string>> placeOf(const std::string& text,
                                                      const std::string& reason) {
  const std::vector<Entry> entries = entriesOf(text);
  for (size_t i = 0; i + 1 < entries.size(); ++i) {
    const size_t begin = entries[i].position;
    const std::string kernel = text.substr(begin, entries[i + 1].position - begin);
    if (entries[i].word != "kernel" || isValidKernel(kernel)) continue;
    Lexer lexer(kernel);
    lexer.take();
    return {{begin, "kernel " + lexer.take() + ": "}};
  }
  std::smatch match;
  static const std::regex step("()step ([0-9]+)"), other("(temporar|output)[a-z]* ([0-9]+)");
  if (!std::regex_search(reason, match, step) && !std::regex_search(reason, match, other))
    return {};
  int64_t left = 0;
  if (!absl::SimpleAtoi(match[2].str(), &left)) return {};
  const std::string begin = match[1];
  for (const Entry& entry : entries) {
    const bool isStep = entry.word == "launch" || entry.word == "library";
    const bool counts = begin.empty() ? isStep : entry.word.starts_with(begin);
    if (counts && left-- == 0) return {{entry.position, ""}};
  }
  return {};
}

}  // namespace

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

void throwInvalid(const std::string& path, const std::string& text, const InternalError& error) {
  const std::string reason = reasonOf(error);
  const auto place = placeOf(text, reason);
  if (!place) throw std::runtime_error(path + ": not valid: " + reason);
  const std::string before = text.substr(0, place->first);
  const auto line = std::ranges::count(before, '\n') + 1;
  const size_t column = before.size() - (before.rfind('\n') + 1) + 1;  // npos + 1 is 0
  throw std::runtime_error(
      detail::concat(path, ":", line, ":", column, ": not valid: ", place->second, reason));
}

}  // namespace fl::tools
