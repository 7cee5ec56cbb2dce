#include "tests/fuzz/RandomProgram.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>

#include "fl/runtime/MemoryManager.h"

namespace fl::testing {
namespace {

constexpr size_t kMaxVariables = 14;
// Dense programs keep to this many of the first statements, which fuse into large kernels.
constexpr size_t kDenseStatements = 9;

double specialNumber(uint64_t word) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  const double table[] = {0.0,  -0.0, kInfinity, -kInfinity, std::nan(""), 1e-42, -3e-40,
                          3e38, 6e4,  -1.0,      255,        2147483648.0, 1e19,  0.5};
  return table[word % std::size(table)];
}

}  // namespace

RandomProgram::RandomProgram(const ProgramOptions& options)
    : options_(options),
      structure_(options.seed),
      data_(options.seed * 1000003 + options.variant + 1),
      tracker_(options.measure),
      tame_(chance(70)),
      dense_(chance(25)) {
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
  input(base_, mainType_);
  input(relatedShape(), mainType_);
  const int statements = 10 + below(dense_ ? 110 : chance(15) ? 190 : 20);
  for (int number = 0; number < std::min(statements, options_.cut.statements); ++number) {
    if (!options_.cut.without.contains(number)) {
      runStatement(number);
    }
  }
  for (const Variable& variable : variables_) {
    read(variable);
  }
  return std::move(reads_);
}

void RandomProgram::runStatement(int number) {
  static const auto& kStatements = *new std::vector<Weighted>{
      {&RandomProgram::applyUnary, 20},    {&RandomProgram::applyBinary, 25},
      {&RandomProgram::applyScalar, 8},    {&RandomProgram::applyWhere, 5},
      {&RandomProgram::applyReduce, 16},   {&RandomProgram::applySoftmax, 5},
      {&RandomProgram::applyLayerNorm, 3}, {&RandomProgram::makeInput, 5},
      {&RandomProgram::makeRandom, 3},     {&RandomProgram::makeSequence, 2},
      {&RandomProgram::applyCast, 5},      {&RandomProgram::applyMatmul, 4},
      {&RandomProgram::applyPool, 6},      {&RandomProgram::applyConvolution, 6},
      {&RandomProgram::applyReshape, 6},   {&RandomProgram::applyTranspose, 7},
      {&RandomProgram::applySlice, 6},     {&RandomProgram::applyConcatenate, 4},
      {&RandomProgram::applyPad, 3},       {&RandomProgram::applyTile, 2},
      {&RandomProgram::applyFlip, 2},      {&RandomProgram::copyVariable, 2},
      {&RandomProgram::updateWhole, 4},    {&RandomProgram::updateView, 5},
      {&RandomProgram::readAny, 2},        {&RandomProgram::dropAny, 8},
      {&RandomProgram::applyLookup, 5},    {&RandomProgram::updateLookup, 5},
      {&RandomProgram::applySort, 4},      {&RandomProgram::applyCumsum, 3},
      {&RandomProgram::applyMedian, 2},    {&RandomProgram::applyRoll, 2},
      {&RandomProgram::applyTriangle, 2},  {&RandomProgram::endSegment, 1},
      {&RandomProgram::applyAttention, 4}, {&RandomProgram::applyFlat, 4},
      {&RandomProgram::updateFlat, 4},     {&RandomProgram::applySparse, 2},
      {&RandomProgram::applyBatchnorm, 2}, {&RandomProgram::applyRnn, 3},
      {&RandomProgram::updateScalar, 4},   {&RandomProgram::applyNumberForms, 4},
      {&RandomProgram::applyExtremes, 3},  {&RandomProgram::readScalar, 1},
      {&RandomProgram::lockAny, 1},        {&RandomProgram::askAny, 3},
      {&RandomProgram::orderAny, 1},       {&RandomProgram::focus, 80}};
  constexpr int kTries = 10;
  constexpr uint64_t kNext = 0x9e3779b97f4a7c15;
  structure_.seed(options_.seed * 1000003 + static_cast<uint64_t>(number) * kNext);
  data_.seed(~options_.seed * 1000003 + options_.variant + static_cast<uint64_t>(number) * kNext);
  for (int tried = 0, done = 0; !done && tried < kTries; ++tried) {
    const size_t chosen = pick(kStatements);
    if (!dense_ || chosen < kDenseStatements || chance(5)) {
      done = (this->*kStatements[chosen].statement)();
    }
  }
  while (variables_.size() > kMaxVariables) {
    dropAny();
  }
}

// ---- Choices ----

size_t RandomProgram::pick(const std::vector<Weighted>& statements) {
  int total = 0;
  for (const Weighted& entry : statements) {
    total += entry.weight;
  }
  int ticket = below(total);
  size_t chosen = 0;
  while (ticket >= statements[chosen].weight) {
    ticket -= statements[chosen++].weight;
  }
  return chosen;
}

