#include "fl/codegen/cuda/Prelude.h"

namespace fl::codegen::cuda {

const char kPrelude[] = R"cuda(typedef unsigned short f16;
typedef unsigned short bf16;
typedef float f32;
typedef double f64;
typedef signed char b8;
typedef short s16;
typedef int s32;
typedef long long s64;
typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned u32;
typedef unsigned long long u64;

// ---- arithmetic ----

// Of at least 32 bits, so that nothing is promoted to int, where overflow is undefined.
template <class T, bool isLong = sizeof(T) == 8>
struct Wide {
  typedef u32 type;
};
template <class T>
struct Wide<T, true> {
  typedef u64 type;
};
template <class T>
__device__ T wrapAdd(T x, T y) {
  typedef typename Wide<T>::type W;
  return T(W(x) + W(y));
}
template <class T>
__device__ T wrapSub(T x, T y) {
  typedef typename Wide<T>::type W;
  return T(W(x) - W(y));
}
template <class T>
__device__ T wrapMul(T x, T y) {
  typedef typename Wide<T>::type W;
  return T(W(x) * W(y));
}
template <class T>
__device__ T shiftLeft(T x, T count) {
  return T(typename Wide<T>::type(x) << count);
}
// Zeros come in from above.
template <class T>
__device__ T shiftRight(T x, T count) {
  typedef typename Wide<T>::type W;
  return T((W(x) & (~W(0) >> (8 * (sizeof(W) - sizeof(T))))) >> count);
}

__device__ f32 mulAdd(f32 x, f32 y, f32 z) { return fmaf(x, y, z); }
__device__ f64 mulAdd(f64 x, f64 y, f64 z) { return fma(x, y, z); }
__device__ f32 magnitude(f32 x) { return fabsf(x); }
__device__ f64 magnitude(f64 x) { return fabs(x); }
__device__ f32 squareRoot(f32 x) { return sqrtf(x); }
__device__ f64 squareRoot(f64 x) { return sqrt(x); }
__device__ f32 roundDown(f32 x) { return floorf(x); }
__device__ f64 roundDown(f64 x) { return floor(x); }
__device__ f32 roundUp(f32 x) { return ceilf(x); }
__device__ f64 roundUp(f64 x) { return ceil(x); }
__device__ f32 roundToEven(f32 x) { return rintf(x); }
__device__ f64 roundToEven(f64 x) { return rint(x); }
__device__ s32 bitsOf(f32 x) { return __float_as_int(x); }
__device__ s64 bitsOf(f64 x) { return __double_as_longlong(x); }
__device__ f32 fromBits(s32 x) { return __int_as_float(x); }
__device__ f64 fromBits(s64 x) { return __longlong_as_double(x); }

#ifdef __CUDACC_RTC__
// MeaningBuilder's. The compiler's own division branches for numbers that are not ordinary, which
// keeps it from computing neighbours together. By Markstein's theorem ("IA-64 and Elementary
// Functions", 2000) the corrected quotient is rounded as it must be.
__device__ f32 divideOrdinary(f32 x, f32 y) {
  f32 inverse;
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(inverse) : "f"(y));
  inverse = fmaf(fmaf(-y, inverse, 1.0f), inverse, inverse);
  f32 result = x * inverse;
  return fmaf(fmaf(-y, result, x), inverse, result);
}
__device__ f32 widenHalf(f16 x) {
  f32 result;
  asm("cvt.f32.f16 %0, %1;" : "=f"(result) : "h"(x));
  return result;
}
__device__ f16 narrowToHalf(f32 x) {
  f16 result;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(result) : "f"(x));
  return result;
}
#endif
__device__ f32 widenBfloat16(bf16 x) { return fromBits(s32(u32(x) << 16)); }
__device__ bf16 narrowToBfloat16(f32 x) {
  const u32 word = u32(bitsOf(x));
  const u32 rounded = word + 0x7fff + (word >> 16 & 1);
  return bf16((x != x ? word | 0x400000 : rounded) >> 16);
}

// Truncates; what lies beyond T becomes its limit and NaN 0.
template <class T, class F>
__device__ T saturate(F x) {
  const bool isSigned = T(-1) < T(0);
  const int bits = 8 * sizeof(T) - isSigned;
  const F end = F(2) * F(u64(1) << (bits - 1)), low = isSigned ? -end : F(0);
  const T largest = T((u64(2) << (bits - 1)) - 1), smallest = isSigned ? T(-largest - 1) : T(0);
  const T inside = T(x > low && x < end ? x : F(0));
  return x >= end ? largest : x <= low ? smallest : inside;
}

