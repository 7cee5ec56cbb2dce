#include "tools/Values.h"

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <new>
#include <random>
#include <set>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "fl/base/Error.h"

namespace fl::tools {
namespace {

Number elementOf(const NpyArray& array, size_t index) {
  const size_t size = getTypeSize(array.type);
  uint64_t bits = 0;
  std::memcpy(&bits, &array.bytes[index * size], size);
  return Number(array.type, bits);
}

size_t countOf(const NpyArray& array) { return array.bytes.size() / getTypeSize(array.type); }

// An array of elementAt(0), elementAt(1), ..., numbers of `type`.
template <typename ElementAt>
NpyArray makeArray(dtype type, const Shape& shape, ElementAt&& elementAt) {
  const size_t size = getTypeSize(type);
  NpyArray array{type, shape, std::vector<uint8_t>(shape.elements() * size)};
  for (size_t i = 0; i < countOf(array); ++i) {
    const uint64_t bits = elementAt(i).bits();
    std::memcpy(&array.bytes[i * size], &bits, size);
  }
  return array;
}

std::string nameOf(size_t parameter) { return "p" + std::to_string(parameter); }

void expectFit(const std::string& file, dtype type, const Shape& shape, size_t index,
               const ir::Parameter& parameter) {
  const dtype wanted = parameter.type.type;
  const bool fits = type == wanted || (wanted == dtype::bf16 && type == dtype::f32);
  FL_USER_CHECK(fits && shape == parameter.type.shape, file, ": is ", typeToString(type, shape),
                ", but ", nameOf(index), " is ", parameter.number ? "a number, " : "",
                parameter.type.toString());
}

// The parameter that an array of an archive is, by its name; as many as there are for none.
size_t parameterNamed(const std::string& name, size_t count) {
  size_t i = 0;
  while (i < count && name != nameOf(i) && name != "arr_" + std::to_string(i)) {
    ++i;
  }
  return i;
}

std::string listOf(const std::vector<ir::Parameter>& parameters) {
  std::string text;
  for (size_t i = 0; i < parameters.size(); ++i) {
    text += (i ? ", " : "") + nameOf(i) + " " + parameters[i].type.toString();
  }
  return text.empty() ? "no parameters" : text;
}

std::optional<Number> numberIn(absl::string_view digits, dtype type) {
  double real = 0;
  int64_t whole = 0;
  uint64_t natural = 0;
  if (isFloating(type) && absl::SimpleAtod(digits, &real)) return Number::fromDouble(real, type);
  if (isFloating(type)) return std::nullopt;
  if (absl::SimpleAtoi(digits, &whole)) return Number::fromSigned(whole, type);
  if (absl::SimpleAtoi(digits, &natural)) return Number::fromUnsigned(natural, type);
  return std::nullopt;
}

// The system may promise more memory than there is, and kill who writes
// to it.
void expectMemoryFor(const std::vector<ir::Parameter>& parameters) {
  const double memory =
      static_cast<double>(sysconf(_SC_PHYS_PAGES)) * static_cast<double>(sysconf(_SC_PAGESIZE));
  double bytes = 0;
  for (const ir::Parameter& parameter : parameters) {
    bytes += static_cast<double>(bytesOf(parameter.type.type, parameter.type.shape));
  }
  if (bytes > memory) {
    throw std::bad_alloc();
  }
}

double toleranceOf(dtype type) {
  switch (type) {
    case dtype::f64:
      return 1e-12;
    case dtype::f32:
      return 1e-5;
    case dtype::f16:
      return 1e-2;
    default:
      return 5e-2;  // bf16
  }
}

}  // namespace

NpyArray cast(const NpyArray& array, dtype type) {
  return makeArray(type, array.shape, [&](size_t i) {
    return Number::fromDouble(elementOf(array, i).toDouble(), type);
  });
}

NpyArray mapped(const NpyArray& array, const std::function<Number(const Number&)>& function) {
  return makeArray(array.type, array.shape,
                   [&](size_t i) { return function(elementOf(array, i)); });
}

Number numberOf(const NpyArray& array) { return elementOf(array, 0); }

NpyArray arrayOf(const Number& number) {
  return makeArray(number.type(), Shape{}, [&](size_t) { return number; });
}

std::vector<NpyArray> drawInputs(const std::vector<ir::Parameter>& parameters, uint32_t seed) {
  expectMemoryFor(parameters);
  std::mt19937_64 random(seed);
  std::normal_distribution<double> normal;
  std::vector<NpyArray> inputs;
  for (const ir::Parameter& parameter : parameters) {
    const auto& [type, shape] = parameter.type;
    inputs.push_back(makeArray(type, shape, [&, type = type](size_t) {
      return isFloating(type) ? Number::fromDouble(normal(random), type)
                              : Number::fromUnsigned(random() % (type == dtype::b8 ? 2 : 4), type);
    }));
  }
  return inputs;
}

std::vector<bool> readInputs(const std::string& files, const std::vector<ir::Parameter>& parameters,
                             std::vector<NpyArray>* inputs) {
  std::vector<bool> missing(parameters.size(), true);
  const auto give = [&](NpyArray array, size_t index) {
    const dtype type = parameters[index].type.type;
    (*inputs)[index] = array.type == type ? std::move(array) : cast(array, type);
    missing[index] = false;
  };
  const std::vector<std::string> paths = absl::StrSplit(files, ',', absl::SkipEmpty());
  if (paths.size() == 1 && paths[0].ends_with(".npz")) {
    std::set<size_t> found;
    const auto check = [&](const std::string& name, dtype type, const Shape& shape) {
      const size_t index = parameterNamed(name, parameters.size());
      FL_USER_CHECK(index < parameters.size(), paths[0], ": \"", name,
                    "\" is no parameter; there are: ", listOf(parameters));
      FL_USER_CHECK(found.insert(index).second, paths[0], ": ", nameOf(index), " is in it twice");
      expectFit(paths[0] + ": " + name, type, shape, index, parameters[index]);
    };
    for (auto& [name, array] : readNpz(paths[0], check)) {
      give(std::move(array), parameterNamed(name, parameters.size()));
    }
    return missing;
  }
  for (const std::string& path : paths) {
    FL_USER_CHECK(path.ends_with(".npy"), "--inputs: ", path,
                  ": expected files of .npy, or one .npz");
  }
  FL_USER_CHECK(paths.empty() || paths.size() == parameters.size(), "--inputs: ", paths.size(),
                paths.size() == 1 ? " file for " : " files for ", listOf(parameters));
  for (size_t i = 0; i < paths.size(); ++i) {
    NpyArray array = readNpy(paths[i]);
    expectFit(paths[i], array.type, array.shape, i, parameters[i]);
    give(std::move(array), i);
  }
  return missing;
}

std::vector<bool> readNumbers(const std::string& text, const std::vector<ir::Parameter>& parameters,
                              std::vector<NpyArray>* inputs) {
  std::vector<bool> given(parameters.size(), false);
  absl::string_view line = absl::string_view(text).substr(0, text.find('\n'));
  if (!absl::ConsumePrefix(&line, "// numbers: ")) return given;
  for (absl::string_view word : absl::StrSplit(line, ' ', absl::SkipEmpty())) {
    const std::pair<absl::string_view, absl::string_view> parts =
        absl::StrSplit(word, absl::MaxSplits('=', 1));
    const size_t index = parameterNamed(std::string(parts.first), parameters.size());
    std::optional<Number> number;
    if (index < parameters.size() && parameters[index].number) {
      number = numberIn(parts.second, parameters[index].type.type);
    }
    FL_USER_CHECK(number, "the comment of numbers: \"", std::string(word), "\" gives none of ",
                  listOf(parameters));
    (*inputs)[index] = arrayOf(*number);
    given[index] = true;
  }
  return given;
}

void writeResults(const std::string& path, const std::vector<NpyArray>& results) {
  FL_USER_CHECK(path.ends_with(".npz"), "--outputs: ", path, ": expected a name that ends in .npz");
  std::map<std::string, NpyArray> arrays;
  for (size_t i = 0; i < results.size(); ++i) {
    const bool widens = results[i].type == dtype::bf16;
    arrays["r" + std::to_string(i)] = widens ? cast(results[i], dtype::f32) : results[i];
  }
  writeNpz(path, arrays);
}

double sumOf(const NpyArray& array) {
  double sum = 0;
  for (size_t i = 0; i < countOf(array); ++i) {
    sum += elementOf(array, i).toDouble();
  }
  return sum;
}

Difference compare(const NpyArray& actual, const NpyArray& expected,
                   const std::vector<dtype>& dtypes, std::optional<double> tolerance) {
  double largest = 0, worst = 0;
  for (size_t i = 0; i < countOf(expected); ++i) {
    const Number a = elementOf(actual, i), e = elementOf(expected, i);
    const double x = a.toDouble(), y = e.toDouble();
    if (std::isfinite(x) && std::isfinite(y)) {
      largest = std::max(largest, std::fabs(y));
      // Large integers may be equal as doubles.
      const double least = isFloating(a.type()) || a.bits() == e.bits() ? 0 : 1;
      worst = std::max({worst, std::fabs(x - y), least});
    } else if (x != y && !(std::isnan(x) && std::isnan(y))) {
      return {std::numeric_limits<double>::infinity(), false};
    }
  }
  const double value = largest > 0 ? worst / largest : worst;
  if (!isFloating(expected.type)) {
    return {value, value == 0};
  }
  double explained = toleranceOf(expected.type);
  for (dtype type : dtypes) {
    if (isFloating(type)) {
      explained = std::max(explained, toleranceOf(type));
    }
  }
  return {value, value <= tolerance.value_or(explained)};
}

std::string describeRule(std::optional<double> tolerance) {
  std::string rule;
  for (dtype type : {dtype::f64, dtype::f32, dtype::f16, dtype::bf16}) {
    rule +=
        detail::concat(rule.empty() ? "" : ", ", type, " ", tolerance.value_or(toleranceOf(type)));
  }
  return "check: differences allowed, relative to a result's largest element, by the coarsest "
         "dtype of all values: " +
         rule + ", others 0";
}

}  // namespace fl::tools
