#include "tests/lazy/RandomProgram.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

namespace fl::testing {
namespace {

constexpr Dim kMaxElements = 60000;
constexpr size_t kMaxVariables = 14;
// Dense programs keep to this many of the first statements, which fuse into large kernels.
constexpr size_t kDenseStatements = 9;

std::string joined(const std::vector<int>& values) {
  std::string text = "{";
  for (size_t i = 0; i < values.size(); ++i) {
    text += (i ? ", " : "") + std::to_string(values[i]);
  }
  return text + "}";
}

double specialNumber(uint64_t word) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  const double table[] = {0.0, -0.0, kInfinity, -kInfinity, std::nan(""), 1e-42, -3e-40,
                          3e38, 6e4, -1.0, 255, 2147483648.0, 1e19, 0.5};
  return table[word % std::size(table)];
}

// What two shapes broadcast to; nothing if they do not, or to more elements than programs may hold.
std::optional<Shape> broadcastOf(const Shape& a, const Shape& b) {
  Shape shape = a.ndim() >= b.ndim() ? a : b;
  for (int i = 0; i < std::min(a.ndim(), b.ndim()); ++i) {
    if (a[i] != b[i] && a[i] != 1 && b[i] != 1) {
      return std::nullopt;
    }
    shape[i] = a[i] == 1 ? b[i] : a[i];
  }
  return shape.elements() <= kMaxElements ? std::optional(shape) : std::nullopt;
}

template <typename Rows>
const auto& rowNamed(const Rows& rows, const std::string& name) {
  return *std::find_if(rows.begin(), rows.end(), [&](const auto& row) { return row.name == name; });
}

}  // namespace

RandomProgram::RandomProgram(const ProgramOptions& options)
    : structure_(options.seed), data_(options.seed * 1000003 + options.variant + 1),
      tracker_(options.measure), tame_(chance(60)), dense_(chance(25)) {
  static const Dim kSizes[] = {1, 2, 3, 4, 5, 7, 8, 15, 16, 17, 32, 33, 70};
  mainType_ = chance(70) ? dtype::f32 : anyType();
  const int rank = chance(6) ? 5 + below(2) : 1 + below(4);
  if (chance(12)) {  // large enough for several threads
    base_ = Shape({static_cast<Dim>(100 + below(400)), static_cast<Dim>(50 + below(80))});
  } else if (chance(5)) {
    base_ = Shape({static_cast<Dim>(20000 + below(40000))});
  } else {
    while (base_.ndim() < rank) {
      const Dim size = rank > 4 ? 1 + below(4) : kSizes[below(std::size(kSizes))];
      base_.get().push_back(base_.elements() * size > 8000 ? 2 : size);
    }
  }
  if (chance(3)) {
    base_[below(base_.ndim())] = 0;
  }
  setSeed(static_cast<int>(options.seed % 1000 + options.variant));
  variables_.reserve(4 * kMaxVariables);  // statements hold references while they define
}

std::vector<HostValue> RandomProgram::run() {
  static const auto& kStatements = *new std::vector<Weighted>{
      {&RandomProgram::applyUnary, 20},    {&RandomProgram::applyBinary, 25},
      {&RandomProgram::applyScalar, 8},    {&RandomProgram::applyWhere, 5},
      {&RandomProgram::applyReduce, 16},   {&RandomProgram::applySoftmax, 5},
      {&RandomProgram::applyLayerNorm, 3}, {&RandomProgram::makeInput, 5},
      {&RandomProgram::makeRandom, 3},     {&RandomProgram::makeSequence, 2},
      {&RandomProgram::applyCast, 5},      {&RandomProgram::applyMatmul, 4},
      {&RandomProgram::applyReshape, 6},   {&RandomProgram::applyTranspose, 7},
      {&RandomProgram::applySlice, 6},     {&RandomProgram::applyConcatenate, 4},
      {&RandomProgram::applyPad, 3},       {&RandomProgram::applyTile, 2},
      {&RandomProgram::applyFlip, 2},      {&RandomProgram::copyVariable, 2},
      {&RandomProgram::updateWhole, 4},    {&RandomProgram::updateView, 5},
      {&RandomProgram::readAny, 2},        {&RandomProgram::dropAny, 8},
      {&RandomProgram::endSegment, 1}};
  int total = 0;
  for (const Weighted& entry : kStatements) {
    total += entry.weight;
  }
  input(base_, mainType_);
  input(relatedShape(), mainType_);
  const int statements = 4 + below(dense_ ? 120 : chance(15) ? 90 : 30);
  for (int done = 0, tried = 0; done < statements && tried < 10 * statements; ++tried) {
    int ticket = below(total);
    size_t chosen = 0;
    while (ticket >= kStatements[chosen].weight) {
      ticket -= kStatements[chosen++].weight;
    }
    if (!dense_ || chosen < kDenseStatements || chance(5)) {
      done += (this->*kStatements[chosen].statement)();
    }
    while (variables_.size() > kMaxVariables) {
      dropAny();
    }
  }
  for (const Variable& variable : variables_) {
    read(variable);
  }
  return std::move(reads_);
}

