#!/usr/bin/env python3
"""Writes optim.npz beside it: ten steps of each optimizer, held against by tests/optim.

    sudo apt-get install python3-torch    # the tests themselves do not need it
    /usr/bin/python3 tests/reference/make_optim_references.py

A case, "Adam lr=0.05 beta1=0.8/w", is the parameter "w" after each of ten steps (the last
dimension) with the gradients "w_grads"; the learning rate is halved after the fifth. PyTorch's
optimizer is asked, in f64, where it has the rule of ours. Where it has not, the rule is spelled out
in NumPy: Flashlight's decay by weightDecay alone in some, by weightDecay times the learning rate in
others; its epsilon of Adam, which is added before v is corrected; AMSgrad without corrections; NAG,
Novograd and Lion, which PyTorch lacks.

"clipGradNorm" and the schedules are PyTorch's too: learning rates of steps 0, 1, ...
"""

import itertools
import os

import numpy as np
import torch

from answers import Answers

STEPS = 10
SHAPES = {"w": (6,), "v": (2, 3)}


# ---- Rules in NumPy: a generator a parameter, which is sent a gradient and a learning rate, and
# ---- gives the parameter after the step. ----


def adam(w, beta1=0.9, beta2=0.999, eps=1e-8, decay=0):
    m, v, t = 0, 0, 0
    while True:
        g, lr = yield w
        t += 1
        w = w - decay * lr * w
        m, v = beta1 * m + (1 - beta1) * g, beta2 * v + (1 - beta2) * g * g
        w = w - lr * np.sqrt(1 - beta2 ** t) / (1 - beta1 ** t) * m / (np.sqrt(v) + eps)


def amsgrad(w, beta1=0.9, beta2=0.999, eps=1e-8, decay=0):
    m, v, u = 0, 0, 0
    while True:
        g, lr = yield w
        w = w - decay * w
        m, v = beta1 * m + (1 - beta1) * g, beta2 * v + (1 - beta2) * g * g
        u = np.maximum(u, v)
        w = w - lr * m / (np.sqrt(u) + eps)


def novograd(w, beta1=0.95, beta2=0.98, eps=1e-8, decay=0):
    m, v = 0, 0
    while True:
        g, lr = yield w
        v = beta2 * v + (1 - beta2) * np.sum(g * g)
        m = beta1 * m + (1 - beta1) * (g / (np.sqrt(v) + eps) + decay * w)
        w = w - lr * m


def lion(w, beta1=0.9, beta2=0.99, decay=0):
    m = 0
    while True:
        g, lr = yield w
        w = w - lr * (np.sign(beta1 * m + (1 - beta1) * g) + decay * w)
        m = beta2 * m + (1 - beta2) * g


def nag(w, momentum=0.99, decay=0):
    """As Flashlight and fairseq have it: the velocity holds the learning rate of its step."""
    velocity, old = 0, None
    while True:
        g, lr = yield w
        w = w * (1 - lr * decay)
        velocity = momentum * velocity * (lr / old if old else 1) + lr * g
        w = w - (lr * g + momentum * velocity)
        old = lr


def rmsprop(w, rho=0.99, eps=1e-8, decay=0, first=0):
    m, v = 0, 0
    while True:
        g, lr = yield w
        w = w - decay * w
        v, m = rho * v + (1 - rho) * g * g, rho * m + (1 - rho) * g
        w = w - lr * g / (np.sqrt(v - first * m * m) + eps)


def adadelta(w, rho=0.9, eps=1e-8, decay=0):
    v, u = 0, 0
    while True:
        g, lr = yield w
        w = w - decay * w
        v = rho * v + (1 - rho) * g * g
        d = np.sqrt(u + eps) / np.sqrt(v + eps) * g
        w, u = w - lr * d, rho * u + (1 - rho) * d * d


def adagrad(w, eps=1e-8, decay=0):
    v = 0
    while True:
        g, lr = yield w
        w, v = w - decay * w, v + g * g
        w = w - lr * g / (np.sqrt(v) + eps)


def in_torch(make):
    """The same kind of generator of an optimizer of PyTorch."""
    def rule(w):
        parameter = torch.nn.Parameter(torch.tensor(w))
        optimizer = make([parameter])
        while True:
            g, lr = yield parameter.detach().numpy().copy()
            parameter.grad = torch.tensor(g)
            optimizer.param_groups[0]["lr"] = lr
            optimizer.step()
    return rule


# ---- Cases ----


def steps(file, text, lr, rule):
    results = {}
    for name in SHAPES:
        updates = rule(file.arrays[name].astype(np.float64))
        next(updates)
        grads = file.arrays[f"{name}_grads"].astype(np.float64)
        results[name] = np.stack([updates.send((grads[..., t], lr if t < 5 else lr / 2))
                                  for t in range(STEPS)], axis=-1).astype(np.float32)
    file.case(f"{text} lr={lr}", **results)


