#include "fl/runtime/cuda/Matmul.h"

#include <array>
#include <map>
#include <mutex>
#include <stdexcept>
#include <string>

#include "fl/base/Error.h"
#include "fl/ir/Inference.h"

namespace fl::runtime::cuda {
namespace {

constexpr char kDescribing[] = "describing a product";

void check(const CublasLt& library, cublasStatus_t status, const char* what) {
  if (status == CUBLAS_STATUS_SUCCESS) return;
  throw std::runtime_error(detail::withCallSite(
      detail::concat("cuBLASLt: ", what, ": ", library.cublasLtGetStatusString(status))));
}

cudaDataType_t cudaType(dtype type) {
  return type == dtype::f64   ? CUDA_R_64F
         : type == dtype::f32 ? CUDA_R_32F
         : type == dtype::f16 ? CUDA_R_16F
                              : CUDA_R_16BF;
}

// It holds nothing that a product changes.
struct Handle {
  explicit Handle(Context& context) {
    const CublasLt& library = cublasLt().table();
    context.use();
    check(library, library.cublasLtCreate(&value), "starting");
  }
  cublasLtHandle_t value = nullptr;
};

cublasLtHandle_t handleOf(Context& context) {
  static auto& handles = *new PerGpu<Handle>();
  return handles.of(context).value;
}

cublasLtEpilogue_t epilogueOf(const Epilogue& epilogue) {
  constexpr int kAuxiliary = CUBLASLT_EPILOGUE_GELU_AUX & ~CUBLASLT_EPILOGUE_GELU;
  const int activation = epilogue.activation == Activation::Relu           ? CUBLASLT_EPILOGUE_RELU
                         : epilogue.activation == Activation::Gelu         ? CUBLASLT_EPILOGUE_GELU
                         : epilogue.activation == Activation::GeluGradient ? CUBLASLT_EPILOGUE_DGELU
                                                                           : 0;
  const int all = activation | (epilogue.bias ? CUBLASLT_EPILOGUE_BIAS : 0) |
                  (epilogue.auxiliary ? kAuxiliary : 0);
  return all == 0 ? CUBLASLT_EPILOGUE_DEFAULT : static_cast<cublasLtEpilogue_t>(all);
}

cublasLtMatmulPreference_t makePreference(const CublasLt& library, uint32_t reductions) {
  cublasLtMatmulPreference_t made = nullptr;
  check(library, library.cublasLtMatmulPreferenceCreate(&made), "a preference");
  const auto set = [&](cublasLtMatmulPreferenceAttributes_t which, auto to) {
    check(library, library.cublasLtMatmulPreferenceSetAttribute(made, which, &to, sizeof(to)),
          "a preference");
  };
  set(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, uint64_t{32} << 20);
  set(CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, reductions);
  for (const auto which :
       {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
        CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES}) {
    set(which, MatmulDescription::kAlignment);
  }
  return made;
}

// Parts of sums of 16-bit floats stay in f32 until all are added up.
cublasLtMatmulPreference_t preference(const CublasLt& library, dtype type) {
  static const auto any = makePreference(library, CUBLASLT_REDUCTION_SCHEME_MASK);
  static const auto wide = makePreference(library, CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE);
  return type == computeType(type) ? any : wide;
}

}  // namespace

std::optional<MatmulShape> matmulShape(const std::vector<ir::ValueType>& operands,
                                       const ir::Attrs& attrs, const ir::ValueType& result) {
  const Shape& lhs = operands[0].shape;
  if (!isFloating(result.type) || result.shape.elements() == 0 || lhs.elements() == 0) {
    return std::nullopt;
  }
  MatmulShape shape{
      result.type, result.shape[0], result.shape[1], 0, 0, attrs[0] != 0, attrs[1] != 0, 0, 0};
  shape.k = lhs[shape.transposeLhs ? 0 : 1];
  shape.tf32 = shape.type == dtype::f32 && ir::allowsTf32(ir::Op::Matmul, attrs);
  shape.batch = result.shape.elements() / (shape.m * shape.n);
  // Every matrix of the batch is another one, or all are the same.
  const auto stepOf = [&](const ir::ValueType& operand, int64_t matrix, int64_t* step) {
    const int64_t elements = operand.shape.elements();
    *step = elements == matrix ? 0 : matrix;
    return elements == matrix || elements == matrix * shape.batch;
  };
  const bool fits = stepOf(operands[0], shape.m * shape.k, &shape.lhsStep) &&
                    stepOf(operands[1], shape.k * shape.n, &shape.rhsStep);
  return fits ? std::optional(shape) : std::nullopt;
}

MatmulDescription::MatmulDescription(const CublasLt& library, const MatmulShape& shape)
    : library_(library), epilogue_(shape.epilogue) {
  const bool isDouble = shape.type == dtype::f64;
  const auto computed = isDouble     ? CUBLAS_COMPUTE_64F
                        : shape.tf32 ? CUBLAS_COMPUTE_32F_FAST_TF32
                                     : CUBLAS_COMPUTE_32F;
  check(library,
        library.cublasLtMatmulDescCreate(&operation, computed, isDouble ? CUDA_R_64F : CUDA_R_32F),
        kDescribing);
  const auto transpose = [](bool does) { return int32_t{does ? CUBLAS_OP_T : CUBLAS_OP_N}; };
  set(CUBLASLT_MATMUL_DESC_TRANSA, transpose(shape.transposeLhs));
  set(CUBLASLT_MATMUL_DESC_TRANSB, transpose(shape.transposeRhs));
  const auto [m, n, k] = std::tuple(shape.m, shape.n, shape.k);
  lhs = layoutOf(shape, shape.transposeLhs ? k : m, shape.transposeLhs ? m : k, shape.lhsStep);
  rhs = layoutOf(shape, shape.transposeRhs ? n : k, shape.transposeRhs ? k : n, shape.rhsStep);
  result = layoutOf(shape, m, n, m * n);
  set(CUBLASLT_MATMUL_DESC_EPILOGUE, static_cast<uint32_t>(epilogueOf(epilogue_)));
  if (epilogue_.auxiliary) {
    set(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, m);
    set(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_BATCH_STRIDE, m * n);
  }
  // For the choice of an algorithm, which looks at alignment.
  const void* const aligned = reinterpret_cast<void*>(uintptr_t{kAlignment});
  setEpilogue(aligned, aligned);
}

template <class T>
void MatmulDescription::set(cublasLtMatmulDescAttributes_t which, T value) {
  check(library_, library_.cublasLtMatmulDescSetAttribute(operation, which, &value, sizeof(value)),
        kDescribing);
}

void MatmulDescription::setEpilogue(const void* bias, const void* auxiliary) {
  if (epilogue_.bias) set(CUBLASLT_MATMUL_DESC_BIAS_POINTER, bias);
  if (epilogue_.auxiliary) set(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, auxiliary);
}

MatmulDescription::~MatmulDescription() {
  for (const cublasLtMatrixLayout_t layout : {lhs, rhs, result})
    if (layout != nullptr) library_.cublasLtMatrixLayoutDestroy(layout);
  library_.cublasLtMatmulDescDestroy(operation);
}

cublasLtMatrixLayout_t MatmulDescription::layoutOf(const MatmulShape& shape, int64_t rows,
                                                   int64_t columns, int64_t step) {
  cublasLtMatrixLayout_t layout = nullptr;
  check(library_,
        library_.cublasLtMatrixLayoutCreate(&layout, cudaType(shape.type), rows, columns, rows),
        "describing a matrix");
  const auto set = [&](cublasLtMatrixLayoutAttribute_t which, auto value) {
    check(library_, library_.cublasLtMatrixLayoutSetAttribute(layout, which, &value, sizeof(value)),
          "describing a matrix");
  };
  if (shape.batch > 1) {
    set(CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, static_cast<int32_t>(shape.batch));
    set(CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, step);
  }
  return layout;
}

namespace {

class Algorithm final : public Candidate {
 public:
  Algorithm(const CublasLt& library, const MatmulShape& shape,
            const cublasLtMatmulHeuristicResult_t& chosen)
      : library_(library),
        isDouble_(shape.type == dtype::f64),
        description_(library, shape),
        chosen_(chosen) {}

