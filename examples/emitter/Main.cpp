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
  using Form = fl::ir::KernelValue::Form;
  bool isOurs = kernel.reduced == 0 && kernel.stages.size() == 1;
  for (const auto& each : kernel.operands)
    isOurs &= each.type == fl::dtype::f32 && each.strides == std::vector{fl::ir::Stride::One};
  std::ostringstream text;
  text << "#define AT(operand) (*arguments)[operand][i]\nlong " << name
       << "(float *const *const *arguments, long i, long end) {\n  for (; i < end; ++i) {\n";
  for (size_t i = 0; isOurs && i < kernel.values.size(); ++i) {
    const fl::ir::KernelValue& value = kernel.values[i];
    const bool isSum = value.op == fl::ir::Op::Add;
    text << "    float v" << i << " = ";
    if (value.form == Form::Load) {
      text << "AT(" << value.index << ");\n";
    } else if (value.form == Form::Apply && (isSum || value.op == fl::ir::Op::Mul)) {
      text << 'v' << value.args[0] << (isSum ? '+' : '*') << 'v' << value.args[1] << ";\n";
    } else {
      isOurs = false;  // numbers, totals and lookups have no operator
    }
  }
  if (!isOurs) return "";
  for (const auto& store : kernel.stages[0].stores) {
    text << "    AT(" << store.operand << ") = v" << store.value << ";\n";
  }
  return text.str() + "  }\n  return -1;\n}\n";
}

std::optional<fl::ir::Artifact> throughC(const fl::ir::Kernel& kernel, const fl::ir::Target&,
                                         const std::string& name, fl::ir::Stores) {
  const std::string text = textOf(kernel, name);
  char file[] = "/tmp/fl_XXXXXX";
  const int made = text.empty() ? -1 : mkstemp(file);
  if (made < 0) return std::nullopt;
  const std::string command = std::string("cc -O3 -march=native -ffp-contract=off -xc -c -o ") +
                              file + " - <<'END'\n" + text + "END";
  const bool isCompiled = std::system(command.c_str()) == 0;
  std::ostringstream object;
  object << std::ifstream(file).rdbuf(), close(made), unlink(file);
  if (!isCompiled) return std::nullopt;
  ++translated;
  return fl::ir::Artifact{name, object.str()};
}

int main() {
  setenv("FL_JIT", "sync", 1), setenv("FL_CACHE", "off", 1);  // compile now, and nothing kept
  const fl::Tensor x = fl::rand({1000}).copy(), y = fl::rand({1000}).copy();
  const auto all = [&] {  // the first is ours
    return std::vector{((x + y) * x + y).toHostVector<float>(), (x * 2 + y).toHostVector<float>(),
                       (x * fl::sum(x)).toHostVector<float>()};
  };
  fl::codegen::cpu::emitters().add({.name = "c", .emit = throughC}), fl::sync();
  const std::vector<std::vector<float>> ours = all();
  const fl::BackendScope eager("eager");
  std::cout << translated << " kernels through C, " << fl::runtime::counters().fallbacks
            << " failed, equal: " << (ours == all()) << '\n';
}
