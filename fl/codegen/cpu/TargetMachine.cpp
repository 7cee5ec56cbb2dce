#include "fl/codegen/cpu/TargetMachine.h"

#include <llvm/CodeGen/Passes.h>
#include <llvm/CodeGen/RegAllocRegistry.h>
#include <llvm/IR/LegacyPassManager.h>
#include <llvm/IR/Module.h>
#include <llvm/MC/TargetRegistry.h>
#include <llvm/Support/CommandLine.h>
#include <llvm/Support/TargetSelect.h>
#include <llvm/Support/raw_ostream.h>
#include <llvm/Target/TargetMachine.h>

#include <atomic>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "fl/base/Error.h"
#include "fl/codegen/cpu/Emitter.h"

namespace fl::codegen::cpu {
namespace {

// The processor that `features` are added to; it has no extensions of its own.
constexpr const char* kBaseProcessor = "x86-64";

// The register allocator is a process-wide setting of LLVM. The fast one, which goes with the
// cheapest instruction selection, makes loops two to three times slower.
void initializeOnce() {
  static std::once_flag once;
  std::call_once(once, [] {
    LLVMInitializeX86TargetInfo();
    LLVMInitializeX86Target();
    LLVMInitializeX86TargetMC();
    LLVMInitializeX86AsmPrinter();
    using Choice = llvm::cl::opt<llvm::cl::boolOrDefault>;
    auto& options = llvm::cl::getRegisteredOptions();
    static_cast<Choice*>(options["optimize-regalloc"])->setValue(llvm::cl::BOU_TRUE);
    llvm::RegisterRegAlloc::setDefault(llvm::createGreedyRegisterAllocator);
  });
}

using Machine = std::pair<ir::Target, std::unique_ptr<llvm::TargetMachine>>;

std::atomic<uint64_t> machinesMade = 0;

std::unique_ptr<llvm::TargetMachine> createMachine(const ir::Target& target) {
  initializeOnce();
  ++machinesMade;
  std::string error;
  const llvm::Target* found = llvm::TargetRegistry::lookupTarget(target.triple, error);
  FL_INTERNAL_CHECK(found != nullptr, error);
  std::unique_ptr<llvm::TargetMachine> machine(found->createTargetMachine(
      target.triple, kBaseProcessor, target.features, {}, llvm::Reloc::PIC_, llvm::CodeModel::Small,
      llvm::CodeGenOptLevel::None));
  FL_INTERNAL_CHECK(machine != nullptr, target.triple);
  return machine;
}

llvm::TargetMachine& machineFor(const ir::Target& target) {
  // Destructors of the thread's other objects may compile when these are gone.
  thread_local std::vector<Machine>* machines = nullptr;
  thread_local const std::shared_ptr<void> owner(
      nullptr, [](void*) { delete std::exchange(machines, nullptr); });
  if (!machines) machines = new std::vector<Machine>();
  for (const auto& [known, machine] : *machines)
    if (known == target) return *machine;
  return *machines->emplace_back(target, createMachine(target)).second;
}

}  // namespace

void describeTarget(llvm::Module& module, const ir::Target& target) {
  module.setTargetTriple(target.triple);
  module.setDataLayout(machineFor(target).createDataLayout());
  const std::string width = std::to_string(target.vectorBits);
  for (llvm::Function& function : module) {
    if (function.isDeclaration()) continue;
    function.addFnAttr(llvm::Attribute::NoUnwind);
    function.addFnAttr("tune-cpu", target.tuning);
    function.addFnAttr("prefer-vector-width", width);
    function.addFnAttr("min-legal-vector-width", width);
  }
}

std::string compile(llvm::Module& module, const ir::Target& target, Output output) {
  llvm::SmallVector<char, 0> bytes;
  llvm::raw_svector_ostream stream(bytes);
  llvm::legacy::PassManager passes;
  const auto type = output == Output::Object ? llvm::CodeGenFileType::ObjectFile
                                             : llvm::CodeGenFileType::AssemblyFile;
  constexpr bool kWithoutVerifier = true;
  const bool refused =
      machineFor(target).addPassesToEmitFile(passes, stream, nullptr, type, kWithoutVerifier);
  FL_INTERNAL_CHECK(!refused, "no code of this kind for ", target.triple);
  passes.run(module);
  return std::string(bytes.begin(), bytes.end());
}

uint64_t targetMachinesMade() { return machinesMade; }

}  // namespace fl::codegen::cpu
