#include "fl/library/OneDnn.h"

#include <execinfo.h>
#include <sys/mman.h>

#include "absl/container/inlined_vector.h"
#include "fl/base/Error.h"
#include "fl/library/Library.h"

// From libgomp, which libdnnl brings along. OpenMP is used for nothing else.
extern "C" {
void omp_set_num_threads(int threads);
int omp_get_max_threads(void);
}

namespace fl::library {

const dnnl::engine& dnnlEngine() {
  // Never destroyed: functions in static caches refer to it.
  static const auto* engine = [] {
    void* here = nullptr;
    backtrace(&here, 1);  // loads what exceptions of C unwind with, while there is memory
    return new dnnl::engine(dnnl::engine::kind::cpu, 0);
  }();
  return *engine;
}

SingleThread::SingleThread() : before_(omp_get_max_threads()) { omp_set_num_threads(1); }

SingleThread::~SingleThread() { omp_set_num_threads(before_); }

int64_t gapBehind(int64_t length) {
  constexpr int kWider = dnnl_cpu_isa_avx512_core;
  static const bool isWider = (dnnl_get_effective_cpu_isa() & kWider) == kWider;
  return !isWider && length % (kPageElements / 2) == 0 ? kGap : 0;
}

bool isBrainSlow() { return __builtin_cpu_is("intel"); }

const dnnl::primitive_attr& callerScratchpad() {
  static const auto* attributes = [] {
    auto* made = new dnnl::primitive_attr;
    made->set_scratchpad_mode(dnnl::scratchpad_mode::user);
    return made;
  }();
  return *attributes;
}

void checkMemoryForCode() {
  void* spare = mmap(nullptr, kMostCode, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (spare == MAP_FAILED) throw OutOfMemory("there is no memory for code of a library");
  munmap(spare, kMostCode);
}

const dnnl::primitive_desc_base& withMemoryForCode(const dnnl::primitive_desc_base& desc) {
  checkMemoryForCode();
  return desc;
}

void Primitive::run(std::initializer_list<Argument> arguments, void* scratchpad) const {
  // Calls may follow when it is gone, from destructors and at exit.
  thread_local dnnl::stream* stream = nullptr;
  thread_local const std::shared_ptr<void> owner(
      nullptr, [](void*) { delete std::exchange(stream, nullptr); });
  if (!stream) stream = new dnnl::stream(dnnlEngine());
  constexpr size_t kMany = 8;
  absl::InlinedVector<dnnl::memory, kMany> memories;
  absl::InlinedVector<dnnl_exec_arg_t, kMany> bound;
  const auto bind = [&](int role, const Desc& desc, void* data) {
    memories.emplace_back(desc, dnnlEngine(), data);
    bound.push_back({role, memories.back().get()});
  };
  for (const Argument& argument : arguments) bind(argument.role, argument.desc, argument.data);
  if (scratchBytes() > 0) bind(DNNL_ARG_SCRATCHPAD, scratchpad_, scratchpad);
  const dnnl_status_t status = dnnl_primitive_execute(primitive_.get(), stream->get(),
                                                      static_cast<int>(bound.size()), bound.data());
  FL_INTERNAL_CHECK(status == dnnl_success, "oneDNN status ", static_cast<int>(status), " from ",
                    name_);
}

Reorder::Reorder(const Desc& from, const Desc& to) : needed_(from != to), from_(from), to_(to) {
  if (needed_) {
    primitive_ = Primitive(
        dnnl::reorder::primitive_desc(dnnlEngine(), from, dnnlEngine(), to, callerScratchpad()));
  }
}

void Reorder::run(const void* from, void* to, void* scratchpad) const {
  primitive_.run({{DNNL_ARG_FROM, from_, const_cast<void*>(from)}, {DNNL_ARG_TO, to_, to}},
                 scratchpad);
}

}  // namespace fl::library
