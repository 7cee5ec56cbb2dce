// The text of rows and columns that are swept.
#include <algorithm>

#include "fl/codegen/cuda/KernelWriter.h"
#include "fl/kernel/KeptRows.h"

namespace fl::codegen::cuda {

using ir::KernelStage;
using ir::KernelValue;
using ir::cuda::SharedRow;
using Form = KernelValue::Form;

class KernelWriter::Scope {
 public:
  explicit Scope(KernelWriter& writer) : writer_(writer), names_(writer.names_) {}
  ~Scope() { writer_.names_ = std::move(names_); }

 private:
  KernelWriter& writer_;
  std::vector<std::string> names_;
};

void KernelWriter::writeReduction() {
  text_.line(
      "const int lane = int(threadIdx.x), warp = int(threadIdx.y), warps = int(blockDim.y);");
  text_.line("const s64 domain = ", product(axesWhere(false)), ";");
  if (!isShort()) declareParts();
  if (shared_) declareRows();
  writeStages();
}

void KernelWriter::declareParts() {
  const bool mayBeSplit = variant_ == Variant::Usual && ir::cuda::maySplit(kernel_);
  text_.line("__shared__ u64 slots[",
             mayBeSplit ? kernel_.rows() ? "kSpreadSlots<true>" : "kSpreadSlots<false>"
                        : std::to_string(kernel_.rows() ? kBlockWarps : kBlockThreads),
             "];");
  const std::vector<int> turning = turningAxes();
  const std::string groups =
      turning.empty() ? "" : detail::concat(", ", product(turning), ", ", ir::kMaxTurnsTogether);
  text_.line("const Parts<", chunk(), ", ", indexType(), "> parts(", extent(lowestReduced()),
             groups, ");");
}

void KernelWriter::writeStages() {
  Scope scope(*this);
  beginKept();
  // All that is read for a kept element is on its way before the first sweep.
  for (const KernelStage& stage : kernel_.stages) {
    std::vector<int> loads = neededBy(stage);
    std::erase_if(loads, [&](int value) { return kernel_.values[value].form != Form::Load; });
    defineValues(loads, ~kernel_.reduced, "i0", "true");
  }
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

// A row's lanes share a kept element; others have neighbouring ones, the last one repeated.
void KernelWriter::beginKept() {
  if (!isThreadEach()) {
    text_.line("const int firstSlot = int(threadIdx.z) * warps;");
    text_.line("const s64 teams = s64(gridDim.x) * blockDim.z;");
    text_.open("for (s64 kept = s64(blockIdx.x) * blockDim.z + threadIdx.z; kept < domain; ",
               "kept += teams)");
  } else {
    const std::string threads = isShort() ? "blockDim.x" : std::to_string(kWarp);
    text_.open("for (s64 first = s64(blockIdx.x) * ", threads, "; first < domain; ",
               "first += s64(gridDim.x) * ", threads, ")");
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
    text_.open("if (", isThreadEach() ? "exists" : "lane == 0", " && warp == 0)");
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
  isShort() ? writeShortSweep(stage) : writeRounds(stage);
  text_.close();
  if (stage.reduces.empty() && !isLast && !isShort()) text_.line("syncTeam();");
  for (const Reduce& reduce : stage.reduces) defineTotals(reduce);
}

void KernelWriter::writeVisit(const KernelStage& stage) {
  Scope scope(*this);
  std::string parameters;
  for (int axis : axesWhere(true)) {
    parameters += detail::concat(axis == 0 ? indexType() : "s64", " i", axis, ", ");
  }
  parameters += "bool here";
  for (int load : sweptLoads(stage)) {
    parameters += detail::concat(", ", kernel_.values[load].type, " v", load);
  }
  for (const Reduce& reduce : stage.reduces) {
    parameters += detail::concat(", ", typeOf(reduce), "& sum", reduce.index);
  }
  for (int load : sweptLoads(stage)) names_[load] = "v" + std::to_string(load);
  text_.open("const auto visit = [&](", parameters, ")");
  const std::string exists = isThreadEach() ? "exists && here" : "here";
  defineValues(neededBy(stage), ~0u, "i0", exists);
  keepRows();
  if (!stage.stores.empty()) {
    text_.open("if (", exists, ")");
    writeStores(stage);
    text_.close();
  }
  for (const Reduce& reduce : stage.reduces) {
    const std::string sum = "sum" + std::to_string(reduce.index);
    text_.line(sum, " = here ? ", functions_.ofReduce(reduce.op, typeOf(reduce)), "(", sum, ", ",
               names_[reduce.value], ") : ", sum, ";");
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
  std::string turns;
  for (auto axis = axes.rbegin(); *axis != 0; ++axis) {
    turns = detail::concat("i", *axis, turns.empty() ? "" : " + ", turns);
    turns = detail::concat(extent(axis[1]), " * (", turns, ")");
  }
  return turns.empty() ? "i0" : "i0 + int(" + turns + ")";
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
  text_.open("for (int number = warp; number < parts.count; number += warps)");
  declarePart("number");
  openTurns("part.firstTurn", "part.lastTurn");
  text_.line("const int i0 = part.begin, place = ", place(), ", count = part.end - i0;");
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
    if (findRow(value, /*isReady=*/false)) {
      text_.line("if (here) row", value, "[", place(), "] = ", names_[value], ";");
    }
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
  text_.open("for (", indexType(), " round = ", mayBeSplit ? "s64(blockIdx.y) * warps" : "0",
             "; round < parts.count; round += ", mayBeSplit ? "s64(gridDim.y) * " : "", "warps)");
  for (const Reduce& reduce : stage.reduces) {
    text_.line(typeOf(reduce), " sum", reduce.index, " = ",
               literal(reduceInit(reduce.op, typeOf(reduce))), ";");
  }
  text_.open("if (round + warp < parts.count)");
  writePart(stage);
  if (mayBeSplit) {
    text_.open("if (isSpread && ", kernel_.rows() ? "lane == 0)" : "exists)");
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
    const std::string sum = "total" + std::to_string(reduce.index);
    text_.line(sum, " = spread", reduce.index, ".added<",
               reduce.op == ir::Op::Sum ? "true>(" : "false>(", sum, ", slots,");
    text_.line("    [](", type, " x) { return ", widened, "; }, [](", total, " x, ", total,
               " y) { return ", functions_.ofReduce(reduce.op, total), "(x, y); });");
  }
  text_.close();
}

void KernelWriter::declarePart(const char* number) {
  text_.line("const ", turningAxes().empty() ? "Chunk<" : "Part<", chunk(), ", ", indexType(),
             "> part(parts, ", number, ");");
}

// The loop over a part's turns, if there are any.
void KernelWriter::openTurns(const std::string& first, const std::string& last) {
  const std::vector<int> turning = turningAxes();
  if (turning.empty()) return;
  text_.open("for (s64 turn = ", first, "; turn < ", last, "; ++turn)");
  std::vector<std::string> extents;
  for (int axis : turning) extents.push_back(extent(axis));
  writeIndices("turn", turning, extents);
}

void KernelWriter::writePart(const KernelStage& stage) {
  declarePart("round + warp");
  if (kernel_.rows()) {
    text_.line("const ", indexType(), " middle = part.end - (part.end - part.begin) % ", kWarp,
               ";");
    for (const Reduce& reduce : stage.reduces) {
      text_.line(typeOf(reduce), " tail", reduce.index, " = sum", reduce.index, ";");
    }
  }
  openTurns("part.firstTurn", "part.lastTurn");
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
    if ((isLoad || isKept) && names_[value].empty()) loads.push_back(value);
  }
  return loads;
}

// Elements whose loads are on their way at once: as many as some registers hold, while the code
// that is there for each is short. Columns, where a part is of one thread, have fewer warps.
// Beside code with shared memory, that without it is for few launches and soon compiled.
int KernelWriter::batchLength(const KernelStage& stage) const {
  const size_t held = shared_ ? 24 : sharedRows_.bytesEach > 0 ? 8 : kernel_.rows() ? 16 : 36;
  const size_t most = shared_ ? 8 : 32;
  constexpr size_t kInstructions = 512, kWithoutLoads = 4;
  size_t registers = 0, instructions = 0;
  for (int load : sweptLoads(stage)) {
    registers += getTypeSize(kernel_.values[load].type) <= sizeof(uint32_t) ? 1 : 2;
  }
  for (int value : neededBy(stage)) instructions += 2 + 20 * ir::costOf(kernel_.values[value]);
  size_t length = kWithoutLoads;
  if (registers > 0) length = held / registers;
  length = std::min({length, most, kInstructions / std::max<size_t>(instructions, 1)});
  return static_cast<int>(std::bit_floor(std::max<size_t>(length, 1)));
}

// The last batch of a row takes what is left, its tail, too; those of columns are half as long.
void KernelWriter::writeLoops(const KernelStage& stage) {
  const bool rows = kernel_.rows();
  const int length = batchLength(stage), step = rows ? kWarp : 1;
  const std::string end = rows ? "middle" : "part.end";
  const std::string type = detail::concat("const ", indexType(), " ");
  Run run{length, detail::concat(type, "i", lowestReduced(), " = at + ", step, " * j")};
  text_.line(indexType(), " at = part.begin", rows ? " + lane" : "", ";");
  text_.open("for (; at + ", (length - 1) * step, " < ", end, "; at += ", length * step, ")");
  writeBatch(stage, {run});
  text_.close();
  if (rows) {
    text_.open("if (at < middle || middle < part.end)");
  } else {
    run.length = std::max(length / 2, 1);
    text_.open("for (; at < part.end; at += ", run.length, ")");
  }
  text_.line("const int left = int(", end, " - at);");
  run.condition = detail::concat(step, " * j < left");
  std::vector<Run> runs = {run};
  if (rows) {
    text_.line("const int tail = lane < ", ir::kLanes, " ? int(part.end - middle) - lane : 0;");
    runs.push_back({kWarp / ir::kLanes,
                    detail::concat(type, "i0 = middle + lane + ", ir::kLanes, " * j"),
                    detail::concat(ir::kLanes, " * j < tail"), "tail", "last"});
  }
  writeBatch(stage, runs);
  text_.close();
}

// Short rows that lie in order are read in packs.
void KernelWriter::loadBatch(const KernelStage& stage, const Run& run) {
  std::vector<int> single;
  for (int load : sweptLoads(stage)) {
    const int operand = kernel_.values[load].index;
    text_.line(kernel_.values[load].type, " ", run.loaded, load, "[", run.length, "];");
    if (isShort() && kernel_.operands[operand].strides[0] == ir::Stride::One) {
      text_.line("loadPack(", run.loaded, load, ", a.data", operand, " + ", offset(operand, "at"),
                 ", int(smaller(", run.length, ", length - at)));");
    } else {
      single.push_back(load);
    }
  }
  openBatch(run);
  for (int load : single) {
    const std::string element = definition(load, "i0", "");
    const std::string none = detail::concat(kernel_.values[load].type, "(0)");
    text_.line(run.loaded, load, "[j] = ",
               run.condition.empty() ? element : run.condition + " ? " + element + " : " + none,
               ";");
  }
  text_.close();
}

// The compiler would let few loads pass an addition, but none passes the barrier.
void KernelWriter::writeBatch(const KernelStage& stage, const std::vector<Run>& runs) {
  for (const Run& run : runs) loadBatch(stage, run);
  text_.line("__syncwarp();");
  for (const Run& run : runs) visitBatch(stage, run);
}

void KernelWriter::openBatch(const Run& run) {
  text_.line("#pragma unroll");
  text_.open("for (int j = 0; j < ", run.length, "; ++j)");
  text_.line(run.begin, ";");
}

void KernelWriter::visitBatch(const KernelStage& stage, const Run& run) {
  openBatch(run);
  std::string args;
  for (int axis : axesWhere(true)) args += detail::concat("i", axis, ", ");
  args += run.condition.empty() ? "true" : run.condition;
  for (int load : sweptLoads(stage)) args += detail::concat(", ", run.loaded, load, "[j]");
  for (const Reduce& reduce : stage.reduces) args += detail::concat(", ", run.sums, reduce.index);
  text_.line("visit(", args, ");");
  text_.close();
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
  if (kernel_.rows()) {
    text_.open("if (warps == 1)");
    std::string part = "broadcast(" + sum + ")";
    if (type != total) part = functions_.ofCast(type, total) + "(" + part + ")";
    text_.line("total", reduce.index, " = ", functions_.ofReduce(reduce.op, total), "(total",
               reduce.index, ", ", part, ");");
    text_.label("} else {");
  }
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
  if (kernel_.rows()) text_.close();
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
