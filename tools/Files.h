// Input and output of the tools: files are read whole, and what is wrong with one is said with its
// name.
#pragma once

#include <stdexcept>
#include <string>

#include "fl/base/Error.h"
#include "fl/base/Text.h"
#include "fl/kernel/Schedule.h"

namespace fl::tools {

// The contents of a file, or of standard input for "-". Throws std::runtime_error naming the file.
std::string readInput(const std::string& path);

// Throws std::runtime_error if something that was printed has not been written.
void flushOutput();

// What a check of parsed text found, without the request to report it: the text is the user's.
std::string reasonOf(const InternalError& error);

// Throws std::runtime_error that says where in `text`, which was read from `path`, it is that a
// check speaks of: a kernel, a step, a temporary or an output.
[[noreturn]] void throwInvalid(const std::string& path, const std::string& text,
                               const InternalError& error);

// What a text begins with: graph, schedule or kernel. Throws ParseError for anything else.
std::string formOf(const std::string& text);
// A schedule that may run: also its temporaries have places that do not overlap. They have them
// from the pass `pack` on; before, each gets memory of its own. Throws as ir::parseSchedule.
ir::Schedule parsePackedSchedule(const std::string& text);

// parse(text), for text that was read from `path`. Throws std::runtime_error that says where it is
// no .flir text, or what does not hold in it.
template <typename Form>
Form parseInput(const std::string& path, const std::string& text,
                Form (*parse)(const std::string& text)) {
  try {
    return parse(text);
  } catch (const ParseError& error) {
    throw std::runtime_error(path + ":" + error.what());
  } catch (const InternalError& error) {
    throwInvalid(path, text, error);
  }
}

}  // namespace fl::tools
