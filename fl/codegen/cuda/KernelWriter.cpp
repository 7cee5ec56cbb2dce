#include "fl/codegen/cuda/KernelWriter.h"

namespace fl::codegen::cuda {

using ir::Kernel;
using ir::KernelOperand;
using ir::KernelStage;
using ir::KernelValue;
using ir::Stride;
using Form = KernelValue::Form;
using Role = KernelOperand::Role;

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
  for (const Variant variant : ir::cuda::variantsOf(kernel_)) writeFunction(variant);
  return text_.take();
}

void KernelWriter::writeFunction(Variant variant) {
  variant_ = variant;
  shared_ = variant == Variant::Shared ? &sharedRows_ : nullptr;
  const bool isGroup = launches_ > 1;
  // Two blocks a multiprocessor: asked for none, the compiler spills for the sake of one more.
  text_.open("extern \"C\" __global__ void __launch_bounds__(", kBlockThreads,
             kernel_.reduced == 0 ? ") " : ", 2) ", functionName(name_, variant), "(const ",
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
    return detail::concat("row", row->value, "[", place(), "]");
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
  drawPacks(needed);
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

void KernelWriter::drawPacks(const std::vector<int>& needed) {
  for (int value : needed) {
    const KernelValue& random = kernel_.values[value];
    if (!drawsNumber(random) || random.type == dtype::f64 || pack_ < 4) continue;
    const auto& [seed, offset, index] = std::tie(random.args[0], random.args[1], random.args[2]);
    const bool isPlain =
        isIndex(index) && kernel_.operands[kernel_.values[index].index].strides[0] == Stride::One;
    if (!isPlain || names_[seed].empty() || names_[offset].empty()) continue;
    const std::string array = "drawn" + std::to_string(value);
    text_.line(random.type, " ", array, "[", pack_, "];");
    text_.line("drawPack(", array, ", ", definition(index, "i0", ""), ", [&](s64 at) { return ",
               functions_.ofApply(random, {dtype::u64, dtype::u64, dtype::s64}), "(", names_[seed],
               ", ", names_[offset], ", at); });");
    names_[value] = array + "[j]";
  }
}

void KernelWriter::storePacks() {
  for (const auto& store : kernel_.stages[0].stores) {
    accessPack("store", "to" + std::to_string(store.operand), store.operand, true);
  }
}

}  // namespace fl::codegen::cuda
