// Optimizers, clipping and schedules against PyTorch, and the rules that
// tests/reference/make_optim_references.py spells out.
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "fl/optim/optim.h"
#include "tests/reference/References.h"

namespace fl::test {
namespace {

constexpr int kSteps = 10;
// A relative error of 1e-5 in f32.
constexpr double kUlps = 84;

// The parameters "w" and "v" of a case after each step; with the gradients of the case's file.
template <typename Optimizer, typename... Settings>
void expectSteps(ReferenceCase& reference, Settings... settings) {
  std::map<std::string, Variable> parameters = {{"w", Variable(reference.input("w"), true)},
                                                {"v", Variable(reference.input("v"), true)}};
  std::map<std::string, std::vector<Tensor>> steps;
  const double lr = reference.number("lr");
  Optimizer optimizer({parameters["w"], parameters["v"]}, lr, settings...);
  for (int step = 0; step < kSteps; ++step) {
    optimizer.setLr(step < kSteps / 2 ? lr : lr / 2);
    for (auto& [name, parameter] : parameters) {
      const Tensor grads = reference.input(name + "_grads");
      std::vector<Index> at(parameter.ndim(), span);
      at.emplace_back(step);
      parameter.zeroGrad();
      parameter.addGrad(Variable(grads(at).copy(), false));
    }
    optimizer.step();
    for (auto& [name, parameter] : parameters) {
      Shape column = parameter.shape();
      column.get().push_back(1);
      steps[name].push_back(reshape(parameter.tensor(), column));
    }
  }
  for (const auto& [name, values] : steps) {
    reference.expect(name, concatenate(values, parameters[name].ndim()), kUlps);
  }
}

// Of Adam's relatives, with their defaults or with all settings.
template <typename Optimizer>
void moments(ReferenceCase& c) {
  if (c.has("eps")) {
    expectSteps<Optimizer>(c, c.number("beta1"), c.number("beta2"), c.number("eps"),
                           c.number("decay"));
  } else {
    expectSteps<Optimizer>(c);
  }
}

void lion(ReferenceCase& c) {
  if (c.has("beta1")) {
    expectSteps<LionOptimizer>(c, c.number("beta1"), c.number("beta2"), c.number("decay"));
  } else {
    expectSteps<LionOptimizer>(c);
  }
}

void nag(ReferenceCase& c) {
  if (c.has("decay")) {
    expectSteps<NAGOptimizer>(c, c.number("momentum"), c.number("decay"));
  } else if (c.has("momentum")) {
    expectSteps<NAGOptimizer>(c, c.number("momentum"));
  } else {
    expectSteps<NAGOptimizer>(c);
  }
}

void rmsProp(ReferenceCase& c) {
  if (c.has("rho")) {
    expectSteps<RMSPropOptimizer>(c, c.number("rho"), c.number("eps"), c.number("decay"),
                                  c.integer("first") == 1);
  } else if (c.integer("first") == 1) {
    expectSteps<RMSPropOptimizer>(c, 0.99, 1e-8, 0.0, true);
  } else {
    expectSteps<RMSPropOptimizer>(c);
  }
}

void adadelta(ReferenceCase& c) {
  if (c.has("decay")) {
    expectSteps<AdadeltaOptimizer>(c, c.number("rho"), c.number("eps"), c.number("decay"));
  } else if (c.has("rho")) {
    expectSteps<AdadeltaOptimizer>(c, c.number("rho"), c.number("eps"));
  } else {
    expectSteps<AdadeltaOptimizer>(c);
  }
}

void adagrad(ReferenceCase& c) {
  if (c.has("eps")) {
    expectSteps<AdagradOptimizer>(c, c.number("eps"), c.number("decay"));
  } else {
    expectSteps<AdagradOptimizer>(c);
  }
}

void clipping(ReferenceCase& c) {
  Variable w(c.input("w"), true), v(c.input("v"), true), without(c.input("v"), true);
  w.addGrad(Variable(c.input("w_grads")(span, 0).copy(), false));
  v.addGrad(Variable(c.input("v_grads")(span, span, 0).copy(), false));
  const double norm = clipGradNorm({w, v, without}, c.number("limit"));
  c.expect("norm", fromScalar(norm, dtype::f64), 1e9);  // a relative error of 2e-7
  c.expect("w", w.grad().tensor(), kUlps);
  c.expect("v", v.grad().tensor(), kUlps);
  EXPECT_FALSE(without.isGradAvailable());
}

void expectRates(ReferenceCase& c, int count, const LrSchedule& schedule) {
  std::vector<double> rates;
  for (int step = 0; step < count; ++step) {
    rates.push_back(schedule(step));
  }
  c.expect("rates", Tensor::fromVector(rates), 1e5);  // a relative error of 2e-11
}

void oneCycleRates(ReferenceCase& c) {
  const int steps = c.integer("steps");
  if (c.has("share")) {
    expectRates(
        c, steps,
        oneCycle(c.number("lr"), steps, c.number("share"), c.number("div"), c.number("final")));
  } else {
    expectRates(c, steps, oneCycle(c.number("lr"), steps));
  }
}

TEST(Reference, StepsAndRates) {
  runReferences(
      "optim",
      {{"SGD",
        [](ReferenceCase& c) {
          expectSteps<SGDOptimizer>(c, c.number("momentum"), c.number("decay"),
                                    c.integer("nesterov") == 1);
        }},
       {"Adam", moments<AdamOptimizer>},
       {"AdamW", moments<AdamWOptimizer>},
       {"AMSgrad", moments<AMSgradOptimizer>},
       {"Novograd", moments<NovogradOptimizer>},
       {"Lion", lion},
       {"NAG", nag},
       {"RMSProp", rmsProp},
       {"Adadelta", adadelta},
       {"Adagrad", adagrad},
       {"clipGradNorm", clipping},
       {"stepDecay",
        [](ReferenceCase& c) {
          expectRates(c, 13, stepDecay(c.number("lr"), c.integer("steps"), c.number("gamma")));
        }},
       {"cosineAnnealing",
        [](ReferenceCase& c) {
          expectRates(c, 10, cosineAnnealing(c.number("lr"), c.integer("steps"), c.number("end")));
        }},
       {"linearWarmup",
        [](ReferenceCase& c) {
          const double lr = c.number("lr");
          expectRates(
              c, 8,
              linearWarmup(c.integer("steps"), [=](int64_t) { return lr; }, c.number("start")));
        }},
       {"oneCycle", oneCycleRates}});
}

}  // namespace
}  // namespace fl::test
