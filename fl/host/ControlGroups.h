// What Linux control groups leave a process, as containers limit it: the least of what the
// process's group and those around it have, of versions 1 and 2 of control groups; nothing if no
// group has a limit. All read below `root`, which is "/".
#pragma once

#include <filesystem>
#include <optional>

namespace fl::host {

// Processors' worth of time.
std::optional<double> cpuQuota(const std::filesystem::path& root);
// Bytes of memory, and how many of them nobody has.
std::optional<double> memoryLimit(const std::filesystem::path& root);
std::optional<double> freeMemory(const std::filesystem::path& root);

}  // namespace fl::host
