// Chooses the layout of images, the values between convolutions and poolings: plain, (W,H,C,N), or
// channels last in memory, (C,W,H,N), on which the library computes without copies.
//
// A convolution or pooling that is left plain costs the bytes of its images, which the library
// reorders. A value that is made in one layout and read in the other costs a copy. The choice with
// the lowest sum is a minimum cut: deterministic, and plain where nothing is gained, as for a
// convolution alone. Maps, reductions and reshapes work in either layout. A transpose that is
// recorded of an image from the one layout to the other costs nothing where it is not made: with
// such at its ends a plan takes images from another and leaves them as they lie.
// Heads of attention are moved apart from that (HeadLayout.cpp).
#include <algorithm>
#include <set>
#include <unordered_map>

#include "fl/base/MinimumCut.h"
#include "fl/codegen/MoveRules.h"
#include "fl/codegen/Passes.h"
#include "fl/ir/ChannelOrder.h"
#include "fl/ir/Inference.h"
#include "fl/ir/Rewrite.h"

namespace fl::codegen {
namespace {

// A copy of ours against one of the library's, which is made block by block in the cache.
constexpr int64_t kCopyCost = 2;
// Of images as they are recorded.
constexpr int kImageChannel = 2;

bool isMap(Op op) { return ir::isElementwise(op) || op == Op::Broadcast; }
bool isReduction(Op op) { return ir::opKind(op) == Kind::Reduce; }

// The library's, on plain images.
bool isPlainCall(const Node& node) {
  return ir::isOnImages(node.op) && ir::imageAxes(node.attrs).channel == kImageChannel;
}

// Whether it moves the channels of an image, in dimension `channel` of the plain one.
bool isToFront(const Node& node, int channel) {
  return node.op == Op::Transpose && channel >= 0 &&
         node.attrs.values() == ir::axesToFront(node.type.shape.ndim(), channel);
}
bool isFromFront(const Node& node, int channel) {
  return node.op == Op::Transpose && channel >= 0 &&
         node.attrs.values() == ir::axesFromFront(node.type.shape.ndim(), channel);
}

// ---- Which values are images ----

class Images {
 public:
  explicit Images(const Graph& graph) : graph_(graph), channel_(graph.valueCount(), -1) {
    for (size_t i = 0; i < graph.nodes().size(); ++i)
      note(graph.idOfNode(i), channelOfResult(graph.nodes()[i]));
    for (size_t i = graph.nodes().size(); i-- > 0;) {
      const Node& node = graph.nodes()[i];
      for (size_t k = 0; k < node.operands.size(); ++k)
        note(node.operands[k], channelOfOperand(node, k, channel_[graph.idOfNode(i)]));
    }
  }

  // The dimension of the channels of an image that lies in another order if they come first; -1
  // for all other values.
  int channel(ValueId id) const { return channel_[id]; }

  int64_t bytes(ValueId id) const {
    const auto& [type, shape] = graph_.type(id);
    return channel_[id] < 0 ? 0 : static_cast<int64_t>(bytesOf(type, shape));
  }

  // Whether a node computes with images, in either layout.
  bool isFree(ValueId id) const {
    if (graph_.isParameter(id) || graph_.node(id).operands.empty()) return false;
    const Node& node = graph_.node(id);
    const int first = channel_[node.operands[0]];
    if (isReduction(node.op)) {
      const Shape kept = ir::reducedShape(graph_.type(node.operands[0]).shape, node.attrs.list(1),
                                          /*keepDims=*/true);
      return first >= 0 && !ir::isReordered(kept, first);
    }
    bool free = isPlainCall(node) || (channel_[id] >= 0 && (isMap(node.op) || first >= 0));
    for (size_t i = 0; i < node.operands.size(); ++i) {
      const ValueId operand = node.operands[i];
      const int channel = channelOfOperand(node, i, channel_[id]);
      const bool counts = channel >= 0 && ir::isReordered(graph_.type(operand).shape, channel);
      free = free && channel_[operand] == (counts ? channel : -1);
    }
    return free;
  }

 private:
  void note(ValueId id, int channel) {
    const Shape& shape = graph_.type(id).shape;
    if (channel_[id] < 0 && channel >= 0 && shape.elements() > 0 &&
        ir::isReordered(shape, channel) && !isPlainOnly(id)) {
      channel_[id] = channel;
    }
  }

  // The gradient of a filter lies as filters do in either layout.
  bool isPlainOnly(ValueId id) const {
    return !graph_.isParameter(id) && isPlainCall(graph_.node(id)) &&
           !ir::resultIsImage(graph_.node(id).op);
  }

