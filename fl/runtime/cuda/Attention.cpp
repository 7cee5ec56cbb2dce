#include "fl/runtime/cuda/Attention.h"

#include <algorithm>
#include <limits>
#include <map>
#include <utility>

#include "fl/kernel/cuda/Transpose.h"
#include "fl/runtime/SystemMemory.h"
#include "fl/runtime/cuda/HandWritten.h"

namespace fl::runtime::cuda {
namespace {

using ir::Op;
using library::cuda::cudnn;
using library::cuda::CudnnDescriptor;
using library::cuda::CudnnGraph;
using library::cuda::cudnnType;

// Of queries and of keys. Fewer are soon done by kernels, and cuDNN has had wrong gradients of one.
constexpr int64_t kFewest = 64;
// Before it, keys that do not fill a tile need a mask of their own.
constexpr size_t kOldestVersion = 91600;
constexpr size_t kAlignment = 256;  // in the workspace
constexpr float kOne = 1;

template <class Buffer>
int64_t numberOf(Buffer buffer, const AttentionShape& shape) {
  return static_cast<int64_t>(buffer) - (buffer > Buffer::Mask && !shape.mask ? 1 : 0);
}

// What cuDNN is told of both directions.
class Description {
 public:
  Description(CudnnGraph& graph, const AttentionShape& shape) : graph_(graph), shape_(shape) {}

  // A buffer of a matrix for each head: features of positions, or, the same memory, its transpose.
  template <class Buffer>
  const CudnnDescriptor& rows(Buffer buffer, int64_t positions) const {
    return graph_.addTensor(numberOf(buffer, shape_), shape_.type,
                            sizes(positions, shape_.features), strides(positions, shape_.features));
  }
  template <class Buffer>
  const CudnnDescriptor& columns(Buffer buffer, int64_t positions) const {
    return graph_.addTensor(numberOf(buffer, shape_), shape_.type,
                            sizes(shape_.features, positions),
                            transposedStrides(positions, shape_.features));
  }
  // A buffer of a number for each query.
  template <class Buffer>
  const CudnnDescriptor& ofQueries(Buffer buffer) const {
    return graph_.addTensor(numberOf(buffer, shape_), dtype::f32, sizes(shape_.queries, 1),
                            strides(shape_.queries, 1));
  }
  const CudnnDescriptor& virtualOfQueries() const {
    return graph_.addVirtual(dtype::f32, sizes(shape_.queries, 1), strides(shape_.queries, 1));
  }
  const CudnnDescriptor& scores(dtype type = dtype::f32) const {
    return graph_.addVirtual(type, sizes(shape_.queries, shape_.keys),
                             strides(shape_.queries, shape_.keys));
  }

