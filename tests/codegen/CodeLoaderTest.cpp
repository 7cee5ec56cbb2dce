// The loader accepts what the emitter makes and throws, rather than crashes, on anything else.
#include <elf.h>

#include <cstring>

#include "tests/codegen/EmitterHarness.h"

namespace fl::testing {
namespace {

using runtime::cpu::LoadedCode;

ir::Artifact goodArtifact() {
  KernelMaker maker(1, 1);
  const int x = maker.input(dtype::f32, {kOne});
  maker.beginStage(true);
  maker.reduce(ir::Op::Amax, maker.apply(ir::Op::Exp, {x}));
  const int total = maker.total(0, dtype::f32);
  maker.beginStage(false);
  maker.store(total, {kZero});
  return codegen::cpu::emitKernel(maker.kernel(), targets()[0], "kernel");
}

TEST(CodeLoader, KeepsCodeWhileItIsReferred) {
  const auto code = LoadedCode::load(goodArtifact());
  EXPECT_GT(code->bytes(), 0u);
  EXPECT_EQ(code->bytes() % 4096, 0u);
  const float values[] = {1, 3, 2};
  float result = 0;
  void* data[] = {const_cast<float*>(values), &result};
  const int64_t extents[] = {3}, strides[] = {1, 0};
  const ir::KernelArgs args{data, extents, strides, nullptr};
  EXPECT_EQ(code->entry()(&args, 0, 1), -1);
  EXPECT_NEAR(result, 20.0855, 1e-3);
}

TEST(CodeLoader, NeedsTheEntry) {
  ir::Artifact artifact = goodArtifact();
  artifact.entry = "other";
  EXPECT_THROW(LoadedCode::load(artifact), InternalError);
}

TEST(CodeLoader, RefusesCutOffObjects) {
  const ir::Artifact whole = goodArtifact();
  for (size_t size = 0; size < whole.bytes.size(); size += size < 128 ? 1 : 37) {
    EXPECT_THROW(LoadedCode::load({whole.entry, whole.bytes.substr(0, size)}), InternalError)
        << size;
  }
}

// Changes one kind of section's contents, entry by entry.
template <typename Entry, typename F>
ir::Artifact altered(uint32_t sectionType, F&& change) {
  ir::Artifact artifact = goodArtifact();
  Elf64_Ehdr header;
  std::memcpy(&header, artifact.bytes.data(), sizeof(header));
  for (int i = 0; i < header.e_shnum; ++i) {
    Elf64_Shdr section;
    std::memcpy(&section, &artifact.bytes[header.e_shoff + i * sizeof(section)], sizeof(section));
    if (section.sh_type != sectionType) continue;
    for (size_t at = 0; at < section.sh_size; at += sizeof(Entry)) {
      Entry entry;
      std::memcpy(&entry, &artifact.bytes[section.sh_offset + at], sizeof(entry));
      change(entry);
      std::memcpy(&artifact.bytes[section.sh_offset + at], &entry, sizeof(entry));
    }
  }
  return artifact;
}

// But for empty ones, which compilers of C leave.
TEST(CodeLoader, RefusesWritableSections) {
  for (const bool isEmpty : {false, true}) {
    ir::Artifact artifact = goodArtifact();
    Elf64_Ehdr header;
    std::memcpy(&header, artifact.bytes.data(), sizeof(header));
    bool isThere = false;
    for (int i = 0; i < header.e_shnum && !isThere; ++i) {
      char* place = &artifact.bytes[header.e_shoff + i * sizeof(Elf64_Shdr)];
      Elf64_Shdr section;
      std::memcpy(&section, place, sizeof(section));
      // One that nothing refers to, made what .data is.
      isThere = section.sh_type != SHT_NULL && !(section.sh_flags & SHF_ALLOC) &&
                section.sh_type == SHT_PROGBITS;
      if (!isThere) continue;
      section.sh_flags |= SHF_ALLOC | SHF_WRITE;
      section.sh_size = isEmpty ? 0 : 1;
      std::memcpy(place, &section, sizeof(section));
    }
    ASSERT_TRUE(isThere);
    if (isEmpty) {
      EXPECT_NO_THROW(LoadedCode::load(artifact));
    } else {
      EXPECT_THROW(LoadedCode::load(artifact), InternalError);
    }
  }
}

TEST(CodeLoader, RefusesUndefinedSymbols) {
  const auto artifact =
      altered<Elf64_Sym>(SHT_SYMTAB, [](Elf64_Sym& symbol) { symbol.st_shndx = SHN_UNDEF; });
  EXPECT_THROW(LoadedCode::load(artifact), InternalError);
}

TEST(CodeLoader, RefusesOtherRelocations) {
  for (uint32_t type : {R_X86_64_32, R_X86_64_32S, R_X86_64_GOTPCREL}) {
    const auto artifact = altered<Elf64_Rela>(SHT_RELA, [&](Elf64_Rela& relocation) {
      relocation.r_info = ELF64_R_INFO(ELF64_R_SYM(relocation.r_info), type);
    });
    EXPECT_THROW(LoadedCode::load(artifact), InternalError) << type;
  }
}

TEST(CodeLoader, RefusesRelocationsOutsideTheirSection) {
  for (uint64_t offset : {uint64_t{1} << 20, ~uint64_t{0}, ~uint64_t{0} - 3}) {
    const auto artifact = altered<Elf64_Rela>(
        SHT_RELA, [&](Elf64_Rela& relocation) { relocation.r_offset = offset; });
    EXPECT_THROW(LoadedCode::load(artifact), InternalError) << offset;
  }
}

// A damaged object may still be well-formed; it must not harm the process in either case.
TEST(CodeLoader, SurvivesDamage) {
  std::mt19937_64 random(testSeed(31));
  const ir::Artifact whole = goodArtifact();
  for (int i = 0; i < 3000; ++i) {
    ir::Artifact damaged = whole;
    for (int k = 0; k < 4; ++k) {
      damaged.bytes[random() % damaged.bytes.size()] = static_cast<char>(random());
    }
    try {
      LoadedCode::load(damaged);
    } catch (const InternalError&) {
    }
  }
}

TEST(HostTarget, FollowsTheFlag) {
  flags().cpu = "x86-64-v3";
  const ir::Target lower = tile::hostTarget();
  EXPECT_EQ(lower.features.find("avx512"), std::string::npos);
  EXPECT_LE(lower.vectorBits, 256);
  flags().cpu = "486";
  EXPECT_THROW(tile::hostTarget(), std::invalid_argument);
  flags().cpu = "";
}

}  // namespace
}  // namespace fl::testing