  // The bytes are the same in every process.
  std::string name() const override {
    return {reinterpret_cast<const char*>(&chosen_.algo), sizeof(chosen_.algo)};
  }
  size_t workspaceBytes() const override { return chosen_.workspaceSize; }
  // Operands are both matrices, the bias and the auxiliary one.
  void run(Context& context, void* const* operands, void* result, void* workspace) const override {
    context.use();
    const float one = 1, zero = 0;
    const double oneDouble = 1, zeroDouble = 0;
    const void* alpha = isDouble_ ? static_cast<const void*>(&oneDouble) : &one;
    const void* beta = isDouble_ ? static_cast<const void*>(&zeroDouble) : &zero;
    const std::lock_guard<std::mutex> lock(mutex_);
    description_.setEpilogue(operands[2], operands[3]);
    check(library_,
          library_.cublasLtMatmul(handleOf(context), description_.operation, alpha, operands[0],
                                  description_.lhs, operands[1], description_.rhs, beta, result,
                                  description_.result, result, description_.result, &chosen_.algo,
                                  workspace, chosen_.workspaceSize,
                                  reinterpret_cast<cudaStream_t>(context.stream())),
          "a product");
  }

 private:
  const CublasLt& library_;
  const bool isDouble_;
  mutable std::mutex mutex_;  // of the description, which a call with an epilogue changes
  mutable MatmulDescription description_;
  const cublasLtMatmulHeuristicResult_t chosen_;
};

Candidates candidatesOf(Context& context, const CublasLt& library, const MatmulShape& shape) {
  const MatmulDescription told(library, shape);
  std::array<cublasLtMatmulHeuristicResult_t, kMostCandidates> algorithms = {};
  int found = 0;
  const cublasStatus_t status = library.cublasLtMatmulAlgoGetHeuristic(
      handleOf(context), told.operation, told.lhs, told.rhs, told.result, told.result,
      preference(library, shape.type), kMostCandidates, algorithms.data(), &found);
  Candidates candidates;
  for (int i = 0; status == CUBLAS_STATUS_SUCCESS && i < found; ++i)
    if (algorithms[i].state == CUBLAS_STATUS_SUCCESS)
      candidates.push_back(std::make_shared<Algorithm>(library, shape, algorithms[i]));
  return candidates;
}

std::string textOf(const CublasLt& library, const MatmulShape& shape) {
  const auto transposed = [](bool is) { return is ? " transposed " : " plain "; };
  return detail::concat("cuBLASLt ", library.cublasLtGetVersion(), " matmul ", shape.type,
                        shape.tf32 ? " in TF32 " : " ", shape.m, "x", shape.n, "x", shape.k, "x",
                        shape.batch, transposed(shape.transposeLhs), shape.lhsStep,
                        transposed(shape.transposeRhs), shape.rhsStep, " epilogue ",
                        static_cast<int>(epilogueOf(shape.epilogue)));
}

// Of the operands of Algorithm::run() and the result.
std::vector<size_t> bytesOf(const MatmulShape& shape) {
  const size_t element = getTypeSize(shape.type), result = shape.m * shape.n * shape.batch;
  const auto all = [&](int64_t matrix, int64_t step) {
    return matrix * (step == 0 ? 1 : shape.batch) * element;
  };
  return {all(shape.m * shape.k, shape.lhsStep), all(shape.k * shape.n, shape.rhsStep),
          shape.m * element, shape.epilogue.auxiliary ? result * element : 0, result * element};
}

}  // namespace

std::shared_ptr<const Matmul> Matmul::find(Context& context, const MatmulShape& shape) {
  if (!cublasLt().isThere()) return nullptr;
  static std::mutex mutex;
  static auto& known = *new std::map<std::pair<int, MatmulShape>, std::shared_ptr<const Matmul>>();
  const std::lock_guard<std::mutex> lock(mutex);
  const auto [entry, isNew] = known.try_emplace({context.number(), shape});
  if (isNew) {
    context.use();
    const CublasLt& library = cublasLt().table();
    Candidates candidates = candidatesOf(context, library, shape);
    if (!candidates.empty())
      entry->second = std::make_shared<Matmul>(context, textOf(library, shape), bytesOf(shape),
                                               std::move(candidates));
  }
  return entry->second;
}

}  // namespace fl::runtime::cuda
