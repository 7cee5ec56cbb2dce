#include "fl/codegen/cuda/KernelWriter.h"

#include <algorithm>

namespace fl::codegen::cuda {

using ir::Kernel;
using ir::KernelOperand;
using ir::KernelStage;
using ir::KernelValue;
using ir::Stride;
using ir::cuda::SharedRow;
using Form = KernelValue::Form;
using Role = KernelOperand::Role;

class KernelWriter::Scope {
 public:
  explicit Scope(KernelWriter& writer) : writer_(writer), names_(writer.names_) {}
  ~Scope() { writer_.names_ = std::move(names_); }

 private:
  KernelWriter& writer_;
  std::vector<std::string> names_;
};

KernelWriter::KernelWriter(const Kernel& kernel, std::string name, int launches,
                           Functions& functions)
    : kernel_(kernel),
      name_(std::move(name)),
      launches_(launches),
      block_(launches > 1 ? "member.block" : "s64(blockIdx.x)"),
      blocks_(launches > 1 ? "member.blocks" : "s64(gridDim.x)"),
      functions_(functions),
      varies_(variedAxes(kernel)),
      pack_(ir::cuda::packLength(kernel)),
      names_(kernel.values.size()),
      needed_(ir::valuesOfStages(kernel).needed),
      sharedRows_(ir::cuda::sharedRows(kernel)) {}

std::string KernelWriter::write() {
  FL_INTERNAL_CHECK(launches_ == 1 || ir::cuda::mayGroup(kernel_), name_, " in groups");
  writeArguments();
  const bool isGroup = launches_ > 1;
  // Two blocks a multiprocessor: asked for none, the compiler spills for the sake of one more.
  text_.open("extern \"C\" __global__ void __launch_bounds__(", kBlockThreads,
             kernel_.reduced == 0 ? ") " : ", 2) ", name_, "(const ",
             isGroup ? "__grid_constant__ " : "", name_, "_arguments ", isGroup ? "group)" : "a)");
  if (isGroup) {
    text_.line("const Member<", launches_, "> member(group.firstBlocks);");
    text_.line("const ", name_, "_launch& a = group.launches[member.launch];");
  }
  const bool looksUp = kernel_.gatherCount() > 0;
  if (looksUp) text_.line("Lookups lookups;");
  if (kernel_.reduced == 0) {
    writeMap();
  } else {
    writeReduction();
  }
  if (looksUp) text_.line("lookups.end(a.report);");
  text_.close();
  return text_.take();
}

void KernelWriter::writeArguments() {
  if (launches_ == 1) return writeMembers("_arguments");
  writeMembers("_launch");
  text_.open("struct ", name_, "_arguments");
  text_.line("u64 firstBlocks[", launches_ + 1, "];");
  text_.line(name_, "_launch launches[", launches_, "];");
  text_.close("};");
}

// Of one launch.
void KernelWriter::writeMembers(const char* suffix) {
  text_.open("struct ", name_, suffix);
  for (int axis = 0; axis < kernel_.rank; ++axis) text_.line("s64 extent", axis, ";");
  for (size_t i = 0; i < kernel_.scalars.size(); ++i) text_.line("u64 scalar", i, ";");
  for (size_t i = 0; i < kernel_.operands.size(); ++i) {
    const KernelOperand& operand = kernel_.operands[i];
    std::string declared = operand.role == Role::Index ? "s64 data"
                           : operand.role == Role::Output
                               ? detail::concat(operand.type, "* data")
                               : detail::concat("const ", operand.type, "* data");
    declared += std::to_string(i) + ";";
    for (int axis = 0; axis < kernel_.rank; ++axis) {
      if (operand.strides[axis] != Stride::Any) continue;
      declared += detail::concat(" s64 stride", i, "_", axis, ";");
    }
    text_.line(declared);
  }
  if (kernel_.gatherCount() > 0) text_.line("GatherReport* report;");
  if (ir::cuda::maySplit(kernel_)) {
    text_.line("u64* spread;");
    text_.line("u32* counters;");
  }
  text_.close("};");
}

void KernelWriter::writeIndices(const std::string& number, const std::vector<int>& axes,
                                const std::vector<std::string>& extents) {
  if (axes.size() > 1) text_.line("s64 rest = ", number, ";");
  for (size_t i = 0; i < axes.size(); ++i) {
    const std::string index = axes.size() == 1       ? number
                              : i + 1 == axes.size() ? "rest"
                                                     : "takeIndex(rest, " + extents[i] + ")";
    const bool isPack = kernel_.reduced == 0 && axes[i] == 0 && pack_ > 1;
    text_.line("const s64 i", axes[i], " = ", index, isPack ? detail::concat(" * ", pack_) : "",
               ";");
  }
}

std::string KernelWriter::extent(int axis) const { return "a.extent" + std::to_string(axis); }

std::string KernelWriter::product(const std::vector<int>& axes) const {
  std::string text;
  for (int axis : axes) text += (text.empty() ? "" : " * ") + extent(axis);
  return text.empty() ? "1" : text;
}

std::vector<int> KernelWriter::axesWhere(bool reduced, int from) const {
  std::vector<int> axes;
  for (int axis = from; axis < kernel_.rank; ++axis) {
    if (kernel_.isReduced(axis) == reduced) axes.push_back(axis);
  }
  return axes;
}

std::string KernelWriter::stride(int operand, int axis) const {
  const Stride stride = kernel_.operands[operand].strides[axis];
  return stride == Stride::Any   ? detail::concat("a.stride", operand, "_", axis)
         : stride == Stride::One ? "1"
                                 : "0";
}

std::string KernelWriter::offset(int operand, const std::string& index0) const {
  std::string text;
  for (int axis = 0; axis < kernel_.rank; ++axis) {
    const Stride class_ = kernel_.operands[operand].strides[axis];
    if (class_ == Stride::Zero) continue;
    text += text.empty() ? "" : " + ";
    text += axis == 0 ? index0 : "i" + std::to_string(axis);
    if (class_ == Stride::Any) text += " * " + stride(operand, axis);
  }
  return text.empty() ? "0" : text;
}

bool KernelWriter::isIndex(int value) const {
  const KernelValue& load = kernel_.values[value];
  return load.form == Form::Load && kernel_.operands[load.index].role == Role::Index;
}

void KernelWriter::defineValues(const std::vector<int>& needed, uint32_t axes,
                                const std::string& index0, const std::string& exists) {
  for (int value : needed) {
    if (!names_[value].empty() || !variesWithin(value, axes)) continue;
    const std::string name = "v" + std::to_string(value);
    text_.line("const ", kernel_.values[value].type, " ", name, " = ",
               definition(value, index0, exists), ";");
    names_[value] = name;
  }
}

std::string KernelWriter::definition(int value, const std::string& index0,
                                     const std::string& exists) {
  const KernelValue& defined = kernel_.values[value];
  std::string args;
  std::vector<dtype> types;
  for (int arg : defined.args) {
    args += (args.empty() ? "" : ", ") + names_[arg];
    types.push_back(kernel_.values[arg].type);
  }
  if (const auto* row = findRow(value, /*isReady=*/true)) {
    return detail::concat("row", row->value, "[place]");
  }
  const std::string data = detail::concat("a.data", defined.index);
  switch (defined.form) {
    case Form::Load:
      return isIndex(value) ? data + " + " + offset(defined.index, index0)
                            : data + "[" + offset(defined.index, index0) + "]";
    case Form::Scalar:
      return detail::concat("Word<", defined.type, ">::to(a.scalar", defined.index, ")");
    case Form::Apply:
      return functions_.ofApply(defined, types) + "(" + args + ")";
    case Form::Gather:
      return detail::concat("lookups.find(", data, ", ", args, ", ", exists, ", ",
                            kernel_.gatherNumber(value), ")");
    case Form::Total:
      break;  // defineTotals() has named it
  }
  FL_INTERNAL_CHECK(false, "%", value, " is used before its sweep");
  __builtin_unreachable();
}

// ---- maps ----

void KernelWriter::writeMap() {
  const std::vector<int> axes = axesWhere(false);
  std::vector<std::string> extents;
  for (int axis : axes) extents.push_back(extent(axis));
  if (pack_ > 1) {
    text_.line("const s64 packs = (a.extent0 + ", pack_ - 1, ") / ", pack_, ";");
    extents[0] = "packs";
  }
  std::string items = extents[0];
  for (int axis = 1; axis < kernel_.rank; ++axis) items += " * " + extent(axis);
  text_.line("const s64 items = ", items, ", threads = ", blocks_, " * blockDim.x;");
  text_.open("for (s64 item = ", block_, " * blockDim.x + threadIdx.x; item < items; ",
             "item += threads)");
  writeIndices("item", axes, extents);
  text_.line("const int count = int(smaller(a.extent0 - i0, ", pack_, "));");
  const std::vector<int> needed = neededBy(kernel_.stages[0]);
  defineValues(needed, ~1u, "i0", "true");
  loadPacks(needed);
  for (const auto& store : kernel_.stages[0].stores) {
    text_.line(kernel_.values[store.value].type, " to", store.operand, "[", pack_, "];");
  }
  text_.line("#pragma unroll");
  text_.open("for (int j = 0; j < ", pack_, "; ++j)");
  defineValues(needed, ~0u, "(i0 + j)", "j < count");
  for (const auto& store : kernel_.stages[0].stores) {
    text_.line("to", store.operand, "[j] = ", names_[store.value], ";");
  }
  text_.close();
  storePacks();
  text_.close();
}

void KernelWriter::accessPack(const char* function, const std::string& array, int operand,
                              bool store) {
  const bool contiguous = kernel_.operands[operand].strides[0] == Stride::One;
  const std::string address = detail::concat("a.data", operand, " + ", offset(operand, "i0"));
  text_.line(function, contiguous ? "Pack(" : "Strided(", store ? address : array, ", ",
             store ? array : address, contiguous ? "" : ", " + stride(operand, 0), ", count);");
}

void KernelWriter::loadPacks(const std::vector<int>& needed) {
  for (int value : needed) {
    const KernelValue& load = kernel_.values[value];
    if (load.form != Form::Load || isIndex(value) || !names_[value].empty()) continue;
    const std::string array = "from" + std::to_string(value);
    text_.line(load.type, " ", array, "[", pack_, "];");
    accessPack("load", array, load.index, false);
    names_[value] = array + "[j]";
  }
}

void KernelWriter::storePacks() {
  for (const auto& store : kernel_.stages[0].stores) {
    accessPack("store", "to" + std::to_string(store.operand), store.operand, true);
  }
}

// ---- reductions ----

void KernelWriter::writeReduction() {
  text_.line("__shared__ u64 slots[",
             ir::cuda::maySplit(kernel_)
                 ? kernel_.rows() ? "kSpreadSlots<true>" : "kSpreadSlots<false>"
                 : std::to_string(kernel_.rows() ? kBlockWarps : kBlockThreads),
             "];");
  text_.line(
      "const int lane = int(threadIdx.x), warp = int(threadIdx.y), warps = int(blockDim.y);");
  text_.line("const s64 domain = ", product(axesWhere(false)), ";");
  const std::vector<int> turning = turningAxes();
  const std::string groups =
      turning.empty() ? "" : detail::concat(", ", product(turning), ", ", ir::kMaxTurnsTogether);
  text_.line("const Parts<", chunk(), "> parts(", extent(lowestReduced()), groups, ");");
  if (sharedRows_.bytesEach == 0) return writeStages();
  text_.open("if (sharedBytes() > 0)");
  shared_ = &sharedRows_;
  declareRows();
  writeStages();
  shared_ = nullptr;
  text_.label("} else {");
  writeStages();
  text_.close();
}

void KernelWriter::writeStages() {
  Scope scope(*this);
  beginKept();
  // Of blocks that share a sweep, the last one stores what comes before it, too: others may not yet
  // have read what lay there.
  const int first = ir::cuda::sharedSweep(kernel_);
  for (stage_ = 0; stage_ < static_cast<int>(kernel_.stages.size()); ++stage_) {
    const KernelStage& stage = kernel_.stages[stage_];
    if (stage_ >= first) writeStage(stage, &stage == &kernel_.stages.back());
    for (int before = 0; stage_ == first && before < first; ++before) {
      writeStage(kernel_.stages[before], /*isLast=*/false);
    }
  }
  text_.close();
}

// A row's lanes share a kept element; a column's have neighbouring ones, the last one repeated.
void KernelWriter::beginKept() {
  if (kernel_.rows()) {
    text_.line("const int firstSlot = int(threadIdx.z) * warps;");
    text_.line("const s64 teams = s64(gridDim.x) * blockDim.z;");
    text_.open("for (s64 kept = s64(blockIdx.x) * blockDim.z + threadIdx.z; kept < domain; ",
               "kept += teams)");
  } else {
    text_.open("for (s64 first = s64(blockIdx.x) * ", kWarp, "; first < domain; ",
               "first += s64(gridDim.x) * ", kWarp, ")");
    text_.line("const bool exists = first + lane < domain;");
    text_.line("const s64 kept = exists ? first + lane : domain - 1;");
  }
  const std::vector<int> axes = axesWhere(false);
  std::vector<std::string> extents;
  for (int axis : axes) extents.push_back(extent(axis));
  writeIndices("kept", axes, extents);
}

void KernelWriter::writeStage(const KernelStage& stage, bool isLast) {
  defineValues(neededBy(stage), ~kernel_.reduced, "i0", "true");
  if (stage.sweep) {
    writeSweep(stage, isLast);
  } else {
    text_.open("if (", kernel_.rows() ? "lane == 0" : "exists", " && warp == 0)");
    writeStores(stage);
    text_.close();
  }
}

void KernelWriter::writeStores(const KernelStage& stage) {
  for (const auto& store : stage.stores) {
    text_.line("a.data", store.operand, "[", offset(store.operand, "i0"),
               "] = ", names_[store.value], ";");
  }
}

// What a sweep stores may be memory that others of the team still read; that ends with the sweep.
void KernelWriter::writeSweep(const KernelStage& stage, bool isLast) {
  for (const Reduce& reduce : stage.reduces) {
    text_.line(totalTypeOf(reduce), " total", reduce.index, " = ",
               literal(reduceInit(reduce.op, totalTypeOf(reduce))), ";");
  }
  text_.open();
  fetchRows();
  writeVisit(stage);
  writeRounds(stage);
  text_.close();
  if (stage.reduces.empty() && !isLast) text_.line("syncTeam();");
  for (const Reduce& reduce : stage.reduces) defineTotals(reduce);
}

void KernelWriter::writeVisit(const KernelStage& stage) {
  Scope scope(*this);
  std::string parameters;
  for (int axis : axesWhere(true)) {
    parameters += detail::concat(parameters.empty() ? "" : ", ", "s64 i", axis);
  }
  for (int load : sweptLoads(stage)) {
    parameters += detail::concat(", ", kernel_.values[load].type, " v", load);
  }
  for (const Reduce& reduce : stage.reduces) {
    parameters += detail::concat(", ", typeOf(reduce), "& sum", reduce.index);
  }
  for (int load : sweptLoads(stage)) names_[load] = "v" + std::to_string(load);
  text_.open("const auto visit = [&](", parameters, ")");
  if (shared_) text_.line("const int place = ", place(), ";");
  defineValues(neededBy(stage), ~0u, "i0", kernel_.rows() ? "true" : "exists");
  keepRows();
  if (!stage.stores.empty() && !kernel_.rows()) {
    text_.open("if (exists)");
    writeStores(stage);
    text_.close();
  } else {
    writeStores(stage);
  }
  for (const Reduce& reduce : stage.reduces) {
    text_.line("sum", reduce.index, " = ", functions_.ofReduce(reduce.op, typeOf(reduce)), "(sum",
               reduce.index, ", ", names_[reduce.value], ");");
  }
  text_.close("};");
}

const SharedRow* KernelWriter::findRow(int value, bool isReady) const {
  if (!shared_) return nullptr;
  const auto row = std::ranges::find(shared_->rows, value, &SharedRow::value);
  if (row == shared_->rows.end() || stage_ < row->writer) return nullptr;
  return isReady == (row->isFetched || stage_ > row->writer) ? &*row : nullptr;
}

void KernelWriter::declareRows() {
  text_.line("const int places = (int(", product(axesWhere(true)), ") + ", ir::cuda::kRowPlaces - 1,
             ") / ", ir::cuda::kRowPlaces, " * ", ir::cuda::kRowPlaces, ";");
  text_.line("unsigned char* const rows = sharedBegin() + int(threadIdx.z) * ", shared_->bytesEach,
             " * places;");
  for (const SharedRow& row : shared_->rows) {
    const dtype type = kernel_.values[row.value].type;
    text_.line(type, "* const row", row.value, " = reinterpret_cast<", type, "*>(rows + ",
               row.offset, " * places);");
  }
}

std::string KernelWriter::place() const {
  const std::vector<int> axes = axesWhere(true);
  std::string text = "i" + std::to_string(axes.back());
  for (auto axis = axes.rbegin() + 1; axis != axes.rend(); ++axis) {
    text = detail::concat("i", *axis, " + ", extent(*axis), " * (", text, ")");
  }
  return "int(" + text + ")";
}

// The warp fetches what its threads read, once all have read what its places held before.
void KernelWriter::fetchRows() {
  std::vector<const SharedRow*> fetched;
  for (int value = 0; shared_ && value < static_cast<int>(kernel_.values.size()); ++value) {
    const SharedRow* row = findRow(value, /*isReady=*/true);
    if (row && row->writer == stage_) fetched.push_back(row);
  }
  if (fetched.empty()) return;
  text_.line("__syncwarp();");
  text_.open("for (s64 number = warp; number < parts.count; number += warps)");
  declarePart("number");
  openTurns();
  text_.line("const s64 i0 = part.begin;");
  text_.line("const int place = ", place(), ", count = int(part.end - i0);");
  for (const SharedRow* row : fetched) {
    const int operand = kernel_.values[row->value].index;
    text_.line("fetchRow(row", row->value, " + place, a.data", operand, " + ",
               offset(operand, "i0"), ", count, lane);");
  }
  if (!turningAxes().empty()) text_.close();
  text_.close();
  text_.line("waitForFetches();");
}

void KernelWriter::keepRows() {
  for (int value : neededBy(kernel_.stages[stage_])) {
    if (findRow(value, /*isReady=*/false))
      text_.line("row", value, "[place] = ", names_[value], ";");
  }
}

void KernelWriter::writeRounds(const KernelStage& stage) {
  const bool mayBeSplit = maySplit(stage);
  if (mayBeSplit) {
    text_.line("const bool isSpread = gridDim.y > 1;");
    for (const Reduce& reduce : stage.reduces) {
      text_.line("const Spread<", kernel_.rows() ? "true, " : "false, ", typeOf(reduce), "> spread",
                 reduce.index, "(a.spread, ", reduce.index, ", kept, domain, parts.count);");
    }
  }
  text_.open("for (s64 round = ", mayBeSplit ? "s64(blockIdx.y) * warps" : "0",
             "; round < parts.count; round += ", mayBeSplit ? "s64(gridDim.y) * " : "", "warps)");
  for (const Reduce& reduce : stage.reduces) {
    text_.line(typeOf(reduce), " sum", reduce.index, " = ",
               literal(reduceInit(reduce.op, typeOf(reduce))), ";");
  }
  text_.open("if (round + warp < parts.count)");
  writePart(stage);
  if (mayBeSplit) {
    text_.open("if (isSpread", kernel_.rows() ? " && lane == 0)" : ")");
    for (const Reduce& reduce : stage.reduces) {
      text_.line("spread", reduce.index, ".put(round + warp, sum", reduce.index, ");");
    }
    text_.close();
  }
  text_.close();
  if (mayBeSplit) text_.line("if (isSpread) continue;");
  for (const Reduce& reduce : stage.reduces) addParts(reduce);
  text_.close();
  if (mayBeSplit) addSpreadParts(stage);
}

// By the last block that is done with its parts; for others this was all.
void KernelWriter::addSpreadParts(const KernelStage& stage) {
  text_.open("if (isSpread)");
  text_.line("if (!isLast(a.counters + blockIdx.x)) continue;");
  for (const Reduce& reduce : stage.reduces) {
    const dtype type = typeOf(reduce), total = totalTypeOf(reduce);
    const std::string widened = type == total ? "x" : functions_.ofCast(type, total) + "(x)";
    const char* const isSum = reduce.op == ir::Op::Sum ? "true" : "false";
    text_.line("total", reduce.index, " = spread", reduce.index, ".added<", isSum, ">(total",
               reduce.index, ", slots, [](", type, " x) { return ", widened, "; },");
    text_.line("    [](", total, " x, ", total, " y) { return ",
               functions_.ofReduce(reduce.op, total), "(x, y); });");
  }
  text_.close();
}

void KernelWriter::declarePart(const char* number) {
  text_.line("const ", turningAxes().empty() ? "Chunk<" : "Part<", chunk(), "> part(parts, ",
             number, ");");
}

// The loop over a part's turns, if there are any.
void KernelWriter::openTurns() {
  const std::vector<int> turning = turningAxes();
  if (turning.empty()) return;
  text_.open("for (s64 turn = part.firstTurn; turn < part.lastTurn; ++turn)");
  std::vector<std::string> extents;
  for (int axis : turning) extents.push_back(extent(axis));
  writeIndices("turn", turning, extents);
}

void KernelWriter::writePart(const KernelStage& stage) {
  declarePart("round + warp");
  if (kernel_.rows()) {
    text_.line("const s64 middle = part.end - (part.end - part.begin) % ", kWarp, ";");
    for (const Reduce& reduce : stage.reduces) {
      text_.line(typeOf(reduce), " tail", reduce.index, " = sum", reduce.index, ";");
    }
  }
  openTurns();
  writeLoops(stage);
  if (!turningAxes().empty()) text_.close();
  if (!kernel_.rows()) return;
  for (const Reduce& reduce : stage.reduces) foldRow(reduce);
}

std::vector<int> KernelWriter::sweptLoads(const KernelStage& stage) const {
  std::vector<int> loads;
  for (int value : neededBy(stage)) {
    const bool isLoad = kernel_.values[value].form == Form::Load && !isIndex(value);
    const bool isKept = findRow(value, /*isReady=*/true) != nullptr;
    if (isLoad && !isKept && names_[value].empty()) loads.push_back(value);
  }
  return loads;
}

// Elements whose loads are on their way at once: as many as some registers hold, while the code
// that is there for each is short. Columns, where a part is of one thread, have fewer warps, and so
// many narrow numbers are held widened, too.
int KernelWriter::batchLength(const KernelStage& stage) const {
  constexpr size_t kRowRegisters = 16, kColumnRegisters = 32, kValues = 64, kWithoutLoads = 4;
  size_t registers = 0;
  for (int load : sweptLoads(stage)) {
    const size_t size = getTypeSize(kernel_.values[load].type);
    const bool isOne = kernel_.rows() ? size <= sizeof(uint32_t) : size == sizeof(uint32_t);
    registers += isOne ? 1 : 2;
  }
  const size_t most = kernel_.rows() ? kRowRegisters : kColumnRegisters;
  const size_t held = registers > 0 ? most / registers : kWithoutLoads;
  const size_t repeated = kValues / std::max<size_t>(neededBy(stage).size(), 1);
  return static_cast<int>(std::bit_floor(std::max<size_t>(std::min(held, repeated), 1)));
}

std::string KernelWriter::visitCall(const KernelStage& stage, const char* sums,
                                    const char* loaded) {
  std::string args;
  for (int axis : axesWhere(true)) args += (args.empty() ? "i" : ", i") + std::to_string(axis);
  for (int load : sweptLoads(stage)) {
    args += ", " + (loaded ? detail::concat(loaded, load, "[j]") : definition(load, "i0", ""));
  }
  for (const Reduce& reduce : stage.reduces) args += detail::concat(", ", sums, reduce.index);
  return "visit(" + args + ");";
}

void KernelWriter::writeLoops(const KernelStage& stage) {
  const int length = batchLength(stage);
  if (length > 1 && !sweptLoads(stage).empty()) return writeBatches(stage, length);
  const bool rows = kernel_.rows();
  const std::string i = "i" + std::to_string(lowestReduced());
  constexpr int kMostUnrolled = 4;
  text_.line("#pragma unroll ", std::min(length, kMostUnrolled));
  text_.line("for (s64 ", i, " = part.begin", rows ? " + lane" : "", "; ", i, " < ",
             rows ? "middle" : "part.end", "; ", i, " += ", rows ? kWarp : 1, ") ",
             visitCall(stage, "sum"));
  if (!rows) return;
  text_.open("if (lane < ", ir::kLanes, ")");
  text_.line("#pragma unroll 1");
  text_.line("for (s64 i0 = middle + lane; i0 < part.end; i0 += ", ir::kLanes, ") ",
             visitCall(stage, "tail"));
  text_.close();
}

// The last batch takes what is left, a row's tail, too.
void KernelWriter::writeBatches(const KernelStage& stage, int length) {
  const bool rows = kernel_.rows();
  const int step = rows ? kWarp : 1;
  const char* const end = rows ? "middle" : "part.end";
  const std::string i = "i" + std::to_string(lowestReduced());
  Run run{length, detail::concat("at + ", step, " * j"), "", "sum", "from"};
  text_.line("s64 at = part.begin", rows ? " + lane" : "", ";");
  text_.open("for (; at + ", (length - 1) * step, " < ", end, "; at += ", length * step, ")");
  writeBatch(stage, {run});
  text_.close();
  text_.open("if (at < ", end, rows ? " || middle < part.end)" : ")");
  text_.line("const int left = int(", end, " - at);");
  run.condition = detail::concat(step, " * j < left");
  std::vector<Run> runs = {run};
  if (rows) {
    text_.line("const int tail = lane < ", ir::kLanes, " ? int(part.end - middle) - lane : 0;");
    runs.push_back({kWarp / ir::kLanes, detail::concat("middle + lane + ", ir::kLanes, " * j"),
                    detail::concat(ir::kLanes, " * j < tail"), "tail", "last"});
  }
  writeBatch(stage, runs);
  text_.close();
}

// The compiler would let few loads pass an addition, but none passes the barrier.
void KernelWriter::writeBatch(const KernelStage& stage, const std::vector<Run>& runs) {
  const auto forEach = [&](const Run& run) {
    text_.line("#pragma unroll");
    text_.open("for (int j = 0; j < ", run.length, "; ++j)");
    text_.line("const s64 i", lowestReduced(), " = ", run.index, ";");
  };
  for (const Run& run : runs) {
    for (int load : sweptLoads(stage)) {
      text_.line(kernel_.values[load].type, " ", run.loaded, load, "[", run.length, "];");
    }
    forEach(run);
    for (int load : sweptLoads(stage)) {
      const std::string element = definition(load, "i0", "");
      const std::string none = detail::concat(kernel_.values[load].type, "(0)");
      text_.line(run.loaded, load, "[j] = ",
                 run.condition.empty() ? element : run.condition + " ? " + element + " : " + none,
                 ";");
    }
    text_.close();
  }
  text_.line("__syncwarp();");
  for (const Run& run : runs) {
    forEach(run);
    const std::string visit = visitCall(stage, run.sums, run.loaded);
    text_.line(run.condition.empty() ? visit : "if (" + run.condition + ") " + visit);
    text_.close();
  }
}

// The sum of the warp's lanes, in lane 0.
void KernelWriter::foldRow(const Reduce& reduce) {
  const std::string function = functions_.ofReduce(reduce.op, typeOf(reduce));
  const std::string sum = "sum" + std::to_string(reduce.index);
  const auto folded = [&](int lanes) {
    return detail::concat(function, "(", sum, ", shuffleDown(", sum, ", ", lanes, "))");
  };
  text_.line(sum, " = ", function, "(", folded(ir::kLanes), ", tail", reduce.index, ");");
  for (int lanes = ir::kLanes / 2; lanes > 0; lanes /= 2) {
    text_.line(sum, " = ", folded(lanes), ";");
  }
}

// Each thread adds the round's parts to its own total.
void KernelWriter::addParts(const Reduce& reduce) {
  const dtype type = typeOf(reduce), total = totalTypeOf(reduce);
  const std::string sum = "sum" + std::to_string(reduce.index);
  const char* slot = kernel_.rows() ? "firstSlot + " : "lane + 32 * ";
  text_.line(kernel_.rows() ? "if (lane == 0) " : "", "slots[", slot, "warp] = Word<", type,
             ">::of(", sum, ");");
  text_.line("syncTeam();");
  text_.open("for (int other = 0; other < warps && round + other < parts.count; ++other)");
  std::string part = detail::concat("Word<", type, ">::to(slots[", slot, "other])");
  if (type != total) part = functions_.ofCast(type, total) + "(" + part + ")";
  text_.line("total", reduce.index, " = ", functions_.ofReduce(reduce.op, total), "(total",
             reduce.index, ", ", part, ");");
  text_.close();
  text_.line("syncTeam();");
}

void KernelWriter::defineTotals(const Reduce& reduce) {
  const dtype type = typeOf(reduce), total = totalTypeOf(reduce);
  std::string name = "total" + std::to_string(reduce.index);
  if (type != total) {
    const std::string rounded = functions_.ofCast(total, type) + "(" + name + ")";
    name = "rounded" + std::to_string(reduce.index);
    text_.line("const ", type, " ", name, " = ", rounded, ";");
  }
  for (size_t value = 0; value < kernel_.values.size(); ++value) {
    const KernelValue& defined = kernel_.values[value];
    if (defined.form == Form::Total && defined.index == reduce.index) names_[value] = name;
  }
}

}  // namespace fl::codegen::cuda
