#include "fl/codegen/cpu/ValueScopes.h"

#include <llvm/Analysis/VectorUtils.h>

#include <algorithm>

#include "fl/base/Error.h"

namespace fl::codegen::cpu {

using Form = KernelValue::Form;

ValueScopes::ValueScopes(const ir::Kernel& kernel, const KernelPlan& plan, LlvmBuilder& math,
                         MemoryAccess& memory, TableLookup* lookup,
                         const KernelArguments& arguments)
    : kernel_(kernel),
      plan_(plan),
      math_(math),
      builder_(math.ir()),
      memory_(memory),
      lookup_(lookup),
      arguments_(arguments) {
  for (const auto& operand : arguments.operands) at_.push_back(operand.base);
  copies_.resize(at_.size());
  indices_.resize(kernel.rank);
  tables_.assign(kVectors + plan.unroll, std::vector<LlvmValue>(kernel.values.size()));
}

ValueScopes::Scope::Scope(ValueScopes& values)
    : values_(values),
      axes_(values.axes_),
      at_(values.at_),
      copies_(values.copies_),
      indices_(values.indices_),
      lanes_(values.lanes_),
      mark_(values.trail_.size()) {}

ValueScopes::Scope::~Scope() {
  for (; values_.trail_.size() > mark_; values_.trail_.pop_back()) {
    const auto [table, value] = values_.trail_.back();
    values_.tables_[table][value] = {};
  }
  values_.axes_ = axes_;
  values_.at_ = std::move(at_);
  values_.copies_ = std::move(copies_);
  values_.indices_ = std::move(indices_);
  values_.lanes_ = std::move(lanes_);
}

void ValueScopes::moveTo(int axis, llvm::Value* index, std::vector<llvm::Value*> places) {
  axes_ |= 1u << axis;
  indices_[axis] = index;
  at_ = std::move(places);
}

std::vector<llvm::Value*> ValueScopes::placesAt(int axis, llvm::Value* index) {
  std::vector<llvm::Value*> places = at_;
  for (size_t i = 0; i < places.size(); ++i) {
    llvm::Value* stride = arguments_.operands[i].strides[axis];
    if (stride == nullptr) continue;
    llvm::Value* offset = builder_.CreateMul(index, stride);
    places[i] = places[i]->getType()->isPointerTy() ? builder_.CreatePtrAdd(places[i], offset)
                                                    : builder_.CreateAdd(places[i], offset);
  }
  return places;
}

void ValueScopes::setLanes(std::vector<Lanes> lanes) {
  axes_ |= 1;
  lanes_ = std::move(lanes);
}

int ValueScopes::tableOf(int value, int vector) const {
  if (vector < 0) return kScalars;
  return plan_.isVector(value) ? kVectors + vector : kSpread;
}

LlvmValue ValueScopes::scalar(int value) const {
  FL_INTERNAL_CHECK(isKnown(kScalars, value), "value ", value);
  return tables_[kScalars][value];
}

LlvmValue ValueScopes::vector(int value, int vector) const {
  const int table = tableOf(value, vector);
  FL_INTERNAL_CHECK(isKnown(table, value), "value ", value);
  return tables_[table][value];
}

void ValueScopes::set(int table, int value, LlvmValue result) {
  tables_[table][value] = result;
  trail_.emplace_back(table, value);
}

void ValueScopes::setScalar(int value, LlvmValue result) {
  set(kScalars, value, result);
  if (plan_.spread[value]) set(kSpread, value, math_.spread(result, plan_.lanes));
}

void ValueScopes::setTotal(int reduction, const std::vector<LlvmValue>& totals) {
  for (size_t value = 0; value < kernel_.values.size(); ++value) {
    const KernelValue& total = kernel_.values[value];
    if (total.form != Form::Total || total.index != reduction) continue;
    const int number = static_cast<int>(value);
    if (!plan_.isVector(value)) {
      setScalar(number, totals[0]);
      findNan({number}, -1);
      continue;
    }
    for (size_t u = 0; u < totals.size(); ++u) {
      set(kVectors + u, number, totals[u]);
      findNan({number}, static_cast<int>(u));
    }
  }
}

bool ValueScopes::isDue(int value, int vector) const {
  const KernelValue& definition = kernel_.values[value];
  if (plan_.isVector(value) != (vector >= 0) || isKnown(tableOf(value, vector), value))
    return false;
  if (definition.form == Form::Total || (plan_.varies[value] & ~axes_) != 0) return false;
  return std::all_of(definition.args.begin(), definition.args.end(),
                     [&](int arg) { return isKnown(tableOf(arg, vector), arg); });
}

bool ValueScopes::isIndex(int value) const {
  const KernelValue& definition = kernel_.values[value];
  return definition.form == Form::Load &&
         kernel_.operands[definition.index].role == KernelOperand::Role::Index;
}

LlvmValue ValueScopes::scalarLoad(int operand) {
  const KernelOperand& described = kernel_.operands[operand];
  if (described.role == KernelOperand::Role::Index) return {at_[operand], dtype::s64};
  return memory_.loadOne(at_[operand], described.type);
}

LlvmValue ValueScopes::vectorLoad(int operand, const Lanes& lanes) {
  const KernelOperand& described = kernel_.operands[operand];
  llvm::Value* stride = arguments_.operands[operand].strides[0];
  llvm::Value* copy = copies_[operand];
  if (copy != nullptr && copy->getType()->isVectorTy()) return {copy, described.type};
  if (copy != nullptr) return memory_.load({copy, nullptr, described.type}, {lanes.index});
  if (described.role != KernelOperand::Role::Index) {
    const bool contiguous = described.strides[0] == ir::Stride::One;
    return memory_.load({at_[operand], contiguous ? nullptr : stride, described.type}, lanes);
  }
  return indices(operand, lanes, dtype::s64);
}

// The indices that an Index operand is, modulo the range of `type`, an integer of 32 or 64 bits.
LlvmValue ValueScopes::indices(int operand, const Lanes& lanes, dtype type) {
  llvm::Type* element = math_.elementType(type);
  const auto spread = [&](llvm::Value* number) {
    return builder_.CreateVectorSplat(ir::kLanes, builder_.CreateTrunc(number, element));
  };
  llvm::Value* stride = arguments_.operands[operand].strides[0];
  llvm::Value* first = builder_.CreateAdd(at_[operand], builder_.CreateMul(lanes.index, stride));
  llvm::Value* strides = spread(stride);
  llvm::Value* steps = builder_.CreateMul(builder_.CreateStepVector(strides->getType()), strides);
  return {builder_.CreateAdd(steps, spread(first)), type};
}

LlvmValue ValueScopes::applied(int value, int vector) {
  std::vector<LlvmValue> args;
  for (int arg : kernel_.values[value].args) args.push_back(tables_[tableOf(arg, vector)][arg]);
  const KernelValue& definition = kernel_.values[value];
  if (vector >= 0 && definition.op == ir::Op::Cast && getTypeSize(definition.type) == 4 &&
      !isFloating(definition.type) && isIndex(definition.args[0])) {
    const int operand = kernel_.values[definition.args[0]].index;
    return indices(operand, lanes_[vector], definition.type);
  }
  if (definition.form != Form::Gather) return math_.apply(definition, args);
  const Lanes* lanes = vector < 0 ? nullptr : &lanes_[vector];
  const int index = definition.args[1], bound = definition.args[2];
  const bool isOne = lanes && !plan_.isVector(index) && !plan_.isVector(bound);
  if (llvm::Value* first = isOne ? firstOfRun(definition.args[0], vector) : nullptr)
    args = {{first, dtype::s64}, scalar(index), scalar(bound)};
  return lookup_->lookUp(kernel_.gatherNumber(value), at_[definition.index], definition.type, args,
                         lanes, lanes != nullptr && plan_.checksLines);
}

llvm::Value* ValueScopes::endOfFound(llvm::Value* begin, llvm::Value* end) {
  for (int value = 0; plan_.checksLines && value < std::ssize(kernel_.values); ++value) {
    const KernelValue& gather = kernel_.values[value];
    if (gather.form != Form::Gather || !plan_.isVector(value)) continue;
    end = lookup_->check(
        kernel_.gatherNumber(value), scalar(gather.args[1]).value, scalar(gather.args[2]).value,
        [&] { return end; }, begin);
  }
  return end;
}

llvm::Value* ValueScopes::firstOfRun(int value, int vector) {
  const KernelValue& definition = kernel_.values[value];
  if (isIndex(value) && kernel_.operands[definition.index].strides[0] == ir::Stride::One)
    return builder_.CreateAdd(at_[definition.index], lanes_[vector].index);
  if (definition.form != Form::Apply || definition.op != ir::Op::Add) return nullptr;
  const int other = plan_.isVector(definition.args[0]), begin = definition.args[other];
  if (plan_.isVector(begin)) return nullptr;
  llvm::Value* first = firstOfRun(definition.args[1 - other], vector);
  return first ? builder_.CreateAdd(first, scalar(begin).value) : nullptr;
}

void ValueScopes::computeScalars(int stage) {
  std::vector<int> computed;
  for (int value : plan_.needed[stage]) {
    if (!isDue(value, -1)) continue;
    computed.push_back(value);
    const KernelValue& definition = kernel_.values[value];
    if (definition.form == Form::Load) {
      setScalar(value, scalarLoad(definition.index));
    } else if (definition.form == Form::Scalar) {
      llvm::Value* from =
          builder_.CreateConstGEP1_64(builder_.getInt64Ty(), arguments_.scalars, definition.index);
      setScalar(value, memory_.loadOne(from, definition.type));
    } else {
      setScalar(value, applied(value, -1));
    }
  }
  findNan(computed, -1);
}

// Two vectors of bf16 are widened by one instruction each if they are loaded as one.
bool ValueScopes::loadsPair(int operand, int vector) const {
  const KernelOperand& described = kernel_.operands[operand];
  return plan_.loadsPairs && described.type == dtype::bf16 &&
         described.role != KernelOperand::Role::Index && described.strides[0] == ir::Stride::One &&
         copies_[operand] == nullptr && vector % 2 == 0 &&
         vector + 1 < static_cast<int>(lanes_.size()) && lanes_[vector].mask == nullptr;
}

bool ValueScopes::isRandomRun(int value) const {
  const KernelValue& definition = kernel_.values[value];
  const auto& args = definition.args;
  return drawsNumber(definition) && isIndex(args[2]) &&
         kernel_.operands[kernel_.values[args[2]].index].strides[0] == ir::Stride::One &&
         !plan_.isVector(args[0]) && !plan_.isVector(args[1]);
}

void ValueScopes::computeRandomRun(int value, int vector) {
  const KernelValue& definition = kernel_.values[value];
  const auto& args = definition.args;
  const int operand = kernel_.values[args[2]].index;
  const auto isFree = [&](int next) {
    return next < static_cast<int>(lanes_.size()) && !isKnown(kVectors + next, value);
  };
  int count = 1;
  if (definition.type != dtype::f64 && isFree(vector + 1))
    count = isFree(vector + 2) && isFree(vector + 3) ? 4 : 2;
  llvm::Value* first = builder_.CreateAdd(at_[operand], lanes_[vector].index);
  llvm::Value* part =
      builder_.CreateAnd(first, math_.numbersInBlock(definition.type) - uint64_t{1});
  const auto run = [&] {
    return math_
        .randomRun(definition.type, scalar(args[0]), scalar(args[1]), {first, dtype::u64}, count)
        .value;
  };
  const auto each = [&] {
    const auto numbers = [&](const Lanes& lanes) {
      const LlvmValue index = indices(operand, lanes, dtype::s64);
      return math_.apply(definition, {tables_[kSpread][args[0]], tables_[kSpread][args[1]], index})
          .value;
    };
    std::vector<llvm::Value*> parts;
    for (int u = 0; u < count; ++u) parts.push_back(numbers(lanes_[vector + u]));
    return count == 1 ? parts[0] : llvm::concatenateVectors(builder_, parts);
  };
  const LlvmValue joined = {emitChoice(builder_, builder_.CreateIsNull(part), run, each),
                            definition.type};
  for (int u = 0; u < count; ++u) set(kVectors + vector + u, value, math_.part(joined, u));
}

ElementRow ValueScopes::keptRow(size_t number) const {
  llvm::Value* offset = builder_.getInt64(number * ir::kKeptRowBytes);
  const dtype type = kernel_.values[plan_.keptRows[number].value].type;
  return {builder_.CreatePtrAdd(arguments_.scratch, offset), nullptr, type};
}

void ValueScopes::loadKept(int stage, int vector) {
  for (size_t i = 0; i < plan_.keptRows.size(); ++i) {
    const ir::KeptRow& row = plan_.keptRows[i];
    if (stage < row.firstRead || isKnown(kVectors + vector, row.value)) continue;
    set(kVectors + vector, row.value, memory_.load(keptRow(i), {lanes_[vector].index}));
  }
}

void ValueScopes::computeVector(int stage, int vector) {
  loadKept(stage, vector);
  std::vector<int> computed;
  for (int value : plan_.needed[stage]) {
    if (!isDue(value, vector)) continue;
    computed.push_back(value);
    const KernelValue& definition = kernel_.values[value];
    if (definition.form == Form::Load && loadsPair(definition.index, vector)) {
      const ElementRow row{at_[definition.index], nullptr, definition.type};
      const LlvmValue pair = memory_.loadWhole(row, lanes_[vector], 2 * plan_.lanes);
      for (int u = 0; u < 2; ++u)
        set(kVectors + vector + u, value,
            plan_.everySecond[stage] ? math_.everySecond(pair, u) : math_.part(pair, u));
    } else if (isRandomRun(value)) {
      computeRandomRun(value, vector);
    } else {
      set(kVectors + vector, value,
          definition.form == Form::Load ? vectorLoad(definition.index, lanes_[vector])
                                        : applied(value, vector));
    }
  }
  findNan(computed, vector);
}

void ValueScopes::compute(int stage) {
  computeScalars(stage);
  for (size_t vector = 0; vector < lanes_.size(); ++vector)
    computeVector(stage, static_cast<int>(vector));
}

void ValueScopes::storeScalars(int stage) {
  for (const auto& [operand, value] : kernel_.stages[stage].stores)
    memory_.storeOne(scalar(value), at_[operand]);
}

LlvmValue ValueScopes::roundVectors(int value, int first, int count) {
  const int arg = kernel_.values[value].args[0];
  const KernelValue& source = kernel_.values[arg];
  // Integers and numbers of f16 are no denormals of f32, but a normal number of f64 may become one.
  const bool normal = source.type == dtype::f32
                          ? source.form == Form::Apply && ir::opInfo(source.op).normal
                          : source.type != dtype::f64;
  std::vector<LlvmValue> exact;
  for (int u = first; u < first + count; ++u)
    exact.push_back(math_.cast(vector(arg, u), dtype::f32));
  const LlvmValue joined = math_.roundToBfloat16(exact, normal);
  for (int u = 0; u < count; ++u) {
    set(kVectors + first + u, value, math_.part(joined, u));
    findNan({value}, first + u);
  }
  return joined;
}

void ValueScopes::storeVectors(int stage, int first, int count) {
  std::vector<LlvmValue> joined(kernel_.values.size());
  for (int value : plan_.rounded[stage]) joined[value] = roundVectors(value, first, count);
  for (const auto& [operand, value] : kernel_.stages[stage].stores) {
    const KernelOperand& described = kernel_.operands[operand];
    const bool contiguous = described.strides[0] == ir::Stride::One;
    llvm::Value* stride = arguments_.operands[operand].strides[0];
    if (stride == nullptr) stride = builder_.getInt64(0);  // the axis has one element
    const ElementRow row{at_[operand], contiguous ? nullptr : stride, described.type};
    if (joined[value].value != nullptr && memory_.storesJoined(row, lanes_[first])) {
      memory_.store(joined[value], row, lanes_[first]);
      continue;
    }
    for (int u = first; u < first + count; ++u) memory_.store(vector(value, u), row, lanes_[u]);
  }
  for (size_t i = 0; i < plan_.keptRows.size(); ++i) {
    if (plan_.keptRows[i].writer != stage) continue;
    for (int u = first; u < first + count; ++u)
      memory_.keep(vector(plan_.keptRows[i].value, u), keptRow(i), lanes_[u]);
  }
}

}  // namespace fl::codegen::cpu
