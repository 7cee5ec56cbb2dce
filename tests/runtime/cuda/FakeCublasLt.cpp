#include "tests/runtime/cuda/FakeCublasLt.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <mutex>
#include <utility>

#include "fl/base/Types.h"
#include "fl/runtime/cuda/CublasLt.h"
#include "tests/runtime/cuda/FakeDevice.h"
#include "tests/runtime/cuda/FakeGpu.h"

namespace fl::testing {
namespace {

std::mutex mutex;  // of these
std::vector<FakeAlgorithm> offered;
std::vector<uint64_t> algorithmsRun;

// What an algorithm wants; the real library refuses workspaces that are not aligned.
constexpr size_t kWorkspaceBytes = 1000;

struct Operation {
  bool tf32 = false;
  int32_t transposeLhs = CUBLAS_OP_N, transposeRhs = CUBLAS_OP_N;
  uint32_t epilogue = CUBLASLT_EPILOGUE_DEFAULT;
  const char* bias = nullptr;
  char* auxiliary = nullptr;
  int64_t leading = 0, step = 0;  // of the auxiliary matrix

  void set(cublasLtMatmulDescAttributes_t which, const void* value, size_t bytes) {
    std::memcpy(which == CUBLASLT_MATMUL_DESC_TRANSA            ? static_cast<void*>(&transposeLhs)
                : which == CUBLASLT_MATMUL_DESC_TRANSB          ? static_cast<void*>(&transposeRhs)
                : which == CUBLASLT_MATMUL_DESC_EPILOGUE        ? static_cast<void*>(&epilogue)
                : which == CUBLASLT_MATMUL_DESC_BIAS_POINTER    ? static_cast<void*>(&bias)
                : which == CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD ? static_cast<void*>(&leading)
                : which == CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER
                    ? static_cast<void*>(&auxiliary)
                    : static_cast<void*>(&step),
                value, bytes);
  }
};
struct Layout {
  dtype type;
  int64_t rows, columns, leading, step = 0;
  int32_t batch = 1;
};

template <class T, class Handle>
T& as(Handle handle) {
  return *reinterpret_cast<T*>(handle);
}

dtype typeOf(cudaDataType type) {
  return type == CUDA_R_64F   ? dtype::f64
         : type == CUDA_R_32F ? dtype::f32
         : type == CUDA_R_16F ? dtype::f16
                              : dtype::bf16;
}

// Element (row, column) of one of a batch of matrices, or of their transposes.
size_t offsetOf(const Layout& layout, bool transposed, int64_t row, int64_t column,
                int64_t number) {
  if (transposed) std::swap(row, column);
  return getTypeSize(layout.type) * (number * layout.step + column * layout.leading + row);
}
double read(const char* element, dtype type) {
  uint64_t bits = 0;
  std::memcpy(&bits, element, getTypeSize(type));
  return Number(type, bits).toDouble();
}
double read(const char* elements, const Layout& layout, bool transposed, int64_t row,
            int64_t column, int64_t number) {
  return read(elements + offsetOf(layout, transposed, row, column, number), layout.type);
}
void write(double value, char* element, dtype type) {
  const uint64_t bits = Number::fromDouble(value, type).bits();
  std::memcpy(element, &bits, getTypeSize(type));
}

double toTf32(double x) {
  int exponent = 0;
  const double digits = std::frexp(x, &exponent);
  return std::ldexp(std::nearbyint(std::ldexp(digits, 11)), exponent - 11);
}

// By tanh, and its derivative.
double gateOf(double x) { return std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)); }
double gelu(double x) { return 0.5 * x * (1 + gateOf(x)); }
double slopeOfGelu(double x) {
  const double gate = gateOf(x);
  const double inner = std::sqrt(2 / M_PI) * (1 + 3 * 0.044715 * x * x);
  return 0.5 * (1 + gate) + 0.5 * x * (1 - gate * gate) * inner;
}