// ---- numbers in words of 64 bits ----

template <class T>
struct Word {
  static __device__ u64 of(T x) { return u64(x); }
  static __device__ T to(u64 word) { return T(word); }
};
template <>
struct Word<f32> {
  static __device__ u64 of(f32 x) { return u32(bitsOf(x)); }
  static __device__ f32 to(u64 word) { return fromBits(s32(u32(word))); }
};
template <>
struct Word<f64> {
  static __device__ u64 of(f64 x) { return u64(bitsOf(x)); }
  static __device__ f64 to(u64 word) { return fromBits(s64(word)); }
};

// ---- indices ----

__device__ s64 smaller(s64 x, s64 y) { return x < y ? x : y; }
// Of numbers that are not negative. Those of 32 bits take some 20 instructions; larger ones, which
// are rare, one step for each bit of the result: the compiler's own division would be a call, and
// calls spill registers.
__device__ s64 quotient(s64 x, s64 y) {
  if (((x | y) >> 32) == 0) return u32(x) / u32(y);
  s64 result = 0;
#pragma unroll 1
  for (int shift = __clzll(y) - __clzll(x); shift >= 0; --shift) {
    result *= 2;
    if (x >= y << shift) {
      x -= y << shift;
      ++result;
    }
  }
  return result;
}
// rest / extent stays in `rest`; the remainder is the index along the axis.
__device__ s64 takeIndex(s64& rest, s64 extent) {
  const s64 next = quotient(rest, extent), index = rest - next * extent;
  rest = next;
  return index;
}

// ---- memory ----

template <class T, int n>
struct alignas(sizeof(T) * n) Pack {
  T at[n];
};
// `count` neighbours, at most n, by one access where they are n and begin at a multiple of n.
template <int n, class T>
__device__ void loadPack(T (&to)[n], const T* from, int count) {
  if (count == n && u64(from) % sizeof(Pack<T, n>) == 0) {
    const Pack<T, n> pack = *reinterpret_cast<const Pack<T, n>*>(from);
#pragma unroll
    for (int j = 0; j < n; ++j) to[j] = pack.at[j];
  } else {
#pragma unroll
    for (int j = 0; j < n; ++j) to[j] = j < count ? from[j] : T(0);
  }
}
template <int n, class T>
__device__ void storePack(T* to, const T (&from)[n], int count) {
  if (count == n && u64(to) % sizeof(Pack<T, n>) == 0) {
    Pack<T, n> pack;
#pragma unroll
    for (int j = 0; j < n; ++j) pack.at[j] = from[j];
    *reinterpret_cast<Pack<T, n>*>(to) = pack;
  } else {
#pragma unroll
    for (int j = 0; j < n; ++j) {
      if (j < count) to[j] = from[j];
    }
  }
}
template <int n, class T>
__device__ void loadStrided(T (&to)[n], const T* from, s64 stride, int count) {
#pragma unroll
  for (int j = 0; j < n; ++j) to[j] = j < count ? from[j * stride] : T(0);
}
template <int n, class T>
__device__ void storeStrided(T* to, const T (&from)[n], s64 stride, int count) {
#pragma unroll
  for (int j = 0; j < n; ++j) {
    if (j < count) to[j * stride] = from[j];
  }
}

// Random numbers of neighbours from `index` on. Four from a multiple of four on are of the same
// block of Philox, which the compiler sees and computes once.
template <int n, class T, class Draw>
__device__ void drawPack(T (&to)[n], s64 index, Draw draw) {
  const int skipped = int(index & 3);
  T all[n + 4] = {};
#pragma unroll
  for (int j = 0; j < n + 4; ++j) {
    if (j < n || skipped > 0) all[j] = draw(((index & ~s64(3)) + (j & ~3)) | (j & 3));
  }
#pragma unroll
  for (int j = 0; j < n; ++j) {
    const T even = skipped & 2 ? all[j + 2] : all[j], odd = skipped & 2 ? all[j + 3] : all[j + 1];
    to[j] = skipped & 1 ? odd : even;
  }
}

// ---- shared memory that a launch asks for ----