  void multiply(const CudnnDescriptor& a, const CudnnDescriptor& b,
                const CudnnDescriptor& product) const {
    auto& how = graph_.add(CUDNN_BACKEND_MATMUL_DESCRIPTOR)
                    .set(CUDNN_ATTR_MATMUL_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, CUDNN_DATA_FLOAT)
                    .finish();
    graph_.addOperation(graph_.add(CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR)
                            .set(CUDNN_ATTR_OPERATION_MATMUL_DESC, how)
                            .set(CUDNN_ATTR_OPERATION_MATMUL_ADESC, a)
                            .set(CUDNN_ATTR_OPERATION_MATMUL_BDESC, b)
                            .set(CUDNN_ATTR_OPERATION_MATMUL_CDESC, product)
                            .finish());
  }
  void reduce(cudnnReduceTensorOp_t op, const CudnnDescriptor& x, const CudnnDescriptor& y) const {
    auto& how = graph_.add(CUDNN_BACKEND_REDUCTION_DESCRIPTOR)
                    .set(CUDNN_ATTR_REDUCTION_OPERATOR, CUDNN_TYPE_REDUCTION_OPERATOR_TYPE, op)
                    .set(CUDNN_ATTR_REDUCTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, CUDNN_DATA_FLOAT)
                    .finish();
    graph_.addOperation(graph_.add(CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR)
                            .set(CUDNN_ATTR_OPERATION_REDUCTION_DESC, how)
                            .set(CUDNN_ATTR_OPERATION_REDUCTION_XDESC, x)
                            .set(CUDNN_ATTR_OPERATION_REDUCTION_YDESC, y)
                            .finish());
  }
  const CudnnDescriptor& transposeScores(const CudnnDescriptor& x) const {
    return reshape(x, graph_.addVirtual(shape_.type, sizes(shape_.keys, shape_.queries),
                                        transposedStrides(shape_.queries, shape_.keys)));
  }
  const CudnnDescriptor& transposeKeys(const CudnnDescriptor& columns) const {
    return reshape(columns, graph_.addVirtual(shape_.type, sizes(shape_.keys, shape_.features),
                                              strides(shape_.keys, shape_.features)));
  }
  // y, behind what makes it of x, and of b if it is not null.
  const CudnnDescriptor& pointwise(cudnnPointwiseMode_t mode, const CudnnDescriptor& x,
                                   const CudnnDescriptor* b, const CudnnDescriptor& y) const {
    graph_.addPointwise(mode, dtype::f32, x, b, y);
    return y;
  }
  // The products of queries and keys, and the mask.
  template <class Buffer>
  const CudnnDescriptor& maskedScores(const CudnnDescriptor& query,
                                      const CudnnDescriptor& key) const {
    const CudnnDescriptor& products = scores();
    multiply(query, key, products);
    if (!shape_.mask) return products;
    const auto& [queries, heads, batch] = *shape_.mask;
    const auto step = [](int64_t count, int64_t elements) { return count == 1 ? 0 : elements; };
    const CudnnDescriptor& mask = graph_.addTensor(
        numberOf(Buffer::Mask, shape_), shape_.type, sizes(shape_.queries, shape_.keys),
        {step(batch, heads * queries * shape_.keys), step(heads, queries * shape_.keys),
         step(queries, shape_.keys), 1});
    return pointwise(CUDNN_POINTWISE_ADD, products, &mask, scores());
  }

 private:
  using Numbers = std::vector<int64_t>;
  Numbers sizes(int64_t rows, int64_t columns) const {
    return {shape_.batch, shape_.heads, rows, columns};
  }
  Numbers strides(int64_t rows, int64_t columns) const {
    return {shape_.heads * rows * columns, rows * columns, columns, 1};
  }
  // Of the transpose of such a matrix.
  Numbers transposedStrides(int64_t rows, int64_t columns) const {
    return {shape_.heads * rows * columns, rows * columns, 1, columns};
  }
  const CudnnDescriptor& reshape(const CudnnDescriptor& x, const CudnnDescriptor& y) const {
    graph_.addOperation(graph_.add(CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR)
                            .set(CUDNN_ATTR_OPERATION_RESHAPE_XDESC, x)
                            .set(CUDNN_ATTR_OPERATION_RESHAPE_YDESC, y)
                            .finish());
    return y;
  }

