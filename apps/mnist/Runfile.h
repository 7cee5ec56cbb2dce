// Finds files that Bazel keeps beside a program: those named in its `data`.
#pragma once

#include <string>

namespace fl::app {

// The path of `name`, a path in the workspace ("tests/data/digits/NOTICE.md"); empty where the
// program runs without it. Works under `bazel run`, `bazel test`, and when the program is started
// from bazel-bin.
std::string runfile(const std::string& name);

}  // namespace fl::app