// ---- Choices ----

dtype RandomProgram::anyType() {
  static const dtype kTypes[] = {dtype::f32, dtype::f32, dtype::f64, dtype::f16, dtype::bf16,
                                 dtype::s32, dtype::s32, dtype::s64, dtype::u8,  dtype::b8,
                                 dtype::s16, dtype::u16, dtype::u32, dtype::u64};
  return kTypes[below(std::size(kTypes))];
}

dtype RandomProgram::anyFloat() {
  static const dtype kTypes[] = {dtype::f32, dtype::f32, dtype::f32, dtype::f64, dtype::f16,
                                 dtype::bf16};
  return kTypes[below(std::size(kTypes))];
}

Shape RandomProgram::relatedShape() {
  Shape shape = base_;
  for (Dim& dim : shape.get()) {
    dim = chance(25) ? 1 : dim;
  }
  if (chance(20)) {
    shape.get().resize(below(shape.ndim() + 1));
  }
  return shape;
}

RandomProgram::Variable& RandomProgram::any() {
  const int count = static_cast<int>(variables_.size());
  return variables_[std::max(below(count), chance(60) ? below(count) : 0)];
}

const RandomProgram::Variable* RandomProgram::compatible(const Variable& with, bool sameType) {
  std::vector<const Variable*> found;
  const Shape& shape = with.value.tensor.shape();
  for (const Variable& variable : variables_) {
    const bool sameTypes = variable.value.tensor.type() == with.value.tensor.type();
    if ((sameTypes || !sameType) && broadcastOf(shape, variable.value.tensor.shape())) {
      found.push_back(&variable);
    }
  }
  return found.empty() ? nullptr : found[below(static_cast<int>(found.size()))];
}

std::vector<int> RandomProgram::anyAxes(int rank) {
  if (dense_ && rank > 0 && chance(80)) {
    return {chance(70) ? 0 : rank - 1};
  }
  std::vector<int> axes;
  for (int i = 0; i < rank; ++i) {
    if (chance(50)) {
      axes.push_back(i);
    }
  }
  return axes;
}

double RandomProgram::anyNumber() {
  if (!tame_ && data_() % 12 == 0) {
    return specialNumber(data_());
  }
  return static_cast<double>(static_cast<int64_t>(data_() % 8001) - 4000) / 1000;
}

// ---- Variables ----

std::string RandomProgram::define(Value value, const std::string& text) {
  const std::string name = "v" + std::to_string(names_++);
  text_ += name + " = " + text + "  // " +
           typeToString(value.tensor.type(), value.tensor.shape()) + "\n";
  variables_.push_back({name, std::move(value), storages_++});
  return name;
}

void RandomProgram::input(const Shape& shape, dtype type) {
  const size_t size = getTypeSize(type);
  std::string bytes(static_cast<size_t>(shape.elements()) * size, '\0');
  for (size_t at = 0; at < bytes.size(); at += size) {
    const Number element = isFloating(type) || data_() % 2
                               ? Number::fromDouble(anyNumber(), type)
                               : Number::fromSigned(static_cast<int64_t>(data_() % 21) - 10, type);
    const uint64_t bits = element.bits();
    std::copy_n(reinterpret_cast<const char*>(&bits), size, &bytes[at]);
  }
  define({Tensor::fromBuffer(shape, type, reinterpret_cast<const uint8_t*>(bytes.data()),
                             Location::Host)},
         "input");
}

void RandomProgram::read(const Variable& variable) {
  const Tensor& tensor = variable.value.tensor;
  HostValue host{variable.name, tensor.type(), tensor.shape(), std::string(tensor.bytes(), '\0'),
                 variable.value.exact, variable.value.error};
  if (!tensor.isEmpty()) {
    defaultTensorBackend().toHost(tensor.value(), host.bytes.data());
  }
  text_ += "read " + variable.name + "\n";
  reads_.push_back(std::move(host));
}

