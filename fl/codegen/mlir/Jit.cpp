#include "fl/codegen/mlir/Jit.h"

#include <llvm/ExecutionEngine/Orc/JITTargetMachineBuilder.h>
#include <llvm/Passes/PassBuilder.h>
#include <llvm/Support/TargetSelect.h>
#include <llvm/Target/TargetMachine.h>
#include <llvm/Transforms/IPO/LoopExtractor.h>
#include <llvm/Transforms/Utils/LoopSimplify.h>
#include <mlir/Conversion/AffineToStandard/AffineToStandard.h>
#include <mlir/Conversion/ArithToLLVM/ArithToLLVM.h>
#include <mlir/Conversion/BufferizationToMemRef/BufferizationToMemRef.h>
#include <mlir/Conversion/ControlFlowToLLVM/ControlFlowToLLVM.h>
#include <mlir/Conversion/FuncToLLVM/ConvertFuncToLLVMPass.h>
#include <mlir/Conversion/MathToLLVM/MathToLLVM.h>
#include <mlir/Conversion/MemRefToLLVM/MemRefToLLVM.h>
#include <mlir/Conversion/ReconcileUnrealizedCasts/ReconcileUnrealizedCasts.h>
#include <mlir/Conversion/SCFToControlFlow/SCFToControlFlow.h>
#include <mlir/Conversion/VectorToLLVM/ConvertVectorToLLVMPass.h>
#include <mlir/Conversion/VectorToSCF/VectorToSCF.h>
#include <mlir/Dialect/Affine/Passes.h>
#include <mlir/Dialect/Arith/Transforms/BufferDeallocationOpInterfaceImpl.h>
#include <mlir/Dialect/Arith/Transforms/BufferizableOpInterfaceImpl.h>
#include <mlir/Dialect/Arith/Transforms/Passes.h>
#include <mlir/Dialect/Bufferization/IR/Bufferization.h>
#include <mlir/Dialect/Bufferization/Pipelines/Passes.h>
#include <mlir/Dialect/Bufferization/Transforms/FuncBufferizableOpInterfaceImpl.h>
#include <mlir/Dialect/Bufferization/Transforms/Passes.h>
#include <mlir/Dialect/ControlFlow/Transforms/BufferDeallocationOpInterfaceImpl.h>
#include <mlir/Dialect/Func/IR/FuncOps.h>
#include <mlir/Dialect/LLVMIR/LLVMDialect.h>
#include <mlir/Dialect/LLVMIR/Transforms/Passes.h>
#include <mlir/Dialect/Linalg/Passes.h>
#include <mlir/Dialect/Linalg/Transforms/BufferizableOpInterfaceImpl.h>
#include <mlir/Dialect/Math/IR/Math.h>
#include <mlir/Dialect/MemRef/Transforms/AllocationOpInterfaceImpl.h>
#include <mlir/Dialect/MemRef/Transforms/Passes.h>
#include <mlir/Dialect/SCF/Transforms/BufferDeallocationOpInterfaceImpl.h>
#include <mlir/Dialect/SCF/Transforms/BufferizableOpInterfaceImpl.h>
#include <mlir/Dialect/SCF/Transforms/Passes.h>
#include <mlir/Dialect/Tensor/Transforms/BufferizableOpInterfaceImpl.h>
#include <mlir/ExecutionEngine/ExecutionEngine.h>
#include <mlir/ExecutionEngine/OptUtils.h>
#include <mlir/IR/BuiltinOps.h>
#include <mlir/Parser/Parser.h>
#include <mlir/Pass/PassManager.h>
#include <mlir/Target/LLVMIR/Dialect/Builtin/BuiltinToLLVMIRTranslation.h>
#include <mlir/Target/LLVMIR/Dialect/LLVMIR/LLVMToLLVMIRTranslation.h>
#include <mlir/Transforms/Passes.h>

#include <bit>
#include <map>

#include "fl/base/Error.h"
#include "fl/base/Types.h"

