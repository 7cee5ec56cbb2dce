#!/usr/bin/env python3
"""Writes modules.npz beside it: answers of PyTorch that tests hold the modules of fl/nn against.

    sudo apt-get install python3-torch    # the tests themselves do not need it
    /usr/bin/python3 tests/reference/make_nn_references.py

A case is named after an entry of tests/nn/ModuleCases.cpp and names its inputs. Beside them stand
the module's parameters ("<case>_p0"), the weights of its outputs' elements in the sum that is
differentiated ("<case>_g0"), and as results the outputs, the gradients of the inputs and of the
parameters, and where it says eval=1 what the module gives in evaluation mode afterwards. Of those
that "zeros" names only rounding would stand there. Answers are computed in f64 from inputs of f32.

All arrays have the API's shapes. PyTorch's are the reverse of those, in memory the same, so a
function is written as r(f(r(x))).
"""

import os

import numpy as np
import torch
import torch.nn.functional as F
from torch.nn.utils.stateless import functional_call

from answers import Answers


def r(x):
    """The same memory in the other library's shape."""
    return x.permute(*reversed(range(x.dim())))


class Cases:
    def __init__(self, file):
        self.file = file

    def leaf(self, name, values):
        dtype = "s32" if np.asarray(values).dtype.kind == "i" else "f32"
        tensor = torch.tensor(self.file.input(name, values, dtype))
        return tensor if dtype == "s32" else tensor.double().requires_grad_()

    def draw(self, shape, low=-1.0, high=1.0):
        return self.file.random.uniform(low, high, size=shape)

    def add(self, key, function, inputs, params=(), evaluated=None):
        """Inputs and parameters are shapes or values. `evaluated` gives the outputs after
        function() was called."""
        def leaves(kind, all_values):
            return [self.leaf(f"{key}_{kind}{i}", self.draw(v) if isinstance(v, tuple) else v)
                    for i, v in enumerate(all_values)]

        x, p = leaves("x", inputs), leaves("p", params)
        outputs = function(*x, *p)
        outputs = [outputs] if isinstance(outputs, torch.Tensor) else outputs
        weights = [torch.tensor(self.file.input(f"{key}_g{i}", self.draw(tuple(y.shape))))
                   for i, y in enumerate(outputs)]
        sum((y * g.double()).sum() for y, g in zip(outputs, weights)).backward()
        results = {f"y{i}": y for i, y in enumerate(outputs)}
        results.update({f"dx{i}": v.grad for i, v in enumerate(x) if v.requires_grad})
        results.update({f"dp{i}": v.grad for i, v in enumerate(p)})
        if evaluated:
            results["eval"] = evaluated(*x, *p)
        # Rounding is all there is of a gradient that is zero whatever the inputs.
        zeros = [name for name, value in results.items() if value.abs().max() < 1e-15]
        for name in zeros:
            del results[name]
        names = ",".join(f"{key}_x{i}" for i in range(len(x)))
        self.file.case(f"{key} x={names}" + (" eval=1" if evaluated else "")
                       + (f" zeros={','.join(zeros)}" if zeros else ""),
                       **{name: value.detach().numpy().astype(np.float32)
                          for name, value in results.items()})


def activations(cases):
    wide = cases.draw((5, 4), -3, 8)
    for key, function in {
            "Sigmoid": torch.sigmoid, "Tanh": torch.tanh, "HardTanh": F.hardtanh, "ReLU": F.relu,
            "ReLU6": F.relu6, "LeakyReLU": lambda x: F.leaky_relu(x, 0.1),
            "ELU": lambda x: F.elu(x, 0.7), "ThresholdReLU": lambda x: F.threshold(x, 0.5, 0),
            "GatedLinearUnit": lambda x: F.glu(x, 1), "LogSoftmax": lambda x: F.log_softmax(x, 1),
            "Softmax": lambda x: F.softmax(x, 0), "Swish": lambda x: x * torch.sigmoid(1.5 * x),
            "GELU": lambda x: F.gelu(x, approximate="tanh"), "Identity": lambda x: x * 1.0,
            "Dropout": lambda x: x * 1.0, "PrecisionCast": lambda x: x * 1.0}.items():
        cases.add(key, function, [wide])
    cases.add("Log", torch.log, [cases.draw((5, 4), 0.1, 4)])
    cases.add("PReLU", lambda x, w: F.prelu(x.T, w.flatten()).T, [(5, 4)], [(5, 1)])


