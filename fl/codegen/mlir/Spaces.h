// Names and maps of loops over a space, of which the last axis is the outermost.
#pragma once

#include <algorithm>
#include <numeric>
#include <string>
#include <vector>

namespace fl::codegen::mlir {

// The loops of a space are its axes from the last one on, as dimensions of tensors are.
inline std::string loopName(int axis, int rank) { return "d" + std::to_string(rank - 1 - axis); }

inline std::string join(const std::vector<std::string>& parts) {
  std::string text;
  for (const std::string& part : parts) text += (text.empty() ? "" : ", ") + part;
  return text;
}

// Of the dimensions of a tensor, for MLIR.
inline std::string reversed(std::vector<std::string> parts) {
  std::reverse(parts.begin(), parts.end());
  return join(parts);
}

inline std::vector<int> firstAxes(int count, int from = 0) {
  std::vector<int> axes(count);
  std::iota(axes.begin(), axes.end(), from);
  return axes;
}

inline std::string affineMap(const std::vector<std::string>& dimensions, int rank) {
  std::vector<std::string> loops;
  for (int axis = rank - 1; axis >= 0; --axis) loops.push_back(loopName(axis, rank));
  return "affine_map<(" + join(loops) + ") -> (" + reversed(dimensions) + ")>";
}

}  // namespace fl::codegen::mlir
