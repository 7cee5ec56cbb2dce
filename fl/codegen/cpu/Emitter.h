// The CPU emitter: the kernel form (fl/kernel/Kernel.h) to LLVM IR to a relocatable object.
//
// Relies on ir for the kernel and its meanings and on LLVM for instruction selection;
// KernelEmitter.h builds the loops, TargetMachine.h compiles them. All functions may be called from
// any thread at any time and throw InternalError for a kernel that breaks a rule of the kernel form
// or a target without AVX2, FMA and F16C. Costs 1 to 5 ms for a typical kernel; all memory but the
// result is returned.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "fl/ir/Slot.h"
#include "fl/kernel/Artifact.h"
#include "fl/kernel/Kernel.h"

namespace fl::codegen::cpu {

// Code of the kernel under the symbol `name`. It calls nothing and refers to nothing outside
// itself. With `findsNan` it also fills KernelArgs::found, to the same bits elsewhere.
ir::Artifact emitKernel(const ir::Kernel& kernel, const ir::Target& target, const std::string& name,
                        ir::Stores stores = ir::Stores::Cached, bool findsNan = false);

// An emitter from outside of the tree: emitKernel() takes the first object that one of them has for
// a kernel, in the order in which they were added, or emits it itself, as what finds NaN. `emit` is
// called by several threads at once. If it throws, or its object does not load, the kernel stays
// interpreted, and the warning names the emitter.
struct EmitterExtension {
  std::string name;
  int version = 1;
  std::function<std::optional<ir::Artifact>(const ir::Kernel& kernel, const ir::Target& target,
                                            const std::string& name, ir::Stores stores)>
      emit;
};
inline auto& emitters() { return ir::slotOf("emitter", &EmitterExtension::emit); }

// The same as text, for dumps: LLVM IR, and assembly.
std::string emitLlvmText(const ir::Kernel& kernel, const ir::Target& target,
                         const std::string& name, ir::Stores stores = ir::Stores::Cached);
std::string emitAssemblyText(const ir::Kernel& kernel, const ir::Target& target,
                             const std::string& name, ir::Stores stores = ir::Stores::Cached);

// Differs for emitters that may make other code of one kernel: LLVM's version, a hash of the
// sources that code is made by, and the emitters that were added.
std::string emitterVersion();

// LLVM target machines that this process has made: none as long as it emits nothing.
uint64_t targetMachinesMade();

}  // namespace fl::codegen::cpu