def shapes(cases):
    cases.add("View", lambda x: r(r(x).reshape(4, 6)), [(2, 3, 4)])
    cases.add("Reorder", lambda x: x.permute(2, 0, 1), [(2, 3, 4)])
    cases.add("Padding", lambda x: r(F.pad(r(x), (1, 2, 0, 3), value=0.5)), [(4, 3, 2)])
    indices = cases.file.random.randint(0, 4, size=(4, 2))
    cases.add("Embedding", lambda x, w: r(F.embedding(r(x).long(), w.T)), [indices], [(3, 5)])
    cases.add("Normalize", lambda x: 2 * F.normalize(x, p=3, dim=1), [(3, 5)])


def linear(x, w, b=None):
    return F.linear(x.T, w, b).T


def conv2d(x, w, b=None, **settings):
    return r(F.conv2d(r(x), r(w), b if b is None else b.flatten(), **settings))


def layers(cases):
    cases.add("Linear", linear, [(4, 3)], [(5, 4), (5,)])
    cases.add("LinearWithoutBias", linear, [(4, 3)], [(5, 4)])
    # PyTorch names the height first.
    cases.add("Conv2D", lambda x, w, b: conv2d(x, w, b, stride=(1, 2), padding=(1, 2),
                                               dilation=(2, 1), groups=2),
              [(7, 6, 4, 2)], [(3, 2, 2, 6), (1, 1, 6, 1)])
    cases.add("Conv2DSame", lambda x, w: conv2d(x, w, padding=(1, 2)), [(5, 6, 2, 2)],
              [(5, 3, 2, 3)])
    cases.add("Conv1D",
              lambda x, w, b: r(F.conv1d(r(x), r(w)[:, :, 0], b.flatten(), stride=2, padding=2,
                                         dilation=2, groups=2)),
              [(9, 4, 2)], [(3, 1, 2, 6), (1, 1, 6, 1)])
    cases.add("ConvTranspose2D",
              lambda x, w, b: r(F.conv_transpose2d(r(x), r(w), b.flatten(), stride=(3, 2),
                                                   padding=(1, 0), output_padding=(2, 1),
                                                   groups=2, dilation=(1, 2))),
              [(4, 3, 4, 2)], [(3, 2, 3, 4), (1, 1, 6, 1)])
    cases.add("ConvTranspose2DWithoutBias", lambda x, w: r(F.conv_transpose2d(r(x), r(w))),
              [(4, 3, 2, 1)], [(2, 3, 3, 2)])
    cases.add("Pool2D", lambda x: r(F.max_pool2d(r(x), (2, 3), (1, 2), (1, 1))), [(6, 5, 2, 2)])
    for key, include in (("Pool2DIncluding", True), ("Pool2DExcluding", False)):
        cases.add(key, lambda x, include=include: r(F.avg_pool2d(
            r(x), 3, 2, 1, count_include_pad=include)), [(6, 5, 2, 2)])
    cases.add("WeightNorm", lambda x, v, g, b: linear(x, torch._weight_norm(v, g, 0), b), [(4, 3)],
              [(5, 4), (5, 1), (5,)])
    cases.add("WeightNormConv2D", lambda x, v, g: conv2d(x, torch._weight_norm(v, g, 3)),
              [(5, 4, 2, 2)], [(2, 3, 2, 4), (1, 1, 1, 4)])
    cases.add("Sequential", lambda x, v, a, w, b: linear(torch.tanh(linear(x, v, a)), w, b),
              [(4, 3)], [(5, 4), (5,), (2, 5), (2,)])


