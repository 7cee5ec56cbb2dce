// Statements of random programs that compute: sources, maps, reductions, products.
#include <algorithm>
#include <array>
#include <cmath>

#include "fl/tensor/TableOps.h"
#include "tests/fuzz/RandomProgram.h"

namespace fl::testing {
namespace {

std::string joined(const std::vector<int>& values) {
  std::string text = "{";
  for (size_t i = 0; i < values.size(); ++i) {
    text += (i ? ", " : "") + std::to_string(values[i]);
  }
  return text + "}";
}

}  // namespace

// ---- Sources ----

bool RandomProgram::makeInput() {
  if (chance(15)) {
    define({fromScalar(anyNumber(), chance(60) ? mainType_ : anyType())}, "number");
    return true;
  }
  if (chance(5)) {
    std::array<double, 6> elements;
    for (double& element : elements) element = anyNumber();
    define({Tensor::fromArray(Shape({2, 3}), elements, anyType())}, "fromArray");
    return true;
  }
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
  const dtype type = focused_ ? any().value.tensor.type() : chance(50) ? mainType_ : anyType();
  if (chance(30)) {
    const Dim size = 1 + below(30);
    define({identity(size, type)}, "identity(" + std::to_string(size) + ")");
  } else if (chance(40) && shape.elements() <= kMaxElements / 2) {
    define({iota(shape, {1, 2}, type)}, "iota(" + shape.toString() + ", (1, 2))");
  } else if (shape.ndim() == 0 || (!focused_ && chance(30))) {
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
  define(tracker_.unary(row, intoDomain(row, x.value)), std::string(row.name) + "(" + x.name + ")");
  return true;
}

bool RandomProgram::applyBinary() {
  const BinaryRow& row = binaryRows()[!focused_ && chance(60) ? below(6) : below(21)];
  const Variable& x = any();
  const Variable* y = compatible(x, focused_ || chance(70));
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
    lhs = intoDomain(unaryRow("log"), intoDomain(kBase, lhs));
    rhs = intoDomain(kBase, rhs);
  } else if (row.rule == Rule::Div && !integers) {
    rhs = asDivisor(rhs);
  }
  define(tracker_.binary(row, lhs, rhs),
         std::string(row.name) + "(" + x.name + ", " + y->name + ")");
  return true;
}

template <class F>
Tensor RandomProgram::withNumber(bool mayBeZero, bool whole, F f) {
  const double real = anyNumber();
  const auto integer = static_cast<int64_t>(data_() % 21) - 10;
  const auto numbered = [&](auto number) {
    return f(number == decltype(number){} && !mayBeZero ? decltype(number){1} : number);
  };
  switch (below(whole ? 4 : 6)) {
    case 0:
      return numbered(static_cast<int>(integer));
    case 1:
      return numbered(static_cast<long long>(integer));
    case 2:
      return numbered(static_cast<unsigned char>(integer));
    case 3:
      return numbered(integer > 0);
    case 4:
      return numbered(static_cast<float>(real));
    default:
      return numbered(real);
  }
}

namespace {

// The row's operator, or its function where it has none, with the number on either side.
template <typename N>
Tensor withScalar(const BinaryRow& row, const Tensor& t, N n, bool reversed) {
  const std::string name = row.name;
#define FL_FORM(function, op) \
  if (name == #function) return reversed ? n op t : t op n;
  FL_FOR_EACH_BINARY_OPERATOR(FL_FORM)
#undef FL_FORM
  const auto number = static_cast<double>(n);
  if (name == "minimum") return reversed ? minimum(number, t) : minimum(t, number);
  return reversed ? maximum(number, t) : maximum(t, number);
}

}  // namespace

bool RandomProgram::applyScalar() {
  const BinaryRow& row = binaryRows()[!focused_ && chance(50) ? below(6) : below(21)];
  const Variable& x = any();
  const bool reversed = chance(40);
  using Rule = BinaryRow::Rule;
  if (row.rule == Rule::Power || (row.rule == Rule::Integer && isFloating(x.value.tensor.type())) ||
      (tame_ && row.rule == Rule::Step && !x.value.exact)) {
    return false;
  }
  const bool divides = row.rule == Rule::Div;
  const Value operand = divides && reversed ? asDivisor(x.value) : x.value;
  Value value;
  withNumber(!(divides && tame_), row.rule == Rule::Integer, [&](auto n) {
    value.tensor = withScalar(row, operand.tensor, n, reversed);
    value.exact = operand.exact;
    if (!operand.exact) {
      const Value number{fromScalar(static_cast<double>(n), value.tensor.type())};
      value.error = reversed ? tracker_.binary(row, number, operand).error
                             : tracker_.binary(row, operand, number).error;
    }
    return value.tensor;
  });
  const std::string pair = reversed ? "number, " + x.name : x.name + ", number";
  define(std::move(value), std::string(row.name) + "(" + pair + ")");
  return true;
}

bool RandomProgram::updateScalar() {
  Variable& x = any();
  const int kind = below(4);
  const BinaryRow& row = binaryRows()[kind];
  const bool divides = row.rule == BinaryRow::Rule::Div;
  Tensor& t = x.value.tensor;
  Value changed;
  withNumber(!(divides && tame_), false, [&](auto n) {
    changed = tracker_.binary(row, x.value, {fromScalar(static_cast<double>(n), t.type())});
    switch (kind) {
      case 0:
        return t += n;
      case 1:
        return t -= n;
      case 2:
        return t *= n;
      default:
        return t /= n;
    }
  });
  text_ += x.name + " = " + row.name + "(" + x.name + ", number) in place\n";
  written(x, changed);
  return true;
}

// Structure: small whole exponents are products.
bool RandomProgram::applyPowerOfNumber() {
  const Variable& x = any();
  static const UnaryRow kBounded{"", nullptr, Accuracy::Rounded, 1, 3};
  const double exponents[] = {2, 3, -1, 0.5, -2.7};
  const double exponent = exponents[below(5)], drawn = anyNumber();
  const bool raises = chance(50);
  const double base = tame_ ? std::fabs(drawn) + 0.5 : drawn;
  const Value bounded = intoDomain(kBounded, x.value);
  const Value operand = raises ? intoDomain(unaryRow("log"), bounded) : bounded;
  const Value number{fromScalar(raises ? exponent : base, dtype::f32)};
  const BinaryRow& row = binaryRow("power");
  const Value raised =
      raises ? tracker_.binary(row, operand, number) : tracker_.binary(row, number, operand);
  define(
      {raises ? power(operand.tensor, exponent) : power(base, operand.tensor), false, raised.error},
      "power(" + x.name + ")");
  return true;
}

// Functions that take a number for a tensor.
bool RandomProgram::applyNumberForms() {
  const Variable& x = any();
  const Tensor& t = x.value.tensor;
  const double n = anyNumber();
  const Value number{fromScalar(n, t.type())};
  switch (below(4)) {
    case 0:
      return applyPowerOfNumber();
    case 1: {
      const Value bounded = tracker_.binary(binaryRow("minimum"), x.value, number);
      const Tensor low = t - 1.0;
      const Tensor result = chance(50) ? clip(t, -1.5, n) : clip(t, low.astype(t.type()), n);
      define({result, bounded.exact, bounded.error}, "clip(" + x.name + ")");
      return true;
    }
    default: {
      const Variable* y = compatible(x, true);
      if (!y || (tame_ && !y->value.exact)) return false;
      const Value condition = tracker_.cast(y->value, dtype::b8);
      const Value chosen = tracker_.where(condition, x.value, number);
      const bool first = chance(50);
      define(
          {first ? where(condition.tensor, t, n) : where(condition.tensor, n, t), chosen.exact,
           chosen.error},
          "where(" + y->name + ", " + (first ? x.name + ", number)" : "number, " + x.name + ")"));
      return true;
    }
  }
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
  const ReduceRow& row =
      reduceRows()[below(!focused_ && chance(60) ? 4 : std::ssize(reduceRows()))];
  const Variable& x = any();
  const Shape& shape = x.value.tensor.shape();
  const bool index = row.name[0] == 'a' && row.name[1] == 'r';
  const std::vector<int> axes = anyAxes(shape.ndim());
  using Rule = ReduceRow::Rule;
  const bool noIndex = index && (shape.ndim() == 0 || shape[axes.empty() ? 0 : axes[0]] == 0);
  if (noIndex || (tame_ && row.rule == Rule::Step && !x.value.exact)) {
    return false;
  }
  const bool keepDims = chance(50);
  define(tracker_.reduce(row, x.value, axes, keepDims), std::string(row.name) + "(" + x.name +
                                                            ", " + joined(axes) +
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
  const Value most = tracker_.reduce(reduceRow("amax"), x.value, axes, true);
  const Value centred = tracker_.binary(binaryRow("sub"), x.value, most);
  const Value powers = tracker_.unary(unaryRow("exp"), centred);
  const Value total = tracker_.reduce(reduceRow("sum"), powers, axes, true);
  if (chance(50)) {
    define(tracker_.binary(binaryRow("div"), powers, total),
           "softmax(" + name + ", " + joined(axes) + ")");
  } else {
    const Value logTotal = tracker_.unary(unaryRow("log"), total);
    define(tracker_.binary(binaryRow("sub"), centred, logTotal),
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
  const ReduceRow& mean = reduceRow("mean");
  const Value centred =
      tracker_.binary(binaryRow("sub"), x.value, tracker_.reduce(mean, x.value, axes, true));
  const Value squares = tracker_.binary(binaryRow("mul"), centred, centred);
  Value variance = tracker_.reduce(mean, squares, axes, true);
  variance.tensor = variance.tensor + 0.1;
  define(tracker_.binary(binaryRow("div"), centred, tracker_.unary(unaryRow("sqrt"), variance)),
         text);
  return true;
}

bool RandomProgram::applyMatmul() {
  const Variable& x = any();
  const Shape shape = x.value.tensor.shape();
  if (shape.ndim() < 2 || shape.elements() > 5000) {
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
  const Value lhs = x.value;
  input(other, lhs.tensor.type());
  const Variable& y = variables_.back();
  const std::string text =
      "matmul(" + name + (transposeX ? "^T, " : ", ") + y.name + (transposeY ? "^T)" : ")");
  define(tracker_.matmul(lhs, y.value, transposeX, transposeY), text);
  if (chance(30)) {
    joinProducts([&] {
      input(other, lhs.tensor.type());
      return tracker_.matmul(lhs, variables_.back().value, transposeX, transposeY);
    });
  }
  return true;
}

// What nothing but a concatenation reads, mostly along the last axis, and a product of a part.
void RandomProgram::joinProducts(const std::function<Value()>& product) {
  const Value first = product(), second = product();
  const Shape& shape = first.tensor.shape();
  const int last = shape.ndim() - 1, axis = chance(80) ? last : below(last);
  if (shape.elements() == 0) return;
  const bool isMapped = isFloating(second.tensor.type()) && chance(50);
  const Tensor mapped = isMapped ? -second.tensor : second.tensor;
  define({concatenate({first.tensor, mapped}, axis), first.exact && second.exact,
          std::max(first.error, second.error)},
         std::string("two such products along ") + std::to_string(axis) +
             (isMapped ? ", the second one negative" : ""));
  const Value whole = variables_.back().value;
  const Dim size = whole.tensor.dim(last), taken = 1 + below(static_cast<int>(size));
  const Dim start = static_cast<Dim>(data_() % static_cast<uint64_t>(size - taken + 1));
  std::vector<Index> part(last, Index(span));
  part.emplace_back(range(start, start + taken));
  const Value lhs = Tracker::moved(whole, whole.tensor(part).copy());
  input({lhs.tensor.dim(1), 1 + below(5)}, lhs.tensor.type());
  define(tracker_.matmul(lhs, variables_.back().value, false, false),
         "matmul(columns " + std::to_string(start) + " to " + std::to_string(start + taken) + ", " +
             variables_.back().name + ")");
}

// Forward, or backward with a gradient of its own; libraries take f32, definitions the rest.
bool RandomProgram::applyPool() {
  const Variable& x = any();
  const Shape& shape = x.value.tensor.shape();
  if (!isImage(x)) {
    return false;
  }
  const PoolingMode mode = static_cast<PoolingMode>(below(3));
  const bool most = mode == PoolingMode::MAX, backward = chance(40);
  const int wx = 1 + below(static_cast<int>(std::min<Dim>(shape[0], 3)));
  const int wy = 1 + below(static_cast<int>(std::min<Dim>(shape[1], 3)));
  const int sx = 1 + below(2), sy = 1 + below(2), px = below(wx / 2 + 1), py = below(wy / 2 + 1);
  if (backward && tame_ && most && !x.value.exact) {
    return false;
  }
  const std::string text =
      "(" + x.name + ", " + joined({wx, wy, sx, sy, px, py, static_cast<int>(mode)}) + ")";
  const Value image = x.value;
  const table::Pool2dParameters p{wx, wy, sx, sy, px, py, mode};
  const Tensor pooled = table::pool2d(image.tensor, p);
  if (!backward) {
    define(most ? Tracker::moved(image, pooled) : tracker_.means(pooled, image, wx * wy),
           "pool2d" + text);
    return true;
  }
  input(pooled.shape(), image.tensor.type());
  const Value gradient = variables_.back().value;
  const Tensor result = table::pool2dBackward(gradient.tensor, image.tensor, p);
  define(tracker_.products(result, gradient, {fromScalar(1.0)}, wx * wy), "pool2dBackward" + text);
  return true;
}

bool RandomProgram::applyConvolution() {
  const Variable& x = any();
  const Shape& shape = x.value.tensor.shape();
  if (!isImage(x)) {
    return false;
  }
  const int kx = 1 + below(static_cast<int>(std::min<Dim>(shape[0], 3)));
  const int ky = 1 + below(static_cast<int>(std::min<Dim>(shape[1], 3)));
  const Dim outputs = 1 + below(5), channels = shape[2];
  table::Conv2dParameters c{1 + below(2), 1 + below(2), below(2), below(2)};
  if (!tame_) {  // of padding alone libraries make 0, the definition NaN if a weight is infinite
    c.px = std::min(c.px, kx - 1);
    c.py = std::min(c.py, ky - 1);
  }
  const std::string name = x.name;
  const Value image = x.value;
  input({kx, ky, channels, outputs}, image.tensor.type());
  const Value filter = variables_.back().value;
  const Tensor result = table::conv2d(image.tensor, filter.tensor, Tensor(), c);
  const std::string text =
      "(" + name + ", " + variables_.back().name + ", " + joined({c.sx, c.sy, c.px, c.py}) + ")";
  const auto taps = static_cast<double>(kx * ky);
  if (chance(50)) {
    define(tracker_.products(result, image, filter, taps * static_cast<double>(channels)),
           "conv2d" + text);
    return true;
  }
  input(result.shape(), image.tensor.type());
  const Value gradient = variables_.back().value;
  if (chance(50)) {
    const Tensor data =
        table::conv2dBackwardData(gradient.tensor, filter.tensor, image.tensor.shape(), c);
    define(tracker_.products(data, gradient, filter, taps * static_cast<double>(outputs)),
           "conv2dBackwardData" + text);
  } else {
    const Tensor weights =
        table::conv2dBackwardFilter(gradient.tensor, image.tensor, filter.tensor.shape(), c);
    const auto pixels = static_cast<double>(result.elements() / outputs);
    define(tracker_.products(weights, gradient, image, pixels), "conv2dBackwardFilter" + text);
  }
  return true;
}

// What each key has of a query's sum of 1: (time, keys, heads, batch).
Value RandomProgram::attentionWeights(const Value& query, const Value& key, const Value* mask) {
  Value scores = tracker_.matmul(query, key, false, true);
  if (mask) {
    scores = tracker_.binary(binaryRow("add"), scores, *mask);
  }
  const Value most = tracker_.reduce(reduceRow("amax"), scores, {1}, true);
  const Value powers =
      tracker_.unary(unaryRow("exp"), tracker_.binary(binaryRow("sub"), scores, most));
  const Value total = tracker_.reduce(reduceRow("sum"), powers, {1}, true);
  return tracker_.cast(tracker_.binary(binaryRow("div"), powers, total), query.tensor.type());
}

// Short, and as long as it takes to be computed in blocks. Its error is that of what it is defined
// by.
bool RandomProgram::applyAttention() {
  const dtype type = any().value.tensor.type();
  if (!isFloating(type)) {
    return false;
  }
  const auto length = [&] { return chance(50) ? 1 + below(9) : 128 + below(9); };
  const Shape query = {length(), 1 + below(4), 1 + below(2), 1 + below(2)};
  Shape key = query;
  key[0] = length();
  const auto drawn = [&](const Shape& shape) {
    input(shape, type);
    return variables_.back().value;
  };
  const Value q = drawn(query), k = drawn(key), v = drawn(key);
  const bool masked = chance(50);
  const Value mask = masked ? drawn({query[0], key[0], 1, chance(50) ? query[3] : 1}) : Value{};
  const Value weights = attentionWeights(q, k, masked ? &mask : nullptr);
  if (chance(50)) {
    const Value plain = tracker_.matmul(weights, v, false, false);
    const Tensor result = table::attention(q.tensor, k.tensor, v.tensor, mask.tensor);
    define({result, false, plain.error}, "attention of the last inputs");
    return true;
  }
  const Value gradient = drawn(query);
  const Value gradWeights = tracker_.matmul(gradient, v, false, true);
  const Value total = tracker_.reduce(
      reduceRow("sum"), tracker_.binary(binaryRow("mul"), weights, gradWeights), {1}, true);
  const Value centred = tracker_.binary(binaryRow("sub"), gradWeights, total);
  const Value gradScores = tracker_.cast(tracker_.binary(binaryRow("mul"), weights, centred), type);
  const Value plain[] = {tracker_.matmul(gradScores, k, false, false),
                         tracker_.matmul(gradScores, q, true, false),
                         tracker_.matmul(weights, gradient, true, false)};
  const auto results =
      table::attentionBackward(gradient.tensor, q.tensor, k.tensor, v.tensor, mask.tensor);
  for (size_t i = 0; i < results.size(); ++i) {
    define({results[i], false, plain[i].error}, "attentionBackward of the last inputs");
  }
  return true;
}

}  // namespace fl::testing
