#include "fl/runtime/cpu/CodeLoader.h"

#include <elf.h>
#include <sys/mman.h>

#include <cstring>
#include <limits>
#include <vector>

#include "fl/base/Error.h"
#include "fl/runtime/SystemMemory.h"

namespace fl::runtime::cpu {
namespace {

constexpr size_t kNoPlace = std::numeric_limits<size_t>::max();

// Reads the structures of an object; every access is checked against its bounds. The bytes need no
// alignment.
class ElfObject {
 public:
  explicit ElfObject(const std::string& bytes) : bytes_(bytes) {
    header_ = read<Elf64_Ehdr>(0);
    const bool isObject = std::memcmp(header_.e_ident, ELFMAG, SELFMAG) == 0 &&
                          header_.e_ident[EI_CLASS] == ELFCLASS64 && header_.e_type == ET_REL &&
                          header_.e_machine == EM_X86_64 &&
                          header_.e_shentsize == sizeof(Elf64_Shdr);
    FL_INTERNAL_CHECK(isObject, "not a relocatable x86-64 object");
    for (size_t i = 0; i < header_.e_shnum; ++i) {
      sections_.push_back(read<Elf64_Shdr>(header_.e_shoff + i * sizeof(Elf64_Shdr)));
      const Elf64_Shdr& section = sections_.back();
      if (section.sh_type != SHT_NOBITS) check(section.sh_offset, section.sh_size);
    }
  }

  const std::vector<Elf64_Shdr>& sections() const { return sections_; }
  const Elf64_Shdr& section(size_t index) const {
    FL_INTERNAL_CHECK(index < sections_.size(), "section ", index);
    return sections_[index];
  }

  const char* data(const Elf64_Shdr& section) const { return bytes_.data() + section.sh_offset; }

  // Entry `index` of a section that is a table of T.
  template <typename T>
  T entry(const Elf64_Shdr& table, size_t index) const {
    FL_INTERNAL_CHECK(index < count<T>(table), "entry ", index);
    return read<T>(table.sh_offset + index * sizeof(T));
  }
  template <typename T>
  static size_t count(const Elf64_Shdr& table) {
    return table.sh_size / sizeof(T);
  }

  std::string name(const Elf64_Shdr& symbols, const Elf64_Sym& symbol) const {
    const Elf64_Shdr& strings = section(symbols.sh_link);
    FL_INTERNAL_CHECK(symbol.st_name < strings.sh_size, "symbol name");
    const char* begin = data(strings) + symbol.st_name;
    return std::string(begin, strnlen(begin, strings.sh_size - symbol.st_name));
  }

 private:
  void check(uint64_t offset, uint64_t size) const {
    FL_INTERNAL_CHECK(offset <= bytes_.size() && size <= bytes_.size() - offset, "cut off object");
  }
  template <typename T>
  T read(uint64_t offset) const {
    check(offset, sizeof(T));
    T value;
    std::memcpy(&value, bytes_.data() + offset, sizeof(T));
    return value;
  }