def optimizers_of_torch(file):
    optim = torch.optim
    for momentum, decay, nesterov in itertools.product((0, 0.9), (0, 0.1), (0, 1)):
        if momentum or not nesterov:
            steps(file, f"SGD momentum={momentum} decay={decay} nesterov={nesterov}", 0.01,
                  in_torch(lambda p: optim.SGD(p, 1, momentum=momentum, weight_decay=decay,
                                               nesterov=bool(nesterov))))
    steps(file, "Adam", 0.01, in_torch(lambda p: optim.Adam(p, 1)))
    steps(file, "AdamW", 0.01, in_torch(lambda p: optim.AdamW(p, 1)))
    steps(file, "AdamW beta1=0.8 beta2=0.95 eps=0.1 decay=0.2", 0.01,
          in_torch(lambda p: optim.AdamW(p, 1, betas=(0.8, 0.95), eps=0.1, weight_decay=0.2)))
    for first in (0, 1):
        steps(file, f"RMSProp first={first}", 0.01,
              in_torch(lambda p: optim.RMSprop(p, 1, centered=bool(first))))
    steps(file, "Adadelta", 1.0, in_torch(lambda p: optim.Adadelta(p, 1, eps=1e-8)))
    steps(file, "Adadelta rho=0.8 eps=0.001", 1.0,
          in_torch(lambda p: optim.Adadelta(p, 1, rho=0.8, eps=1e-3)))
    steps(file, "Adagrad", 0.01, in_torch(lambda p: optim.Adagrad(p, 1, eps=1e-8)))
    steps(file, "NAG momentum=0.9", 0.01,
          in_torch(lambda p: optim.SGD(p, 1, momentum=0.9, nesterov=True)))


def optimizers_of_numpy(file):
    settings = dict(beta1=0.8, beta2=0.95, eps=0.1, decay=0.05)
    words = " ".join(f"{key}={value}" for key, value in settings.items())
    for name, rule in (("Adam", adam), ("AMSgrad", amsgrad), ("Novograd", novograd)):
        steps(file, f"{name} {words}", 0.01, lambda w: rule(w, **settings))
    steps(file, "AMSgrad", 0.01, amsgrad)
    steps(file, "Novograd", 0.01, novograd)
    steps(file, "Lion", 0.01, lion)
    steps(file, "Lion beta1=0.8 beta2=0.95 decay=0.1", 0.01, lambda w: lion(w, 0.8, 0.95, 0.1))
    steps(file, "NAG", 0.01, nag)
    steps(file, "NAG momentum=0.9 decay=0.1", 0.01, lambda w: nag(w, 0.9, 0.1))
    for first in (0, 1):
        steps(file, f"RMSProp rho=0.9 eps=0.1 decay=0.05 first={first}", 0.01,
              lambda w: rmsprop(w, 0.9, 0.1, 0.05, first))
    steps(file, "Adadelta rho=0.8 eps=0.001 decay=0.05", 1.0,
          lambda w: adadelta(w, 0.8, 1e-3, 0.05))
    steps(file, "Adagrad eps=0.1 decay=0.05", 0.01, lambda w: adagrad(w, 0.1, 0.05))


def clipping(file):
    for limit in (0.5, 100):
        parameters = [torch.nn.Parameter(torch.zeros(shape, dtype=torch.float64))
                      for shape in SHAPES.values()]
        for name, parameter in zip(SHAPES, parameters):
            parameter.grad = torch.tensor(file.arrays[f"{name}_grads"][..., 0]).double()
        norm = torch.nn.utils.clip_grad_norm_(parameters, limit)
        file.case(f"clipGradNorm limit={limit}", norm=np.float64(norm),
                  **{name: parameter.grad.numpy().astype(np.float32)
                     for name, parameter in zip(SHAPES, parameters)})


def learning_rates(lr, count, make):
    optimizer = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr)
    schedule = make(optimizer)
    rates = []
    for _ in range(count):
        rates.append(optimizer.param_groups[0]["lr"])
        optimizer.step()
        schedule.step()
    return np.array(rates, np.float64)


def schedules(file):
    kinds = torch.optim.lr_scheduler
    file.case("stepDecay lr=0.5 steps=4 gamma=0.3",
              rates=learning_rates(0.5, 13, lambda o: kinds.StepLR(o, 4, gamma=0.3)))
    # PyTorch's rises again behind the last step.
    file.case("cosineAnnealing lr=0.5 steps=9 end=0.1",
              rates=learning_rates(0.5, 10, lambda o: kinds.CosineAnnealingLR(o, 9, eta_min=0.1)))
    file.case("linearWarmup lr=0.5 steps=4 start=0.25", rates=learning_rates(
        0.5, 8, lambda o: kinds.LinearLR(o, start_factor=0.25, total_iters=4)))
    file.case("oneCycle lr=0.5 steps=20",
              rates=learning_rates(0.5, 20, lambda o: kinds.OneCycleLR(o, 0.5, total_steps=20)))
    file.case("oneCycle lr=0.5 steps=17 share=0.4 div=10 final=100", rates=learning_rates(
        0.5, 17, lambda o: kinds.OneCycleLR(o, 0.5, total_steps=17, pct_start=0.4, div_factor=10,
                                            final_div_factor=100)))


def main():
    file = Answers(7)
    for name, shape in SHAPES.items():
        # Away from 0, so that relative errors say something.
        sign = np.where(file.random.uniform(size=shape) < 0.5, -1, 1)
        file.input(name, sign * file.random.uniform(1, 2, size=shape))
        file.input(f"{name}_grads", file.random.normal(size=shape + (STEPS,)))
    optimizers_of_torch(file)
    optimizers_of_numpy(file)
    clipping(file)
    schedules(file)
    file.write(os.path.join(os.path.dirname(os.path.abspath(__file__)), "optim.npz"))


if __name__ == "__main__":
    main()
