// Extensions of backends: found by types of backend and extension, made once a backend, from any
// thread; the error where there is none.
#include <gtest/gtest.h>

#include <atomic>
#include <set>
#include <thread>

#include "fl/autograd/tensor/AutogradExtension.h"
#include "fl/tensor/TensorExtension.h"
#include "fl/tensor/tensor.h"

namespace fl {
namespace {

// Nothing but its type.
class TypedBackend : public TensorBackend {
 public:
  explicit TypedBackend(TensorBackendType type) : type_(type) {}
  std::string name() const override { return "typed"; }
  TensorBackendType backendType() const override { return type_; }
  bool supportsDataType(const dtype& type) const override { return type != dtype::b8; }
  TensorValue apply(ir::Op, std::vector<TensorValue>, const ir::Attrs&, ir::ValueType) override {
    return nullptr;
  }
  TensorValue fromNumber(const Number&) override { return nullptr; }
  TensorValue fromHost(const void*, const ir::ValueType&) override { return nullptr; }
  void eval(const TensorValue&) override {}
  void sync() override {}

 private:
  TensorBackendType type_;
};

class Vision : public TensorExtension<Vision> {
 public:
  static constexpr TensorExtensionType extensionType = TensorExtensionType::Vision;
  virtual int answer() = 0;
};

class FloatVision : public Vision {
 public:
  FloatVision() { ++made; }
  bool isDataTypeSupported(const dtype& type) const override { return isFloating(type); }
  int answer() override { return 1; }
  static inline std::atomic<int> made = 0;
};

class OtherVision : public FloatVision {
 public:
  int answer() override { return 2; }
};

FL_REGISTER_TENSOR_EXTENSION(FloatVision, Stub);

TEST(TensorExtension, IsMadeOnceABackend) {
  FloatVision::made = 0;
  TypedBackend first(TensorBackendType::Stub), second(TensorBackendType::Stub);
  EXPECT_EQ(FloatVision::made, 0);
  EXPECT_EQ(first.getExtension<Vision>().answer(), 1);
  EXPECT_EQ(&first.getExtension<Vision>(), &first.getExtension<Vision>());
  EXPECT_NE(&first.getExtension<Vision>(), &second.getExtension<Vision>());
  EXPECT_EQ(FloatVision::made, 2);
}

TEST(TensorExtension, IsMadeOnceByManyThreads) {
  FloatVision::made = 0;
  TypedBackend backend(TensorBackendType::Stub);
  std::vector<Vision*> found(8);
  std::vector<std::thread> threads;
  for (Vision*& place : found) {
    threads.emplace_back([&] { place = &backend.getExtension<Vision>(); });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  EXPECT_EQ(FloatVision::made, 1);
  EXPECT_EQ(std::set<Vision*>(found.begin(), found.end()).size(), 1u);
}

TEST(TensorExtension, ThatIsNotRegisteredIsAnError) {
  TypedBackend backend(TensorBackendType::Tracer);
  // Twice: the first failure leaves nothing behind.
  for (int i = 0; i < 2; ++i) {
    try {
      backend.getExtension<Vision>();
      FAIL() << "nothing was thrown";
    } catch (const std::invalid_argument& error) {
      EXPECT_NE(std::string(error.what())
                    .find("getExtension: no Vision extension is registered for Tracer backends, "
                          "at tests/tensor/ExtensionTest.cpp:"),
                std::string::npos)
          << error.what();
    }
    EXPECT_TRUE(backend.isDataTypeSupported(dtype::s32));
  }
}

TEST(TensorExtension, RegistrationsAreByBackendAndKind) {
  auto& registrar = detail::TensorExtensionRegistrar::getInstance();
  EXPECT_TRUE(
      registrar.isTensorExtensionRegistered(TensorBackendType::Stub, TensorExtensionType::Vision));
  EXPECT_FALSE(registrar.isTensorExtensionRegistered(TensorBackendType::Stub,
                                                     TensorExtensionType::JitOptimizer));
  EXPECT_FALSE(registrar.isTensorExtensionRegistered(TensorBackendType::OneDnn,
                                                     TensorExtensionType::Vision));
  EXPECT_TRUE(registerTensorExtension<FloatVision>(TensorBackendType::OneDnn));
  TypedBackend made(TensorBackendType::OneDnn);
  EXPECT_EQ(made.getExtension<Vision>().answer(), 1);
  EXPECT_TRUE(registerTensorExtension<OtherVision>(TensorBackendType::OneDnn)) << "the first stays";
  EXPECT_EQ(made.getExtension<Vision>().answer(), 1);
  EXPECT_EQ(TypedBackend(TensorBackendType::OneDnn).getExtension<Vision>().answer(), 1);
}

TEST(TensorExtension, InUseLimitsTheTypes) {
  TypedBackend backend(TensorBackendType::Stub);
  EXPECT_TRUE(backend.isDataTypeSupported(dtype::s32));
  EXPECT_FALSE(backend.isDataTypeSupported(dtype::b8)) << "the backend itself does not";
  backend.getExtension<Vision>();
  EXPECT_FALSE(backend.isDataTypeSupported(dtype::s32));
  EXPECT_TRUE(backend.isDataTypeSupported(dtype::f32));
}

// ---- The autograd extension ----

class NoValue : public TensorAdapterBase {
 public:
  using TensorAdapterBase::TensorAdapterBase;
  MemoryBlockPtr data() override { return nullptr; }
};

TEST(AutogradExtension, IsThatOfTheTensorsBackend) {
  for (TensorBackendType type : {TensorBackendType::Eager, TensorBackendType::Jit}) {
    TypedBackend backend(type);
    EXPECT_TRUE(backend.getExtension<AutogradExtension>().isDataTypeSupported(dtype::bf16));
    EXPECT_FALSE(backend.isDataTypeSupported(dtype::s32));
    EXPECT_EQ(backend.getExtension<AutogradExtension>().createBenchmarkOptions(), nullptr);
  }
  TypedBackend other(TensorBackendType::ArrayFire);
  const Tensor image(std::make_unique<NoValue>(other, ir::ValueType{dtype::f32, {4, 4, 1, 1}}));
  try {
    pool2d(image, 2, 2);
    FAIL() << "nothing was thrown";
  } catch (const std::invalid_argument& error) {
    EXPECT_NE(std::string(error.what()).find("no Autograd extension is registered for ArrayFire"),
              std::string::npos)
        << error.what();
  }
}

}  // namespace
}  // namespace fl
