#include "fl/runtime/cuda/Matmul.h"

#include <map>
#include <mutex>
#include <stdexcept>

#include "fl/base/Error.h"
#include "fl/base/Log.h"

namespace fl::runtime::cuda {
namespace {

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

// One for all: it holds nothing that a product changes.
cublasLtHandle_t handle() {
  static const cublasLtHandle_t made = [] {
    cublasLtHandle_t handle = nullptr;
    check(cublasLt(), cublasLt().cublasLtCreate(&handle), "starting");
    return handle;
  }();
  return made;
}

// Where there is no library, products are made of kernels, which are slower; that is told once.
bool hasCublasLt() {
  static const bool there = [] {
    const std::string& problem = cublasLtProblem();
    if (!problem.empty()) logWarning(problem + "; products are made of kernels");
    return problem.empty();
  }();
  return there;
}

class Preference {
 public:
  explicit Preference(const CublasLt& library) : library_(library) {
    check(library, library.cublasLtMatmulPreferenceCreate(&value), "a preference");
    const uint64_t workspace = Matmul::kWorkspaceBytes;
    set(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, workspace);
    for (const auto which :
         {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
          CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES}) {
      set(which, Matmul::kAlignment);
    }
  }
  ~Preference() { library_.cublasLtMatmulPreferenceDestroy(value); }
  Preference(const Preference&) = delete;

  cublasLtMatmulPreference_t value = nullptr;

 private:
  template <class T>
  void set(cublasLtMatmulPreferenceAttributes_t which, T to) {
    check(library_, library_.cublasLtMatmulPreferenceSetAttribute(value, which, &to, sizeof(to)),
          "a preference");
  }
  const CublasLt& library_;
};

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
    : library_(library) {
  const bool isDouble = shape.type == dtype::f64;
  check(library,
        library.cublasLtMatmulDescCreate(&operation,
                                         isDouble ? CUBLAS_COMPUTE_64F : CUBLAS_COMPUTE_32F,
                                         isDouble ? CUDA_R_64F : CUDA_R_32F),
        "describing a product");
  const auto transpose = [&](cublasLtMatmulDescAttributes_t which, bool does) {
    const int32_t how = does ? CUBLAS_OP_T : CUBLAS_OP_N;
    check(library, library.cublasLtMatmulDescSetAttribute(operation, which, &how, sizeof(how)),
          "describing a product");
  };
  transpose(CUBLASLT_MATMUL_DESC_TRANSA, shape.transposeLhs);
  transpose(CUBLASLT_MATMUL_DESC_TRANSB, shape.transposeRhs);
  const auto [m, n, k] = std::tuple(shape.m, shape.n, shape.k);
  lhs = layoutOf(shape, shape.transposeLhs ? k : m, shape.transposeLhs ? m : k, shape.lhsStep);
  rhs = layoutOf(shape, shape.transposeRhs ? n : k, shape.transposeRhs ? k : n, shape.rhsStep);
  result = layoutOf(shape, m, n, m * n);
}

MatmulDescription::~MatmulDescription() {
  for (const cublasLtMatrixLayout_t layout : {lhs, rhs, result}) {
    if (layout != nullptr) library_.cublasLtMatrixLayoutDestroy(layout);
  }
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

Matmul::Matmul(const CublasLt& library, const MatmulShape& shape)
    : library_(library), shape_(shape), description_(library, shape) {}

bool Matmul::chooseAlgorithm() {
  const Preference preference(library_);
  cublasLtMatmulHeuristicResult_t best = {};
  int found = 0;
  const cublasStatus_t status = library_.cublasLtMatmulAlgoGetHeuristic(
      handle(), description_.operation, description_.lhs, description_.rhs, description_.result,
      description_.result, preference.value, 1, &best, &found);
  algorithm_ = best.algo;
  return status == CUBLAS_STATUS_SUCCESS && found > 0;
}

std::shared_ptr<const Matmul> Matmul::find(Context& context, const MatmulShape& shape) {
  static std::mutex mutex;
  static auto& known = *new std::map<MatmulShape, std::shared_ptr<const Matmul>>();
  const std::lock_guard<std::mutex> lock(mutex);
  const auto [entry, isNew] = known.try_emplace(shape);
  if (isNew) {
    context.use();
    std::shared_ptr<Matmul> made(new Matmul(cublasLt(), shape));
    if (made->chooseAlgorithm()) entry->second = std::move(made);
  }
  return entry->second;
}

std::shared_ptr<const Matmul> findProduct(Context& context, ir::Op op,
                                          const std::vector<ir::ValueType>& operands,
                                          const ir::Attrs& attrs, const ir::ValueType& result) {
  if (op != ir::Op::Matmul || !hasCublasLt()) return nullptr;
  const std::optional<MatmulShape> shape = matmulShape(operands, attrs, result);
  return shape ? Matmul::find(context, *shape) : nullptr;
}

void Matmul::run(Context& context, const void* lhs, const void* rhs, void* result,
                 void* workspace) const {
  context.use();
  const float one = 1, zero = 0;
  const double oneDouble = 1, zeroDouble = 0;
  const bool isDouble = shape_.type == dtype::f64;
  const void* alpha = isDouble ? static_cast<const void*>(&oneDouble) : &one;
  const void* beta = isDouble ? static_cast<const void*>(&zeroDouble) : &zero;
  check(library_,
        library_.cublasLtMatmul(handle(), description_.operation, alpha, lhs, description_.lhs, rhs,
                                description_.rhs, beta, result, description_.result, result,
                                description_.result, &algorithm_, workspace, kWorkspaceBytes,
                                reinterpret_cast<cudaStream_t>(context.stream())),
        "a product");
}

}  // namespace fl::runtime::cuda