// All that alias the target now hold what was written.
void RandomProgram::written(const Variable& target, const Value& source) {
  const int storage = target.storage;
  for (Variable& variable : variables_) {
    if (variable.storage == storage) {
      variable.value.exact = variable.value.exact && source.exact;
      variable.value.error = std::max(variable.value.error, source.error);
    }
  }
}

Value RandomProgram::intoDomain(const UnaryRow& row, const Value& x) {
  if (!tame_ || (row.clamp == 0 && row.away == 0)) {
    return x;
  }
  if (!isFloating(x.tensor.type())) {
    return intoDomain(row, tracker_.cast(x, dtype::f32));
  }
  if (row.clamp > 0) {
    const dtype type = x.tensor.type();
    return Tracker::moved(x, clip(x.tensor, -row.clamp, row.clamp).astype(type));
  }
  if (row.away > 0) {
    const Value size = tracker_.unary(rowNamed(unaryRows(), "absolute"), x);
    return Tracker::moved(size, size.tensor + row.away);
  }
  return x;
}

// ---- Sources ----

bool RandomProgram::makeInput() {
  input(relatedShape(), chance(60) ? mainType_ : anyType());
  return true;
}

bool RandomProgram::makeRandom() {
  const Shape shape = relatedShape();
  const dtype type = anyFloat();
  if (chance(70)) {
    define({rand(shape, type)}, "rand(" + shape.toString() + ")");
  } else {
    Value value{randn(shape, type), false, 100 * unitOf(type)};
    define(std::move(value), "randn(" + shape.toString() + ")");
  }
  return true;
}

bool RandomProgram::makeSequence() {
  const Shape shape = relatedShape();
  const dtype type = chance(50) ? mainType_ : anyType();
  if (shape.ndim() == 0 || chance(30)) {
    define({full(shape, anyNumber(), type)}, "full(" + shape.toString() + ")");
  } else {
    const int axis = below(shape.ndim());
    define({arange(shape, axis, type)},
           "arange(" + shape.toString() + ", " + std::to_string(axis) + ")");
  }
  return true;
}

// ---- Element by element ----

bool RandomProgram::applyUnary() {
  const UnaryRow& row = unaryRows()[below(static_cast<int>(unaryRows().size()))];
  const Variable& x = any();
  if (tame_ && row.accuracy == Accuracy::Step && !x.value.exact) {
    return false;
  }
  define(tracker_.unary(row, intoDomain(row, x.value)),
         std::string(row.name) + "(" + x.name + ")");
  return true;
}

bool RandomProgram::applyBinary() {
  const BinaryRow& row = binaryRows()[chance(60) ? below(6) : below(21)];
  const Variable& x = any();
  const Variable* y = compatible(x, chance(70));
  if (!y) {
    return false;
  }
  const bool integers = !isFloating(x.value.tensor.type()) && !isFloating(y->value.tensor.type());
  using Rule = BinaryRow::Rule;
  if ((row.rule == Rule::Integer && !integers) ||
      (tame_ && row.rule == Rule::Step && !(x.value.exact && y->value.exact)) ||
      (tame_ && row.rule == Rule::Div && integers && chance(50))) {
    return false;
  }
  Value lhs = x.value, rhs = y->value;
  if (row.rule == Rule::Power && tame_) {
    static const UnaryRow kBase{"", nullptr, Accuracy::Rounded, 1, 3};
    lhs = intoDomain(rowNamed(unaryRows(), "log"), intoDomain(kBase, lhs));
    rhs = intoDomain(kBase, rhs);
  } else if (row.rule == Rule::Div && tame_ && !integers) {
    rhs = intoDomain(rowNamed(unaryRows(), "log"), rhs);
  }
  define(tracker_.binary(row, lhs, rhs), std::string(row.name) + "(" + x.name + ", " + y->name + ")");
  return true;
}

