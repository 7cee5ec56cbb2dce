// Lines of generated code, indented as their braces nest. Relies on fl/base/Error.h for joining
// parts.
#pragma once

#include <string>
#include <utility>

#include "fl/base/Error.h"

namespace fl::codegen::cuda {

class CodeText {
 public:
  explicit CodeText(int depth = 0) : depth_(depth) {}

  template <class... Parts>
  void line(const Parts&... parts) {
    text_.append(2 * depth_, ' ');
    text_ += detail::concat(parts..., "\n");
  }
  // A line of the block that is open, as far out as the one that began it.
  template <class... Parts>
  void label(const Parts&... parts) {
    --depth_;
    line(parts...);
    ++depth_;
  }
  // A line that begins a block, up to close().
  template <class... Parts>
  void open(const Parts&... parts) {
    line(parts..., sizeof...(parts) > 0 ? " {" : "{");
    ++depth_;
  }
  void close(const char* end = "}") {
    --depth_;
    line(end);
  }
  // Lines that were written at this depth.
  void append(const std::string& lines) { text_ += lines; }

  int depth() const { return depth_; }
  const std::string& text() const { return text_; }
  std::string take() { return std::exchange(text_, {}); }

 private:
  std::string text_;
  int depth_;
};

}  // namespace fl::codegen::cuda