#ifdef __CUDACC_RTC__
extern __shared__ Pack<u64, 2> sharedMemory[];
__device__ unsigned char* sharedBegin() { return reinterpret_cast<unsigned char*>(sharedMemory); }
// Copies `bytes` that are aligned for one access; they are there after waitForFetches().
template <int bytes>
__device__ void fetch(void* to, const void* from) {
#if __CUDA_ARCH__ >= 800
  const u32 at = u32(__cvta_generic_to_shared(to));
  const u64 source = u64(__cvta_generic_to_global(from));
  if constexpr (bytes == 16) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(at), "l"(source) : "memory");
  } else {
    asm volatile("cp.async.ca.shared.global [%0], [%1], %2;" ::"r"(at), "l"(source), "n"(bytes)
                 : "memory");
  }
#else
  typedef typename Wide<char, bytes == 8>::type Word;
  for (int i = 0; i < bytes / int(sizeof(Word)); ++i) {
    static_cast<Word*>(to)[i] = static_cast<const Word*>(from)[i];
  }
#endif
}
__device__ void waitForFetches() {
#if __CUDA_ARCH__ >= 800
  asm volatile("cp.async.wait_all;" ::: "memory");
#endif
  __syncwarp();
}
#endif
// `count` neighbours, by the warp.
template <class T>
__device__ void fetchRow(T* to, const T* from, int count, int lane) {
  constexpr int each = 16 / sizeof(T);
  int done = 0;
  if ((u64(to) | u64(from)) % 16 == 0) {
    done = count / each * each;
#pragma unroll 4
    for (int i = lane * each; i < done; i += 32 * each) fetch<16>(to + i, from + i);
  }
#pragma unroll 4
  for (int i = done + lane; i < count; i += 32) {
    if constexpr (sizeof(T) >= 4) {
      fetch<sizeof(T)>(to + i, from + i);
    } else {
      to[i] = from[i];
    }
  }
}

struct GatherReport {
  s64 gather, index, bound;
};
// What a thread looks up, and one index of its own that was bad. A launch reports one of all; a
// branch at each lookup instead of one at the end would spill.
struct Lookups {
  s64 gather = -1, index = 0, bound = 0;
  // Element `element` of the table, or 0 if the index is bad or there is no such element here.
  template <class T>
  __device__ T find(const T* table, s64 element, s64 index, s64 bound, bool exists, s64 gather) {
    const bool good = u64(index) < u64(bound), bad = exists && !good;
    this->gather = bad ? gather : this->gather;
    this->index = bad ? index : this->index;
    this->bound = bad ? bound : this->bound;
    return exists && good ? table[element] : T(0);
  }
  __device__ void end(GatherReport* report) const {
    if (gather < 0) return;
    u64* const first = reinterpret_cast<u64*>(&report->gather);
    if (atomicCAS(first, ~u64(0), u64(gather)) != ~u64(0)) return;
    report->index = index;
    report->bound = bound;
  }
};

// ---- threads ----

// The launch of a group (fl/kernel/cuda/Group.h) that this block is of, and its place there.
template <int n>
struct Member {
  int launch = 0;
  s64 block, blocks;
  __device__ explicit Member(const u64 (&firstBlocks)[n + 1]) {
#pragma unroll
    for (int step = n / 2; step > 0; step /= 2) {
      if (blockIdx.x >= firstBlocks[launch + step]) launch += step;
    }
    block = s64(blockIdx.x - firstBlocks[launch]);
    blocks = s64(firstBlocks[launch + 1] - firstBlocks[launch]);
  }
};
template <class T>
__device__ T shuffleDown(T x, int lanes) {
  if constexpr (sizeof(T) == 8) {
    return Word<T>::to(__shfl_down_sync(~0u, Word<T>::of(x), lanes));
  } else {
    return Word<T>::to(__shfl_down_sync(~0u, u32(Word<T>::of(x)), lanes));
  }
}
// Lane 0's.
template <class T>
__device__ T broadcast(T x) {
  return Word<T>::to(__shfl_sync(~0u, Word<T>::of(x), 0));
}
// The warps of one kept element, one or all of the block, wait for each other.
__device__ void syncTeam() {
  if (blockDim.y > 1) {
    __syncthreads();
  } else {
    __syncwarp();
  }
}

