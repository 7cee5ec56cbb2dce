"""The cases of kernels.py and gemm.py in JAX, each one compiled function, and of overhead.py."""
import jax
import jax.numpy as jnp

import gemm
import kernels as k
import overhead
from workloads_jax import KEYS, adam


def numbers(shape):
    return jax.random.uniform(KEYS.next(), shape, minval=-2, maxval=2)


def dropout(x, key):
    keep = jax.random.bernoulli(key, 1 - k.DROPPED, x.shape)
    return jnp.where(keep, x / (1 - k.DROPPED), 0)


class Library:
    sqrt = staticmethod(jnp.sqrt)

    def __init__(self):
        self.labels = jax.random.randint(KEYS.next(), (k.ROWS,), 0, k.CLASSES)

    @staticmethod
    def waiting(f, inputs):
        f = jax.jit(f)
        return lambda: jax.block_until_ready(f(*inputs))

    def forward(self, f, shapes):
        return self.waiting(f, [numbers(shape) for shape in shapes])

    def backward(self, f, shapes):
        def gradients(gradient, *inputs):
            return jax.vjp(f, *inputs)[1](gradient)

        return self.waiting(gradients, [numbers(shape) for shape in [shapes[0], *shapes]])

    @staticmethod
    def gated(x):
        return jnp.tanh(1.1 * x + 0.3) * jax.nn.sigmoid(0.7 * x)

    @staticmethod
    def bias_gelu(x, bias):
        return jax.nn.gelu(x + bias, approximate=False)

    @classmethod
    def bias_gelu_dropout(cls, x, bias):
        return dropout(cls.bias_gelu(x, bias), KEYS.key)

    @staticmethod
    def softmax(x):
        return jax.nn.softmax(x)

    def cross_entropy(self, x):
        return -jnp.take_along_axis(jax.nn.log_softmax(x), self.labels[:, None], -1)

    @staticmethod
    def layer_norm(x, weight, bias):
        centred = x - x.mean(-1, keepdims=True)
        variance = (centred * centred).mean(-1, keepdims=True)
        return centred * jax.lax.rsqrt(variance + 1e-5) * weight + bias

    @classmethod
    def dropout_norm(cls, x, weight, bias, residual):
        return cls.layer_norm(dropout(x, KEYS.key) + residual, weight, bias)

    @staticmethod
    def adam():
        def tensors():
            return [numbers((k.ADAM_ELEMENTS,)) for _ in range(k.ADAM_TENSORS)]

        gradients, zeros = tensors(), [jnp.zeros(k.ADAM_ELEMENTS) for _ in range(k.ADAM_TENSORS)]
        held = [tensors(), (jnp.zeros(()), zeros, [each + 0 for each in zeros])]
        step = jax.jit(lambda p, s: adam(p, gradients, s), donate_argnums=(0, 1))

        def call():
            held[:] = jax.block_until_ready(step(*held))

        return call


def make_cases():
    library = Library()
    small = numbers, jax.block_until_ready, jnp.tanh
    waited = {**overhead.cases(*small), **overhead.replays(*small, jax.jit)}
    return {**k.cases(library), **gemm.cases(library), **waited}
