// Statements of random programs that rearrange, write, read and drop values.
#include <algorithm>
#include <cstring>

#include "tests/fuzz/RandomProgram.h"

namespace fl::testing {

// ---- Rearranging ----

bool RandomProgram::applyReshape() {
  const Variable& x = any();
  std::vector<Dim> dims = x.value.tensor.shape().get();
  if (dims.empty()) {
    dims.push_back(1);
  }
  for (int round = below(3); round >= 0; --round) {
    const size_t i = below(static_cast<int>(dims.size()));
    if (chance(50) && i + 1 < dims.size()) {
      dims[i] *= dims[i + 1];
      dims.erase(dims.begin() + static_cast<ptrdiff_t>(i) + 1);
      continue;
    }
    for (Dim factor : {2, 3, 5, 1}) {
      if (dims[i] % factor == 0 && dims[i] > 0) {
        dims[i] /= factor;
        dims.insert(dims.begin() + static_cast<ptrdiff_t>(i) + below(2), factor);
        break;
      }
    }
  }
  const Shape shape(dims);
  define(Tracker::moved(x.value, reshape(x.value.tensor, shape)),
         "reshape(" + x.name + ", " + shape.toString() + ")");
  return true;
}

bool RandomProgram::applyTranspose() {
  const Variable& x = any();
  std::vector<Dim> axes;
  for (int i = 0; i < x.value.tensor.ndim(); ++i) {
    axes.insert(axes.begin() + below(i + 1), i);
  }
  if (axes.size() < 2) {
    return false;
  }
  define(Tracker::moved(x.value, transpose(x.value.tensor, Shape(axes))),
         "transpose(" + x.name + ", " + Shape(axes).toString() + ")");
  return true;
}

// Sizes and strides belong to the structure, starts to the data.
std::vector<Index> RandomProgram::anyIndices(const Shape& shape, std::string* text) {
  std::vector<Index> indices;
  const int count = 1 + below(shape.ndim());
  for (int i = 0; i < count; ++i) {
    const int kind = below(4);
    const Dim size = shape[i];
    const char* separator = i ? ", " : "";
    if (kind == 0) {
      indices.emplace_back(span);
      *text += std::string(separator) + "span";
    } else if (kind == 1) {
      const Dim index = static_cast<Dim>(data_() % static_cast<uint64_t>(size)),
                counted = data_() % 2 ? index : index - size;
      indices.emplace_back(counted);
      *text += separator + std::to_string(counted);
    } else {
      indices.emplace_back(anyRange(size, text, separator));
    }
  }
  return indices;
}

range RandomProgram::anyRange(Dim size, std::string* text, const char* separator) {
  const Dim stride = 1 + below(3), length = 1 + below(static_cast<int>((size - 1) / stride) + 1);
  const Dim reach = (length - 1) * stride + 1;
  const bool toEnd = chance(25);
  const Dim starts = toEnd ? std::min(stride, size - reach + 1) : size - reach + 1;
  const Dim drawn = static_cast<Dim>(data_() % static_cast<uint64_t>(starts));
  const Dim start = toEnd ? size - reach - drawn : drawn, end = start + reach;
  // Counted from the end, where that is not the end itself.
  const Dim from = data_() % 2 ? start : start - size;
  const Dim to = data_() % 2 || end == size ? end : end - size;
  *text += separator + std::to_string(from) + ":" + (toEnd ? "end" : std::to_string(to)) + ":" +
           std::to_string(stride);
  return toEnd ? range(from, fl::end, stride) : range(from, to, stride);
}

bool RandomProgram::applySlice() {
  Variable& x = any();
  const Shape shape = x.value.tensor.shape();
  if (shape.ndim() == 0 || shape.elements() == 0) {
    return false;
  }
  std::string text = x.name + "(";
  const std::vector<Index> indices = anyIndices(shape, &text);
  text += ")";
  const int storage = x.storage;
  const bool alias = chance(30);
  if (!alias) {
    define(Tracker::moved(x.value, x.value.tensor(indices).copy()), text + ".copy()");
    return true;
  }
  Value view{x.value.tensor(indices), x.value.exact, x.value.error};
  define(std::move(view), text);
  variables_.back().storage = storage;
  return true;
}

bool RandomProgram::applyConcatenate() {
  const Variable& x = any();
  const Shape& shape = x.value.tensor.shape();
  if (shape.ndim() == 0 || shape.elements() > kMaxElements / 3) {
    return false;
  }
  const int axis = below(shape.ndim());
  std::vector<Tensor> parts = {x.value.tensor};
  std::string text = "concatenate({" + x.name;
  Value sum{Tensor(), x.value.exact, x.value.error};
  for (const Variable& y : variables_) {
    Shape other = y.value.tensor.shape();
    if (other.ndim() != shape.ndim() || y.value.tensor.type() != x.value.tensor.type() ||
        parts.size() == 3) {
      continue;
    }
    other[axis] = shape[axis];
    if (other == shape) {
      parts.push_back(y.value.tensor);
      text += ", " + y.name;
      sum.exact = sum.exact && y.value.exact;
      sum.error = std::max(sum.error, y.value.error);
    }
  }
  sum.tensor = concatenate(parts, axis);
  define(std::move(sum), text + "}, " + std::to_string(axis) + ")");
  return true;
}

bool RandomProgram::applyPad() {
  const Variable& x = any();
  const Shape& shape = x.value.tensor.shape();
  const PadType type = chance(60)   ? PadType::Constant
                       : chance(50) ? PadType::Edge
                                    : PadType::Symmetric;
  if (shape.ndim() == 0 || shape.elements() == 0 || shape.elements() > 2000) {
    return false;
  }
  std::vector<std::pair<int, int>> widths;
  std::string text;
  for (int i = 0; i < shape.ndim() && i < 3; ++i) {
    const int most = static_cast<int>(std::min<Dim>(shape[i], 3)) + 1;
    const int before = below(most), after = below(most);
    widths.emplace_back(before, after);
    text += " " + std::to_string(widths.back().first) + "," + std::to_string(widths.back().second);
  }
  define(Tracker::moved(x.value, pad(x.value.tensor, widths, type)),
         "pad(" + x.name + "," + text + ", " + std::to_string(static_cast<int>(type)) + ")");
  return true;
}

bool RandomProgram::applyTile() {
  const Variable& x = any();
  Shape times;
  for (int i = below(2); i < std::min(x.value.tensor.ndim() + 1, 4); ++i) {
    times.get().push_back(chance(60) ? 1 : 2);
  }
  if (x.value.tensor.elements() > 3000) {
    return false;
  }
  define(Tracker::moved(x.value, tile(x.value.tensor, times)),
         "tile(" + x.name + ", " + times.toString() + ")");
  return true;
}

bool RandomProgram::applyFlip() {
  const Variable& x = any();
  const int axis = anyAxis(x.value.tensor.shape());
  define(Tracker::moved(x.value, flip(x.value.tensor, axis)),
         "flip(" + x.name + ", " + std::to_string(axis) + ")");
  return true;
}

// ---- Writing and reading ----

bool RandomProgram::copyVariable() {
  const Variable& x = any();
  define(Value(x.value), "copy " + x.name);
  return true;
}

bool RandomProgram::updateWhole() {
  Variable& x = any();
  const auto withoutTrailingOnes = [](Shape shape) {
    while (shape.ndim() > 0 && shape.get().back() == 1) {
      shape.get().pop_back();
    }
    return shape;
  };
  const Shape shape = withoutTrailingOnes(x.value.tensor.shape());
  const int kind = below(4);
  const BinaryRow& row = binaryRows()[kind];
  const Variable* y = nullptr;
  for (const Variable& other : variables_) {
    if (withoutTrailingOnes(other.value.tensor.shape()) == shape &&
        other.value.tensor.type() == x.value.tensor.type() && chance(70)) {
      y = &other;
    }
  }
  if (!y) {
    return false;
  }
  const std::optional<Value> divisor =
      kind == 3 ? std::optional(asDivisor(y->value)) : std::nullopt;
  const Value& source = divisor ? *divisor : y->value;
  const Value changed = tracker_.binary(row, x.value, source);
  switch (kind) {
    case 0:
      x.value.tensor += source.tensor;
      break;
    case 1:
      x.value.tensor -= source.tensor;
      break;
    case 2:
      x.value.tensor *= source.tensor;
      break;
    default:
      x.value.tensor /= source.tensor;
      break;
  }
  text_ += x.name + " = " + row.name + "(" + x.name + ", " + y->name + ") in place\n";
  written(x, changed);
  return true;
}

bool RandomProgram::updateView() {
  Variable& x = any();
  const Shape shape = x.value.tensor.shape();
  if (shape.ndim() == 0 || shape.elements() == 0) {
    return false;
  }
  std::string text = x.name + "(";
  const std::vector<Index> indices = anyIndices(shape, &text);
  Value view{x.value.tensor(indices).copy(), x.value.exact, x.value.error};
  if (chance(30)) {
    text_ += text + ") = number\n";
    x.value.tensor(indices) = anyNumber();
    return true;
  }
  input(view.tensor.shape(), x.value.tensor.type());
  Value source = tracker_.unary(unaryRow("negative"), variables_.back().value);
  const char* const kForms[] = {"add", "sub", "mul", "div", "="};
  const int form = below(5);
  source = form == 3 ? asDivisor(source) : source;
  text_ += text + ") " + kForms[form] + " negative(" + variables_.back().name + ")\n";
  written(x, form == 4 ? source : tracker_.binary(binaryRow(kForms[form]), view, source));
  switch (form) {
    case 0:
      x.value.tensor(indices) += source.tensor;
      break;
    case 1:
      x.value.tensor(indices) -= source.tensor;
      break;
    case 2:
      x.value.tensor(indices) *= source.tensor;
      break;
    case 3:
      x.value.tensor(indices) /= source.tensor;
      break;
    default:
      x.value.tensor(indices) = source.tensor;
  }
  return true;
}

bool RandomProgram::readAny() {
  read(any());
  return true;
}

bool RandomProgram::readScalar() {
  Variable& x = any();
  const Tensor& tensor = x.value.tensor;
  if (tensor.isEmpty() || (tame_ && !x.value.exact)) {
    return false;
  }
  const Dim place = static_cast<Dim>(data_() % static_cast<uint64_t>(tensor.elements()));
  const double read = tensor.flat(place).asScalar<double>();
  text_ += "asScalar of " + x.name + "\n";
  reads_.push_back({"an element of " + x.name,
                    dtype::f64,
                    {},
                    std::string(sizeof read, '\0'),
                    x.value.exact,
                    0});
  std::memcpy(reads_.back().bytes.data(), &read, sizeof read);
  return true;
}

// Writes a byte of every element's where it stands: 1, which makes no NaN.
bool RandomProgram::lockAny() {
  Variable& x = any();
  Tensor& tensor = x.value.tensor;
  const dtype type = tensor.type();
  if (tensor.isEmpty() || isFloating(type)) {
    return false;
  }
  const bool isOnHost = tensor.value()->data()->memory() == nullptr;
  void* elements = nullptr;
  tensor.device(&elements);
  fl::sync();  // a device may have yet to write there
  const auto write = [&](void* memory) {
    for (size_t at = 0; at < tensor.bytes(); at += 3 * getTypeSize(type)) {
      static_cast<char*>(memory)[at] = 1;
    }
  };
  if (isOnHost) {
    write(elements);
    tensor.unlock();
  } else {
    tensor.unlock();
    const MemoryBlockPtr block = tensor.value()->data(), onHost = block->onHost();
    write(onHost->data());
    block->assign(onHost->data());
  }
  text_ += "write into the memory of " + x.name + "\n";
  return true;
}

bool RandomProgram::dropAny() {
  if (variables_.size() < 2) {
    return false;
  }
  const int victim = below(static_cast<int>(variables_.size()));
  text_ += "drop " + variables_[victim].name + "\n";
  variables_.erase(variables_.begin() + victim);
  return true;
}

bool RandomProgram::endSegment() {
  Variable& x = any();
  text_ += "eval " + x.name + "\n";
  eval(x.value.tensor);
  return true;
}

}  // namespace fl::testing
