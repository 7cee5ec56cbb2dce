// An emitter of one's own: kernels that only add and multiply f32 become C, for the compiler of
// the machine. All others stay the library's.
#include <unistd.h>

#include <atomic>
#include <fstream>
#include <iostream>
#include <sstream>

#include "fl/fl.h"
#include "fl/research.h"

std::atomic<int> translated = 0;  // by several threads

// A KernelFunction of fl/kernel/Kernel.h; empty for a kernel that is no such map.
std::string textOf(const fl::ir::Kernel& kernel, const std::string& name) {
  for (const auto& operand : kernel.operands) {
    if (operand.type != fl::dtype::f32 || operand.strides != std::vector{fl::ir::Stride::One})
      return "";
  }
  std::ostringstream text;
  text << "#define AT(operand) (*arguments)[operand][i]\nlong " << name
       << "(float *const *const *arguments, long i, long end) {\n  for (; i < end; ++i) {\n";
  for (size_t i = 0; i < kernel.values.size(); ++i) {
    const fl::ir::KernelValue& value = kernel.values[i];
    const bool loads = value.form == fl::ir::KernelValue::Form::Load;
    const char sign = value.op == fl::ir::Op::Add ? '+' : value.op == fl::ir::Op::Mul ? '*' : 0;
    if (!loads && !sign) return "";
    text << "    float v" << i << " = ";
    loads ? text << "AT(" << value.index << ");\n"
          : text << 'v' << value.args[0] << sign << 'v' << value.args[1] << ";\n";
  }
  for (const auto& store : kernel.stages[0].stores) {
    text << "    AT(" << store.operand << ") = v" << store.value << ";\n";
  }
  return text.str() + "  }\n  return -1;\n}\n";
}

std::optional<fl::ir::Artifact> throughC(const fl::ir::Kernel& kernel, const fl::ir::Target&,
                                         const std::string& name, fl::ir::Stores) {
  const std::string text = textOf(kernel, name), file = "/tmp/fl_" + std::to_string(gettid());
  if (text.empty()) return std::nullopt;
  const std::string command = "cc -O3 -march=native -ffp-contract=off -xc -c - -o " + file;
  if (std::system((command + " <<'END'\n" + text + "END").c_str()) != 0) return std::nullopt;
  std::ostringstream object;
  object << std::ifstream(file).rdbuf(), unlink(file.c_str()), ++translated;
  return fl::ir::Artifact{name, object.str()};
}

int main() {
  setenv("FL_JIT", "sync", 1), setenv("FL_CACHE", "off", 1);  // compile now, and nothing kept
  const fl::Tensor x = fl::rand({1000}).copy(), y = fl::rand({1000}).copy();
  const auto sum = [&] { return ((x + y) * x + y).toHostVector<float>(); };
  fl::codegen::cpu::emitters().add({.name = "c", .emit = throughC}), fl::sync();
  const std::vector<float> ours = sum();
  const fl::BackendScope eager("eager");
  std::cout << translated << " kernels through C, " << fl::runtime::counters().fallbacks
            << " failed, equal: " << (ours == sum()) << '\n';
}
