#include "tests/reference/References.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <iostream>
#include <limits>
#include <set>
#include <sstream>

namespace fl::test {
namespace {

std::vector<std::string> split(const std::string& text, char separator) {
  std::vector<std::string> parts;
  std::istringstream in(text);
  for (std::string part; std::getline(in, part, separator);) {
    parts.push_back(part);
  }
  return parts;
}

// The arrays of a file by their names, which Answers.write() of answers.py has packed: a member a
// dtype with the elements of all its arrays, and "names" with a line for each: "f32[4,3] matrix".
std::map<std::string, NpyArray> readArrays(const std::string& file) {
  const auto members = readNpz("tests/reference/" + file + ".npz");
  const std::vector<uint8_t>& names = members.at("names").bytes;
  std::istringstream lines(std::string(names.begin(), names.end()));
  std::map<std::string, size_t> used;  // bytes of each member
  std::map<std::string, NpyArray> arrays;
  for (std::string line; std::getline(lines, line);) {
    const size_t open = line.find('['), close = line.find(']');
    const std::string type = line.substr(0, open);
    NpyArray array{stringToDtype(type), {}, {}};
    for (const std::string& dim : split(line.substr(open + 1, close - open - 1), ',')) {
      array.shape.get().push_back(std::stoll(dim));
    }
    const auto begin = members.at(type).bytes.begin() + used[type];
    const size_t size = bytesOf(array.type, array.shape);
    array.bytes.assign(begin, begin + size);
    used[type] += size;
    arrays.emplace(line.substr(close + 2), std::move(array));
  }
  return arrays;
}

Tensor toTensor(const NpyArray& array) {
  return Tensor::fromBuffer(array.shape, array.type, array.bytes.data(), Location::Host);
}

template <typename T>
double toDouble(T value) {
  if constexpr (std::is_same_v<T, bfloat16>) {
    return static_cast<float>(value);
  } else {
    return static_cast<double>(value);
  }
}

double epsilonOf(dtype type) {
  return type == dtype::f16    ? std::ldexp(1, -10)
         : type == dtype::bf16 ? std::ldexp(1, -7)
         : type == dtype::f32  ? std::numeric_limits<float>::epsilon()
                               : std::numeric_limits<double>::epsilon();
}

// Integers are equal; floats as ReferenceCase::expect says.
template <typename T>
bool agree(const T& actual, const T& expected, dtype type, double ulps) {
  if (std::memcmp(&actual, &expected, sizeof(T)) == 0 || !isFloating(type)) {
    return std::memcmp(&actual, &expected, sizeof(T)) == 0;
  }
  const double a = toDouble(actual), e = toDouble(expected);
  if (!std::isfinite(e)) {
    return std::isnan(e) && std::isnan(a);
  }
  return ulps > 0 && std::abs(a - e) <= ulps * epsilonOf(type) * std::abs(e);
}

}  // namespace

std::string difference(const Tensor& actual, const NpyArray& expected, double ulps) {
  return dispatchType(expected.type, [&](auto tag) -> std::string {
    using T = typename decltype(tag)::type;
    std::vector<T> values(expected.bytes.size() / sizeof(T)), wanted(values.size());
    std::copy(expected.bytes.begin(), expected.bytes.end(), reinterpret_cast<char*>(wanted.data()));
    actual.host(static_cast<void*>(values.data()));
    for (size_t i = 0; i < values.size(); ++i) {
      if (!agree(values[i], wanted[i], expected.type, ulps)) {
        std::ostringstream os;
        os.precision(17);
        os << "element " << i << " is " << toDouble(values[i]) << " instead of "
           << toDouble(wanted[i]);
        return os.str();
      }
    }
    return "";
  });
}

namespace {

// "", "3", "-2"
range::idx rangeEnd(const std::string& text) {
  return text.empty() ? range::idx(end) : range::idx(Dim{std::stoll(text)});
}

std::set<std::string> caseNames(const std::map<std::string, NpyArray>& arrays) {
  std::set<std::string> names;
  for (const auto& [name, array] : arrays) {
    if (name.find('/') != std::string::npos) {
      names.insert(name.substr(0, name.find('/')));
    }
  }
  return names;
}

// ":", "2:", "0:-1:2"
Index parseRange(const std::string& text) {
  if (text == ":") {
    return span;
  }
  std::vector<std::string> parts = split(text + ":", ':');
  parts.resize(3);
  const Dim start = parts[0].empty() ? 0 : std::stoll(parts[0]);
  return range(start, rangeEnd(parts[1]), parts[2].empty() ? 1 : std::stoll(parts[2]));
}

}  // namespace

ReferenceCase::ReferenceCase(const std::map<std::string, NpyArray>& arrays, const std::string& name)
    : arrays_(arrays), name_(name) {
  std::vector<std::string> words = split(name, ' ');
  op_ = words[0];
  for (size_t i = 1; i < words.size(); ++i) {
    const size_t equals = words[i].find('=');
    arguments_[words[i].substr(0, equals)] = words[i].substr(equals + 1);
  }
  for (auto it = arrays.lower_bound(name + "/"); it != arrays.end(); ++it) {
    if (!it->first.starts_with(name + "/")) {
      break;
    }
    comparisons_[it->first.substr(name.size() + 1)] = 0;
  }
}

std::vector<int> ReferenceCase::integers(const std::string& key) const {
  std::vector<int> values;
  for (const std::string& part : split(text(key), ',')) {
    values.push_back(std::stoi(part));
  }
  return values;
}

std::vector<Tensor> ReferenceCase::tensors(const std::string& key) const {
  std::vector<Tensor> result;
  for (const std::string& part : split(text(key), ',')) {
    result.push_back(input(part));
  }
  return result;
}

Tensor ReferenceCase::tensor(const std::string& key) const { return input(text(key)); }

Tensor ReferenceCase::input(const std::string& name) const { return toTensor(arrays_.at(name)); }

std::vector<std::vector<Index>> ReferenceCase::levels() const {
  std::vector<std::vector<Index>> result;
  for (const std::string& level : split(text(has("flat") ? "flat" : "at"), '|')) {
    result.emplace_back();
    for (const std::string& item : split(level, ';')) {
      if (item[0] == '@') {
        result.back().emplace_back(toTensor(arrays_.at(item.substr(1))));
      } else if (item.find(':') != std::string::npos) {
        result.back().push_back(parseRange(item));
      } else {
        result.back().emplace_back(Dim{std::stoll(item)});
      }
    }
  }
  return result;
}

// By recursion, because a view that is assigned to a variable is a view no more.
Tensor ReferenceCase::part(const Tensor& x, size_t level) const {
  const auto at = levels();
  if (has("flat")) {
    return x.flat(at[0][0]);
  }
  return level + 1 == at.size() ? x(at[level]) : part(x(at[level]), level + 1);
}

void ReferenceCase::expect(const std::string& result, const Tensor& actual, double ulps) {
  expectAs(arrays_.at(name_ + "/" + result).shape, result, actual, ulps);
}

void ReferenceCase::expectAs(const Shape& shape, const std::string& result, const Tensor& actual,
                             double ulps) {
  const NpyArray& expected = arrays_.at(name_ + "/" + result);
  ++comparisons_.at(result);
  EXPECT_EQ(actual.type(), expected.type) << name_ << ": " << result;
  EXPECT_EQ(actual.shape(), shape) << name_ << ": " << result;
  if (actual.type() == expected.type && actual.shape() == shape) {
    EXPECT_EQ(difference(actual, expected, ulps), "") << name_ << ": " << result;
  }
}

void ReferenceCase::expectNear(const std::string& result, const Tensor& actual, double tolerance,
                               double floor) {
  const Tensor expected = toTensor(arrays_.at(name_ + "/" + result));
  ++comparisons_.at(result);
  EXPECT_EQ(actual.type(), expected.type()) << name_ << ": " << result;
  ASSERT_EQ(actual.shape(), expected.shape()) << name_ << ": " << result;
  const auto values = [](const Tensor& x) { return x.astype(dtype::f64).toHostVector<double>(); };
  const std::vector<double> found = values(actual), wanted = values(expected);
  for (const double value : wanted) {
    EXPECT_TRUE(std::isfinite(value)) << name_ << ": " << result << ": nothing is near " << value;
    floor = std::max(floor, 0.1 * std::abs(value));
  }
  for (size_t i = 0; i < wanted.size(); ++i) {
    EXPECT_LE(std::abs(found[i] - wanted[i]), tolerance * std::max(std::abs(wanted[i]), floor))
        << name_ << ": " << result << ": element " << i << " is " << found[i] << " instead of "
        << wanted[i];
  }
}

void ReferenceCase::expectAllCompared() const {
  EXPECT_FALSE(comparisons_.empty()) << name_;
  for (const auto& [result, count] : comparisons_) {
    EXPECT_GT(count, 0) << name_ << ": " << result << " was not compared";
  }
}

Shape shapeWithout(const Shape& shape, const std::vector<int>& axes) {
  Shape left;
  for (int i = 0; i < shape.ndim(); ++i) {
    if (!axes.empty() && std::find(axes.begin(), axes.end(), i) == axes.end()) {
      left.get().push_back(shape[i]);
    }
  }
  return left;
}

void runReferences(const std::string& file, const ReferenceHandlers& handlers) {
  const auto arrays = readArrays(file);
  std::set<std::string> operators;
  const std::set<std::string> cases = caseNames(arrays);
  for (const std::string& name : cases) {
    ReferenceCase reference(arrays, name);
    operators.insert(reference.op());
    const auto handler = handlers.find(reference.op());
    ASSERT_NE(handler, handlers.end()) << "no handler for " << name;
    try {
      handler->second(reference);
    } catch (const std::exception& error) {
      ADD_FAILURE() << name << ": " << error.what();
      continue;
    }
    reference.expectAllCompared();
  }
  EXPECT_EQ(operators.size(), handlers.size()) << "a handler of " << file << " has no case";
  std::cout << file << ": " << cases.size() << " cases" << std::endl;
}

ReferenceCounts countReferences(const std::vector<std::string>& files) {
  ReferenceCounts counts;
  for (const std::string& file : files) {
    const auto arrays = readArrays(file);
    for (const std::string& name : caseNames(arrays)) {
      const ReferenceCase reference(arrays, name);
      // The first of several tensors.
      const dtype type = reference.has("type") ? stringToDtype(reference.text("type"))
                                               : reference.tensors("x").at(0).type();
      ++counts[reference.op()][type];
    }
  }
  return counts;
}

}  // namespace fl::test