  CudnnGraph& graph_;
  const AttentionShape& shape_;
};

}  // namespace

// The gradients of masked attention are NaN where keys fill half a tile of 128 and scores are far
// below zero (cuDNN 9.19, on GPUs of compute capability 9).
std::optional<AttentionShape> attentionShape(const OperatorCall& call) {
  const dtype type = call.result.type;
  const size_t first = call.op == Op::AttentionBackward ? 1 : 0;
  if ((call.op != Op::Attention && first == 0) || (type != dtype::f16 && type != dtype::bf16) ||
      call.attrs[0]) {
    return {};
  }
  const Shape& query = call.operands[first].shape;
  AttentionShape shape{type,     query[0], call.operands[first + 1].shape[0], query[1], query[2],
                       query[3], {}};
  if (std::min(shape.queries, shape.keys) < kFewest || shape.features % 8 != 0 ||
      query.elements() == 0) {
    return {};
  }
  if (call.operands.size() == first + 3) return shape;
  const Shape& mask = call.operands[first + 3].shape;
  if (mask[1] != shape.keys || (first == 1 && shape.keys % 128 == 64)) return {};
  shape.mask = {mask[0], mask[2], mask[3]};
  return shape;
}

// output = softmax(scores) value, and statistics = log(sum(exp(scores))).
void describeForward(CudnnGraph& graph, const AttentionShape& shape) {
  const Description d(graph, shape);
  const CudnnDescriptor& scores = d.maskedScores<Forward>(d.rows(Forward::Query, shape.queries),
                                                          d.columns(Forward::Key, shape.keys));
  const CudnnDescriptor &most = d.virtualOfQueries(), &sum = d.virtualOfQueries();
  d.reduce(CUDNN_REDUCE_TENSOR_MAX, scores, most);
  const CudnnDescriptor& less = d.pointwise(CUDNN_POINTWISE_SUB, scores, &most, d.scores());
  const CudnnDescriptor& powers = d.pointwise(CUDNN_POINTWISE_EXP, less, nullptr, d.scores());
  d.reduce(CUDNN_REDUCE_TENSOR_ADD, powers, sum);
  const CudnnDescriptor& log = d.pointwise(CUDNN_POINTWISE_LOG, sum, nullptr, d.virtualOfQueries());
  d.pointwise(CUDNN_POINTWISE_ADD, most, &log, d.ofQueries(Forward::Statistics));
  const CudnnDescriptor& weights =
      d.pointwise(CUDNN_POINTWISE_DIV, powers, &sum, d.scores(shape.type));
  d.multiply(weights, d.rows(Forward::Value, shape.keys), d.rows(Forward::Output, shape.queries));
}

// As Dao et al., FlashAttention, arXiv 2205.14135. That the gradient of the queries is no sum in
// memory of f32 is what makes it deterministic.
void describeBackward(CudnnGraph& graph, const AttentionShape& shape) {
  const Description d(graph, shape);
  const auto& query = d.rows(Backward::Query, shape.queries);
  const auto& key = d.columns(Backward::Key, shape.keys);
  const auto& gradOutput = d.rows(Backward::GradOutput, shape.queries);
  const auto& statistics = d.ofQueries(Backward::Statistics);

  // The sums over the features of output * gradOutput.
  const auto& terms =
      graph.addVirtual(dtype::f32, {shape.batch, shape.heads, shape.queries, shape.features},
                       {shape.heads * shape.queries * shape.features,
                        shape.queries * shape.features, shape.features, 1});
  d.pointwise(CUDNN_POINTWISE_MUL, gradOutput, &d.rows(Backward::Output, shape.queries), terms);
  const auto& sums = d.virtualOfQueries();
  d.reduce(CUDNN_REDUCE_TENSOR_ADD, terms, sums);
  const auto& kept =
      d.pointwise(CUDNN_POINTWISE_MUL, sums, &graph.addNumber(numberOf(Backward::One, shape)),
                  d.ofQueries(Backward::Sums));

  const auto& scores = d.maskedScores<Backward>(query, key);
  const auto& less = d.pointwise(CUDNN_POINTWISE_SUB, scores, &statistics, d.scores());
  const auto& weights = d.pointwise(CUDNN_POINTWISE_EXP, less, nullptr, d.scores());
  d.multiply(d.transposeScores(weights), gradOutput, d.rows(Backward::GradValue, shape.keys));

  const auto& gradWeights = d.scores();
  d.multiply(gradOutput, d.columns(Backward::Value, shape.keys), gradWeights);
  const auto& centred = d.pointwise(CUDNN_POINTWISE_SUB, gradWeights, &kept, d.scores());
  const auto& gradScores =
      d.pointwise(CUDNN_POINTWISE_MUL, centred, &weights, d.scores(shape.type));
  d.multiply(d.transposeScores(gradScores), query, d.rows(Backward::GradKey, shape.keys));
  d.multiply(gradScores, d.transposeKeys(key), d.rows(Backward::GradQuery, shape.queries));
}

namespace {

size_t matrixBytes(const AttentionShape& shape, int64_t positions) {
  return bytesOf(shape.type, {positions, shape.features, shape.heads, shape.batch});
}
size_t statisticsBytes(const AttentionShape& shape) {
  return bytesOf(dtype::f32, {shape.queries, shape.heads, shape.batch});
}
size_t maskBytes(const AttentionShape& shape) {
  return shape.mask ? bytesOf(shape.type, {shape.mask->queries, shape.keys, shape.mask->heads,
                                           shape.mask->batch})
                    : 0;
}

class Attention final : public DeviceCall {
 public:
  // `backward` is null for attention itself.
  Attention(CUfunction transpose, const AttentionShape& shape,
            std::shared_ptr<const DeviceCall> forward, std::shared_ptr<const DeviceCall> backward)
      : transpose_(transpose),
        shape_(shape),
        forward_(std::move(forward)),
        backward_(std::move(backward)) {}