bool RandomProgram::applyScalar() {
  const Variable& x = any();
  const BinaryRow& row = binaryRows()[below(6)];
  const double operand = row.rule == BinaryRow::Rule::Div && tame_ ? 1.5 : anyNumber();
  const Tensor scalar = fromScalar(operand, isFloating(x.value.tensor.type())
                                                ? x.value.tensor.type()
                                                : (chance(50) ? dtype::f32 : x.value.tensor.type()));
  const bool reversed = row.rule != BinaryRow::Rule::Div && chance(40);
  Value value = reversed ? tracker_.binary(row, {scalar}, x.value)
                         : tracker_.binary(row, x.value, {scalar});
  const std::string pair = reversed ? "number, " + x.name : x.name + ", number";
  define(std::move(value), std::string(row.name) + "(" + pair + ")");
  return true;
}

bool RandomProgram::applyCast() {
  const Variable& x = any();
  const dtype type = anyType();
  if (tame_ && !x.value.exact && !isFloating(type)) {
    return false;
  }
  define(tracker_.cast(x.value, type), x.name + ".astype(" + dtypeToString(type) + ")");
  return true;
}

bool RandomProgram::applyWhere() {
  const Variable& x = any();
  const Variable* y = compatible(x, true);
  const Variable* z = y ? compatible(*y, false) : nullptr;
  if (!z || (tame_ && !z->value.exact)) {
    return false;
  }
  const auto shape = broadcastOf(x.value.tensor.shape(), y->value.tensor.shape());
  if (!broadcastOf(*shape, z->value.tensor.shape())) {
    return false;
  }
  const Value condition = tracker_.cast(z->value, dtype::b8);
  define(tracker_.where(condition, x.value, y->value),
         "where(" + z->name + ", " + x.name + ", " + y->name + ")");
  return true;
}

// ---- Reductions and products ----

bool RandomProgram::applyReduce() {
  const ReduceRow& row = reduceRows()[chance(60) ? below(4) : below(11)];
  const Variable& x = any();
  const Shape& shape = x.value.tensor.shape();
  const bool index = row.name[0] == 'a' && row.name[1] == 'r';
  const std::vector<int> axes = anyAxes(shape.ndim());
  using Rule = ReduceRow::Rule;
  if ((index && shape.ndim() == 0) || (tame_ && row.rule == Rule::Step && !x.value.exact) ||
      (tame_ && row.rule == Rule::Wild)) {
    return false;
  }
  const bool keepDims = chance(50);
  define(tracker_.reduce(row, x.value, axes, keepDims), std::string(row.name) + "(" + x.name + ", " +
                                                            joined(axes) +
                                                            (keepDims ? ", keepDims)" : ")"));
  return true;
}

bool RandomProgram::applySoftmax() {
  const Variable& x = any();
  if (!isFloating(x.value.tensor.type()) || x.value.tensor.ndim() == 0) {
    return false;
  }
  const std::vector<int> axes = {chance(60) ? 0 : below(x.value.tensor.ndim())};
  const std::string name = x.name;
  const Value most = tracker_.reduce(rowNamed(reduceRows(), "amax"), x.value, axes, true);
  const Value centred = tracker_.binary(rowNamed(binaryRows(), "sub"), x.value, most);
  const Value powers = tracker_.unary(rowNamed(unaryRows(), "exp"), centred);
  const Value total = tracker_.reduce(rowNamed(reduceRows(), "sum"), powers, axes, true);
  if (chance(50)) {
    define(tracker_.binary(rowNamed(binaryRows(), "div"), powers, total),
           "softmax(" + name + ", " + joined(axes) + ")");
  } else {
    const Value logTotal = tracker_.unary(rowNamed(unaryRows(), "log"), total);
    define(tracker_.binary(rowNamed(binaryRows(), "sub"), centred, logTotal),
           "logSoftmax(" + name + ", " + joined(axes) + ")");
  }
  return true;
}

bool RandomProgram::applyLayerNorm() {
  const Variable& x = any();
  if (!isFloating(x.value.tensor.type()) || x.value.tensor.ndim() == 0 ||
      x.value.tensor.isEmpty()) {
    return false;
  }
  std::vector<int> axes = {0};
  if (chance(40)) {
    axes.push_back(x.value.tensor.ndim() - 1);
    axes.resize(axes[1] == 0 ? 1 : 2);
  }
  const std::string text = "layerNorm(" + x.name + ", " + joined(axes) + ")";
  const ReduceRow& mean = rowNamed(reduceRows(), "mean");
  const Value centred = tracker_.binary(rowNamed(binaryRows(), "sub"), x.value,
                                        tracker_.reduce(mean, x.value, axes, true));
  const Value squares = tracker_.binary(rowNamed(binaryRows(), "mul"), centred, centred);
  Value variance = tracker_.reduce(mean, squares, axes, true);
  variance.tensor = variance.tensor + 0.1;
  define(tracker_.binary(rowNamed(binaryRows(), "div"), centred,
                         tracker_.unary(rowNamed(unaryRows(), "sqrt"), variance)),
         text);
  return true;
}

