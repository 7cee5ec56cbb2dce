#include "fl/base/Text.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <limits>

#include "absl/strings/str_join.h"

namespace fl {
namespace {

bool isNameCharacter(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; }

}  // namespace

Lexer::Lexer(std::string text) : text_(std::move(text)) { advance(); }

void Lexer::advance() {
  while (next_ < text_.size()) {
    if (std::isspace(static_cast<unsigned char>(text_[next_])))
      ++next_;
    else if (text_.compare(next_, 2, "//") == 0)
      next_ = std::min(text_.find('\n', next_), text_.size());
    else
      break;
  }
  begin_ = next_;
  if (next_ < text_.size()) {
    const char first = text_[next_++];
    const bool word = isNameCharacter(first) || first == '%' || first == '@' || first == '-';
    while (word && next_ < text_.size() && isNameCharacter(text_[next_])) ++next_;
  }
  token_.assign(text_, begin_, next_ - begin_);
}

std::string Lexer::take() {
  std::string token = token_;
  advance();
  return token;
}

bool Lexer::accept(std::string_view expected) {
  if (token_ != expected) return false;
  advance();
  return true;
}

void Lexer::expect(std::string_view expected) {
  if (!accept(expected)) fail("expected \"" + std::string(expected) + "\"");
}

std::string Lexer::takeName(const char* what) {
  if (token_.empty() || !isNameCharacter(token_[0]) || std::isdigit(token_[0]))
    fail(std::string("expected ") + what);
  return take();
}

std::string Lexer::takeSigil(char sigil, const char* what) {
  if (token_.size() < 2 || token_[0] != sigil) fail(std::string("expected ") + what);
  return take().substr(1);
}

int64_t Lexer::takeInteger() {
  int64_t value = 0;
  const char* const end = token_.data() + token_.size();
  const auto [stop, error] = std::from_chars(token_.data(), end, value);
  if (error != std::errc() || stop != end) fail("expected an integer");
  advance();
  return value;
}

int Lexer::takeIndex() {
  const size_t position = begin_;
  const int64_t value = takeInteger();
  if (value < 0 || value > std::numeric_limits<int>::max())
    failAt(position, std::to_string(value) + " is no index");
  return static_cast<int>(value);
}

int Lexer::takeNumbered(char prefix, const char* what) {
  if (token_.size() < 2 || token_[0] != prefix) fail(std::string("expected ") + what);
  // What is behind the prefix becomes the token ahead.
  token_.erase(0, 1);
  ++begin_;
  return takeIndex();
}

std::vector<Dim> Lexer::takeList() {
  std::vector<Dim> values;
  expect("[");
  if (!accept("]")) {
    do {
      values.push_back(takeInteger());
    } while (accept(","));
    expect("]");
  }
  return values;
}

int64_t Lexer::takeField(std::string_view name) {
  expect(name);
  expect("=");
  return takeInteger();
}

size_t Lexer::takeSizeField(std::string_view name) {
  expect(name);
  expect("=");
  const size_t position = begin_;
  const int64_t value = takeInteger();
  if (value < 0) failAt(position, std::string(name) + " is negative");
  return static_cast<size_t>(value);
}

std::vector<Dim> Lexer::takeListField(std::string_view name) {
  expect(name);
  expect("=");
  return takeList();
}

dtype Lexer::takeDtype() {
  for (int i = 0; i < kDtypeCount; ++i) {
    const dtype type = static_cast<dtype>(i);
    if (accept(dtypeToString(type))) return type;
  }
  fail("expected a dtype");
}

void Lexer::takeType(dtype* type, Shape* shape) {
  *type = takeDtype();
  const size_t position = begin_;
  *shape = Shape(takeList());
  for (Dim dim : shape->get())
    if (dim < 0) failAt(position, "a dimension of " + std::to_string(dim));
  try {
    bytesOf(*type, *shape);
  } catch (const std::invalid_argument& error) {
    failAt(position, error.what());
  }
}

void Lexer::fail(const std::string& message) const {
  failAt(begin_, message + (token_.empty() ? " at the end" : ", not \"" + token_ + "\""));
}

void Lexer::failAt(size_t position, const std::string& message) const {
  const size_t lineBegin = position == 0 ? 0 : text_.rfind('\n', position - 1) + 1;
  const size_t lineEnd = std::min(text_.find('\n', position), text_.size());
  const auto line =
      1 + std::count(text_.begin(), text_.begin() + static_cast<ptrdiff_t>(position), '\n');
  const size_t column = position - lineBegin + 1;
  throw ParseError(std::to_string(line) + ":" + std::to_string(column) + ": " + message + "\n" +
                   text_.substr(lineBegin, lineEnd - lineBegin) + "\n" +
                   std::string(column - 1, ' ') + "^");
}

std::string listToString(const std::vector<Dim>& values) {
  return "[" + absl::StrJoin(values, ",") + "]";
}

}  // namespace fl