  int channelOfResult(const Node& node) const {
    if (isPlainCall(node)) return ir::resultIsImage(node.op) ? kImageChannel : -1;
    for (const ValueId operand : node.operands) {
      const int channel = channel_[operand];
      if (channel >= 0 && isMap(node.op)) return channel;
      if (channel >= 0 && node.op == Op::Reshape)
        return ir::afterReshape(graph_.type(operand).shape, channel, node.type.shape);
    }
    return -1;
  }

  int channelOfOperand(const Node& node, size_t i, int channelOfResult) const {
    if (isPlainCall(node)) return ir::isImage(node.op, i) ? kImageChannel : -1;
    if (channelOfResult >= 0 && node.op == Op::Reshape)
      return ir::afterReshape(node.type.shape, channelOfResult,
                              graph_.type(node.operands[i]).shape);
    return isMap(node.op) ? channelOfResult : -1;
  }

  const Graph& graph_;
  std::vector<int> channel_;
};

// ---- The choice ----

// By value, whether the node that makes it works on images with their channels first. The sink
// stands for all that is plain; one copy of a value serves all readers in the other layout. In
// `freeResults` are those that may be left in either.
std::vector<bool> chooseMoved(const Graph& graph, const Images& images,
                              const std::set<ValueId>& freeResults = {}) {
  MinimumCut cut;
  std::vector<int> makers(graph.valueCount(), MinimumCut::kSink), toPlain = makers,
                                                                  toFront = makers;
  for (ValueId id = 0; id < graph.valueCount(); ++id) {
    const bool isMoved = !graph.isParameter(id) && isFromFront(graph.node(id), images.channel(id));
    if (isMoved || images.isFree(id)) makers[id] = cut.addVertex();
    if (isMoved) cut.addEdge(MinimumCut::kSource, makers[id], MinimumCut::kNever);
    if (images.channel(id) >= 0) {
      toPlain[id] = cut.addVertex();
      toFront[id] = cut.addVertex();
      cut.addEdge(makers[id], toPlain[id], kCopyCost * images.bytes(id));
      cut.addEdge(toFront[id], makers[id], kCopyCost * images.bytes(id));
    }
  }
  const auto read = [&](ValueId id, int reader) {
    if (images.channel(id) >= 0) {
      cut.addEdge(toPlain[id], reader, MinimumCut::kNever);
      cut.addEdge(reader, toFront[id], MinimumCut::kNever);
    }
  };
  for (size_t i = 0; i < graph.nodes().size(); ++i) {
    const ValueId id = graph.idOfNode(i);
    int64_t bytes = images.bytes(id);
    for (const ValueId operand : graph.nodes()[i].operands) {
      const bool isMoved = isToFront(graph.nodes()[i], images.channel(operand));
      read(operand, isMoved ? MinimumCut::kSource : makers[id]);
      bytes += images.bytes(operand);
    }
    if (isPlainCall(graph.nodes()[i])) cut.addEdge(MinimumCut::kSource, makers[id], bytes);
  }
  for (const ValueId result : graph.results())
    if (!freeResults.contains(result)) read(result, MinimumCut::kSink);
  const std::vector<bool> moved = cut.sourceSide();
  std::vector<bool> chosen(makers.size());
  std::transform(makers.begin(), makers.end(), chosen.begin(), [&](int m) { return moved[m]; });
  return chosen;
}

// ---- Applying it ----

class Mover {
 public:
  Mover(const Graph& before, const Images& images) : before_(before), images_(images) {}

  // What takes the place of node `id`, whose operands are renamed: it works on images with the
  // channels in front, and a view gives its result to those that do not.
  ValueId move(Graph& graph, ValueId id, const Node& node) {
    const std::vector<ValueId>& operands = before_.node(id).operands;
    const int first = images_.channel(operands[0]), own = images_.channel(id);
    if (isFromFront(node, own)) {
      const ValueId plain = graph.addNode(node);
      inFront_[plain] = node.operands[0];
      return plain;
    }
    const int channel = isPlainCall(node) ? kImageChannel : isReduction(node.op) ? first : own;
    Node moved = node;
    for (size_t i = 0; i < operands.size(); ++i) {
      if (!isPlainCall(node) || ir::isImage(node.op, i)) {
        const int from = images_.channel(operands[i]);
        moved.operands[i] = toFront(graph, node.operands[i], from < 0 ? channel : from, node.site);
      }
    }
    moved.attrs = attrsInFront(node, channel);
    if (isReduction(node.op)) moved.operands[0] = reduceImages(graph, moved);
    ValueId made = graph.addNode(moved.op, moved.operands, moved.attrs, node.site, node.origin);
    made = unlessWrong(graph, "layout", made);
    return own >= 0 ? toPlain(graph, made, own, node.site)
                    : reshaped(graph, made, node.type.shape, node.site);
  }

