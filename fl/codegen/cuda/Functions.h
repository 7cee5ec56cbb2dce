// One device function for each operator and element type that a module uses, so that the text of a
// kernel reads like its values and a long function stands in a module once.
// Relies on TextBuilder.h for the bodies; Emitter.h puts them before the kernels.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "fl/codegen/cuda/TextBuilder.h"
#include "fl/kernel/Kernel.h"

namespace fl::codegen::cuda {

class Functions {
 public:
  // The name of the function that computes an Apply of arguments of these types.
  std::string ofApply(const ir::KernelValue& value, const std::vector<dtype>& args);
  // Of op(x, y) of a reduction, and of Cast.
  std::string ofReduce(ir::Op op, dtype type);
  std::string ofCast(dtype from, dtype to);

  // All functions asked for so far.
  const std::string& text() const { return text_.text(); }

 private:
  void define(const std::string& name, dtype result, const std::vector<dtype>& args,
              const std::function<TextValue(TextBuilder&, const std::vector<TextValue>&)>& body);

  CodeText text_;
  std::set<std::string> names_;
};

}  // namespace fl::codegen::cuda
