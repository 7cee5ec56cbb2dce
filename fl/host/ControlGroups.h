// What Linux control groups leave a process, as containers limit it: the least of what the
// process's group and those around it have, of versions 1 and 2 of control groups; nothing if no
// group has a limit. All read below `root`, which is "/".
#pragma once

#include <filesystem>
#include <optional>

namespace fl::host {

// Processors' worth of time.
std::optional<double> cpuQuota(const std::filesystem::path& root);
// Bytes of memory.
std::optional<double> memoryLimit(const std::filesystem::path& root);
// Bytes that the process can still have before the system kills for lack of them: also of what the
// machine has, with swap, and with the pages of files, which it drops first.
std::optional<double> freeMemory(const std::filesystem::path& root);

}  // namespace fl::host