  const std::string& bytes_;
  Elf64_Ehdr header_;
  std::vector<Elf64_Shdr> sections_;
};

// Where the sections that are needed at run time lie, from the start of the mapping.
struct Layout {
  std::vector<size_t> places;
  size_t size = 0;
};

Layout layOut(const ElfObject& object) {
  constexpr size_t kLargestSection = size_t{1} << 30;  // PC32 reaches 2 GiB
  Layout layout;
  for (const Elf64_Shdr& section : object.sections()) {
    layout.places.push_back(kNoPlace);
    if (!(section.sh_flags & SHF_ALLOC) || section.sh_size == 0) continue;
    const size_t alignment = section.sh_addralign == 0 ? 1 : section.sh_addralign;
    FL_INTERNAL_CHECK(alignment <= kPage && !(section.sh_flags & (SHF_WRITE | SHF_TLS)) &&
                          section.sh_size < kLargestSection,
                      "section that code of a kernel cannot have");
    layout.places.back() = roundUp(layout.size, alignment);
    layout.size = layout.places.back() + section.sh_size;
    FL_INTERNAL_CHECK(layout.size < kLargestSection, "object too large");
  }
  FL_INTERNAL_CHECK(layout.size > 0, "object without code");
  layout.size = roundUp(layout.size, kPage);
  return layout;
}

// Address of a symbol of the object inside the mapping.
char* addressOf(const ElfObject& object, const Layout& layout, char* memory,
                const Elf64_Shdr& symbols, const Elf64_Sym& symbol) {
  const size_t index = symbol.st_shndx;
  FL_INTERNAL_CHECK(
      index != SHN_UNDEF && index < layout.places.size() && layout.places[index] != kNoPlace,
      "undefined symbol ", object.name(symbols, symbol));
  FL_INTERNAL_CHECK(symbol.st_value <= object.section(index).sh_size, "symbol outside its section");
  return memory + layout.places[index] + symbol.st_value;
}

void relocate(const Elf64_Rela& relocation, char* place, size_t room, const char* symbol) {
  const uint64_t target =
      reinterpret_cast<uint64_t>(symbol) + static_cast<uint64_t>(relocation.r_addend);
  const auto distance = static_cast<int64_t>(target - reinterpret_cast<uint64_t>(place));
  const auto write = [&](auto value) {
    FL_INTERNAL_CHECK(sizeof(value) <= room, "relocation outside its section");
    std::memcpy(place, &value, sizeof(value));
  };
  switch (ELF64_R_TYPE(relocation.r_info)) {
    case R_X86_64_PC32:
    case R_X86_64_PLT32:
      FL_INTERNAL_CHECK(distance == static_cast<int32_t>(distance), "distance ", distance);
      return write(static_cast<int32_t>(distance));
    case R_X86_64_64:
      return write(target);
    case R_X86_64_PC64:
      return write(distance);
    default:
      FL_INTERNAL_CHECK(false, "relocation ", ELF64_R_TYPE(relocation.r_info));
  }
}

void relocateAll(const ElfObject& object, const Layout& layout, char* memory) {
  for (const Elf64_Shdr& table : object.sections()) {
    FL_INTERNAL_CHECK(table.sh_type != SHT_REL, "relocations without addends");
    if (table.sh_type != SHT_RELA || object.section(table.sh_info).sh_type == SHT_NOBITS) continue;
    const size_t begin = layout.places[table.sh_info];
    if (begin == kNoPlace) continue;
    const size_t size = object.section(table.sh_info).sh_size;
    const Elf64_Shdr& symbols = object.section(table.sh_link);
    for (size_t i = 0; i < ElfObject::count<Elf64_Rela>(table); ++i) {
      const auto relocation = object.entry<Elf64_Rela>(table, i);
      const auto symbol = object.entry<Elf64_Sym>(symbols, ELF64_R_SYM(relocation.r_info));
      FL_INTERNAL_CHECK(relocation.r_offset <= size, "relocation outside its section");
      relocate(relocation, memory + begin + relocation.r_offset, size - relocation.r_offset,
               addressOf(object, layout, memory, symbols, symbol));
    }
  }
}

char* findSymbol(const ElfObject& object, const Layout& layout, char* memory,
                 const std::string& name) {
  for (const Elf64_Shdr& symbols : object.sections()) {
    if (symbols.sh_type != SHT_SYMTAB) continue;
    for (size_t i = 0; i < ElfObject::count<Elf64_Sym>(symbols); ++i) {
      const auto symbol = object.entry<Elf64_Sym>(symbols, i);
      if (ELF64_ST_TYPE(symbol.st_info) == STT_FUNC && object.name(symbols, symbol) == name)
        return addressOf(object, layout, memory, symbols, symbol);
    }
  }
  FL_INTERNAL_CHECK(false, "no function ", name);
  return nullptr;
}

}  // namespace

std::shared_ptr<LoadedCode> LoadedCode::load(const ir::Artifact& artifact) {
  const ElfObject object(artifact.bytes);
  const Layout layout = layOut(object);
  void* mapped =
      mmap(nullptr, layout.size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  FL_INTERNAL_CHECK(mapped != MAP_FAILED, "no memory for ", layout.size, " bytes of code");
  char* memory = static_cast<char*>(mapped);
  std::shared_ptr<LoadedCode> code(new LoadedCode(memory, layout.size));
  for (size_t i = 0; i < layout.places.size(); ++i) {
    const Elf64_Shdr& section = object.section(i);
    if (layout.places[i] != kNoPlace && section.sh_type != SHT_NOBITS)
      std::memcpy(memory + layout.places[i], object.data(section), section.sh_size);
  }
  relocateAll(object, layout, memory);
  code->entry_ =
      reinterpret_cast<ir::KernelFunction>(findSymbol(object, layout, memory, artifact.entry));
  FL_INTERNAL_CHECK(mprotect(memory, layout.size, PROT_READ | PROT_EXEC) == 0, "mprotect");
  return code;
}

LoadedCode::~LoadedCode() { munmap(memory_, size_); }

}  // namespace fl::runtime::cpu