def batch_norm(cases, key, shape, kept, momentum, affine=True):
    """The features are the dimensions `kept`, in the API's order of elements."""
    axes = [axis for axis in range(len(shape)) if axis not in kept]
    count = int(np.prod([shape[axis] for axis in kept]))
    mean, variance = torch.zeros(count).double(), torch.ones(count).double()

    def run(training, x, w=None, b=None):
        order = axes + list(reversed(kept))
        samples = x.permute(*order)
        flat = samples.reshape(-1, count)
        y = F.batch_norm(flat, mean, variance, w, b, training=training, momentum=momentum)
        return y.reshape(samples.shape).permute(*[order.index(axis) for axis in range(len(shape))])

    cases.add(key, lambda *args: run(True, *args), [shape], [(count,), (count,)] if affine else [],
              lambda *args: run(not affine, *args))


def standardize(x, axes, eps=1e-5):
    return ((x - x.mean(axes, keepdim=True))
            / torch.sqrt(x.var(axes, unbiased=False, keepdim=True) + eps))


def normalizations(cases):
    batch_norm(cases, "BatchNorm", (4, 3, 5, 2), (2,), 0.3)
    batch_norm(cases, "BatchNormOfActivations", (3, 2, 6), (0, 1), 0.1)
    batch_norm(cases, "BatchNormCumulative", (3, 7), (0,), 1.0)
    batch_norm(cases, "BatchNormWithoutStatistics", (3, 7), (0,), 0.1, affine=False)
    cases.add("LayerNorm", lambda x, w, b: r(F.layer_norm(r(x), (6,), w, b)), [(6, 4, 3)],
              [(6,), (6,)])
    cases.add("LayerNormOfPlanes",
              lambda x, w, b: r(F.layer_norm(r(x), (3, 4), w.reshape(3, 4), b.reshape(3, 4))),
              [(4, 3, 2, 5)], [(12,), (12,)])
    cases.add("LayerNormOfAnySize", lambda x, w, b: standardize(x, (0, 2)) * w + b, [(3, 4, 5)],
              [(1,), (1,)])
    cases.add("LayerNormOfTheMiddle", lambda x: standardize(x, (1,)), [(3, 4, 5)])
    cases.add("GroupNorm", lambda x, w, b: r(F.group_norm(r(x), 3, w, b)), [(3, 2, 6, 2)],
              [(6,), (6,)])
    cases.add("GroupNormOfRows", lambda x: r(F.group_norm(r(x), 2)), [(6, 4)])
    cases.add("RMSNorm", lambda x, w: x / torch.sqrt((x * x).mean(0, keepdim=True) + 1e-5)
              * w[:, None, None], [(6, 4, 3)], [(6,)])


def rnn(cases, key, function, gates, size, hidden, layers, directions, states=0):
    rows, pseudo = gates * hidden, range(layers * directions)
    # Of W and R; the weights of all pseudo layers lie before their biases.
    columns = [(size if i < directions else directions * hidden, hidden) for i in pseudo]
    cells = function is torch.lstm

    def run(x, *rest):
        given, packed = [r(s) for s in rest[:-1]], rest[-1]
        parts = packed.split([rows * c for both in columns for c in both]
                             + [rows] * 2 * len(pseudo))
        weights = []
        for i in pseudo:
            weights += [part.reshape(rows, c) for part, c in zip(parts[2 * i:], columns[i])]
            weights += parts[2 * (len(pseudo) + i):][:2]
        zeros = torch.zeros(len(pseudo), x.shape[1], hidden).double()
        start = given + [zeros] * (1 + cells - len(given))
        y, *last = function(r(x), start if cells else start[0], weights, True, layers, 0.0, False,
                            directions == 2, False)
        return [r(y)] + [r(s) for s in last[:states]]

    count = rows * sum(sum(both) + 2 for both in columns)
    cases.add(key, run, [(size, 2, 4)] + [(hidden, 2, len(pseudo))] * states, [(count,)])


def recurrent(cases):
    rnn(cases, "RNNRelu", torch.rnn_relu, 1, 3, 4, 1, 1)
    rnn(cases, "RNNTanh", torch.rnn_tanh, 1, 3, 4, 2, 2)
    rnn(cases, "LSTM", torch.lstm, 4, 3, 4, 2, 2, states=2)
    rnn(cases, "GRU", torch.gru, 3, 3, 4, 2, 1, states=1)


