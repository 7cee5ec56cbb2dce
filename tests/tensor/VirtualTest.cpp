// Every operator of fl/tensor/Functions.def reaches the virtual of its name, so that a backend may
// replace it alone.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "fl/base/Flags.h"
#include "fl/tensor/ForwardingBackend.h"
#include "tests/ErrorOf.h"

namespace fl::testing {
namespace {

using ::testing::HasSubstr;

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

TEST(Virtual, AssignmentsReachThem) {
  Replaced<VirtualsBackend> replaced("assigned");
  auto& calls = (*replaced).calls;
  const auto countOf = [&](const std::string& name) {
    return std::exchange(calls[name + "(const Tensor& lhs, const Tensor& rhs)"], 0);
  };
  const Tensor x = Tensor::fromVector<float>({3}, {1, 2, 3});
  Tensor y = x.copy();
  calls.clear();
  y += x, y += 1;
  EXPECT_EQ(countOf("add"), 2);
  y -= x, y -= 1;
  EXPECT_EQ(countOf("sub"), 2);
  y *= x, y *= 2;
  EXPECT_EQ(countOf("mul"), 2);
  y /= x, y /= 4;
  EXPECT_EQ(countOf("div"), 2);
  EXPECT_EQ(y.toHostVector<float>(), (std::vector<float>{0.5, 1, 1.5}));
  y(range(0, 2)) += x(range(1, 3)), y(2) += 1;
  EXPECT_EQ(countOf("add"), 2);
  // A lookup of a slice adds what it gathered to the slice.
  y(range(0, 2))(Tensor::fromVector<int>({0, 0})) += x(range(0, 2));
  EXPECT_EQ(countOf("add"), 1);
  EXPECT_EQ(y.toHostVector<float>(), (std::vector<float>{5.5, 4, 2.5}));
}

// As FL_BACKEND chooses it: the factory asks for another backend while it makes this one.
TEST(Virtual, AFactoryMayAskForTheBackendThatItWraps) {
  const std::string inner = flags().backend;
  registerBackend("wrapping", [inner](const std::string& device) {
    return std::make_unique<AddBackend>(getBackend(inner, device));
  });
  flags().backend = "wrapping";
  TensorBackend& backend = getBackend();
  flags().backend = inner;
  EXPECT_EQ(&backend, &getBackend("wrapping"));
  const BackendScope scope(backend);
  const Tensor x = Tensor::fromVector<float>({2}, {1, 2});
  EXPECT_EQ((x + x).toHostVector<float>(), (std::vector<float>{4, 8}));
  syncBackends();
}

TEST(Virtual, AFactoryMayNotAskForItself) {
  registerBackend("itself", [](const std::string&) {
    return std::make_unique<AddBackend>(getBackend("itself"));
  });
  for (int i = 0; i < 2; ++i) {
    EXPECT_THAT(
        test::errorOf([] { getBackend("itself"); }),
        HasSubstr("backend \"itself\": its factory asks for the default, or by name, for the "
                  "backend that it is to make; it has to name another one"));
  }
}

}  // namespace
}  // namespace fl::testing
