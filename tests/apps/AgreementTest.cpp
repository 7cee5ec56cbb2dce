// The main job on every way to run it: the same losses, to the bit for one plan, to 1e-5 between
// lazy and eager mode and against the interpreter in double.
#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "apps/mnist/Mnist.h"
#include "fl/base/Flags.h"
#include "fl/fl.h"
#include "fl/host/ThreadPool.h"
#include "fl/lazy/LazyBackend.h"
#include "fl/runtime/Counters.h"

namespace fl {
namespace {

constexpr Dim kBatch = 32;
constexpr int kFreeSteps = 10;
constexpr int kSteps = 50;
constexpr double kTolerance = 1e-5;

// The lazy backend without a compiler, under a name of its own.
const BackendRegistration tier0("tier0", [](const std::string& device) {
  const std::string mode = flags().jit;
  flags().jit = "off";
  auto backend = makeLazyBackend(device);
  flags().jit = mode;
  return backend;
});

using Parameters = std::vector<std::vector<float>>;

// One model under one backend, driven step by step.
class Training {
 public:
  Training(std::string backend, std::string device)
      : backend_(std::move(backend)), device_(std::move(device)) {
    const BackendScope scope(backend_, device_);
    setSeed(1);
    std::tie(x_, y_) = app::loadDataset(app::digitsDirectory());
    model_ = std::make_unique<Sequential>(app::makeModel(8, 8));
    optimizer_ = std::make_unique<SGDOptimizer>(model_->params(), 0.1);
  }

  // Trains on batch `step`; each step draws its own dropout mask. Returns the loss before it.
  float step(int step) {
    const BackendScope scope(backend_, device_);
    setSeed(100 + step);
    const Dim first = step * kBatch % (y_.elements() - kBatch);
    const range batch(first, first + kBatch);
    auto output = (*model_)(noGrad(x_(span, span, batch)));
    auto loss = categoricalCrossEntropy(output, noGrad(y_(batch)));
    const float value = loss.tensor().scalar<float>();
    loss.backward();
    optimizer_->step();
    optimizer_->zeroGrad();
    return value;
  }

  Parameters parameters() const {
    Parameters values;
    for (const Variable& parameter : model_->params()) {
      values.push_back(parameter.tensor().toHostVector<float>());
    }
    return values;
  }

  void setParameters(const Parameters& values) {
    const BackendScope scope(backend_, device_);
    for (size_t i = 0; i < values.size(); ++i) {
      Tensor& tensor = model_->param(static_cast<int>(i)).tensor();
      tensor = Tensor::fromVector(tensor.shape(), values[i]);
    }
  }

 private:
  std::string backend_;
  std::string device_;
  Tensor x_;
  Tensor y_;
  std::unique_ptr<Sequential> model_;
  std::unique_ptr<SGDOptimizer> optimizer_;
};

struct Reference {
  std::vector<float> losses;
  std::vector<Parameters> parameters;  // before each step
};

const Reference& lazyReference() {
  static const Reference reference = [] {
    Reference result;
    Training run("lazy", "cpu");
    for (int step = 0; step < kSteps; ++step) {
      result.parameters.push_back(run.parameters());
      result.losses.push_back(run.step(step));
    }
    return result;
  }();
  return reference;
}

// Free-running first, because then errors may add up; from lazy's parameters afterwards, because
// training amplifies rounding.
void expectAgreement(const std::string& backend, const std::string& device) {
  const Reference& reference = lazyReference();
  Training run(backend, device);
  for (int step = 0; step < kSteps; ++step) {
    if (step >= kFreeSteps) {
      run.setParameters(reference.parameters[step]);
    }
    const float loss = run.step(step);
    EXPECT_NEAR(loss, reference.losses[step], kTolerance * std::fabs(reference.losses[step]))
        << "step " << step << " on " << backend << ", " << device;
  }
}

TEST(Agreement, EagerOnTheCpu) { expectAgreement("eager", "cpu"); }
TEST(Agreement, EagerOnTheReference) { expectAgreement("eager", "ref"); }

TEST(Agreement, SameBitsAtEveryTierAndThreadCount) {
  const Reference& reference = lazyReference();
  EXPECT_LT(reference.losses.back(), 0.7f * reference.losses.front()) << "it learns";
  // Eager mode calls the library on other layouts.
  std::vector<float> eager;
  const int threads = host::getNumThreads();
  for (const int count : {1, 2}) {
    host::setNumThreads(count);
    for (const std::string backend : {"lazy", "tier0", "eager"}) {
      Training run(backend, "cpu");
      std::vector<float> losses;
      for (int step = 0; step < kSteps; ++step) {
        losses.push_back(run.step(step));
      }
      if (backend == "eager" && eager.empty()) {
        eager = losses;
      }
      EXPECT_EQ(losses, backend == "eager" ? eager : reference.losses)
          << backend << " with " << count << " threads";
    }
  }
  host::setNumThreads(threads);
}

// One step as a plan of its own: the loss is read after the update.
float stepInOnePlan(Sequential& model, SGDOptimizer& optimizer, const std::vector<Tensor>& batch) {
  auto output = model(noGrad(batch[0]));
  auto loss = categoricalCrossEntropy(output, noGrad(batch[1]));
  loss.backward();
  optimizer.step();
  optimizer.zeroGrad();
  return loss.tensor().scalar<float>();
}

TEST(Plans, ALearningRateThatChangesEveryStepBuildsNothing) {
  const BackendScope scope("lazy", "cpu");
  setSeed(1);
  const auto [x, y] = app::loadDataset(app::digitsDirectory());
  BatchDataset batches(std::make_shared<TensorDataset>(std::vector<Tensor>{x, y}), kBatch);
  Sequential model = app::makeModel(8, 8);
  SGDOptimizer optimizer(model.params(), 0.1);
  sync();
  const runtime::Counters& counters = runtime::counters();
  const uint64_t plansBefore = counters.plansBuilt;
  uint64_t kernelsAfterFirst = 0, plansAfterFirst = 0;
  double rate = 0.1;
  for (int epoch = 0; epoch < 3; ++epoch) {
    for (auto& batch : batches) {
      optimizer.setLr(rate *= 0.99);
      EXPECT_TRUE(std::isfinite(stepInOnePlan(model, optimizer, batch)));
    }
    if (epoch == 0) {
      kernelsAfterFirst = counters.kernelsCompiled;
      plansAfterFirst = counters.plansBuilt;
      // 1,437 digits are 44 batches of 32 and one of 29.
      EXPECT_LE(plansAfterFirst - plansBefore, 2u);
    }
  }
  EXPECT_EQ(counters.kernelsCompiled, kernelsAfterFirst);
  EXPECT_EQ(counters.plansBuilt, plansAfterFirst);
  EXPECT_EQ(counters.fallbacks, 0u);
}

}  // namespace
}  // namespace fl
