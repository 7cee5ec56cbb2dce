#include "fl/runtime/cpu/CodeNames.h"

#include <elf.h>
#include <unistd.h>

#include <cstring>
#include <fstream>
#include <iterator>

#include "absl/strings/str_cat.h"
#include "fl/base/ForkSafeMutex.h"

// gdb sets a breakpoint in the function and reads the descriptor there, so both have these names
// and this layout. LLVM has them, too, where its own loader is linked.
extern "C" {

struct jit_code_entry {
  jit_code_entry* next;
  jit_code_entry* previous;
  const char* file;
  uint64_t size;
};

struct jit_descriptor {
  uint32_t version;
  uint32_t action;
  jit_code_entry* relevant;
  jit_code_entry* first;
};

enum JitAction : uint32_t { kRegister = 1, kUnregister = 2 };

__attribute__((weak, noinline, used)) void __jit_debug_register_code() { asm volatile(""); }
__attribute__((weak, used)) jit_descriptor __jit_debug_descriptor = {1, 0, nullptr, nullptr};
}

namespace fl::runtime::cpu {
namespace {

// Guards the descriptor and perf's file. Never destroyed: code may outlive static objects.
ForkSafeMutex& mutex() {
  static auto* instance = new ForkSafeMutex;
  return *instance;
}

constexpr char kSectionNames[] = "\0.text\0.symtab\0.strtab";

// An executable file without contents, whose one section and one function lie at `address`.
struct Image {
  Elf64_Ehdr header = {};
  Elf64_Shdr sections[4] = {};  // none, the code, the symbols, all strings
  Elf64_Sym symbols[2] = {};    // none, the function
  char strings[sizeof(kSectionNames) + 256] = {};

  Image(const std::string& name, const void* address, size_t size) {
    std::memcpy(header.e_ident, ELFMAG, SELFMAG);
    header.e_ident[EI_CLASS] = ELFCLASS64;
    header.e_ident[EI_DATA] = ELFDATA2LSB;
    header.e_ident[EI_VERSION] = header.e_version = EV_CURRENT;
    header.e_type = ET_EXEC;
    header.e_machine = EM_X86_64;
    header.e_ehsize = sizeof(header);
    header.e_shoff = offsetof(Image, sections);
    header.e_shentsize = sizeof(Elf64_Shdr);
    header.e_shnum = std::size(sections);
    header.e_shstrndx = 3;
    const auto place = reinterpret_cast<Elf64_Addr>(address);
    sections[1] = {.sh_name = 1,
                   .sh_type = SHT_NOBITS,
                   .sh_flags = SHF_ALLOC | SHF_EXECINSTR,
                   .sh_addr = place,
                   .sh_size = size,
                   .sh_addralign = 16};
    sections[2] = {.sh_name = 7,
                   .sh_type = SHT_SYMTAB,
                   .sh_offset = offsetof(Image, symbols),
                   .sh_size = sizeof(symbols),
                   .sh_link = 3,
                   .sh_info = 1,
                   .sh_entsize = sizeof(Elf64_Sym)};
    sections[3] = {.sh_name = 15,
                   .sh_type = SHT_STRTAB,
                   .sh_offset = offsetof(Image, strings),
                   .sh_size = sizeof(strings)};
    symbols[1] = {.st_name = sizeof(kSectionNames),
                  .st_info = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC),
                  .st_shndx = 1,
                  .st_value = place,
                  .st_size = size};
    std::memcpy(strings, kSectionNames, sizeof(kSectionNames));
    name.copy(strings + sizeof(kSectionNames), sizeof(strings) - sizeof(kSectionNames) - 1);
  }
};

}  // namespace

struct NamedCode::Entry {
  const Image image;
  jit_code_entry link;
};

NamedCode::NamedCode(const std::string& name, const void* address, size_t size)
    : entry_(new Entry{Image(name, address, size), {}}) {
  jit_code_entry& link = entry_->link;
  link = {nullptr, nullptr, reinterpret_cast<const char*>(&entry_->image), sizeof(Image)};
  const std::lock_guard lock(mutex());
  std::ofstream(absl::StrCat("/tmp/perf-", getpid(), ".map"), std::ios::app) << absl::StrCat(
      absl::Hex(reinterpret_cast<uintptr_t>(address)), " ", absl::Hex(size), " ", name, "\n");
  jit_descriptor& all = __jit_debug_descriptor;
  link.next = all.first;
  if (all.first) all.first->previous = &link;
  all.first = all.relevant = &link;
  all.action = kRegister;
  __jit_debug_register_code();
}

NamedCode::~NamedCode() {
  jit_code_entry& link = entry_->link;
  const std::lock_guard lock(mutex());
  jit_descriptor& all = __jit_debug_descriptor;
  (link.previous ? link.previous->next : all.first) = link.next;
  if (link.next) link.next->previous = link.previous;
  all.relevant = &link;
  all.action = kUnregister;
  __jit_debug_register_code();
}

}  // namespace fl::runtime::cpu
