#include "fl/runtime/cpu/PerfDump.h"

#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <fstream>

#include "fl/base/Log.h"
#include "llvm/ExecutionEngine/Orc/Shared/PerfSharedStructs.h"
#include "llvm/ExecutionEngine/Orc/TargetProcess/JITLoaderPerf.h"

namespace fl::runtime::cpu {
namespace {

using llvm::orc::PerfJITCodeLoadRecord;
using llvm::orc::PerfJITRecordBatch;
namespace shared = llvm::orc::shared;

// Calls a function of LLVM's that takes and gives serialized values. False if it failed, which is
// told.
template <typename Signature, typename... Arguments>
bool call(shared::CWrapperFunctionResult (*function)(const char*, uint64_t),
          const Arguments&... arguments) {
  llvm::Error result = llvm::Error::success();
  llvm::cantFail(shared::WrapperFunction<Signature>::call(
      [&](const char* data, size_t size) {
        return shared::WrapperFunctionResult(function(data, size));
      },
      result, arguments...));
  if (!result) return true;
  logWarning("FL_JIT_NAMES: " + llvm::toString(std::move(result)));
  return false;
}

// A record has an id and its size, a time, process and thread, the code's place in the file and in
// memory, its size and number, the name and its end, and the code.
uint32_t sizeOf(const PerfJITCodeLoadRecord& record) {
  const size_t fixed = 4 * sizeof(uint32_t) + 5 * sizeof(uint64_t);
  return static_cast<uint32_t>(fixed + record.Name.size() + 1 + record.CodeSize);
}

// LLVM 19 leaves the flags undefined that end the head of the file; perf takes none but 0.
void clearFlags() {
  constexpr char kNone[8] = {};
  const std::string name = "/jit-" + std::to_string(getpid()) + ".dump";
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    std::error_code gone;  // the folder's own descriptor
    const std::string path = std::filesystem::read_symlink(entry, gone);
    if (!path.ends_with(name)) continue;
    std::fstream(path, std::ios::in | std::ios::out).seekp(32).write(kNone, sizeof(kNone));
  }
}

}  // namespace

void dumpForPerf(const std::string& name, const void* address, size_t size) {
  static const bool isOpen = call<shared::SPSError()>(llvm_orc_registerJITLoaderPerfStart);
  static const pid_t process = getpid();
  static std::atomic<uint64_t> next = 0;
  if (!isOpen || process != getpid()) return;
  PerfJITCodeLoadRecord record = {};
  record.Prefix.Id = llvm::orc::PerfJITRecordType::JIT_CODE_LOAD;
  record.Vma = record.CodeAddr = reinterpret_cast<uintptr_t>(address);
  record.CodeSize = size;
  record.CodeIndex = next++;
  record.Name = name;
  record.Prefix.TotalSize = sizeOf(record);
  PerfJITRecordBatch batch = {};
  batch.CodeLoadRecords.push_back(std::move(record));
  call<shared::SPSError(shared::SPSPerfJITRecordBatch)>(llvm_orc_registerJITLoaderPerfImpl, batch);
  [[maybe_unused]] static const bool isValid = (clearFlags(), true);  // now that the head is there
}

}  // namespace fl::runtime::cpu
