// The processor time that Linux control groups leave a process, as containers limit it.
#pragma once

#include <filesystem>
#include <optional>

namespace fl::host {

// Processors' worth of time, the least of the process's group and those around it, of versions 1
// and 2 of control groups; nothing if no group has a limit. Reads below `root`, which is "/".
std::optional<double> cpuQuota(const std::filesystem::path& root);

}  // namespace fl::host