namespace fl::codegen::mlir {

const char kPipeline[] =
    "builtin.module("
    "func.func(linalg-fuse-elementwise-ops),"
    "arith-expand{include-bf16=true},"
    "one-shot-bufferize{bufferize-function-boundaries"
    " function-boundary-type-conversion=identity-layout-map},"
    "buffer-results-to-out-params,"
    "func.func(buffer-deallocation-pipeline),"
    "convert-bufferization-to-memref,"
    "func.func(convert-linalg-to-loops),"
    "func.func(llvm-request-c-wrappers),"
    "expand-strided-metadata,"
    "lower-affine,"
    "convert-scf-to-cf,"
    "convert-math-to-llvm,"
    "finalize-memref-to-llvm,"
    "convert-func-to-llvm,"
    "convert-arith-to-llvm,"
    "convert-cf-to-llvm,"
    "reconcile-unrealized-casts)";

namespace {

constexpr llvm::StringRef kModule = "builtin.module(";
constexpr llvm::StringRef kWrapper = "_mlir_ciface_";

// Those that make sense between linalg on tensors and LLVM: a list, as registering all of MLIR's
// would link compilers for GPUs.
void registerPasses() {
  ::mlir::registerTransformsPasses();
  ::mlir::registerLinalgPasses();
  ::mlir::registerSCFPasses();
  ::mlir::affine::registerAffinePasses();
  ::mlir::arith::registerArithPasses();
  ::mlir::memref::registerMemRefPasses();
  ::mlir::bufferization::registerBufferizationPasses();
  ::mlir::bufferization::registerBufferizationPipelines();
  ::mlir::LLVM::registerLLVMPasses();
  using Pass = std::unique_ptr<::mlir::Pass>;
  constexpr Pass (*kConversions[])() = {
      [] { return ::mlir::createArithToLLVMConversionPass(); },
      [] { return ::mlir::createBufferizationToMemRefPass(); },
      [] { return ::mlir::createConvertControlFlowToLLVMPass(); },
      [] { return ::mlir::createConvertFuncToLLVMPass(); },
      [] { return ::mlir::createConvertMathToLLVMPass(); },
      [] { return ::mlir::createConvertSCFToCFPass(); },
      [] { return ::mlir::createConvertVectorToLLVMPass(); },
      [] { return ::mlir::createConvertVectorToSCFPass(); },
      [] { return ::mlir::createFinalizeMemRefToLLVMConversionPass(); },
      [] { return ::mlir::createLowerAffinePass(); },
      [] { return ::mlir::createReconcileUnrealizedCastsPass(); },
  };
  for (const auto& conversion : kConversions) ::mlir::registerPass(conversion);
  ::mlir::registerPassPipeline(
      "fl-lower", "The pipeline of fl",
      [](::mlir::OpPassManager& manager, llvm::StringRef, auto fail) -> ::mlir::LogicalResult {
        if (manager.getOpAnchorName() != ::mlir::ModuleOp::getOperationName()) {
          return fail("fl-lower has passes over modules: it stands in builtin.module alone");
        }
        const llvm::StringRef passes = llvm::StringRef(kPipeline).drop_front(kModule.size());
        return ::mlir::parsePassPipeline(passes.drop_back(), manager);
      },
      [](auto) {});
}

::mlir::DialectRegistry dialects() {
  ::mlir::DialectRegistry registry;
  registry
      .insert<::mlir::arith::ArithDialect, ::mlir::func::FuncDialect, ::mlir::linalg::LinalgDialect,
              ::mlir::math::MathDialect, ::mlir::scf::SCFDialect, ::mlir::tensor::TensorDialect>();
  ::mlir::arith::registerBufferizableOpInterfaceExternalModels(registry);
  ::mlir::arith::registerBufferDeallocationOpInterfaceExternalModels(registry);
  ::mlir::bufferization::func_ext::registerBufferizableOpInterfaceExternalModels(registry);
  ::mlir::cf::registerBufferDeallocationOpInterfaceExternalModels(registry);
  ::mlir::linalg::registerBufferizableOpInterfaceExternalModels(registry);
  ::mlir::memref::registerAllocationOpInterfaceExternalModels(registry);
  ::mlir::scf::registerBufferizableOpInterfaceExternalModels(registry);
  ::mlir::scf::registerBufferDeallocationOpInterfaceExternalModels(registry);
  ::mlir::tensor::registerBufferizableOpInterfaceExternalModels(registry);
  ::mlir::registerBuiltinDialectTranslation(registry);
  ::mlir::registerLLVMDialectTranslation(registry);
  return registry;
}

// Makes each loop nest a function of its own: what LLVM does with one that has many takes time that
// grows with their square.
void extractLoops(llvm::Module* module) {
  llvm::LoopAnalysisManager loops;
  llvm::FunctionAnalysisManager functions;
  llvm::CGSCCAnalysisManager components;
  llvm::ModuleAnalysisManager modules;
  llvm::PassBuilder builder;
  builder.registerModuleAnalyses(modules);
  builder.registerCGSCCAnalyses(components);
  builder.registerFunctionAnalyses(functions);
  builder.registerLoopAnalyses(loops);
  builder.crossRegisterProxies(loops, functions, components, modules);
  llvm::ModulePassManager passes;
  passes.addPass(llvm::createModuleToFunctionPassAdaptor(llvm::LoopSimplifyPass()));
  passes.addPass(llvm::LoopExtractorPass());
  passes.run(*module, modules);
  for (llvm::Function& function : *module) {
    if (function.hasInternalLinkage()) function.addFnAttr(llvm::Attribute::NoInline);
  }
}

// What LLVM calls to round f32 to bf16 for processors without an instruction for it, and
// compilers' libraries may lack. Both types are returned in the same register.
half roundToBrain(float value) { return std::bit_cast<half>(bfloat16(value)); }

llvm::orc::SymbolMap runtimeSymbols(llvm::orc::MangleAndInterner name) {
  return {{name("__truncsfbf2"),
           {llvm::orc::ExecutorAddr::fromPtr(&roundToBrain), llvm::JITSymbolFlags::Exported}}};
}

// A descriptor of a memref, as its C wrappers take it: two pointers, an offset, sizes and strides.
std::vector<int64_t> descriptorOf(const Buffer& buffer) {
  const auto address = reinterpret_cast<int64_t>(buffer.data);
  std::vector<int64_t> words = {address, address, 0};
  const std::vector<Dim>& extents = buffer.shape.get();
  words.insert(words.end(), extents.rbegin(), extents.rend());
  const std::vector<Dim> strides = contiguousStrides(buffer.shape);
  words.insert(words.end(), strides.rbegin(), strides.rend());
  return words;
}

}  // namespace

struct Jit::Impl {
  using Module = ::mlir::OwningOpRef<::mlir::ModuleOp>;

