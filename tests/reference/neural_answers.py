"""Batch normalisation and recurrent networks, in loops over the definitions."""

import itertools

import numpy as np


def real(file, name, shape):
    return file.input(name, file.random.uniform(-1, 1, size=shape), "f64")


# ---- Batch normalisation ----


def batchnorm(x, axes, weight, bias, mean, variance, momentum, epsilon, train):
    """One feature after the other; returns the result and the running statistics."""
    y, mean, variance = np.empty_like(x), mean.copy(), variance.copy()
    features = list(itertools.product(*[range(x.shape[axis]) for axis in axes]))
    # Features count in column-major order.
    features.sort(key=lambda index: index[::-1])
    for number, index in enumerate(features):
        place = [slice(None)] * x.ndim
        for axis, i in zip(axes, index):
            place[axis] = i
        values = x[tuple(place)]
        m, v = mean[number], variance[number]
        if train:
            m, v = np.mean(values), np.mean((values - np.mean(values)) ** 2)
            count = values.size
            mean[number] = (1 - momentum) * mean[number] + momentum * m
            variance[number] = ((1 - momentum) * variance[number]
                                + momentum * v * count / (count - 1))
        y[tuple(place)] = (values - m) / np.sqrt(v + epsilon) * weight[number] + bias[number]
    return y, mean, variance


def batchnorm_cases(file):
    for name, shape, axes in (("image", (4, 3, 5, 2), (2,)), ("columns", (6, 7), (0,)),
                              ("rows", (6, 7), (1,)), ("activations", (3, 4, 5), (0, 1)),
                              ("middle", (2, 3, 4, 5), (1, 2))):
        x = real(file, name, shape)
        features = int(np.prod([shape[axis] for axis in axes]))
        weight, bias = real(file, f"{name}_w", features), real(file, f"{name}_b", features)
        mean = real(file, f"{name}_m", features)
        variance = file.input(f"{name}_v", file.random.uniform(0.5, 2, size=features), "f64")
        for train in (0, 1):
            y, new_mean, new_variance = batchnorm(x, axes, weight, bias, mean, variance, 0.3, 1e-3,
                                                  train)
            file.case(f"batchnorm x={name} axes={','.join(map(str, axes))} train={train} "
                      "momentum=0.3 epsilon=0.001", y=y, mean=new_mean, variance=new_variance)


# ---- Recurrent networks ----

GATES = {"relu": 1, "tanh": 1, "lstm": 4, "gru": 3}


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def cell(mode, w, r, bw, br, x, h, c):
    """One step for one element of the batch: matrices and biases gate by gate."""
    a = [w[gate] @ x + bw[gate] for gate in range(GATES[mode])]
    q = [r[gate] @ h + br[gate] for gate in range(GATES[mode])]
    if mode == "relu":
        return np.maximum(a[0] + q[0], 0), c
    if mode == "tanh":
        return np.tanh(a[0] + q[0]), c
    if mode == "lstm":
        i, f, o = (sigmoid(a[gate] + q[gate]) for gate in (0, 1, 3))
        c = f * c + i * np.tanh(a[2] + q[2])
        return o * np.tanh(c), c
    reset, update = (sigmoid(a[gate] + q[gate]) for gate in (0, 1))
    new = np.tanh(a[2] + reset * q[2])
    return (1 - update) * new + update * h, c


def unpack(weights, mode, in_size, hidden, layers, directions):
    """cuDNN's order: matrices by pseudo layer, W's gates then R's; then biases the same way."""
    position = 0

    def take(*shape):
        nonlocal position
        position += int(np.prod(shape))
        return weights[position - int(np.prod(shape)):position].reshape(shape)  # row by row

    matrices, biases = [], []
    for pseudo in range(layers * directions):
        size = in_size if pseudo < directions else directions * hidden
        matrices.append([[take(hidden, columns) for _ in range(GATES[mode])]
                         for columns in (size, hidden)])
    for pseudo in range(layers * directions):
        biases.append([[take(hidden) for _ in range(GATES[mode])] for _ in range(2)])
    assert position == weights.size
    return matrices, biases


def rnn(x, h0, c0, weights, mode, hidden, layers, directions):
    in_size, batch, time = x.shape
    matrices, biases = unpack(weights, mode, in_size, hidden, layers, directions)
    last_h, last_c = np.zeros_like(h0), np.zeros_like(h0)
    for layer in range(layers):
        y = np.zeros((directions * hidden, batch, time))
        for direction, b in itertools.product(range(directions), range(batch)):
            pseudo = layer * directions + direction
            h, c = h0[:, b, pseudo], c0[:, b, pseudo]
            for t in range(time) if direction == 0 else reversed(range(time)):
                h, c = cell(mode, *matrices[pseudo], *biases[pseudo], x[:, b, t], h, c)
                y[direction * hidden:(direction + 1) * hidden, b, t] = h
            last_h[:, b, pseudo], last_c[:, b, pseudo] = h, c
        x = y
    return x, last_h, last_c


def rnn_cases(file):
    in_size, hidden, batch, time = 2, 3, 2, 4
    real(file, "sequence", (in_size, batch, time))
    for mode, layers, directions in itertools.product(GATES, (1, 2), (1, 2)):
        rows, states = directions * GATES[mode] * hidden, layers * directions
        count = (rows * (in_size + hidden + 2)
                 + (layers - 1) * rows * (directions * hidden + hidden + 2))
        name = f"{mode}{layers}{directions}"
        weights = real(file, f"{name}_w", count)
        h, c = real(file, f"{name}_h", (hidden, batch, states)), np.zeros((hidden, batch, states))
        cell_argument = ""
        if mode == "lstm":
            c, cell_argument = real(file, f"{name}_c", c.shape), f" c={name}_c"
        for start in ("given", "zero"):
            if start == "zero":
                h, c = np.zeros_like(h), np.zeros_like(c)
            arguments = f" h={name}_h{cell_argument}" if start == "given" else ""
            y, hy, cy = rnn(file.arrays["sequence"], h, c, weights, mode, hidden, layers,
                            directions)
            results = {"y": y, "hidden": hy}
            if mode == "lstm":
                results["cell"] = cy
            file.case(f"rnn x=sequence w={name}_w{arguments} mode={list(GATES).index(mode)} "
                      f"layers={layers} directions={directions} size={hidden}", **results)


def neural(file):
    batchnorm_cases(file)
    rnn_cases(file)
