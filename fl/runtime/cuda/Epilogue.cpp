#include "fl/runtime/cuda/Epilogue.h"

#include <algorithm>
#include <numbers>
#include <string>

#include "fl/kernel/Strided.h"

namespace fl::runtime::cuda {
namespace {

using ir::KernelValue;
using Form = KernelValue::Form;

// A value as text: p is the product with its bias, z another matrix, # a number.
struct Written {
  std::string text;
  std::vector<int> numbers;  // the scalars, in the order of the text
};

struct Pattern {
  Activation activation;
  const char* text;
  std::vector<double> numbers;
};

constexpr double kScale = std::numbers::sqrt2 * std::numbers::inv_sqrtpi, kCubic = 0.044715;

// What fl::relu, fl::gelu and its gradient record (fl/autograd/UnaryFunctions.cpp).
#define FL_GATE(x) "tanh(mul(#,add(mul(#,mul(mul(" x "," x ")," x "))," x ")))"
#define FL_NEAR "lessThan(absolute(" FL_GATE("z") "),#)"
#define FL_BEND "mul(mul(#,z),sub(#,mul(" FL_GATE("z") "," FL_GATE("z") ")))"
#define FL_SLOPE "mul(#,add(#,mul(#,mul(z,z))))"
const std::vector<Pattern>& patterns() {
  static const auto& all = *new std::vector<Pattern>{
      {Activation::None, "p", {}},
      {Activation::Relu, "maximum(#,p)", {0}},
      {Activation::Gelu, "mul(add(#," FL_GATE("p") "),mul(#,p))", {1, kScale, kCubic, 0.5}},
      {Activation::GeluGradient,
       "mul(add(mul(#,add(#," FL_GATE("z") ")),where(" FL_NEAR ",mul(" FL_SLOPE "," FL_BEND
                                           "),#)),p)",
       {0.5, 1, kScale, kCubic, kScale, kCubic, 1, kScale, 1, 3 * kCubic, 0.5, 1, kScale, kCubic,
        kScale, kCubic, 0}},
  };
  return all;
}
#undef FL_SLOPE
#undef FL_BEND
#undef FL_NEAR
#undef FL_GATE

bool reorders(ir::Op op) { return ir::opInfo(op).commutes || op == ir::Op::Maximum; }

class Matcher {
 public:
  Matcher(const ir::Schedule& schedule, const ir::LaunchStep& launch, const ir::LibraryStep& call)
      : launch_(launch), call_(call), kernel_(schedule.kernels[launch.kernel]) {}

  // `productLives`: later steps read the product itself.
  std::optional<MatchedEpilogue> match(bool productLives) {
    if (kernel_.reduced != 0 || !findOperands() || !writeAll()) return std::nullopt;
    for (const ir::KernelStage::Store& store : kernel_.stages[0].stores)
      if (!isMatrix(store.operand) || !take(store)) return std::nullopt;
    if (!result_) result_ = std::exchange(input_, std::nullopt);  // a bias alone
    return findAuxiliary(productLives) && fits() ? std::optional(matched_) : std::nullopt;
  }

 private:
  const ir::BufferRef& buffer(int operand) const { return *launch_.operands[operand].buffer; }
  int64_t rows() const { return call_.resultType.shape[0]; }
  bool lies(int operand, const std::vector<Dim>& strides) const {
    const ir::LaunchOperand& used = launch_.operands[operand];
    return used.buffer && kernel_.operands[operand].type == call_.resultType.type &&
           used.offset == ir::ElementOffset() && used.strides == strides;
  }
  // As the product lies.
  bool isMatrix(int operand) const {
    return lies(operand, ir::contiguousLayout(Shape(launch_.extents)).strides);
  }
  bool isBias(int operand) const {
    std::vector<Dim> strides(kernel_.rank);
    strides[0] = 1;
    return launch_.extents[0] == rows() && lies(operand, strides);
  }

  // Inputs are the product, and at most one bias and one matrix, each as often as it likes.
  bool findOperands() {
    for (int i = 0; i < std::ssize(kernel_.operands); ++i) {
      roles_.push_back(kernel_.operands[i].role == ir::KernelOperand::Role::Output ? ' '
                       : !launch_.operands[i].buffer                               ? '?'
                       : buffer(i) == call_.result.buffer                          ? 'p'
                       : isBias(i)                                                 ? 'b'
                       : isMatrix(i)                                               ? 'z'
                                                                                   : '?');
      if (roles_[i] == '?') return false;
      const std::optional<int> first = find(roles_[i]);
      if (roles_[i] != ' ' && buffer(*first) != buffer(i)) return false;
    }
    return find('p').has_value();
  }
  // The first operand of a role.
  std::optional<int> find(char role) const {
    const size_t at = roles_.find(role);
    return at == std::string::npos ? std::nullopt : std::optional(static_cast<int>(at));
  }