  // What MLIR says is wrong; nothing goes to standard error.
  [[noreturn]] void fail(const std::string& doing) {
    throw std::invalid_argument("mlir: " + doing + ": " + (words.empty() ? "it fails" : words));
  }
  Module lower(const std::string& text, const std::string& pipeline);
  void findWrappers(::mlir::ModuleOp module);
  void compile(::mlir::ModuleOp module, int level);

  ::mlir::MLIRContext context{dialects(), ::mlir::MLIRContext::Threading::DISABLED};
  std::string words;
  std::map<std::string, size_t> wrappers;  // how many descriptors they take, by function
  std::unique_ptr<::mlir::ExecutionEngine> engine;
};

Jit::Impl::Module Jit::Impl::lower(const std::string& text, const std::string& pipeline) {
  Module module = ::mlir::parseSourceString<::mlir::ModuleOp>(text, &context);
  if (!module) fail("the text");
  llvm::raw_string_ostream errors(words);
  auto passes = ::mlir::parsePassPipeline(pipeline, errors);
  if (failed(passes)) fail("the pipeline");
  auto manager = ::mlir::PassManager::on<::mlir::ModuleOp>(&context);
  if (passes->getOpAnchorName() != manager.getOpAnchorName()) {
    words = "it is none of builtin.module(...)";
    fail("the pipeline");
  }
  static_cast<::mlir::OpPassManager&>(manager) = std::move(*passes);
  if (failed(manager.run(*module))) fail("lowering");
  return module;
}

// A function that returns what it computes has a wrapper that takes other things.
void Jit::Impl::findWrappers(::mlir::ModuleOp module) {
  for (auto function : module.getOps<::mlir::LLVM::LLVMFuncOp>()) {
    const bool returns =
        !llvm::isa<::mlir::LLVM::LLVMVoidType>(function.getFunctionType().getReturnType());
    auto wrapper =
        module.lookupSymbol<::mlir::LLVM::LLVMFuncOp>((kWrapper + function.getName()).str());
    if (wrapper && !returns) wrappers[function.getName().str()] = wrapper.getNumArguments();
  }
}

void Jit::Impl::compile(::mlir::ModuleOp module, int level) {
  auto host = llvm::cantFail(llvm::orc::JITTargetMachineBuilder::detectHost());
  host.setCodeGenOptLevel(static_cast<llvm::CodeGenOptLevel>(level));
  auto machine = llvm::cantFail(host.createTargetMachine());
  const auto optimize = ::mlir::makeOptimizingTransformer(level, 0, machine.get());
  const auto transform = [&](llvm::Module* code) {
    if (level > 0) extractLoops(code);
    return optimize(code);
  };
  ::mlir::ExecutionEngineOptions options;
  options.transformer = transform;  // a reference
  auto made = ::mlir::ExecutionEngine::create(module, options, std::move(machine));
  if (!made) {
    words += (words.empty() ? "" : "; ") + llvm::toString(made.takeError());
    fail("compiling");
  }
  engine = std::move(*made);
  engine->registerSymbols(runtimeSymbols);
}

Jit::Jit(const std::string& text, const std::string& pipeline, int level)
    : impl_(std::make_unique<Impl>()) {
  static const bool once = [] {
    registerPasses();
    llvm::InitializeNativeTarget();
    llvm::InitializeNativeTargetAsmPrinter();
    return true;
  }();
  (void)once;
  std::string& words = impl_->words;
  const ::mlir::ScopedDiagnosticHandler handler(
      &impl_->context, [&](::mlir::Diagnostic& diagnostic) {
        const bool isError = diagnostic.getSeverity() == ::mlir::DiagnosticSeverity::Error;
        if (isError && words.empty()) words = diagnostic.str();
        return ::mlir::success();
      });
  const Impl::Module module = impl_->lower(text, pipeline);
  impl_->findWrappers(*module);
  impl_->compile(*module, level);
}

Jit::~Jit() = default;

void Jit::run(const std::string& function, const std::vector<Buffer>& buffers) const {
  const auto wrapper = impl_->wrappers.find(function);
  if (wrapper == impl_->wrappers.end() || wrapper->second != buffers.size()) {
    throw std::runtime_error(detail::concat("mlir: the pipeline: it leaves no function ", function,
                                            " that returns nothing and has a C wrapper of ",
                                            buffers.size(), " descriptors"));
  }
  std::vector<std::vector<int64_t>> descriptors;
  std::vector<void*> pointers, arguments;
  for (const Buffer& buffer : buffers) descriptors.push_back(descriptorOf(buffer));
  for (std::vector<int64_t>& each : descriptors) pointers.push_back(each.data());
  for (void*& each : pointers) arguments.push_back(&each);
  if (auto error = impl_->engine->invokePacked((kWrapper + function).str(), arguments))
    throw std::runtime_error("mlir: compiling: " + llvm::toString(std::move(error)));
}

}  // namespace fl::codegen::mlir
