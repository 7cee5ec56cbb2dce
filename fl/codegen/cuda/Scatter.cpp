// The kernel of fl/kernel/cuda/Scatter.h.
#include "fl/codegen/cuda/Emitter.h"
#include "fl/codegen/cuda/Functions.h"
#include "fl/codegen/cuda/Prelude.h"

namespace fl::codegen::cuda {
namespace {

// Behind T, the elements' type; kAdds; and sum(x, y), as the CPU rounds it.
constexpr char kScatter[] = R"cuda(
struct scatter_arguments {
  T* to;
  const s64* index;
  const T* from;
  GatherReport* report;
  s64 inner, length, bound, indexInner, lineInner, lineOuter, chunks, items;
};

// Of a line that a thread takes; lines that are read before they are added; and tiles of the index,
// of one position for each thread, that are looked at together.
constexpr int kEach = 4, kAhead = 4, kTiles = 4;

// The positions of one index that lead to a place.
struct Positions {
  const s64* index;
  s64 step, place;
  // Whether those of the tiles from one on do, of this thread; and for all threads, any of them.
  template <int tiles>
  __device__ bool look(bool (&leads)[tiles], s64 begin, s64 end) const {
    bool any = false;
#pragma unroll
    for (int tile = 0; tile < tiles; ++tile) {
      const s64 i = begin + tile * int(blockDim.x) + int(threadIdx.x);
      leads[tile] = i < end && index[i * step] == place;
      any |= leads[tile];
    }
    return __syncthreads_or(any);
  }
  // Whether any position of [begin, end) does.
  __device__ bool lead(s64 begin, s64 end) const {
    constexpr int tiles = 2 * kTiles;
    bool leads[tiles];
#pragma unroll 1
    for (s64 i = begin; i < end; i += tiles * int(blockDim.x)) {
      if (look(leads, i, end)) return true;
    }
    return false;
  }
};

// Those of some tiles that lead to the place, in their order, for all threads.
struct List {
  u32 words[kTiles * 8];
  s32 positions[kTiles * 256];
  __device__ int set(const bool (&leads)[kTiles]) {
    const int lane = int(threadIdx.x) % 32, warp = int(threadIdx.x) / 32;
    const int warps = int(blockDim.x) / 32;
#pragma unroll
    for (int tile = 0; tile < kTiles; ++tile) {
      const u32 word = __ballot_sync(~0u, leads[tile]);
      if (lane == 0) words[tile * warps + warp] = word;
    }
    __syncthreads();
    int count = 0;
#pragma unroll
    for (int tile = 0; tile < kTiles; ++tile) {
#pragma unroll 1
      for (int i = 0; i < warps; ++i) {
        const u32 word = words[tile * warps + i];
        if (i == warp && leads[tile]) {
          const int before = __popc(word & ((1u << lane) - 1));
          positions[count + before] = tile * int(blockDim.x) + int(threadIdx.x);
        }
        count += __popc(word);
      }
    }
    __syncthreads();
    return count;
  }
};

// The elements of a line that a thread takes.
struct Elements {
  bool exist[kEach];
  s64 from[kEach], to[kEach];  // where they are of the first line, and of the place
  T values[kEach];
  __device__ Elements(const scatter_arguments& a, s64 chunk, s64 inner, s64 outer, s64 place) {
#pragma unroll
    for (int j = 0; j < kEach; ++j) {
      s64 rest = (chunk * kEach + j) * int(blockDim.x) + int(threadIdx.x);
      exist[j] = rest < a.lineInner * a.lineOuter;
      const s64 x = inner + takeIndex(rest, a.lineInner), z = outer + rest;
      from[j] = x + a.inner * a.length * z;
      to[j] = x + a.inner * (place + a.bound * z);
    }
  }
  __device__ void load(const T* line, const s64 (&at)[kEach], T (&loaded)[kEach]) const {
#pragma unroll
    for (int j = 0; j < kEach; ++j) loaded[j] = exist[j] ? line[at[j]] : T(0);
  }
  __device__ void store(T* to) const {
#pragma unroll
    for (int j = 0; j < kEach; ++j) {
      if (exist[j]) to[this->to[j]] = values[j];
    }
  }
  // The listed lines, from `first` on.
  __device__ void add(const T* first, s64 inner, const s32* positions, int count) {
#pragma unroll 1
    for (int n = 0; n < count; n += kAhead) {
      T next[kAhead][kEach];
#pragma unroll
      for (int q = 0; q < kAhead; ++q) {
        load(first + inner * positions[n + q < count ? n + q : n], from, next[q]);
      }
#pragma unroll
      for (int q = 0; q < kAhead; ++q) {
#pragma unroll
        for (int j = 0; j < kEach; ++j) {
          if (n + q < count) values[j] = sum(values[j], next[q][j]);
        }
      }
    }
  }
};

// Two blocks, as kernels that are generated.
extern "C" __global__ void __launch_bounds__(256, 2) scatter(const scatter_arguments a) {
  __shared__ List list;
#pragma unroll 1
  for (s64 item = blockIdx.x; item < a.items; item += gridDim.x) {
    s64 rest = item;
    const s64 chunk = takeIndex(rest, a.chunks), i = takeIndex(rest, a.length);
    const s64 inner = takeIndex(rest, a.indexInner), outer = rest;
    const s64* const index = a.index + inner + a.indexInner * a.length * outer;
    const s64 place = index[i * a.indexInner];
    if (u64(place) >= u64(a.bound)) {
      Lookups lookups;
      lookups.gather = 0, lookups.index = place, lookups.bound = a.bound;
      lookups.end(a.report);
      continue;
    }
    const Positions positions = {index, a.indexInner, place};
    if (kAdds ? positions.lead(0, i) : positions.lead(i + 1, a.length)) continue;
    Elements elements(a, chunk, inner, outer, place);
    if (!kAdds) {
      elements.load(a.from + a.inner * i, elements.from, elements.values);
    } else {
      elements.load(a.to, elements.to, elements.values);
#pragma unroll 1
      for (s64 begin = i; begin < a.length; begin += kTiles * int(blockDim.x)) {
        bool leads[kTiles];
        if (!positions.look(leads, begin, a.length)) continue;
        const int count = list.set(leads);
        elements.add(a.from + a.inner * begin, a.inner, list.positions, count);
      }
    }
    elements.store(a.to);
  }
}
)cuda";

}  // namespace

std::string emitScatter(ir::Op op, dtype type) {
  Functions functions;
  const dtype wide = computeType(type);
  const std::string add = functions.ofReduce(ir::Op::Add, wide);
  std::string sum = add + "(x, y)";
  if (wide != type) {
    const std::string widened = functions.ofCast(type, wide);
    sum = functions.ofCast(wide, type) + "(" + add + "(" + widened + "(x), " + widened + "(y)))";
  }
  return detail::concat(kPrelude, "\n", functions.text(), "typedef ", type,
                        " T;\nconstexpr bool kAdds = ", op == ir::Op::ScatterAdd ? "true" : "false",
                        ";\n__device__ T sum(T x, T y) { return ", sum, "; }\n", kScatter);
}

}  // namespace fl::codegen::cuda
