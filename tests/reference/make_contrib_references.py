#!/usr/bin/env python3
"""Writes contrib.npz: what PyTorch makes of the definitions of fl/contrib's modules, and the
gradients of sum((weights + 1.5) * result) with respect to input and parameters, in f64.

    /usr/bin/python3 tests/reference/make_contrib_references.py

The arrays of a module "m" are its input "m_x", its parameters "m_p0", "m_p1", ... in the module's
order and "m_weights"; its results are "y", "dx", "d0", "d1", ...
"""

import os

import numpy as np
import torch
import torch.nn.functional as F

from answers import Answers


def draw(file, name, shape, mean=0.0):
    """Within 1 of the mean, few different numbers, so that the file stays small."""
    return file.input(name, mean + file.random.randint(-32, 33, size=shape) / 32, "f64")


class Case:
    """One module: collects inputs as it draws them, and gradients at the end."""

    def __init__(self, file, name, x_shape):
        self.file, self.name, self.params = file, name, []
        self.x = self.leaf("x", x_shape) if x_shape else None

    def leaf(self, name, shape, mean=0.0):
        values = draw(self.file, f"{self.name}_{name}", shape, mean)
        return torch.tensor(values, requires_grad=True)

    def param(self, *shape, mean=0.0):
        self.params.append(self.leaf(f"p{len(self.params)}", shape, mean))
        return self.params[-1]

    def norm(self, *shape):
        """Weight and bias: a weight near 0 leaves f32 few digits of what is normed next."""
        return self.param(*shape, mean=1.25), self.param(*shape)

    def write(self, op, y, arguments):
        weights = draw(self.file, f"{self.name}_weights", tuple(y.shape)) + 1.5
        (y * torch.tensor(weights)).sum().backward()
        results = {f"d{i}": param.grad.numpy() for i, param in enumerate(self.params)}
        if self.x is not None:
            results["dx"] = self.x.grad.numpy()
        self.file.case(f"{op} of={self.name} {arguments}".strip(), y=y.detach().numpy(), **results)


def layer_norm(x, axes, weight, bias):
    mean = x.mean(axes, keepdim=True)
    variance = ((x - mean) ** 2).mean(axes, keepdim=True)
    return (x - mean) / torch.sqrt(variance + 1e-5) * weight + bias


def linear(w, x):
    """(in, ...) to (out, ...)"""
    return torch.tensordot(w, x, dims=([1], [0]))


# ---- Attention: features x time x batch ----


def attention(x, memory, wq, wk, wv, wf, positions, heads, visible, counts):
    """`visible` (time, memory time) and `counts` (memory time, batch) say which scores are used."""
    q, k, v = linear(wq, x), linear(wk, memory), linear(wv, memory)
    size = q.shape[0] // heads
    before = memory.shape[1] - x.shape[1]
    result = []
    for b in range(x.shape[2]):
        parts = []
        for head in range(heads):
            rows = slice(head * size, (head + 1) * size)
            qh, kh, vh = q[rows, :, b], k[rows, :, b], v[rows, :, b]
            lines = []
            for i in range(x.shape[1]):
                scores = []
                for j in range(memory.shape[1]):
                    score = qh[:, i] @ kh[:, j]
                    if positions is not None:
                        at = positions.shape[0] // 2 + j - before - i
                        if 0 <= at < positions.shape[0]:
                            score = score + positions[at] @ qh[:, i]
                    scores.append(score / np.sqrt(size))
                used = [j for j in range(memory.shape[1]) if visible[i][j] and counts[j][b]]
                p = torch.softmax(torch.stack([scores[j] for j in used]), 0)
                lines.append(sum(p[n] * vh[:, j] for n, j in enumerate(used)))
            parts.append(torch.stack(lines, 1))
        result.append(torch.cat(parts, 0))
    return linear(wf, torch.stack(result, 2))


def everything(*shape):
    return np.ones(shape, bool)


def pad_mask(file, name, time, batch):
    """The last example is shorter by two."""
    mask = np.ones((time, batch))
    mask[time - 2:, batch - 1] = 0
    return file.input(name, mask, "f64")


