// What generated CUDA C++ sees when a C++ compiler of the host compiles it: CUDA's words, and the
// thread that runs, which HostModule.cpp sets. Includes nothing, so that a module compiles in a
// fraction of a second.
#pragma once

struct ShimIndex {
  unsigned x, y, z;
};
struct ShimThread {
  ShimIndex index;
  unsigned rank;  // in its block
  int exchange;   // which of the warp's two exchanges comes next
};
// One block runs at a time; its threads take turns.
struct ShimBlock {
  ShimThread* thread;
  ShimIndex index, size, grid;
  void (*syncBlock)();
  void (*syncWarp)();
  void (*fetch)(void* to, const void* from, int bytes);
  void (*endFetches)();                     // of the thread that runs
  unsigned long long exchanges[32][2][32];  // of each warp: what each lane gives
  unsigned char* shared;                    // what the launch asks for
};

#ifndef FL_HOST_MODULE
extern "C" {
ShimBlock* shimBlock;
}

#define __global__
#define __device__ inline
#define __shared__ static
#define __launch_bounds__(...)
#define __grid_constant__
#define threadIdx (shimBlock->thread->index)
#define blockIdx (shimBlock->index)
#define blockDim (shimBlock->size)
#define gridDim (shimBlock->grid)

// The number of the words that a kernel's parameter has, and, of some, what it does.
template <class Arguments>
unsigned long long callKernel(void (*kernel)(Arguments), const unsigned long long* words) {
  if (words) kernel(*reinterpret_cast<const Arguments*>(words));
  return sizeof(Arguments) / sizeof(*words);
}

inline void __syncthreads() { shimBlock->syncBlock(); }
inline void __syncwarp() { shimBlock->syncWarp(); }
template <class T>
T __shfl_down_sync(unsigned, T value, int lanes) {
  ShimThread& thread = *shimBlock->thread;
  unsigned long long* given = shimBlock->exchanges[thread.rank / 32][thread.exchange];
  thread.exchange ^= 1;
  const unsigned lane = thread.rank % 32, from = lane + lanes < 32 ? lane + lanes : lane;
  given[lane] = value;
  shimBlock->syncWarp();
  return T(given[from]);
}
template <class T>
T __shfl_sync(unsigned, T value, int from) {
  ShimThread& thread = *shimBlock->thread;
  unsigned long long* given = shimBlock->exchanges[thread.rank / 32][thread.exchange];
  thread.exchange ^= 1;
  given[thread.rank % 32] = value;
  shimBlock->syncWarp();
  return T(given[from]);
}
inline unsigned __ballot_sync(unsigned, bool is) {
  ShimThread& thread = *shimBlock->thread;
  unsigned long long* given = shimBlock->exchanges[thread.rank / 32][thread.exchange];
  thread.exchange ^= 1;
  given[thread.rank % 32] = is;
  shimBlock->syncWarp();
  unsigned word = 0;
  for (int lane = 0; lane < 32; ++lane) word |= unsigned(given[lane]) << lane;
  return word;
}
inline bool __syncthreads_or(bool is) {
  static bool any;
  __syncthreads();
  any = false;
  __syncthreads();
  any |= is;
  __syncthreads();
  return any;
}
inline unsigned char* sharedBegin() { return shimBlock->shared; }
// What is fetched is there only after waitForFetches().
template <int bytes>
void fetch(void* to, const void* from) {
  shimBlock->fetch(to, from, bytes);
}
inline void waitForFetches() {
  shimBlock->endFetches();
  __syncwarp();
}
inline unsigned long long atomicCAS(unsigned long long* at, unsigned long long expected,
                                    unsigned long long value) {
  const unsigned long long old = *at;
  if (old == expected) *at = value;
  return old;
}
inline unsigned atomicAdd(unsigned* at, unsigned value) {
  const unsigned old = *at;
  *at += value;
  return old;
}
// Blocks run one after the other.
inline void __threadfence() {}
template <class T>
T __ldcg(const T* at) {
  return *at;
}

#define fabsf __builtin_fabsf
#define fabs __builtin_fabs
#define sqrtf __builtin_sqrtf
#define sqrt __builtin_sqrt
#define floorf __builtin_floorf
#define floor __builtin_floor
#define ceilf __builtin_ceilf
#define ceil __builtin_ceil
#define rintf __builtin_rintf
#define rint __builtin_rint
#define fmaf __builtin_fmaf
#define fma __builtin_fma
inline int __popc(unsigned x) { return __builtin_popcount(x); }
inline int __clzll(long long x) { return x == 0 ? 64 : __builtin_clzll(x); }
inline int __ffs(int x) { return __builtin_ffs(x); }
inline int __float_as_int(float x) { return __builtin_bit_cast(int, x); }
inline float __int_as_float(int x) { return __builtin_bit_cast(float, x); }
inline long long __double_as_longlong(double x) { return __builtin_bit_cast(long long, x); }
inline double __longlong_as_double(long long x) { return __builtin_bit_cast(double, x); }
inline float divideOrdinary(float x, float y) { return x / y; }
inline float widenHalf(unsigned short x) { return float(__builtin_bit_cast(_Float16, x)); }
inline unsigned short narrowToHalf(float x) {
  return __builtin_bit_cast(unsigned short, _Float16(x));
}
#endif