  size_t workspaceBytes() const override {
    const size_t ofBackward = backward_ ? backward_->workspaceBytes() : 0;
    return reinterpret_cast<uintptr_t>(lay(nullptr).rest) +
           std::max(forward_->workspaceBytes(), ofBackward);
  }

  void run(Context& context, void* const* operands, void* result, void* workspace) const override {
    const Places at = lay(workspace);
    void* const* const given = backward_ ? operands + 1 : operands;
    toFeatures(context, given[0], at.query, shape_.queries);
    toFeatures(context, given[1], at.key, shape_.keys);
    toFeatures(context, given[2], at.value, shape_.keys);
    const void* mask = shape_.mask ? given[3] : nullptr;
    if (at.mask) {
      const int64_t count = shape_.mask->heads * shape_.mask->batch;
      transpose(context, {count, shape_.keys, shape_.mask->queries}, mask, at.mask);
      mask = at.mask;
    }
    std::vector<const void*> buffers = {at.query, at.key, at.value, at.statistics, mask};
    call(context, *forward_, buffers, at.output, at.rest);
    if (!backward_) return fromFeatures(context, at.output, result, shape_.queries);
    toFeatures(context, operands[0], at.gradOutput, shape_.queries);
    buffers = {at.query,      at.key,  at.value,   at.output,    at.gradOutput,
               at.statistics, at.sums, at.gradKey, at.gradValue, mask};
    call(context, *backward_, buffers, at.gradQuery, at.rest);
    auto* gradient = static_cast<char*>(result);
    for (const auto& [from, positions] :
         {std::pair(at.gradQuery, shape_.queries), std::pair(at.gradKey, shape_.keys),
          std::pair(at.gradValue, shape_.keys)}) {
      fromFeatures(context, from, gradient, positions);
      gradient += matrixBytes(shape_, positions);
    }
  }

 private:
  // Of the workspace; null for what is not needed.
  struct Places {
    void *query, *key, *value, *output, *statistics, *mask;
    void *gradOutput, *sums, *gradQuery, *gradKey, *gradValue;
    void* rest;  // for cuDNN
  };
  Places lay(void* workspace) const {
    auto at = reinterpret_cast<uintptr_t>(workspace);
    const auto take = [&](size_t bytes) {
      const uintptr_t place = std::exchange(at, at + roundUp(bytes, kAlignment));
      return bytes > 0 ? reinterpret_cast<void*>(place) : nullptr;
    };
    const size_t ofQueries = matrixBytes(shape_, shape_.queries);
    const size_t ofKeys = matrixBytes(shape_, shape_.keys), ofEach = statisticsBytes(shape_);
    const size_t backward = backward_ ? 1 : 0;
    Places all{take(ofQueries), take(ofKeys), take(ofKeys), take(ofQueries), take(ofEach)};
    // Of one query, or one for all, it lies as cuDNN wants it.
    if (shape_.mask && shape_.mask->queries > 1) all.mask = take(maskBytes(shape_));
    all.gradOutput = take(backward * ofQueries);
    all.sums = take(backward * ofEach);
    all.gradQuery = take(backward * ofQueries);
    all.gradKey = take(backward * ofKeys);
    all.gradValue = take(backward * ofKeys);
    all.rest = reinterpret_cast<void*>(at);
    return all;
  }

