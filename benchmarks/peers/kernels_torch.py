"""The cases of kernels.py, gemm.py and overhead.py in PyTorch."""
import torch
from torch.nn import functional

import gemm
import kernels as k
import overhead
from workloads_torch import adam as optimizer_of


def numbers(shape):
    return torch.rand(shape) * 4 - 2


class Library:
    sqrt = staticmethod(torch.sqrt)

    def __init__(self, compiled):
        self.compiled = compiled
        self.labels = torch.randint(k.CLASSES, (k.ROWS,))

    def prepared(self, f):
        return torch.compile(f) if self.compiled else f

    def forward(self, f, shapes):
        f, inputs = self.prepared(f), [numbers(shape) for shape in shapes]
        return lambda: f(*inputs)

    def backward(self, f, shapes):
        f = self.prepared(f)
        inputs = [numbers(shape).requires_grad_() for shape in shapes]
        gradient = numbers(shapes[0])

        def call():
            f(*inputs).backward(gradient)
            for each in inputs:
                each.grad = None

        return call

    @staticmethod
    def gated(x):
        return torch.tanh(1.1 * x + 0.3) * torch.sigmoid(0.7 * x)

    @staticmethod
    def bias_gelu(x, bias):
        return functional.gelu(x + bias)

    @staticmethod
    def bias_gelu_dropout(x, bias):
        return functional.dropout(functional.gelu(x + bias), k.DROPPED)

    @staticmethod
    def softmax(x):
        return torch.softmax(x, -1)

    def cross_entropy(self, x):
        return functional.cross_entropy(x, self.labels, reduction="none")

    @staticmethod
    def layer_norm(x, weight, bias):
        return functional.layer_norm(x, weight.shape, weight, bias)

    @staticmethod
    def dropout_norm(x, weight, bias, residual):
        dropped = functional.dropout(x, k.DROPPED) + residual
        return functional.layer_norm(dropped, weight.shape, weight, bias)

    def adam(self):
        parameters = [numbers((k.ADAM_ELEMENTS,)) for _ in range(k.ADAM_TENSORS)]
        for each in parameters:
            each.grad = numbers((k.ADAM_ELEMENTS,))
        return self.prepared(optimizer_of(parameters).step)


def make_cases(compiled):
    library = Library(compiled)
    cases = {**k.cases(library), **gemm.cases(library)}
    small = numbers, lambda x: x, torch.tanh
    cases.update(
        overhead.replays(*small, torch.compile) if compiled else overhead.cases(*small))
    return cases
