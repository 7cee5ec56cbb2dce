// The log ladder: FL_LOG=level[,file]. 1 a line a realize, 3 a line a pass and kernel, 5 the graph
// after each pass.
#pragma once

#include <string>

namespace fl {

// True when messages of `level` are wanted; cheap enough for hot paths.
bool logEnabled(int level);
// Writes one message, newline added, to the chosen file or standard error.
void logLine(int level, const std::string& message);
// Warnings go to standard error whatever the level.
void logWarning(const std::string& message);

}  // namespace fl