  // Without the mask, if there is none.
  void call(Context& context, const DeviceCall& cudnn, std::vector<const void*>& buffers,
            void* result, void* workspace) const {
    if (!shape_.mask) buffers.pop_back();
    cudnn.run(context, const_cast<void* const*>(buffers.data()), result, workspace);
  }
  void toFeatures(Context& context, const void* from, void* to, int64_t positions) const {
    transpose(context, {shape_.heads * shape_.batch, shape_.features, positions}, from, to);
  }
  void fromFeatures(Context& context, const void* from, void* to, int64_t positions) const {
    transpose(context, {shape_.heads * shape_.batch, positions, shape_.features}, from, to);
  }
  void transpose(Context& context, const ir::cuda::Transposition& all, const void* from,
                 void* to) const {
    std::vector<uint64_t> words = packArguments(all, from, to);
    context.launch(transpose_, launchOf(all), words, label_, currentCallSite());
  }

  const CUfunction transpose_;
  const AttentionShape shape_;
  const std::shared_ptr<const DeviceCall> forward_, backward_;
  const std::shared_ptr<const std::string> label_ =
      std::make_shared<const std::string>("attention's transposition");
};

std::shared_ptr<const DeviceCall> makeDirection(Context& context, const AttentionShape& shape,
                                                void (*describe)(CudnnGraph&,
                                                                 const AttentionShape&),
                                                const std::string& name, CudnnBuffers buffers) {
  const auto graph = std::make_shared<CudnnGraph>(cudnn().table());
  describe(*graph, shape);
  // Kernels would keep scores of f32, several times.
  constexpr size_t kNoBound = std::numeric_limits<size_t>::max();
  if (!shape.mask) std::erase(buffers.bytes, size_t{0});
  return makeCudnnCall(context, graph, name, std::move(buffers), /*onTensorCores=*/true, kNoBound);
}

// The same for both operators, so that they run the same plan; callers take turns.
std::shared_ptr<const DeviceCall> forwardOf(Context& context, const AttentionShape& shape,
                                            const OperatorCall& call) {
  using Key = std::pair<int, std::string>;  // of the GPU
  static auto& known = *new std::map<Key, std::shared_ptr<const DeviceCall>>();
  const bool isBackward = call.op == Op::AttentionBackward;
  OperatorCall forward{Op::Attention, call.operands, call.attrs, call.result};
  if (isBackward) {
    forward.operands.erase(forward.operands.begin());
    forward.result = call.operands[0];
  }
  const std::string name = textOf(forward);
  if (const auto found = known.find({context.number(), name}); found != known.end())
    return found->second;
  const size_t queries = matrixBytes(shape, shape.queries), keys = matrixBytes(shape, shape.keys);
  return known[{context.number(), name}] = makeDirection(
             context, shape, describeForward, name,
             {{queries, keys, keys, statisticsBytes(shape), maskBytes(shape), queries}});
}

std::shared_ptr<const DeviceCall> make(Context& context, const OperatorCall& call) {
  const AttentionShape shape = *attentionShape(call);
  if (cudnn().table().cudnnGetVersion() < kOldestVersion) return nullptr;
  CUfunction transpose =
      handWritten(context, Op::Transpose, dtype::f16, "16-bit attention is made of kernels");
  auto forward = transpose ? forwardOf(context, shape, call) : nullptr;
  if (!forward) return nullptr;
  std::shared_ptr<const DeviceCall> backward;
  if (call.op == Op::AttentionBackward) {
    const size_t queries = matrixBytes(shape, shape.queries), keys = matrixBytes(shape, shape.keys);
    const size_t each = statisticsBytes(shape);
    backward = makeDirection(
        context, shape, describeBackward, textOf(call),
        {{queries, keys, keys, queries, queries, each, each, keys, keys, maskBytes(shape), queries},
         &kOne});
    if (!backward) return nullptr;
  }
  return std::make_shared<Attention>(transpose, shape, std::move(forward), std::move(backward));
}

}  // namespace

std::shared_ptr<const DeviceCall> findAttention(Context& context, const OperatorCall& call) {
  return attentionShape(call) ? findCudnnCall(context, call, make) : nullptr;
}

}  // namespace fl::runtime::cuda