  // The values as text, unless that is longer than any pattern.
  bool writeAll() {
    constexpr size_t kLongest = 1024;
    for (const KernelValue& value : kernel_.values) {
      written_.push_back(write(value));
      if (written_.back().text.empty() || written_.back().text.size() > kLongest) return false;
    }
    return true;
  }
  Written write(const KernelValue& value) const {
    if (value.form == Form::Scalar) return {"#", {value.index}};
    if (value.form == Form::Load) {
      const bool isBare = roles_[value.index] == 'p' && find('b');
      return {std::string(1, isBare ? 'x' : roles_[value.index]), {}};
    }
    if (value.form != Form::Apply) return {};
    if (value.op == ir::Op::Cast) {
      return isFloating(value.type) ? written_[value.args[0]] : Written();
    }
    std::vector<const Written*> args;
    for (int arg : value.args) args.push_back(&written_[arg]);
    if (reorders(value.op)) {
      std::ranges::stable_sort(args, {}, [](const Written* arg) { return arg->text; });
    }
    Written all{ir::opName(value.op), {}};
    for (const Written* arg : args) {
      all.text += (all.text == ir::opName(value.op) ? "(" : ",") + arg->text;
      all.numbers.insert(all.numbers.end(), arg->numbers.begin(), arg->numbers.end());
    }
    all.text += ")";
    return all.text == "add(b,x)" ? Written{"p", {}} : all;
  }

  // One store is the result; another may be the input of its activation.
  bool take(const ir::KernelStage::Store& store) {
    const Written& value = written_[store.value];
    const auto pattern = std::ranges::find(patterns(), value.text, &Pattern::text);
    if (pattern == patterns().end()) return false;
    const bool isInput = pattern->activation == Activation::None;
    if (!isInput) matched_.form.activation = pattern->activation;
    for (size_t i = 0; i < value.numbers.size(); ++i) {
      const int scalar = value.numbers[i];
      matched_.numbers.emplace_back(
          scalar, Number::fromDouble(pattern->numbers[i], kernel_.scalars[scalar]));
    }
    return !std::exchange(isInput ? input_ : result_, buffer(store.operand));
  }

  // False if a matrix is written that cuBLASLt does not write.
  bool findAuxiliary(bool productLives) {
    const Activation activation = matched_.form.activation;
    if (activation == Activation::Gelu) {
      const bool isInput = productLives && !input_ && !find('b');
      matched_.auxiliary = isInput ? std::optional(call_.result.buffer) : input_;
      return !productLives || isInput;
    }
    if (activation == Activation::GeluGradient) matched_.auxiliary = buffer(*find('z'));
    return !productLives && !input_;
  }

  bool fits() {
    Epilogue& form = matched_.form;
    form.bias = find('b').has_value();
    form.auxiliary = matched_.auxiliary.has_value();
    matched_.result = *result_;
    if (form.bias) matched_.bias = buffer(*find('b'));
    constexpr int kMultiple = 8;  // cuBLASLt's demand of the auxiliary matrix's columns
    if (form.auxiliary && rows() % kMultiple != 0) return false;
    if (result_ == matched_.bias || result_ == matched_.auxiliary) return false;
    if (form.activation == Activation::GeluGradient) return !form.bias;
    return form.bias || form.activation != Activation::None;
  }

  const ir::LaunchStep& launch_;
  const ir::LibraryStep& call_;
  const ir::Kernel& kernel_;
  std::string roles_;  // of the operands, a letter each, as in Written; a blank for outputs
  std::vector<Written> written_;
  std::optional<ir::BufferRef> result_, input_;
  MatchedEpilogue matched_;
};

// Whether a later step reads the call's own result, which an epilogue does not write.
bool livesOn(const ir::Schedule& schedule, const ir::BufferRef& product, size_t launch) {
  const auto written = stepBuffers(schedule, schedule.steps[launch]).writes;
  if (std::ranges::count(written, product) > 0) return false;
  return product.space != ir::BufferRef::Space::Temporary ||
         schedule.temporaries[product.index].last > static_cast<int>(launch);
}

}  // namespace

std::optional<MatchedEpilogue> matchEpilogue(const ir::Schedule& schedule, size_t launch) {
  const auto* step = std::get_if<ir::LaunchStep>(&schedule.steps[launch]);
  if (step == nullptr || !step->epilogue) return std::nullopt;
  const auto& call = std::get<ir::LibraryStep>(schedule.steps[launch - 1]);
  // cuBLASLt has no epilogues of f64, and its matrices begin where buffers do.
  if (call.resultType.type == dtype::f64 || call.result.offset != ir::ElementOffset()) {
    return std::nullopt;
  }
  return Matcher(schedule, *step, call).match(livesOn(schedule, call.result.buffer, launch));
}

}  // namespace fl::runtime::cuda
