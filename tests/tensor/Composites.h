// The Composite functions of fl/tensor/Functions.def, and calls of them with arguments that their
// parameters' types choose, so that tests of all of them need no list of their own.
#pragma once

#include <iterator>
#include <vector>

#include "fl/tensor/tensor.h"

namespace fl::testing {

// Each with its arguments, as overloads share a name.
inline constexpr const char* kComposites[] = {
#define FL_NAME_Composite(text) text,
#define FL_NAME_Primitive(text)
#define FL_NAME_Library(text)
#define FL_FUNCTION(Kind, Result, name, parameters, arguments) FL_NAME_##Kind(#name #arguments)
#include "fl/tensor/Functions.def"
#undef FL_NAME_Composite
#undef FL_NAME_Primitive
#undef FL_NAME_Library
};
inline constexpr int kCompositeCount = std::size(kComposites);

// What a parameter gets. Axes are {1} and other numbers 2, be they an axis, a count or an order.
struct CompositeArguments {
  std::vector<Tensor> operands;  // in turn
  Shape shape;
  dtype type = dtype::f32;
};

// The results of kComposites[composite].
std::vector<Tensor> callComposite(int composite, const CompositeArguments& arguments);

}  // namespace fl::testing