// What becomes of one element of the product.
double finished(double value, const Operation& operation, dtype type, int64_t row, int64_t column,
                int64_t number) {
  const auto has = [&](int bits) {
    return (operation.epilogue & bits) == static_cast<uint32_t>(bits);
  };
  char* auxiliary = operation.auxiliary + getTypeSize(type) * (number * operation.step +
                                                               column * operation.leading + row);
  if (operation.epilogue == CUBLASLT_EPILOGUE_DEFAULT) return value;
  if (has(CUBLASLT_EPILOGUE_DGELU)) return value * slopeOfGelu(read(auxiliary, type));
  if (has(CUBLASLT_EPILOGUE_BIAS)) value += read(operation.bias + row * getTypeSize(type), type);
  if (has(CUBLASLT_EPILOGUE_GELU_AUX)) write(value, auxiliary, type);
  if (has(CUBLASLT_EPILOGUE_RELU)) return value < 0 ? 0 : value;
  return has(CUBLASLT_EPILOGUE_GELU) ? gelu(value) : value;
}

void multiply(const Operation& operation, const char* lhs, const Layout& left, const char* rhs,
              const Layout& right, char* result, const Layout& to) {
  const bool transposeLhs = operation.transposeLhs == CUBLAS_OP_T;
  const bool transposeRhs = operation.transposeRhs == CUBLAS_OP_T;
  const int64_t terms = transposeLhs ? left.rows : left.columns;
  const auto factor = [&](double x) { return operation.tf32 ? toTf32(x) : x; };
  for (int64_t number = 0; number < to.batch; ++number) {
    for (int64_t column = 0; column < to.columns; ++column) {
      for (int64_t row = 0; row < to.rows; ++row) {
        double sum = 0;
        for (int64_t i = 0; i < terms; ++i) {
          sum += factor(read(lhs, left, transposeLhs, row, i, number)) *
                 factor(read(rhs, right, transposeRhs, i, column, number));
        }
        write(finished(sum, operation, to.type, row, column, number),
              result + offsetOf(to, false, row, column, number), to.type);
      }
    }
  }
}