bool RandomProgram::applyMatmul() {
  const Variable& x = any();
  const Shape shape = x.value.tensor.shape();
  if (shape.ndim() < 2 || !isFloating(x.value.tensor.type()) || shape.elements() > 5000) {
    return false;
  }
  const bool transposeX = chance(40), transposeY = chance(40);
  const Dim inner = shape[transposeX ? 0 : 1], columns = 1 + below(20);
  Shape other = shape;
  other[transposeY ? 1 : 0] = inner;
  other[transposeY ? 0 : 1] = columns;
  if (chance(40)) {
    other.get().resize(2);
  }
  if (other.elements() > kMaxElements) {
    return false;
  }
  const std::string name = x.name;
  // A product that took over its operand's transpose would add in another order.
  const Value lhs = tracker_.binary(rowNamed(binaryRows(), "add"), x.value,
                                    {fromScalar(0.25, x.value.tensor.type())});
  input(other, lhs.tensor.type());
  const Variable& y = variables_.back();
  const std::string text = "matmul(" + name + (transposeX ? "^T, " : ", ") + y.name +
                           (transposeY ? "^T)" : ")");
  define(tracker_.matmul(lhs, y.value, transposeX, transposeY), text);
  return true;
}

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
      const Dim index = static_cast<Dim>(data_() % static_cast<uint64_t>(size));
      indices.emplace_back(index);
      *text += separator + std::to_string(index);
    } else {
      const Dim stride = 1 + below(3), length = 1 + below(static_cast<int>((size - 1) / stride) + 1);
      const Dim reach = (length - 1) * stride + 1;
      const Dim start = static_cast<Dim>(data_() % static_cast<uint64_t>(size - reach + 1));
      indices.emplace_back(range(start, start + reach, stride));
      *text += separator + std::to_string(start) + ":" + std::to_string(start + reach) + ":" +
               std::to_string(stride);
    }
  }
  return indices;
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
  const PadType type = chance(60) ? PadType::Constant : chance(50) ? PadType::Edge
                                                                   : PadType::Symmetric;
  if (shape.ndim() == 0 || shape.elements() == 0 || shape.elements() > 2000) {
    return false;
  }
  std::vector<std::pair<int, int>> widths;
  std::string text;
  for (int i = 0; i < shape.ndim() && i < 3; ++i) {
    const int most = static_cast<int>(std::min<Dim>(shape[i], 3)) + 1;
    widths.emplace_back(below(most), below(most));
    text += " " + std::to_string(widths.back().first) + "," + std::to_string(widths.back().second);
  }
  define(Tracker::moved(x.value, pad(x.value.tensor, widths, type)),
         "pad(" + x.name + "," + text + ", " + std::to_string(static_cast<int>(type)) + ")");
  return true;
}

bool RandomProgram::applyTile() {
  const Variable& x = any();
  Shape times;
  for (int i = 0; i < std::min(x.value.tensor.ndim() + 1, 4); ++i) {
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
  if (x.value.tensor.ndim() == 0) {
    return false;
  }
  const int axis = below(x.value.tensor.ndim());
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
  const int kind = below(3);
  const BinaryRow& row = binaryRows()[kind];
  const Variable* y = nullptr;
  for (const Variable& other : variables_) {
    if (other.value.tensor.shape() == x.value.tensor.shape() &&
        other.value.tensor.type() == x.value.tensor.type() && chance(70)) {
      y = &other;
    }
  }
  if (!y) {
    return false;
  }
  const Value changed = tracker_.binary(row, x.value, y->value);
  switch (kind) {
    case 0: x.value.tensor += y->value.tensor; break;
    case 1: x.value.tensor -= y->value.tensor; break;
    default: x.value.tensor *= y->value.tensor; break;
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
  const Value source =
      tracker_.unary(rowNamed(unaryRows(), "negative"), variables_.back().value);
  text_ += text + ") -= negative(" + variables_.back().name + ")\n";
  written(x, tracker_.binary(rowNamed(binaryRows(), "sub"), view, source));
  x.value.tensor(indices) -= source.tensor;
  return true;
}

bool RandomProgram::readAny() {
  read(any());
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
