"""The cases of kernels.py and gemm.py in MLX, each one compiled function, and of overhead.py."""
import math
from functools import partial

import mlx.core as mx
import mlx.nn as nn
import mlx.optimizers

import gemm
import kernels as k
import overhead


def numbers(shape):
    return mx.random.uniform(-2, 2, shape)


def dropout(x):
    keep = mx.random.bernoulli(1 - k.DROPPED, x.shape)
    return keep * x * (1 / (1 - k.DROPPED))


class Library:
    sqrt = staticmethod(mx.sqrt)

    def __init__(self):
        self.labels = mx.random.randint(0, k.CLASSES, (k.ROWS,))

    @staticmethod
    def waiting(f, inputs):
        mx.eval(inputs)
        f = mx.compile(f, inputs=mx.random.state, outputs=mx.random.state)
        return lambda: mx.eval(f(*inputs))

    def forward(self, f, shapes):
        return self.waiting(f, [numbers(shape) for shape in shapes])

    def backward(self, f, shapes):
        def gradients(gradient, *inputs):
            return mx.vjp(f, inputs, [gradient])[1]

        return self.waiting(gradients, [numbers(shape) for shape in [shapes[0], *shapes]])

    @staticmethod
    def gated(x):
        return mx.tanh(1.1 * x + 0.3) * mx.sigmoid(0.7 * x)

    @staticmethod
    def bias_gelu(x, bias):
        x = x + bias
        return x * (1 + mx.erf(x * math.sqrt(0.5))) * 0.5

    @classmethod
    def bias_gelu_dropout(cls, x, bias):
        return dropout(cls.bias_gelu(x, bias))

    @staticmethod
    def softmax(x):
        return mx.softmax(x, axis=-1)

    def cross_entropy(self, x):
        return nn.losses.cross_entropy(x, self.labels, reduction="none")

    @staticmethod
    def layer_norm(x, weight, bias):
        return mx.fast.layer_norm(x, weight, bias, 1e-5)

    @classmethod
    def dropout_norm(cls, x, weight, bias, residual):
        return cls.layer_norm(dropout(x) + residual, weight, bias)

    @staticmethod
    def adam():
        def tensors():
            return {str(i): numbers((k.ADAM_ELEMENTS,)) for i in range(k.ADAM_TENSORS)}

        parameters, gradients = tensors(), tensors()
        optimizer = mlx.optimizers.Adam(learning_rate=k.LEARNING_RATE, bias_correction=True)
        optimizer.init(parameters)
        state = [parameters, optimizer.state]
        mx.eval(state, gradients)

        @partial(mx.compile, inputs=state, outputs=state)
        def step():
            parameters.update(optimizer.apply_gradients(gradients, parameters))

        def call():
            step()
            mx.eval(state)

        return call


def make_cases():
    library = Library()
    small = numbers, mx.eval, mx.tanh
    waited = {**overhead.cases(*small), **overhead.replays(*small, mx.compile, mx.async_eval)}
    return {**k.cases(library), **gemm.cases(library), **waited}