def transformer(file, name, context, use_mask, pre_norm, previous=0, padded=False):
    model, size, inner, heads, time, batch = 6, 2, 5, 3, 4, 2
    case = Case(file, name, (model, time, batch))
    positions = case.param(2 * context - 1, size) if context else None
    w1, w2 = case.param(inner, model), case.param(model, inner)
    w = [case.param(size * heads, model) for _ in range(3)] + [case.param(model, size * heads)]
    norms = [case.norm(1), case.norm(1)]
    memory = case.x
    arguments = f"context={context} mask={int(use_mask)} pre={int(pre_norm)}"
    if previous:
        before = draw(file, f"{name}_previous", (model, previous, batch))
        memory = torch.cat([torch.tensor(before), case.x], 1)
        arguments += f" previous={name}_previous"
    counts = everything(previous + time, batch)
    if padded:
        counts = pad_mask(file, f"{name}_pad", time, batch)
        arguments += f" pad={name}_pad"
    visible = everything(time, previous + time)
    if use_mask:
        visible = [[j >= i if j < previous else j - previous <= i for j in range(previous + time)]
                   for i in range(time)]
    attended = attention(case.x, memory, *w, positions, heads, visible, counts)

    def norm(x, number):
        return layer_norm(x, (0,), *norms[number])

    def mlp(h):
        return linear(w2, torch.relu(linear(w1, h)))

    if pre_norm:
        h = norm(attended, 0) + case.x
        y = norm(mlp(h), 1) + h
    else:
        h = norm(attended + case.x, 0)
        y = norm(mlp(h) + h, 1)
    case.write("transformer", y, arguments)


def conformer(file, name, context, kernel, padded):
    model, size, inner, heads, time, batch = 4, 3, 5, 2, 5, 2
    case = Case(file, name, (model, time, batch))
    positions = case.param(2 * context - 1, size) if context else None

    def norm_params():
        return case.param(model, 1, 1), case.param(model, 1, 1)

    halves = [(case.param(inner, model), case.param(model, inner), norm_params())
              for _ in range(2)]
    w = [case.param(size * heads, model) for _ in range(3)] + [case.param(model, size * heads)]
    attention_norm = norm_params()
    conv_in, conv_out = case.param(2 * model, model), case.param(model, model)
    conv, conv_bias = case.param(kernel, 1, 1, model), case.param(1, 1, model, 1)
    conv_norms = norm_params(), norm_params()
    last_norm = norm_params()
    arguments = f"context={context} kernel={kernel}"
    counts = everything(time, batch)
    if padded:
        counts = pad_mask(file, f"{name}_pad", time, batch)
        arguments += f" pad={name}_pad"

    def norm(x, params):
        return layer_norm(x, (0,), *params)

    def swish(x):
        return x * torch.sigmoid(x)

    def feed_forward(x, half):
        w1, w2, params = half
        return linear(w2, swish(linear(w1, norm(x, params))))

    def convolution(x):
        gated = F.glu(linear(conv_in, norm(x, conv_norms[0])), 0)
        after = (kernel - 1) // 2
        images = F.pad(gated.permute(2, 0, 1), (kernel - 1 - after, after))
        mixed = F.conv1d(images, conv.reshape(kernel, model).T.unsqueeze(1), conv_bias.flatten(),
                         groups=model)
        return linear(conv_out, swish(norm(mixed.permute(1, 2, 0), conv_norms[1])))

    x = case.x
    x = x + 0.5 * feed_forward(x, halves[0])
    normed = norm(x, attention_norm)
    x = x + attention(normed, normed, *w, positions, heads, everything(time, time), counts)
    x = x + convolution(x)
    x = x + 0.5 * feed_forward(x, halves[1])
    case.write("conformer", norm(x, last_norm), arguments)


# ---- Convolutions: time x height x channels x batch ----


def convolve(x, w, bias, before, after, stride=1, dilation=1, groups=1):
    images = F.pad(x.permute(3, 2, 1, 0), (before, after))
    y = F.conv2d(images, w.permute(3, 2, 1, 0), bias.flatten(), (1, stride), 0, (1, dilation),
                 groups)
    return y.permute(3, 2, 1, 0)


def tds(file, name, kernel, right, inner, with_time):
    channels, width, time, batch = 2, 3, 5, 2
    case = Case(file, name, (time, width, channels, batch))
    outer = channels * width
    conv, conv_bias = case.param(kernel, 1, channels, channels), case.param(1, 1, channels, 1)
    norms = [(case.param(1), case.param(1))]
    w1, b1 = case.param(inner or outer, outer), case.param(inner or outer)
    w2, b2 = case.param(outer, inner or outer), case.param(outer)
    norms.append((case.param(1), case.param(1)))
    after = (kernel - 1) // 2 if right == -1 else right
    axes = (0, 1, 2) if with_time else (1, 2)
    h = torch.relu(convolve(case.x, conv, conv_bias, kernel - 1 - after, after)) + case.x
    h = layer_norm(h, axes, *norms[0])
    # The features of a time: channels within width.
    rows = h.permute(0, 3, 1, 2).reshape(time, batch, outer)
    rows = F.linear(torch.relu(F.linear(rows, w1, b1)), w2, b2)
    y = layer_norm(rows.reshape(time, batch, width, channels).permute(0, 2, 3, 1) + h, axes,
                   *norms[1])
    case.write("tds", y, f"kernel={kernel} right={right} inner={inner} time={int(with_time)}")


