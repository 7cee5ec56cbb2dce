#include "fl/codegen/cpu/Emitter.h"

#include <llvm/Config/llvm-config.h>
#include <llvm/IR/Module.h>
#include <llvm/IR/Verifier.h>
#include <llvm/Support/raw_ostream.h>

#include <memory>

#include "fl/base/Error.h"
#include "fl/base/Fault.h"
#include "fl/base/Flags.h"
#include "fl/codegen/cpu/KernelEmitter.h"
#include "fl/codegen/cpu/SourceHash.h"
#include "fl/codegen/cpu/TargetMachine.h"

namespace fl::codegen::cpu {
namespace {

std::unique_ptr<llvm::Module> buildModule(llvm::LLVMContext& context, const ir::Kernel& kernel,
                                          const ir::Target& target, const std::string& name,
                                          ir::Stores stores, bool findsNan) {
  FL_INTERNAL_CHECK(target.vectorBits >= 256, "generated code needs AVX2, FMA and F16C");
  ir::verify(kernel);
  context.setDiscardValueNames(true);
  auto module = std::make_unique<llvm::Module>(name, context);
  llvm::Type* word = llvm::Type::getInt64Ty(context);
  llvm::Type* pointer = llvm::PointerType::getUnqual(context);
  auto* type = llvm::FunctionType::get(word, {pointer, word, word}, false);
  auto* function =
      llvm::Function::Create(type, llvm::GlobalValue::ExternalLinkage, name, module.get());
  KernelEmitter(kernel, target, stores, findsNan, function).emit();
  describeTarget(*module, target);
  if (flags().check == "verify") {
    std::string message;
    llvm::raw_string_ostream stream(message);
    FL_INTERNAL_CHECK(!llvm::verifyModule(*module, &stream), message);
  }
  return module;
}

std::string compiled(const ir::Kernel& kernel, const ir::Target& target, const std::string& name,
                     ir::Stores stores, bool findsNan, Output output) {
  llvm::LLVMContext context;
  const auto module = buildModule(context, kernel, target, name, stores, findsNan);
  return compile(*module, target, output);
}

}  // namespace

std::string emitterVersion() {
  return detail::concat(LLVM_VERSION_STRING, " ", kSourceHash, "\n", emitters().key());
}

ir::Artifact emitKernel(const ir::Kernel& kernel, const ir::Target& target, const std::string& name,
                        ir::Stores stores, bool findsNan) {
  injectFault("emit");
  for (const EmitterExtension& emitter : *emitters().all()) {
    if (findsNan) break;
    if (auto made = emitter.emit(kernel, target, name, stores))
      return {made->entry, std::move(made->bytes), emitter.name};
  }
  return {name, compiled(kernel, target, name, stores, findsNan, Output::Object)};
}

std::string emitLlvmText(const ir::Kernel& kernel, const ir::Target& target,
                         const std::string& name, ir::Stores stores) {
  llvm::LLVMContext context;
  std::string text;
  llvm::raw_string_ostream stream(text);
  buildModule(context, kernel, target, name, stores, false)->print(stream, nullptr);
  return text;
}

std::string emitAssemblyText(const ir::Kernel& kernel, const ir::Target& target,
                             const std::string& name, ir::Stores stores) {
  return compiled(kernel, target, name, stores, false, Output::Assembly);
}

}  // namespace fl::codegen::cpu
