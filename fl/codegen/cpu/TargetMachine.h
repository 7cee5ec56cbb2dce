// LLVM's back end with the settings that fit kernels: no IR passes, the cheapest instruction
// selection, the greedy register allocator, position-independent code.
// Relies on LLVM's X86 target only; Emitter.h is the public face.
#pragma once

#include <string>

#include "fl/kernel/Artifact.h"

namespace llvm {
class Module;
}

namespace fl::codegen::cpu {

enum class Output { Object, Assembly };

// States the target in the module and its functions; to be called on an otherwise complete module.
void describeTarget(llvm::Module& module, const ir::Target& target);

// Compiles a module that describeTarget has seen. Each thread keeps a TargetMachine of its own for
// the targets it has met. The module is changed. Throws InternalError if LLVM refuses the target.
std::string compile(llvm::Module& module, const ir::Target& target, Output output);

}  // namespace fl::codegen::cpu