def asymmetric(file, name, future, stride=1, dilation=1, groups=1):
    kernel, time = 5, 8
    case = Case(file, name, (time, 2, 4, 2))
    w, bias = case.param(kernel, 1, 4 // groups, 6), case.param(1, 1, 6, 1)
    total = (kernel - 1) * dilation + 1 - (time % stride or stride)
    each = (total + 1) // 2
    moved = int((1 - 2 * future) * each)
    y = convolve(case.x, w, bias, each + moved, each - moved, stride, dilation, groups)
    case.write("asymmetric", y,
               f"future={future} stride={stride} dilation={dilation} groups={groups}")


# ---- Embeddings ----


def adaptive(file, name, cutoff, dim, divisor):
    words = np.array([[0, 11, 3, 3, 2], [7, 6, 2, 10, 11], [1, 3, 7, 0, 4]]) % cutoff[-1]
    case = Case(file, name, None)  # words want no gradient
    file.input(f"{name}_words", words, "s32")
    columns = []
    tables = []
    low = 0
    for bucket, high in enumerate(cutoff):
        size = dim // divisor ** bucket
        tables.append((low, high, case.param(high - low, size), case.param(dim, size)))
        low = high
    for word in words.flatten():
        low, _, table, matrix = next(t for t in tables if t[0] <= word < t[1])
        columns.append(matrix @ table[word - low])
    y = torch.stack(columns, 1).reshape(dim, *words.shape)
    case.write("adaptive", y, f"cutoff={','.join(map(str, cutoff))} divisor={divisor}")


def positions(file, name):
    case = Case(file, name, (3, 4, 2))
    table = case.param(3, 6)
    case.write("positions", case.x + table[:, :4, None], "")


def sinusoids(file, name, dim):
    case = Case(file, name, (dim, 6, 2))
    table = [[(np.sin, np.cos)[c % 2](t / 10000 ** (2 * (c // 2) / dim)) for t in range(6)]
             for c in range(dim)]
    case.write("sinusoids", 1.5 * case.x + torch.tensor(table)[:, :, None], "")


# ---- Shortcuts ----


def residual(file, name):
    case = Case(file, name, (4, 3, 2))
    w1, b1, w2, b2 = case.param(4, 4), case.param(4), case.param(3, 4), case.param(3)
    projection = case.param(3, 4)

    def affine(w, x, b):
        return linear(w, x) + b[:, None, None]

    first = affine(w1, case.x, b1)
    last = affine(w2, 0.5 * (torch.tanh(first) + case.x), b2)
    case.write("residual", 0.25 * (last + linear(projection, first)), "")


def contrib(file):
    transformer(file, "tr_plain", 0, False, False)
    transformer(file, "tr_masked", 4, True, True)
    transformer(file, "tr_short", 2, False, False, padded=True)
    transformer(file, "tr_previous", 5, True, False, previous=4)
    transformer(file, "tr_longer", 0, False, True, previous=3)
    conformer(file, "co_padded", 3, 3, True)
    conformer(file, "co_even", 0, 4, False)
    tds(file, "tds_same", 3, -1, 0, True)
    tds(file, "tds_past", 3, 0, 4, False)
    tds(file, "tds_even", 4, -1, 0, True)
    asymmetric(file, "as_past", 0.0)
    asymmetric(file, "as_future", 1.0, dilation=2)
    asymmetric(file, "as_part", 0.25, stride=2, groups=2)
    asymmetric(file, "as_even", 0.5, stride=3)
    adaptive(file, "ad_three", (3, 7, 12), 8, 2)
    adaptive(file, "ad_one", (8,), 4, 2)
    positions(file, "pe")
    sinusoids(file, "si_even", 4)
    sinusoids(file, "si_odd", 5)
    residual(file, "re")


def main():
    file = Answers(0)
    contrib(file)
    file.write(os.path.join(os.path.dirname(os.path.abspath(__file__)), "contrib.npz"))


if __name__ == "__main__":
    main()