bool RandomProgram::focus() {
  static const auto& kStatements = *new std::vector<Weighted>{
      {&RandomProgram::applyUnary, 17},      {&RandomProgram::applyBinary, 36},
      {&RandomProgram::makeSequence, 4},     {&RandomProgram::applyReduce, 18},
      {&RandomProgram::applyCast, 2},        {&RandomProgram::applyWhere, 2},
      {&RandomProgram::applyMatmul, 4},      {&RandomProgram::applyReshape, 2},
      {&RandomProgram::applyTranspose, 2},   {&RandomProgram::applySlice, 2},
      {&RandomProgram::applyConcatenate, 2}, {&RandomProgram::applyPad, 2},
      {&RandomProgram::applyTile, 2},        {&RandomProgram::applyLookup, 2},
      {&RandomProgram::updateLookup, 5},     {&RandomProgram::updateView, 4},
      {&RandomProgram::applySort, 4},        {&RandomProgram::applyCumsum, 2},
      {&RandomProgram::applyExtremes, 2},    {&RandomProgram::applyMedian, 1},
      {&RandomProgram::applyRoll, 1},        {&RandomProgram::applyTriangle, 3},
      {&RandomProgram::applyNumberForms, 3}, {&RandomProgram::applyFlat, 4},
      {&RandomProgram::applyPool, 4},        {&RandomProgram::applyConvolution, 4},
      {&RandomProgram::applyAttention, 4},   {&RandomProgram::applyDefinition, 6}};
  const Statement statement = kStatements[pick(kStatements)].statement;
  const bool image = statement == &RandomProgram::applyPool ||
                     statement == &RandomProgram::applyConvolution ||
                     statement == &RandomProgram::applyAttention;
  Shape shape = image ? Shape({1 + below(6), 1 + below(6), 1 + below(3), 1 + below(3)}) : base_;
  if (shape.elements() > 2000) {
    shape = {1 + below(40), 1 + below(20)};
  }
  const int types = image ? 4 : kDtypeCount;
  static const dtype kTypes[kDtypeCount] = {dtype::f32, dtype::f64, dtype::f16, dtype::bf16,
                                            dtype::s16, dtype::s32, dtype::s64, dtype::u8,
                                            dtype::u16, dtype::u32, dtype::u64, dtype::b8};
  input(shape, kTypes[below(types)]);
  focused_ = true;
  const bool done = (this->*statement)();
  focused_ = false;
  return done;
}

std::optional<Shape> RandomProgram::broadcastOf(const Shape& a, const Shape& b) {
  Shape shape = a.ndim() >= b.ndim() ? a : b;
  for (int i = 0; i < std::min(a.ndim(), b.ndim()); ++i) {
    if (a[i] != b[i] && a[i] != 1 && b[i] != 1) {
      return std::nullopt;
    }
    shape[i] = a[i] == 1 ? b[i] : a[i];
  }
  return shape.elements() <= kMaxElements ? std::optional(shape) : std::nullopt;
}

dtype RandomProgram::anyType() {
  static const dtype kTypes[] = {dtype::f32, dtype::f32, dtype::f64, dtype::f16, dtype::bf16,
                                 dtype::s32, dtype::s32, dtype::s64, dtype::u8,  dtype::b8,
                                 dtype::s16, dtype::u16, dtype::u32, dtype::u64};
  return kTypes[below(std::size(kTypes))];
}

dtype RandomProgram::anyFloat() {
  static const dtype kTypes[] = {dtype::f32, dtype::f32, dtype::f32,
                                 dtype::f64, dtype::f16, dtype::bf16};
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
  if (focused_) {
    return variables_.back();
  }
  const int count = static_cast<int>(variables_.size());
  const int one = below(count), other = chance(60) ? below(count) : 0;
  return variables_[std::max(one, other)];
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
  text_ += name + " = " + text + "  // " + typeToString(value.tensor.type(), value.tensor.shape()) +
           "\n";
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

// From one that all refuse on, that which a refusal tells of, or up to half as much more.
void RandomProgram::withinBudget(const std::function<void()>& work) const {
  const std::string told = "; a budget of ";
  for (size_t budget = options_.budgets ? 1 : 0;;) {
    runtime::setMemoryBudget(budget);
    try {
      work();
      return runtime::setMemoryBudget(0);
    } catch (const std::runtime_error& refusal) {
      runtime::setMemoryBudget(0);
      const std::string text = refusal.what();
      if (text.find(told) == std::string::npos) throw;
      budget = std::stoul(text.substr(text.find(told) + told.size())) * (4 + options_.seed % 3) / 4;
    }
  }
}

void RandomProgram::read(const Variable& variable) {
  const Tensor& tensor = variable.value.tensor;
  HostValue host{variable.name,        tensor.type(),
                 tensor.shape(),       std::string(tensor.bytes(), '\0'),
                 variable.value.exact, variable.value.error};
  if (!tensor.isEmpty()) {
    withinBudget([&] { defaultTensorBackend().toHost(tensor.value(), host.bytes.data()); });
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

bool RandomProgram::isImage(const Variable& variable) {
  const Tensor& tensor = variable.value.tensor;
  return tensor.ndim() == 4 && !tensor.isEmpty() && tensor.elements() <= 3000 &&
         isFloating(tensor.type());
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
    const Value size = tracker_.unary(unaryRow("absolute"), x);
    return Tracker::moved(size, size.tensor + row.away);
  }
  return x;
}

Value RandomProgram::asDivisor(const Value& x) {
  if (!isFloating(x.tensor.type())) {
    return x;
  }
  Value divisor = intoDomain(unaryRow("log"), x);
  divisor.exact = divisor.exact && tame_;
  return divisor;
}

}  // namespace fl::testing
