// The lexer and small writers that every .flir form shares. A parse error carries line, column and
// a caret.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

#include "fl/base/Shape.h"

namespace fl {

class ParseError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// Splits text into names ([A-Za-z_][A-Za-z0-9_]*), integers, %values, @symbols and single
// characters; skips white space and // comments.
class Lexer {
 public:
  explicit Lexer(std::string text);

  bool atEnd() const { return token_.empty(); }
  // The token ahead, "" at the end.
  const std::string& peek() const { return token_; }
  std::string take();
  // Takes the token if it is `expected`.
  bool accept(std::string_view expected);
  void expect(std::string_view expected);
  std::string takeName(const char* what);
  // A token that begins with `sigil`; returned without it.
  std::string takeSigil(char sigil, const char* what);
  int64_t takeInteger();
  // An integer from 0 to the largest int: a place in a list.
  int takeIndex();
  // Such an integer behind `prefix`, in one token: "%12", "p0".
  int takeNumbered(char prefix, const char* what);
  // "[1,2,3]"
  std::vector<Dim> takeList();
  // "name=integer", the same from 0 on, and "name=[...]"
  int64_t takeField(std::string_view name);
  size_t takeSizeField(std::string_view name);
  std::vector<Dim> takeListField(std::string_view name);
  dtype takeDtype();
  // "f32[3,4]"
  void takeType(dtype* type, Shape* shape);
  // Where the token ahead begins.
  size_t position() const { return begin_; }
  // Throws ParseError at the token ahead, which is not what the message says.
  [[noreturn]] void fail(const std::string& message) const;
  // Throws ParseError at an earlier position().
  [[noreturn]] void failAt(size_t position, const std::string& message) const;

 private:
  void advance();

  std::string text_;
  size_t begin_ = 0;  // of token_
  size_t next_ = 0;   // behind token_
  std::string token_;
};

// "[1,2,3]"
std::string listToString(const std::vector<Dim>& values);

}  // namespace fl