def attend(query, key, value, mask, *p):
    weights, biases = p[::2], p[1::2]

    def times_first(x):
        return r(x).transpose(0, 1)

    y, _ = F.multi_head_attention_forward(
        times_first(query), times_first(key), times_first(value), 6, 2, torch.cat(weights[:3]),
        torch.cat(biases[:3]), None, None, False, 0.0, weights[3], biases[3], attn_mask=mask)
    return r(y.transpose(0, 1))


def attention(cases):
    layers = [(6, 6), (6,)] * 4
    cases.add("MultiheadAttention", lambda x, *p: attend(x, x, x, None, *p), [(6, 4, 2)], layers)
    cases.add("MultiheadAttentionOfThree", lambda q, k, v, *p: attend(q, k, v, None, *p),
              [(6, 3, 2), (6, 4, 2), (6, 4, 2)], layers)
    cases.add("MultiheadAttentionMasked", attend, [(6, 3, 2), (6, 4, 2), (6, 4, 2), (3, 4)],
              layers)


def losses(cases):
    cases.add("MeanSquaredError", F.mse_loss, [(4, 3), (4, 3)])
    cases.add("MeanAbsoluteError", F.l1_loss, [(4, 3), (4, 3)])
    cases.add("BinaryCrossEntropy", lambda x, y: -(y * x.log() + (1 - y) * (1 - x).log()).mean(),
              [cases.draw((4, 3), 0.05, 0.95), cases.draw((4, 3), 0, 1)])
    targets = cases.file.random.randint(0, 5, size=(3, 2))
    targets[1, 1] = 3
    cases.add("CategoricalCrossEntropy",
              lambda x, y: F.nll_loss(r(x).transpose(1, 2), r(y).long(), ignore_index=3),
              [(5, 3, 2), targets])
    cases.add("CategoricalCrossEntropyOfEach",
              lambda x, y: r(F.nll_loss(r(x).transpose(1, 2), r(y).long(), reduction="none")),
              [(5, 3, 2), targets])
    cases.add("CategoricalCrossEntropySum",
              lambda x, y: F.nll_loss(r(x).transpose(1, 2), r(y).long(), ignore_index=3,
                                      reduction="sum"),
              [(5, 3, 2), targets])


def adaptive(cases):
    module = torch.nn.AdaptiveLogSoftmaxWithLoss(8, 9, [2, 5], div_value=2).double()
    names = ["head.weight", "tail.0.0.weight", "tail.0.1.weight", "tail.1.0.weight",
             "tail.1.1.weight"]
    shapes = [tuple(dict(module.named_parameters())[name].shape) for name in names]
    log_prob = torch.nn.AdaptiveLogSoftmaxWithLoss.log_prob

    class All(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = module

        def forward(self, x):
            return log_prob(self.inner, x)

    def run(x, *p):
        samples = r(x).reshape(-1, 8)
        values = {"inner." + name: value for name, value in zip(names, p)}
        return r(functional_call(All(), values, (samples,)).reshape(*r(x).shape[:-1], 9))

    cases.add("AdaptiveSoftMax", run, [(8, 3, 2)], shapes)
    targets = cases.file.random.randint(0, 9, size=(3, 2))
    cases.add("AdaptiveSoftMaxLoss",
              lambda x, y, *p: F.nll_loss(r(run(x, *p)).transpose(1, 2), r(y).long()),
              [(8, 3, 2), targets], shapes)
    cases.add("AdaptiveSoftMaxLossOfEach",
              lambda x, y, *p: r(F.nll_loss(r(run(x, *p)).transpose(1, 2), r(y).long(),
                                            ignore_index=6, reduction="none")),
              [(8, 3, 2), np.minimum(targets + 1, 6)], shapes)


def main():
    torch.manual_seed(1)
    file = Answers(seed=20261122)
    cases = Cases(file)
    for part in (activations, shapes, layers, normalizations, recurrent, attention, losses,
                 adaptive):
        part(cases)
    file.write(os.path.join(os.path.dirname(os.path.abspath(__file__)), "modules.npz"))


if __name__ == "__main__":
    main()
