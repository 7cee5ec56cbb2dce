// What perf and gdb find of code that is loaded.
#include <elf.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstring>
#include <fstream>
#include <optional>
#include <sstream>

#include "fl/runtime/cpu/CodeNames.h"

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
extern jit_descriptor __jit_debug_descriptor;
}

namespace fl::runtime::cpu {
namespace {

const void* at(uintptr_t address) { return reinterpret_cast<const void*>(address); }

// The one function of an ELF file: its name, address and size.
std::tuple<std::string, uint64_t, uint64_t> functionOf(const jit_code_entry& entry) {
  Elf64_Ehdr header;
  std::memcpy(&header, entry.file, sizeof(header));
  EXPECT_EQ(std::memcmp(header.e_ident, ELFMAG, SELFMAG), 0);
  for (int i = 0; i < header.e_shnum; ++i) {
    Elf64_Shdr symbols, strings;
    std::memcpy(&symbols, entry.file + header.e_shoff + i * sizeof(symbols), sizeof(symbols));
    if (symbols.sh_type == SHT_SYMTAB) {
      std::memcpy(&strings, entry.file + header.e_shoff + symbols.sh_link * sizeof(strings),
                  sizeof(strings));
      Elf64_Sym symbol;
      std::memcpy(&symbol, entry.file + symbols.sh_offset + sizeof(symbol), sizeof(symbol));
      EXPECT_LE(symbols.sh_offset + symbols.sh_size, entry.size);
      return {entry.file + strings.sh_offset + symbol.st_name, symbol.st_value, symbol.st_size};
    }
  }
  return {};
}

TEST(CodeNamesTest, GdbFindsTheNameWhileTheCodeLives) {
  std::optional<NamedCode> first(std::in_place, "map add", at(0x1000), 64);
  const jit_code_entry* older = __jit_debug_descriptor.first;
  {
    const NamedCode second("rows exp+sum", at(0x2000), 4096);
    const jit_code_entry* newer = __jit_debug_descriptor.first;
    EXPECT_EQ(functionOf(*newer), std::make_tuple("rows exp+sum", 0x2000, 4096));
    EXPECT_EQ(__jit_debug_descriptor.action, 1);
    EXPECT_EQ(newer->next, older);
  }
  EXPECT_EQ(__jit_debug_descriptor.action, 2);
  ASSERT_EQ(__jit_debug_descriptor.first, older);
  EXPECT_EQ(older->previous, nullptr);
  EXPECT_EQ(functionOf(*older), std::make_tuple("map add", 0x1000, 64));
  first.reset();
  EXPECT_NE(__jit_debug_descriptor.first, older);
}

TEST(CodeNamesTest, LongNamesAreCut) {
  const NamedCode code(std::string(1000, 'x'), at(0x3000), 64);
  EXPECT_EQ(std::get<0>(functionOf(*__jit_debug_descriptor.first)), std::string(255, 'x'));
}

TEST(CodeNamesTest, PerfFindsTheName) {
  const NamedCode code("columns mul+sum", at(0xabc000), 4096);
  std::ifstream map("/tmp/perf-" + std::to_string(getpid()) + ".map");
  std::stringstream text;
  text << map.rdbuf();
  EXPECT_THAT(text.str(), ::testing::HasSubstr("abc000 1000 columns mul+sum\n"));
}

}  // namespace
}  // namespace fl::runtime::cpu
