// Built once a variant, with other flags and another FL_TILE_VARIANT. Everything here has internal
// linkage or is a template on a type of the variant's namespace; see TileBuilder.h for the reason.
#include "fl/tile/TileOps.h"

#include <immintrin.h>

#include "fl/ir/Philox.h"
#include "fl/kernel/Kernel.h"
#include "fl/tile/TileBuilder.h"

#if defined(__clang__)
#define FL_TILE_LOOP _Pragma("clang loop vectorize(assume_safety)")
#define FL_TILE_LANES FL_TILE_LOOP
#else
#define FL_TILE_LOOP _Pragma("GCC ivdep")
// Over a known number of lanes, which GCC would take apart before it looks for vectors.
#define FL_TILE_LANES FL_TILE_LOOP _Pragma("GCC unroll 1")
#endif
// Inlines all that a loop calls, however long: a call would keep it from being vectorised.
#define FL_TILE_FUNCTION __attribute__((flatten))

namespace fl::tile::FL_TILE_VARIANT {
namespace {

using ir::Init;
using ir::Kind;
using ir::Meaning;
using ir::Op;
using ir::OpInfo;
using ir::Result;
using ir::Types;

template <Op op>
struct Row;
#define FL_OP(Name, name_, kind_, meaning, ...)                                          \
  template <>                                                                            \
  struct Row<Op::Name> {                                                                 \
    static constexpr OpInfo info = {                                                     \
        .op = Op::Name, .name = #name_, .kind = Kind::kind_ __VA_OPT__(, ) __VA_ARGS__}; \
  };
#include "fl/ir/Ops.def"
#undef FL_OP

template <dtype type>
using Compute = typename ComputeType<type>::type;

constexpr bool isHalf(dtype type) { return type == dtype::f16 || type == dtype::bf16; }
constexpr int64_t wholeGroups(int64_t count) { return count & ~(kTileGroup - 1); }

// ---- elementwise ops ----

// True if an element needs the rare part of the op's meaning; false at once for ops without one.
template <Op op, class B, class T>
FL_TILE_FUNCTION bool needsRare(const T* x, const T* y, int64_t count) {
  B b(Rare::Note);
  FL_TILE_LOOP
  for (int64_t i = 0; i < count; ++i) Meaning<op>::apply(b, x[i], y[i], y[i]);
  return b.anyRare != 0;
}

template <Op op, class B, Rare rare, class R, class T>
FL_TILE_FUNCTION void applyToPairs(R* out, const T* x, const T* y, int64_t count) {
  B b(rare);
  FL_TILE_LOOP
  for (int64_t i = 0; i < count; ++i) out[i] = R(Meaning<op>::apply(b, x[i], y[i], y[i]));
}

template <Op op, dtype type>
FL_TILE_FUNCTION void apply(void* out, const void* x, const void* y, const void* z, int64_t count) {
  using T = Compute<type>;
  using R = std::conditional_t<Row<op>::info.result == Result::Bool, char, T>;
  using B = BuilderOf<isHalf(type)>;
  constexpr Kind kKind = Row<op>::info.kind;
  R* const to = static_cast<R*>(out);
  count = wholeGroups(count);
  if constexpr (kKind == Kind::Select) {
    const char* const mask = static_cast<const char*>(x);
    const T *const first = static_cast<const T*>(y), *const second = static_cast<const T*>(z);
    Builder b;
    FL_TILE_LOOP
    for (int64_t i = 0; i < count; ++i) {
      to[i] = R(Meaning<op>::apply(b, mask[i] != 0, first[i], second[i]));
    }
  } else {
    const T* const first = static_cast<const T*>(x);
    const T* const second = kKind == Kind::Unary ? first : static_cast<const T*>(y);
    if (needsRare<op, B>(first, second, count)) {
      applyToPairs<op, B, Rare::Compute>(to, first, second, count);
    } else {
      applyToPairs<op, B, Rare::LeaveOut>(to, first, second, count);
    }
  }
}

// Of f32: the second reads what the first makes in a register.
template <Op firstOp, Op secondOp, int place>
FL_TILE_FUNCTION void applyPair(void* out, const void* x, const void* y, const void* z,
                                int64_t count) {
  const auto *const a = static_cast<const float*>(x), *const b = static_cast<const float*>(y);
  const float* const c = static_cast<const float*>(z);
  float* const to = static_cast<float*>(out);
  Builder builder;
  count = wholeGroups(count);
  FL_TILE_LOOP
  for (int64_t i = 0; i < count; ++i) {
    const float made = Meaning<firstOp>::apply(builder, a[i], b[i], b[i]);
    to[i] = place == 0 ? Meaning<secondOp>::apply(builder, made, c[i], c[i])
                       : Meaning<secondOp>::apply(builder, c[i], made, made);
  }
}

// Whether these are the numbers of whole blocks in order, of one stream.
FL_TILE_FUNCTION bool areBlocks(const uint64_t* seeds, const uint64_t* offsets,
                                const int64_t* indices, int64_t count, int numbersInBlock) {
  const uint64_t first = static_cast<uint64_t>(indices[0]);
  uint64_t differs = first % numbersInBlock;
  FL_TILE_LOOP
  for (int64_t i = 0; i < count; ++i) {
    differs |= (seeds[i] ^ seeds[0]) | (offsets[i] ^ offsets[0]) |
               (static_cast<uint64_t>(indices[i]) - first - static_cast<uint64_t>(i));
  }
  return differs == 0;
}

// The numbers of blocks from `block` on, each of which is computed once.
template <dtype type>
FL_TILE_FUNCTION void uniformBlocks(Compute<type>* to, uint64_t seed, uint64_t offset,
                                    uint64_t block, int64_t count) {
  constexpr int kNumbers = type == dtype::f64 ? 2 : 4;
  using ir::vm::philoxNumberOf;
  Compute<type> numbers[kNumbers][kTile / kNumbers];
  Builder b;
  FL_TILE_LOOP
  for (int64_t i = 0; i < count / kNumbers; ++i) {
    const auto [w0, w1, w2, w3] = ir::vm::philoxBlock(b, seed, offset, block + i).word;
    if constexpr (kNumbers == 2) {
      numbers[0][i] = philoxNumberOf<type>(b, w0 << 32 | w1);
      numbers[1][i] = philoxNumberOf<type>(b, w2 << 32 | w3);
    } else {
      numbers[0][i] = philoxNumberOf<type>(b, w0);
      numbers[1][i] = philoxNumberOf<type>(b, w1);
      numbers[2][i] = philoxNumberOf<type>(b, w2);
      numbers[3][i] = philoxNumberOf<type>(b, w3);
    }
  }
  FL_TILE_LOOP
  for (int64_t i = 0; i < count / kNumbers; ++i) {
    for (int k = 0; k < kNumbers; ++k) to[i * kNumbers + k] = numbers[k][i];
  }
}

template <dtype type>
FL_TILE_FUNCTION void uniform(void* out, const void* seed, const void* offset, const void* index,
                              int64_t count) {
  Compute<type>* const to = static_cast<Compute<type>*>(out);
  const uint64_t* const seeds = static_cast<const uint64_t*>(seed);
  const uint64_t* const offsets = static_cast<const uint64_t*>(offset);
  const int64_t* const indices = static_cast<const int64_t*>(index);
  Builder b;
  count = wholeGroups(count);
  constexpr int kNumbers = type == dtype::f64 ? 2 : 4;
  if (areBlocks(seeds, offsets, indices, count, kNumbers)) {
    const uint64_t block = static_cast<uint64_t>(indices[0]) / kNumbers;
    return uniformBlocks<type>(to, seeds[0], offsets[0], block, count);
  }
  FL_TILE_LOOP
  for (int64_t i = 0; i < count; ++i) {
    to[i] = ir::vm::philoxNumber<type>(b, seeds[i], offsets[i], indices[i]);
  }
}

template <dtype type>
FL_TILE_FUNCTION void normal(void* out, const void* x, const void* y, const void*, int64_t count) {
  Compute<type>* const to = static_cast<Compute<type>*>(out);
  const Compute<type>* const first = static_cast<const Compute<type>*>(x);
  const Compute<type>* const second = static_cast<const Compute<type>*>(y);
  Builder b(Rare::LeaveOut);  // no angle is huge
  count = wholeGroups(count);
  FL_TILE_LOOP
  for (int64_t i = 0; i < count; ++i) to[i] = ir::vm::normalNumber(b, first[i], second[i]);
}

// ---- casts ----

// How a dtype lies in memory. 16-bit floats are decoded and encoded in groups.
template <dtype type>
struct Stored {
  using Type = Compute<type>;
};
template <>
struct Stored<dtype::f16> {
  using Type = uint16_t;
};
template <>
struct Stored<dtype::bf16> {
  using Type = uint16_t;
};

template <dtype from, dtype to>
FL_TILE_FUNCTION void castGroups(void* out, const void* x, int64_t count) {
  const auto* const source = static_cast<const Compute<from>*>(x);
  auto* const target = static_cast<Compute<to>*>(out);
  FL_TILE_LOOP
  for (int64_t i = 0; i < count; ++i) {
    if constexpr (to == dtype::b8) {
      target[i] = static_cast<char>(source[i] != 0);
    } else {
      target[i] = convert<Compute<to>>(source[i]);
    }
  }
}

// A vector of 16-bit floats and what it is as f32.
#ifdef __AVX512F__
constexpr int64_t kHalves = 16;
constexpr __mmask16 kAll = 0xffff;  // GCC takes what is not masked for uninitialised
#else
constexpr int64_t kHalves = 8;
#endif
using Halves = uint16_t __attribute__((vector_size(2 * kHalves)));
using Words = uint32_t __attribute__((vector_size(4 * kHalves)));
using Floats = float __attribute__((vector_size(4 * kHalves)));

template <class Vector>
Vector load(const void* from) {
  Vector vector;
  __builtin_memcpy(&vector, from, sizeof(vector));
  return vector;
}
template <class Vector>
void store(void* to, Vector vector) {
  __builtin_memcpy(to, &vector, sizeof(vector));
}

// The upper half of each word is x as bf16: rounded to nearest even, NaN made quiet.
Words roundToBfloat16(Floats x) {
  const Words word = Words(x), rounded = word + 0x7fff + ((word >> 16) & 1);
  return x != x ? word | 0x400000 : rounded;
}

// GCC would widen and narrow words in two parts.
template <dtype type>
Floats loadHalves(const uint16_t* x) {
  const auto halves = load<Halves>(x);
#ifdef __AVX512F__
  if constexpr (type == dtype::f16) {
    return _mm512_maskz_cvtph_ps(kAll, __m256i(halves));
  }
  return Floats(Words(_mm512_maskz_cvtepu16_epi32(kAll, __m256i(halves))) << 16);
#else
  if constexpr (type == dtype::f16) {
    return _mm256_cvtph_ps(__m128i(halves));
  }
  return Floats(Words(_mm256_cvtepu16_epi32(__m128i(halves))) << 16);
#endif
}
template <dtype type>
Halves toHalves(Floats x) {
#ifdef __AVX512F__
  if constexpr (type == dtype::f16) {
    return Halves(_mm512_maskz_cvtps_ph(kAll, x, _MM_FROUND_TO_NEAREST_INT));
  }
  return Halves(_mm512_maskz_cvtepi32_epi16(kAll, __m512i(roundToBfloat16(x) >> 16)));
#else
  if constexpr (type == dtype::f16) {
    return Halves(_mm256_cvtps_ph(x, _MM_FROUND_TO_NEAREST_INT));
  }
  return __builtin_convertvector(roundToBfloat16(x) >> 16, Halves);
#endif
}

template <dtype type>
void decodeHalves(float* out, const uint16_t* x, int64_t count) {
  for (int64_t i = 0; i < count; i += kHalves) store(out + i, loadHalves<type>(x + i));
}
template <dtype type>
void encodeHalves(uint16_t* out, const float* x, int64_t count) {
  for (int64_t i = 0; i < count; i += kHalves) store(out + i, toHalves<type>(load<Floats>(x + i)));
}

template <dtype from, dtype to>
FL_TILE_FUNCTION void cast(void* out, const void* x, const void*, const void*, int64_t count) {
  const auto* const source = static_cast<const typename Stored<from>::Type*>(x);
  auto* const target = static_cast<typename Stored<to>::Type*>(out);
  count = wholeGroups(count);
  if constexpr (!isHalf(from) && !isHalf(to)) {
    castGroups<from, to>(out, x, count);
  } else if constexpr (isHalf(from) && to == dtype::f32) {
    decodeHalves<from>(target, source, count);
  } else if constexpr (from == dtype::f32 && isHalf(to)) {
    encodeHalves<to>(target, source, count);
  } else {
    constexpr dtype kFrom = isHalf(from) ? dtype::f32 : from, kTo = isHalf(to) ? dtype::f32 : to;
    for (int64_t i = 0; i < count; i += kTileGroup) {
      float decoded[kTileGroup], encoded[kTileGroup];
      const void* values = source + i;
      if constexpr (isHalf(from)) {
        decodeHalves<from>(decoded, source + i, kTileGroup);
        values = decoded;
      }
      castGroups<kFrom, kTo>(isHalf(to) ? static_cast<void*>(encoded) : target + i, values,
                             kTileGroup);
      if constexpr (isHalf(to)) {
        encodeHalves<to>(target + i, encoded, kTileGroup);
      }
    }
  }
}

// ---- sums of 16-bit floats ----

template <dtype type>
FL_TILE_FUNCTION void addRounded(void* out, const void* x, const void* y, const void*,
                                 int64_t count) {
  const auto *const first = static_cast<const uint16_t*>(x), *const second =
                                                                 static_cast<const uint16_t*>(y);
  auto* const to = static_cast<uint16_t*>(out);
  count = wholeGroups(count);
  if constexpr (type == dtype::bf16) {
    // The upper and the lower halves of words are added apart: nothing is shuffled.
    constexpr uint32_t kUpper = 0xffff0000;
    for (int64_t i = 0; i < count; i += 2 * kHalves) {
      const auto a = load<Words>(first + i), b = load<Words>(second + i);
      const Words lower = roundToBfloat16(Floats(a << 16) + Floats(b << 16));
      const Words upper = roundToBfloat16(Floats(a & kUpper) + Floats(b & kUpper));
      store(to + i, (lower >> 16) | (upper & kUpper));
    }
  } else {
    for (int64_t i = 0; i < count; i += kHalves) {
      const Floats total = loadHalves<type>(first + i) + loadHalves<type>(second + i);
      store(to + i, toHalves<type>(total));
    }
  }
}

// ---- running sums ----

// Stores a vector, past the caches with `streams`.
template <int64_t bytes>
void put(char* to, const void* vector, bool streams) {
  if (!streams) {
    __builtin_memcpy(to, vector, bytes);
  } else if constexpr (bytes == sizeof(__m128i)) {
    _mm_stream_si128(reinterpret_cast<__m128i*>(to), load<__m128i>(vector));
  } else if constexpr (bytes == sizeof(__m256i)) {
    _mm256_stream_si256(reinterpret_cast<__m256i*>(to), load<__m256i>(vector));
#ifdef __AVX512F__
  } else {
    _mm512_stream_si512(reinterpret_cast<__m512i*>(to), load<__m512i>(vector));
#endif
  }
}

template <dtype type>
FL_TILE_FUNCTION void sum(void* out, const void* x, void* totals, int64_t rows, int64_t stride,
                          int64_t count, bool streams) {
  using T = typename Stored<type>::Type;
  using S = Compute<type>;
  // Integers wrap.
  using Number = typename std::conditional_t<std::is_floating_point_v<S>, std::type_identity<S>,
                                             std::make_unsigned<S>>::type;
  typedef Number Totals __attribute__((vector_size(sizeof(Floats))));
  constexpr int64_t kLanes = sizeof(Floats) / sizeof(S);
  static_assert(sizeof(Totals) == sizeof(Floats));
  const T* values = static_cast<const T*>(x);
  S* const sums = static_cast<S*>(totals);
  char* to = static_cast<char*>(out);
  for (; rows > 0; --rows, values += stride / sizeof(T), to += stride) {
    for (int64_t i = 0; i < wholeGroups(count); i += kLanes) {
      if constexpr (isHalf(type)) {
        const Floats total = load<Floats>(sums + i) + loadHalves<type>(values + i);
        store(sums + i, total);
        const Halves rounded = toHalves<type>(total);
        put<sizeof(rounded)>(to + i * sizeof(T), &rounded, streams);
      } else {
        Totals total, value;
        __builtin_memcpy(&total, sums + i, sizeof(total));
        __builtin_memcpy(&value, values + i, sizeof(value));
        total += value;
        __builtin_memcpy(sums + i, &total, sizeof(total));
        put<sizeof(total)>(to + i * sizeof(T), &total, streams);
      }
    }
  }
}

// ---- reductions ----

template <Op op, class T>
T combine(T x, T y) {
  Builder b;
  return Meaning<op>::apply(b, x, y, y);
}

template <Op op, dtype type>
FL_TILE_FUNCTION void accumulate(void* lanes, const void* x, int64_t turns, int64_t length) {
  using T = Compute<type>;
  T* const main = static_cast<T*>(lanes);
  T* const tail = main + 32;
  const T* values = static_cast<const T*>(x);
  const int64_t whole = length & ~int64_t{31};
  T sums[32];
  for (int l = 0; l < 32; ++l) sums[l] = main[l];
  for (int64_t turn = 0; turn < turns; ++turn, values += length) {
    for (int64_t i = 0; i < whole; i += 32) {
      FL_TILE_LOOP
      for (int l = 0; l < 32; ++l) sums[l] = combine<op>(sums[l], values[i + l]);
    }
    for (int64_t i = whole; i < length; ++i) {
      tail[(i - whole) & 15] = combine<op>(tail[(i - whole) & 15], values[i]);
    }
  }
  for (int l = 0; l < 32; ++l) main[l] = sums[l];
}

template <Op op, dtype type>
using Total = Compute<ir::totalType(op, type)>;

template <Op op, dtype type>
FL_TILE_FUNCTION void finish(void* total, const void* lanes) {
  using T = Compute<type>;
  const T* const a = static_cast<const T*>(lanes);
  T s[16];
  FL_TILE_LANES
  for (int l = 0; l < 16; ++l) s[l] = combine<op>(a[l], a[l + 16]);
  FL_TILE_LANES
  for (int l = 0; l < 16; ++l) s[l] = combine<op>(s[l], a[l + 32]);
  for (int width = 8; width >= 1; width /= 2) {
    FL_TILE_LANES
    for (int l = 0; l < width; ++l) s[l] = combine<op>(s[l], s[l + width]);
  }
  auto* const result = static_cast<Total<op, type>*>(total);
  *result = combine<op, Total<op, type>>(*result, s[0]);
}

// Up to 16 rows of at most 16 elements, all of which are behind the last 32: the tree of all rows
// at once. What it has of init beside them changes nothing.
template <Op op, typename T>
FL_TILE_FUNCTION void reduceShortRows(T* results, const T* x, int64_t rows, int64_t length,
                                      T start) {
  T s[16][16];
  for (int64_t r = 0; r < 16; ++r)
    for (int64_t l = 0; l < length; ++l) s[l][r] = r < rows ? x[r * length + l] : start;
  for (int64_t l = 0; l < length; ++l) {
    FL_TILE_LANES
    for (int64_t r = 0; r < 16; ++r) s[l][r] = combine<op>(start, s[l][r]);
  }
  for (int64_t width = 8; width >= 1; width /= 2) {
    for (int64_t l = 0; l < width && l + width < length; ++l) {
      FL_TILE_LANES
      for (int64_t r = 0; r < 16; ++r) s[l][r] = combine<op>(s[l][r], s[l + width][r]);
    }
  }
  for (int64_t r = 0; r < rows; ++r) results[r] = s[0][r];
}

template <Op op, dtype type>
FL_TILE_FUNCTION void reduceRows(void* results, const void* x, int64_t rows, int64_t turns,
                                 int64_t length, const void* init) {
  using T = Compute<type>;
  const T* values = static_cast<const T*>(x);
  const T start = *static_cast<const T*>(init);
  const int64_t together = ir::turnsTogether(length, ir::kRowChunk);
  if (turns == 1 && length > 0 && length <= 16) {
    for (int64_t r = 0; r < rows; r += 16)
      reduceShortRows<op>(static_cast<T*>(results) + r, values + r * length,
                          std::min<int64_t>(16, rows - r), length, start);
    return;
  }
  for (int64_t r = 0; r < rows; ++r) {
    Total<op, type> total = start;
    for (int64_t turn = 0; turn < turns; turn += together) {
      const int64_t group = turns - turn < together ? turns - turn : together;
      T lanes[kRowLanes];
      for (int l = 0; l < kRowLanes; ++l) lanes[l] = start;
      accumulate<op, type>(lanes, values, group, length);
      finish<op, type>(&total, lanes);
      values += group * length;
    }
    static_cast<T*>(results)[r] = T(total);
  }
}

// Several rows at a time: one alone is too short for memory to keep up. Sums are added up before
// they are stored; where one extreme is the operand of another, GCC finds no vectors: they are
// stored in runs of so many elements, which stay in the first cache.
constexpr int64_t kColumnRun = 256;
template <Op op, dtype type>
FL_TILE_FUNCTION void reduceColumns(void* partial, const void* x, int64_t rows, int64_t stride,
                                    int64_t count) {
  using T = Compute<type>;
  auto* const sums = static_cast<T*>(partial);
  const char* first = static_cast<const char*>(x);
  const auto row = [&](int64_t r) { return reinterpret_cast<const T*>(first + r * stride); };
  count = wholeGroups(count);
  for (; op == Op::Sum && rows >= 4; rows -= 4, first += 4 * stride) {
    const T *const a = row(0), *const b = row(1), *const c = row(2), *const d = row(3);
    FL_TILE_LOOP
    for (int64_t i = 0; i < count; ++i) {
      const T two = combine<op>(combine<op>(sums[i], a[i]), b[i]);
      sums[i] = combine<op>(combine<op>(two, c[i]), d[i]);
    }
  }
  for (int64_t together; rows > 0; rows -= together, first += together * stride) {
    together = std::min<int64_t>(rows, 4);
    for (int64_t begin = 0; begin < count; begin += kColumnRun) {
      const int64_t end = std::min(begin + kColumnRun, count);
      for (int64_t r = 0; r < together; ++r) {
        const T* const a = row(r);
        FL_TILE_LOOP
        for (int64_t i = begin; i < end; ++i) sums[i] = combine<op>(sums[i], a[i]);
      }
    }
  }
}

template <Op op, dtype type>
FL_TILE_FUNCTION void fold(void* result, const void* x, int64_t parts, const void* init) {
  using T = Compute<type>;
  Total<op, type> total = *static_cast<const T*>(init);
  for (int64_t i = 0; i < parts; ++i) {
    total = combine<op, Total<op, type>>(total, static_cast<const T*>(x)[i]);
  }
  *static_cast<T*>(result) = T(total);
}

// ---- the table ----

constexpr bool isFloat(dtype type) { return type == dtype::f32 || type == dtype::f64; }

template <Op op, dtype type>
constexpr void fill(TileOps& table) {
  constexpr OpInfo kInfo = Row<op>::info;
  constexpr int kIndex = static_cast<int>(op), kType = static_cast<int>(type);
  constexpr bool kAllowed =
      kInfo.types == Types::All || (kInfo.types == Types::Float) == isFloat(type);
  if constexpr (kInfo.kind == Kind::Unary || kInfo.kind == Kind::Binary ||
                kInfo.kind == Kind::Select || kInfo.kind == Kind::Reduce) {
    if constexpr (kAllowed) {
      table.apply[kIndex][kType] = apply<op, type>;
    }
  }
  if constexpr (type == dtype::f32 && ir::isApproximated(kInfo)) {
    table.apply[kIndex][static_cast<int>(dtype::f16)] = apply<op, dtype::f16>;
  }
  if constexpr (kInfo.kind == Kind::Reduce) {
    table.reductions[kIndex][kType] = {accumulate<op, type>, finish<op, type>, reduceRows<op, type>,
                                       reduceColumns<op, type>, fold<op, type>};
  }
}

template <dtype type>
constexpr void fillType(TileOps& table) {
#define FL_OP(Name, ...) fill<Op::Name, type>(table);
#include "fl/ir/Ops.def"
#undef FL_OP
}

// Calls f<type>() for the types of ir values; 16-bit floats have casts and what is listed below.
#define FL_FOR_EACH_TILED_TYPE(X) \
  X(f32)                          \
  X(f64)                          \
  X(b8)                           \
  X(s16)                          \
  X(s32)                          \
  X(s64)                          \
  X(u8)                           \
  X(u16)                          \
  X(u32)                          \
  X(u64)

template <dtype from>
constexpr void fillCasts(TileOps& table) {
  TileFunction* const row = table.cast[static_cast<int>(from)];
#define FL_CAST(to) row[static_cast<int>(dtype::to)] = cast<from, dtype::to>;
  FL_FOR_EACH_TILED_TYPE(FL_CAST) FL_CAST(f16) FL_CAST(bf16)
#undef FL_CAST
}

// The first operand of an addition or a product may as well be the second.
template <Op first, Op second>
constexpr void fillPairs(TilePair* pairs) {
  constexpr int kSwapped = second == Op::Sub ? 1 : 0;
  pairs[0] = {apply<first, dtype::f32>, apply<second, dtype::f32>, 0, applyPair<first, second, 0>};
  pairs[1] = {apply<first, dtype::f32>, apply<second, dtype::f32>, 1,
              applyPair<first, second, kSwapped>};
}

template <Op first>
constexpr void fillPairsOf(TilePair* pairs) {
  fillPairs<first, Op::Add>(pairs);
  fillPairs<first, Op::Sub>(pairs + 2);
  fillPairs<first, Op::Mul>(pairs + 4);
}

constexpr TileOps makeTable() {
  TileOps table = {};
  fillPairsOf<Op::Add>(table.pairs);
  fillPairsOf<Op::Sub>(table.pairs + 6);
  fillPairsOf<Op::Mul>(table.pairs + 12);
#define FL_TYPE(type) fillType<dtype::type>(table);
  FL_FOR_EACH_TILED_TYPE(FL_TYPE)
#undef FL_TYPE
#define FL_TYPE(type) table.uniform[static_cast<int>(dtype::type)] = uniform<dtype::type>;
  FL_TYPE(u32)
  FL_TYPE(f32)
  FL_TYPE(f64)
#undef FL_TYPE
#define FL_TYPE(type) table.normal[static_cast<int>(dtype::type)] = normal<dtype::type>;
  FL_TYPE(f32)
  FL_TYPE(f64)
#undef FL_TYPE
#define FL_TYPE(type)            \
  fillCasts<dtype::type>(table); \
  table.sum[static_cast<int>(dtype::type)] = sum<dtype::type>;
  FL_FOR_EACH_TILED_TYPE(FL_TYPE)
  FL_TYPE(f16)
  FL_TYPE(bf16)
#undef FL_TYPE
#define FL_TYPE(type)                                                                              \
  table.apply[static_cast<int>(Op::Add)][static_cast<int>(dtype::type)] = addRounded<dtype::type>; \
  table.apply[static_cast<int>(Op::Where)][static_cast<int>(dtype::type)] =                        \
      apply<Op::Where, dtype::u16>;
  FL_TYPE(f16)
  FL_TYPE(bf16)
#undef FL_TYPE
  return table;
}

constexpr TileOps kTable = makeTable();

}  // namespace

const TileOps& tileOps() { return kTable; }

}  // namespace fl::tile::FL_TILE_VARIANT
