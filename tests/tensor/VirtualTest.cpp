// Every operator of fl/tensor/Functions.def reaches the virtual of its name, so that a backend may
// replace it alone.
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "fl/tensor/ForwardingBackend.h"

namespace fl::testing {
namespace {

// Counts the calls of every virtual, and computes as the default does.
class VirtualsBackend : public ForwardingBackend {
 public:
  using ForwardingBackend::ForwardingBackend;
#define FL_FUNCTION(Kind, Result, name, parameters, arguments) \
  Result name parameters override {                            \
    ++calls[#name #parameters];                                \
    return TensorBackend::name arguments;                      \
  }
#include "fl/tensor/Functions.def"

  std::map<std::string, int> calls;
};

// Doubles what add() gives, and leaves all else.
class AddBackend : public ForwardingBackend {
 public:
  using ForwardingBackend::ForwardingBackend;
  Tensor add(const Tensor& lhs, const Tensor& rhs) override {
    return TensorBackend::add(lhs, rhs) * 2;
  }
};

// The scope of a backend that forwards to the one of now.
template <typename Backend>
class Replaced {
 public:
  explicit Replaced(const std::string& name) : scope_(registered(name, &backend_)) {}
  Backend& operator*() { return *backend_; }

 private:
  static std::string registered(const std::string& name, Backend** backend) {
    TensorBackend& inner = defaultTensorBackend();
    registerBackend(name, [&inner, backend](const std::string&) {
      auto made = std::make_unique<Backend>(inner);
      *backend = made.get();
      return made;
    });
    return name;
  }

  Backend* backend_ = nullptr;
  const BackendScope scope_;
};

void callElementwiseAndReductions(const Tensor& x) {
#define FL_FUNCTION(Kind, Result, name, parameters, arguments)
#define FL_UNARY(Name, name) fl::name(x);
#define FL_BINARY(Name, name) \
  ir::opInfo(ir::Op::Name).types == ir::Types::Integer ? fl::name(x > 0, x > 0) : fl::name(x, x);
#define FL_REDUCE(Name, name) fl::name(x, {0}, true);
#include "fl/tensor/Functions.def"
}

void callOthers(const Tensor& x) {
  Tensor values, indices;
  identity(2), arange({2, 3}, 1), iota({2}, {2}), rand({2}), randn({2});
  reshape(x, {6}), transpose(x), tile(x, {2}), concatenate({x, x}, 1), nonzero(x), pad(x, {{1, 1}});
  flip(x, 0), roll(x, 1, 1), tril(x), triu(x), sigmoid(x), clip(x, 0, 1), where(x > 0, x, x);
  matmul(x, x, MatrixProperty::Transpose), cumsum(x, 0), sort(x, 0), argsort(x, 0);
  sort(values, indices, x, 1), topk(values, indices, x, 1, 0);
  min(values, indices, x, 0), max(values, indices, x, 1), argmax(x, 0), argmin(x, 0);
  mean(x), var(x), median(x), fl::std(x), norm(x), countNonzero(x), any(x), all(x);
}

TEST(Virtual, EveryFunctionReachesItsOwn) {
  Replaced<VirtualsBackend> replaced("virtuals");
  const Tensor x = Tensor::fromVector<float>({2, 3}, {1, -2, 3, -4, 5, -6});
  callElementwiseAndReductions(x);
  callOthers(x);
#define FL_FUNCTION(Kind, Result, name, parameters, arguments) \
  EXPECT_GE((*replaced).calls[#name #parameters], 1) << #name #parameters;
#include "fl/tensor/Functions.def"
}

TEST(Virtual, OneMayBeReplacedAlone) {
  const Tensor x = Tensor::fromVector<float>({3}, {1, 2, 3});
  Replaced<AddBackend> replaced("add");
  EXPECT_EQ((x + x).toHostVector<float>(), (std::vector<float>{4, 8, 12}));
  EXPECT_EQ((1 + x).toHostVector<float>(), (std::vector<float>{4, 6, 8}));
  EXPECT_EQ((x * x).toHostVector<float>(), (std::vector<float>{1, 4, 9}));
  // sigmoid() is made of add().
  EXPECT_FLOAT_EQ(sigmoid(x * 0).toHostVector<float>()[0], 0.25F);
}

}  // namespace
}  // namespace fl::testing