runtime::cuda::CublasLt table() {
  runtime::cuda::CublasLt table;
  table.cublasLtGetVersion = [] { return size_t{130000}; };
  table.cublasLtGetStatusString = [](cublasStatus_t) { return "told to fail"; };
  table.cublasLtCreate = [](cublasLtHandle_t* handle) {
    *handle = reinterpret_cast<cublasLtHandle_t>(currentFakeContext());
    return CUBLAS_STATUS_SUCCESS;
  };
  table.cublasLtMatmulDescCreate = [](cublasLtMatmulDesc_t* operation, cublasComputeType_t computed,
                                      cudaDataType_t) {
    *operation = reinterpret_cast<cublasLtMatmulDesc_t>(
        new Operation{.tf32 = computed == CUBLAS_COMPUTE_32F_FAST_TF32});
    return CUBLAS_STATUS_SUCCESS;
  };
  table.cublasLtMatmulDescDestroy = [](cublasLtMatmulDesc_t operation) {
    delete &as<Operation>(operation);
    return CUBLAS_STATUS_SUCCESS;
  };
  table.cublasLtMatmulDescSetAttribute = [](cublasLtMatmulDesc_t operation,
                                            cublasLtMatmulDescAttributes_t which, const void* value,
                                            size_t bytes) {
    as<Operation>(operation).set(which, value, bytes);
    return CUBLAS_STATUS_SUCCESS;
  };
  table.cublasLtMatrixLayoutCreate = [](cublasLtMatrixLayout_t* layout, cudaDataType type,
                                        uint64_t rows, uint64_t columns, int64_t leading) {
    *layout = reinterpret_cast<cublasLtMatrixLayout_t>(new Layout{
        typeOf(type), static_cast<int64_t>(rows), static_cast<int64_t>(columns), leading});
    return CUBLAS_STATUS_SUCCESS;
  };
  table.cublasLtMatrixLayoutDestroy = [](cublasLtMatrixLayout_t layout) {
    delete &as<Layout>(layout);
    return CUBLAS_STATUS_SUCCESS;
  };
  table.cublasLtMatrixLayoutSetAttribute = [](cublasLtMatrixLayout_t layout,
                                              cublasLtMatrixLayoutAttribute_t which,
                                              const void* value, size_t bytes) {
    auto& own = as<Layout>(layout);
    std::memcpy(
        which == CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT ? static_cast<void*>(&own.batch) : &own.step,
        value, bytes);
    return CUBLAS_STATUS_SUCCESS;
  };
  // A preference is its mask of reductions.
  table.cublasLtMatmulPreferenceCreate = [](cublasLtMatmulPreference_t* preference) {
    *preference =
        reinterpret_cast<cublasLtMatmulPreference_t>(new uint32_t(CUBLASLT_REDUCTION_SCHEME_MASK));
    return CUBLAS_STATUS_SUCCESS;
  };
  table.cublasLtMatmulPreferenceSetAttribute = [](cublasLtMatmulPreference_t preference,
                                                  cublasLtMatmulPreferenceAttributes_t which,
                                                  const void* value, size_t bytes) {
    if (which == CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK) {
      std::memcpy(&as<uint32_t>(preference), value, bytes);
    }
    return CUBLAS_STATUS_SUCCESS;
  };
  table.cublasLtMatmulAlgoGetHeuristic =
      [](cublasLtHandle_t, cublasLtMatmulDesc_t, cublasLtMatrixLayout_t, cublasLtMatrixLayout_t,
         cublasLtMatrixLayout_t, cublasLtMatrixLayout_t, cublasLtMatmulPreference_t preference,
         int most, cublasLtMatmulHeuristicResult_t* results, int* found) {
        const std::lock_guard<std::mutex> lock(mutex);
        *found = 0;
        for (const FakeAlgorithm& each : offered) {
          const uint32_t narrow = CUBLASLT_REDUCTION_SCHEME_OUTPUT_TYPE;
          if (*found == most || (!each.isWide && !(as<uint32_t>(preference) & narrow))) continue;
          results[*found].algo.data[0] = each.number;
          results[(*found)++].workspaceSize = kWorkspaceBytes;
        }
        return CUBLAS_STATUS_SUCCESS;
      };
  table.cublasLtMatmul = [](cublasLtHandle_t handle, cublasLtMatmulDesc_t operation, const void*,
                            const void* lhs, cublasLtMatrixLayout_t left, const void* rhs,
                            cublasLtMatrixLayout_t right, const void*, const void*,
                            cublasLtMatrixLayout_t, void* result, cublasLtMatrixLayout_t to,
                            const cublasLtMatmulAlgo_t* algorithm, void* workspace,
                            size_t workspaceBytes, cudaStream_t stream) {
    if (reinterpret_cast<uintptr_t>(workspace) % 256 != 0 || workspaceBytes < kWorkspaceBytes ||
        handle != reinterpret_cast<cublasLtHandle_t>(currentFakeContext())) {
      return CUBLAS_STATUS_INVALID_VALUE;
    }
    const std::lock_guard<std::mutex> lock(mutex);
    const auto offer = std::ranges::find(offered, algorithm->data[0], &FakeAlgorithm::number);
    if (offer != offered.end() && !offer->runs) return CUBLAS_STATUS_EXECUTION_FAILED;
    algorithmsRun.push_back(algorithm->data[0]);
    putIntoStream(
        reinterpret_cast<CUstream>(stream), "product",
        [=, operation = as<Operation>(operation), left = as<Layout>(left),
         right = as<Layout>(right), to = as<Layout>(to)] {
          std::memset(workspace, 0x5a, workspaceBytes);
          multiply(operation, static_cast<const char*>(lhs), left, static_cast<const char*>(rhs),
                   right, static_cast<char*>(result), to);
        },
        offer == offered.end() ? 1 : offer->milliseconds);
    return CUBLAS_STATUS_SUCCESS;
  };
  return table;
}

}  // namespace

void installFakeCublasLt() { runtime::cuda::cublasLt().install(table()); }
void offerAlgorithms(std::vector<FakeAlgorithm> algorithms) {
  const std::lock_guard<std::mutex> lock(mutex);
  offered = std::move(algorithms);
}
void offerProducts(bool does) {
  offerAlgorithms(does ? std::vector<FakeAlgorithm>{{1}} : std::vector<FakeAlgorithm>());
}
std::vector<uint64_t> takeAlgorithmsRun() {
  const std::lock_guard<std::mutex> lock(mutex);
  return std::exchange(algorithmsRun, {});
}

}  // namespace fl::testing
