#include "fl/check/Values.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "absl/strings/str_format.h"
#include "fl/base/Error.h"
#include "fl/ir/ChannelOrder.h"
#include "fl/ir/Inference.h"

namespace fl::check {
namespace {

// Whether any element has an exponent of ones only: a block at a time, which compilers vectorise.
template <typename Word>
bool hasFullExponent(const void* data, Dim count, uint64_t exponent) {
  constexpr Dim kBlock = 256;
  const auto* words = static_cast<const Word*>(data);
  const auto mask = static_cast<Word>(exponent);
  for (Dim begin = 0; begin < count; begin += kBlock) {
    Word found = 0;
    const auto look = [&](Dim i) { found |= static_cast<Word>((words[i] & mask) == mask); };
    if (count - begin >= kBlock) {
      for (Dim i = 0; i < kBlock; ++i) look(begin + i);
    } else {
      for (Dim i = begin; i < count; ++i) look(i);
    }
    if (found) return true;
  }
  return false;
}

bool holdsNotFinite(const ir::ValueType& type, const void* data) {
  if (!isFloating(type.type)) return false;
  const uint64_t exponent = Number::fromDouble(INFINITY, type.type).bits();
  const Dim count = type.shape.elements();
  const size_t size = getTypeSize(type.type);
  return size == 8   ? hasFullExponent<uint64_t>(data, count, exponent)
         : size == 4 ? hasFullExponent<uint32_t>(data, count, exponent)
                     : hasFullExponent<uint16_t>(data, count, exponent);
}

}  // namespace

Number elementAt(dtype type, const void* data, Dim i) {
  const size_t size = getTypeSize(type);
  uint64_t bits = 0;
  std::memcpy(&bits, static_cast<const char*>(data) + static_cast<size_t>(i) * size, size);
  return Number(type, bits);
}

std::optional<Dim> firstNotFinite(const ir::ValueType& type, const void* data) {
  std::optional<Dim> infinite;
  const Dim count = holdsNotFinite(type, data) ? type.shape.elements() : 0;
  for (Dim i = 0; i < count; ++i) {
    const double x = elementAt(type.type, data, i).toDouble();
    if (std::isnan(x)) return i;
    if (std::isinf(x) && !infinite) infinite = i;
  }
  return infinite;
}

bool holdsNan(const ir::HostOperand& operand) {
  const std::optional<Dim> first = firstNotFinite(*operand.type, operand.data);
  return first && std::isnan(elementAt(operand.type->type, operand.data, *first).toDouble());
}

std::string rangesOf(const std::vector<ir::HostOperand>& operands,
                     const std::vector<ir::ValueType>& shown) {
  std::string text;
  for (size_t k = 0; k < operands.size(); ++k) {
    const ir::HostOperand& operand = operands[k];
    const Dim count = operand.type->shape.elements();
    double lowest = std::numeric_limits<double>::infinity(), highest = -lowest;
    Dim others = 0;
    for (Dim i = 0; i < count; ++i) {
      const double x = elementAt(operand.type->type, operand.data, i).toDouble();
      const bool isFinite = std::isfinite(x);
      others += isFinite ? 0 : 1;
      lowest = isFinite ? std::min(lowest, x) : lowest;
      highest = isFinite ? std::max(highest, x) : highest;
    }
    text += (k == 0 ? "; " : ", ") + shown[k].toString();
    if (lowest <= highest) text += absl::StrFormat(" from %g to %g", lowest, highest);
    others = others * shown[k].shape.elements() / std::max<Dim>(count, 1);
    if (others > 0) text += absl::StrFormat(" with %d NaN or infinite", others);
  }
  return text;
}

std::vector<bool> movedValues(const ir::Graph& graph) {
  std::vector<bool> moved(graph.valueCount(), false);
  const auto isMoved = [&](ir::ValueId id) -> bool { return moved[id]; };
  for (size_t i = 0; i < graph.nodes().size(); ++i) {
    const auto& [op, operands, attrs, type, site, origin] = graph.nodes()[i];
    const bool isMap = ir::isElementwise(op) || op == ir::Op::Broadcast || op == ir::Op::Reshape;
    moved[graph.idOfNode(i)] =
        ir::isOnImages(op)        ? ir::resultIsImage(op) && ir::imageAxes(attrs).channel == 0
        : op == ir::Op::Transpose ? origin < 0 && !moved[operands[0]]
                                  : isMap && std::ranges::any_of(operands, isMoved);
  }
  return moved;
}

Dim recordedElement(Dim element, const Shape& recorded, const Shape& moved) {
  const int last = moved.ndim() - 1;
  // Channels lie ahead of the images' number, where the shapes leave it open.
  int channel = last > 1 ? last - 1 : last;
  for (int i = 0; i < last; ++i) {
    const int other = i == 0 ? last : i;
    if (ir::inFront(recorded, other) == moved) channel = other;
  }
  Dim ahead = 1;  // elements of what is ahead of the channels as recorded
  for (int i = 1; i <= channel; ++i) ahead *= moved[i];
  const Dim at = element % moved[0], rest = element / moved[0];
  return rest % ahead + ahead * (at + moved[0] * (rest / ahead));
}

std::string finding(const std::string& flag, ir::Op op, const ir::ValueType& type,
                    const CallSite& site, const std::string& what) {
  return detail::concat("FL_CHECK=", flag, ": ", ir::opName(op), " ", type.toString(), " at ",
                        site.toString(), ": ", what);
}

}  // namespace fl::check
