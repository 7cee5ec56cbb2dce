// Learning rates that follow the number of the step, 0 for the first:
//
//   const LrSchedule schedule = linearWarmup(500, cosineAnnealing(1e-3, 10'000));
//   for (int64_t step = 0; step < 10'500; ++step) {
//     optimizer.setLr(schedule(step));
//
// A schedule has no state: training that is resumed asks for the step where it stands. Making one
// throws std::invalid_argument unless the number of its steps is at least 1.
#pragma once

#include <cstdint>
#include <functional>

namespace fl {

using LrSchedule = std::function<double(int64_t step)>;

// lr gamma^floor(step / stepSize)
LrSchedule stepDecay(double lr, int64_t stepSize, double gamma = 0.1);

// Half a cosine wave from lr at step 0 to minLr at `steps`, where it stays; Loshchilov and Hutter,
// "SGDR: stochastic gradient descent with warm restarts", 2017.
LrSchedule cosineAnnealing(double lr, int64_t steps, double minLr = 0);

// From startFactor times next(0) at step 0 along a line to next(0) at `steps`, where `next` begins.
LrSchedule linearWarmup(int64_t steps, LrSchedule next, double startFactor = 0);

// Half a cosine wave from maxLr / divFactor up to maxLr at step warmupShare steps - 1, and another
// one down to maxLr / divFactor / finalDivFactor at step `steps` - 1, where it stays; Smith and
// Topin, "Super-convergence: very fast training of neural networks using large learning rates",
// 2018, in the form and with the defaults of PyTorch's OneCycleLR. Throws std::invalid_argument
// unless 1 <= warmupShare steps < steps.
LrSchedule oneCycle(double maxLr, int64_t steps, double warmupShare = 0.3, double divFactor = 25,
                    double finalDivFactor = 1e4);

}  // namespace fl