// How the tree of fl/kernel/Kernel.h cuts a sweep into parts, each of a group of turns and a chunk
// of the lowest reduced axis. Index counts all elements.
template <int chunk, class Index>
struct Parts {
  Index length, turns, chunks, together, count;
  // Of one turn.
  __device__ Parts(Index length)
      : length(length), turns(1), chunks((length + chunk - 1) / chunk), together(1), count(chunks) {}
  __device__ Parts(Index length, Index turns, int mostTogether) : Parts(length) {
    const Index fitting = length == 0 ? 1 : quotient(chunk, length);
    this->turns = turns;
    together = fitting < 1 ? 1 : smaller(fitting, mostTogether);
    count = quotient(turns + together - 1, together) * chunks;
  }
};
template <int chunk, class Index>
struct Chunk {
  Index begin, end;
  __device__ Chunk(const Parts<chunk, Index>& parts, Index number)
      : begin(number * chunk), end(parts.length - begin < chunk ? parts.length : begin + chunk) {}
};
template <int chunk, class Index>
struct Part : Chunk<chunk, Index> {
  Index firstTurn, lastTurn;
  __device__ Part(const Parts<chunk, Index>& parts, s64 number)
      : Chunk<chunk, Index>(parts, takeIndex(number, parts.chunks)),
        firstTurn(number * parts.together),
        lastTurn(smaller(firstTurn + parts.together, parts.turns)) {}
};

// ---- sweeps that several blocks share ----

// Whether this block is the last of gridDim.y to come here; it sees what the others have written.
__device__ bool isLast(u32* counter) {
  __shared__ bool isIt;
  __threadfence();
  __syncthreads();
  if (threadIdx.x == 0 && threadIdx.y == 0) {
    isIt = atomicAdd(counter, 1u) == gridDim.y - 1;
    if (isIt) *counter = 0;
  }
  __syncthreads();
  __threadfence();
  return isIt;
}

// A batch of parts, some a thread, and what is read ahead of its end. Of a column few are in one.
template <bool isRow>
constexpr int kPartsEach = isRow ? 1 : 4;
template <bool isRow>
constexpr int kSpreadSlots = kPartsEach<isRow> * 256 + 4 * (isRow ? 1 : 32);
// Where the bits that are set in some numbers begin and end: all lie below 2^(highest - 126) and are
// multiples of 2^(lowest - 151).
struct SetBits {
  int highest = 0, lowest = 1 << 10;
  __device__ void see(f32 x) {
    const int word = bitsOf(x) & 0x7fffffff, field = word >> 23, exponent = field > 0 ? field : 1;
    const int fraction = (word & 0x7fffff) | (field > 0 ? 1 << 23 : 0);
    const int low = exponent + __ffs(fraction), high = field < 255 ? exponent : 1 << 10;
    lowest = word != 0 && low < lowest ? low : lowest;
    highest = word != 0 && high > highest ? high : highest;
  }
};
// The parts of a reduction for a kept element, in memory: those of a row side by side, of columns
// those of neighbours.
template <bool isRow, class T>
struct Spread {
  T* const first;
  const s64 stride, count;
  __device__ Spread(u64* memory, int reduction, s64 kept, s64 domain, s64 count)
      : first(reinterpret_cast<T*>(memory + reduction * domain * count) +
              (isRow ? kept * count : kept)),
        stride(isRow ? 1 : domain),
        count(count) {}
  __device__ void put(s64 part, T x) const { first[part * stride] = x; }

  // All of them added to the total, the neutral one, for each thread of the block. The order is
  // theirs where it matters.
  template <bool isSum, class Total, class Widen, class Add>
  __device__ Total added(const Total total, u64* slots, Widen widen, Add add) const {
    constexpr bool isFloat = T(0.5f) != T(0), isWidened = sizeof(T) < sizeof(Total);
    if constexpr (!isSum || !isFloat || isWidened) {
      Total result = total;
      const bool isAnyOrders = addedAsTree<isFloat, isWidened>(result, slots, widen, add);
      if (isAnyOrders) return result;
    }
    return addedInOrder(total, slots, widen, add);
  }

  // A value of the threads of one row or column, or of all, for each.
  template <bool isOfAll, class V, class Fold>
  __device__ V folded(V own, u64* slots, Fold fold) const {
    const int lane = int(threadIdx.x), warp = int(threadIdx.y), at = isOfAll ? 0 : lane;
    if constexpr (isOfAll) {
      for (int lanes = 16; lanes > 0; lanes /= 2) own = fold(own, shuffleDown(own, lanes));
    }
    if (!isOfAll || lane == 0) slots[32 * warp + at] = Word<V>::of(own);
    __syncthreads();
    own = Word<V>::to(slots[at]);
    for (int other = 1; other < int(blockDim.y); ++other) {
      own = fold(own, Word<V>::to(slots[32 * other + at]));
    }
    __syncthreads();
    return own;
  }