  // The image of node `id`, a transpose to the front; -1 of all others.
  ValueId inFront(Graph& graph, ValueId id, const Node& node) {
    if (node.op != Op::Transpose) return -1;
    const int channel = images_.channel(before_.node(id).operands[0]);
    return isToFront(node, channel) ? toFront(graph, node.operands[0], channel, node.site) : -1;
  }

 private:
  static ir::Attrs attrsInFront(const Node& node, int channel) {
    std::vector<Dim> attrs = node.attrs.values();
    if (isPlainCall(node)) {
      attrs.back() = 1;
    } else if (isReduction(node.op)) {
      attrs[0] = 1;
      for (auto axis = attrs.begin() + 1; axis != attrs.end(); ++axis)
        *axis = ir::placeInFront(static_cast<int>(*axis), channel);
      std::sort(attrs.begin() + 1, attrs.end());
    } else if (!ir::isElementwise(node.op)) {
      attrs = ir::inFront(node.type.shape, channel).get();
    }
    return ir::Attrs(std::move(attrs));
  }

  // Of a reduction over all images that of each of them, which threads share: the channels alone
  // are too few. Not of 16-bit floats, which would be rounded twice.
  static ValueId reduceImages(Graph& graph, const Node& node) {
    const ir::ValueType& type = graph.type(node.operands[0]);
    std::vector<Dim> attrs = node.attrs.values();
    if (attrs.size() < 3 || attrs.back() != type.shape.ndim() - 1 || type.type != dtype::f32)
      return node.operands[0];
    attrs.pop_back();
    return graph.addNode(node.op, node.operands, ir::Attrs(attrs), node.site);
  }

  ValueId toFront(Graph& graph, ValueId id, int channel, CallSite site) {
    const Shape shape = graph.type(id).shape;
    if (shape.elements() == 1) return id;
    if (!ir::isReordered(shape, channel))
      return reshaped(graph, id, ir::inFront(shape, channel), site);
    const auto [place, isNew] = inFront_.try_emplace(id, -1);
    if (isNew) {
      const ir::Attrs axes(ir::axesToFront(shape.ndim(), channel));
      place->second = graph.addNode(Op::Transpose, {id}, axes, site);
    }
    return place->second;
  }

  ValueId toPlain(Graph& graph, ValueId id, int channel, CallSite site) {
    const ir::Attrs axes(ir::axesFromFront(graph.type(id).shape.ndim(), channel));
    const ValueId plain = graph.addNode(Op::Transpose, {id}, axes, site);
    inFront_[plain] = id;
    return plain;
  }

  const Graph& before_;
  const Images& images_;
  std::unordered_map<ValueId, ValueId> inFront_;  // of images
};

}  // namespace

void chooseLayouts(Compilation& compilation) {
  Graph& graph = compilation.graph;
  if (compilation.featuresFirst) moveHeads(&graph);
  if (std::ranges::none_of(graph.nodes(), isPlainCall)) return;
  const Images images(graph);
  const std::vector<bool> chosen = chooseMoved(graph, images);
  Mover mover(graph, images);
  ValueId next = graph.idOfNode(0);
  rewriteGraph(&graph, [&](Graph& made, Node node) {
    const ValueId id = next++;
    if (chosen[id]) return mover.move(made, id, node);
    const ValueId image = mover.inFront(made, id, node);
    return image >= 0 ? image : made.addNode(std::move(node));
  });
}

// The last result is what a read is of, and is plain; the others wait for another plan, of
// gradients say, where nodes of this one read some of them, too, and a network is more than a call.
std::vector<int> imagesOfResults(const Graph& graph) {
  std::vector<int> channels(graph.results().size(), -1);
  if (channels.size() < 2 || std::ranges::count_if(graph.nodes(), isPlainCall) < 2) return channels;
  Compilation simplified{.graph = graph};
  canonicalize(simplified);
  const Graph& simple = simplified.graph;
  const Images images(simple);
  const std::vector<int> uses = ir::useCounts(simple);  // one of them as a result
  const auto isReadImage = [&](ValueId id) { return uses[id] > 1 && images.channel(id) >= 0; };
  if (std::ranges::none_of(simple.results(), isReadImage)) return channels;
  const std::set<ValueId> free(simple.results().begin(), simple.results().end() - 1);
  const std::vector<bool> chosen = chooseMoved(simple, images, free);
  for (size_t i = 0; i + 1 < channels.size(); ++i) {
    const ValueId id = simple.results()[i];
    if (chosen[id]) channels[i] = images.channel(id);
  }
  return channels;
}

}  // namespace fl::codegen