  // Each thread adds some. Whether the result has the bits of any other order: integers have, sums
  // that are exact in the wider type in each order, and what is largest or smallest unless it is
  // NaN, of which there are many, or a zero, of which there are two.
  template <bool isFloat, bool isWidened, class Total, class Widen, class Add>
  __device__ bool addedAsTree(Total& total, u64* slots, Widen widen, Add add) const {
    const int lane = int(threadIdx.x), warp = int(threadIdx.y), warps = int(blockDim.y);
    const int step = isRow ? 32 * warps : warps, own = isRow ? 32 * warp + lane : warp;
    const s64 apart = step * stride;
    constexpr int each = 8;
    const Total none = total;
    const T* from = first + own * stride;
    SetBits bits;
#pragma unroll 1
    for (int left = int(count) - own; left > 0; left -= each * step) {
      T next[each];
#pragma unroll
      for (int j = 0; j < each; ++j) {
        next[j] = j * step < left ? __ldcg(from) : T(0);
        from += apart;
      }
#pragma unroll
      for (int j = 0; j < each; ++j) {
        total = add(total, j * step < left ? widen(next[j]) : none);
        if constexpr (isWidened) bits.see(next[j]);
      }
    }
    total = folded<isRow>(total, slots, add);
    bool isAnyOrders = true;
    if constexpr (isWidened) {
      const int highest = folded<isRow>(bits.highest, slots, [](int x, int y) { return x > y ? x : y; });
      const int lowest = folded<isRow>(bits.lowest, slots, [](int x, int y) { return x < y ? x : y; });
      // So many bits has the sum of `count` numbers; f64 holds 53.
      isAnyOrders = highest - lowest + 25 + (64 - __clzll(count - 1)) <= 53;
    } else if constexpr (isFloat) {
      isAnyOrders = total < 0 || total > 0;
    }
    if constexpr (!isFloat) return true;
    return folded<true>(int(isAnyOrders), slots, [](int x, int y) { return x & y; }) != 0;
  }

  // All threads bring parts to shared memory while the first warp, a lane a column, adds those
  // brought before; `total` stands where there are no more.
  template <class Total, class Widen, class Add>
  __device__ Total addedInOrder(Total total, u64* slots, Widen widen, Add add) const {
    constexpr int each = kPartsEach<isRow>, ahead = 4;
    const int lane = int(threadIdx.x), warp = int(threadIdx.y), threads = 32 * int(blockDim.y);
    const int step = isRow ? threads : threads / 32, own = isRow ? 32 * warp + lane : warp;
    const Total none = total;
    const auto slot = [&](int i) { return Word<Total>::to(slots[isRow ? i : 32 * i + lane]); };
    T next[each];
    const auto bring = [&](s64 begin) {
#pragma unroll
      for (int j = 0; j < each; ++j) {
        const s64 part = begin + j * step + own;
        next[j] = part < count ? __ldcg(first + part * stride) : T(0);
      }
    };
    bring(0);
#pragma unroll 1
    for (s64 begin = 0; begin < count; begin += each * step) {
#pragma unroll
      for (int j = 0; j < each; ++j) {
        const bool exists = begin + j * step + own < count;
        slots[j * threads + 32 * warp + lane] = Word<Total>::of(exists ? widen(next[j]) : none);
      }
      __syncthreads();
      bring(begin + each * step);
      if (warp == 0) {
        const int here = int(smaller(each * step, count - begin));
        // Each is read some additions before it is added.
        Total coming[ahead];
#pragma unroll
        for (int j = 0; j < ahead; ++j) coming[j] = slot(j);
#pragma unroll 1
        for (int i = 0; i < here; i += ahead) {
#pragma unroll
          for (int j = 0; j < ahead; ++j) {
            total = add(total, coming[j]);
            coming[j] = slot(i + ahead + j);
          }
        }
      }
      __syncthreads();
    }
    if (warp == 0) slots[lane] = Word<Total>::of(total);
    __syncthreads();
    total = Word<Total>::to(slots[lane]);
    __syncthreads();
    return total;
  }
};
)cuda";

}  // namespace fl::codegen::cuda
