"""The cases of workloads.py in JAX: each step one compiled function, images in NHWC."""
import functools
import math

import jax
import jax.numpy as jnp

import workloads as w


class Keys:
    def __init__(self):
        self.key = jax.random.key(0)

    def next(self):
        self.key, key = jax.random.split(self.key)
        return key


KEYS = Keys()


def weights(*shape):
    fan_in = math.prod(shape[:-1])
    return jax.random.uniform(KEYS.next(), shape, minval=-1, maxval=1) / math.sqrt(fan_in)


def linear(source, target):
    return {"w": weights(source, target), "b": jnp.zeros(target)}


def apply_linear(p, x):
    return x @ p["w"] + p["b"]


def cross_entropy(logits, y):
    return -jnp.take_along_axis(jax.nn.log_softmax(logits), y[..., None], -1).mean()


def adam(parameters, gradients, state):
    count, first, second = state
    count = count + 1
    first = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, first, gradients)
    second = jax.tree.map(lambda v, g: 0.999 * v + 0.001 * g * g, second, gradients)
    rate = w.LEARNING_RATE * jnp.sqrt(1 - 0.999**count) / (1 - 0.9**count)
    parameters = jax.tree.map(
        lambda p, m, v: p - rate * m / (jnp.sqrt(v) + 1e-8), parameters, first, second
    )
    return parameters, (count, first, second)


def training(parameters, loss, x, y):
    """loss(parameters, x, y, key) -> scalar"""
    state = (jnp.zeros(()), *(jax.tree.map(jnp.zeros_like, parameters) for _ in range(2)))

    @functools.partial(jax.jit, donate_argnums=(0, 1, 2))
    def step(parameters, state, key):
        key, used = jax.random.split(key)
        value, gradients = jax.value_and_grad(loss)(parameters, x, y, used)
        parameters, state = adam(parameters, gradients, state)
        return parameters, state, key, value

    held = [parameters, state, KEYS.next()]

    def call():
        *held[:], value = step(*held)
        # All of the step is done, not the loss alone.
        jax.block_until_ready(held)
        return value.item()

    return call


def labels(shape, classes):
    return jax.random.randint(KEYS.next(), shape, 0, classes)


def numbers(*shape):
    return jax.random.uniform(KEYS.next(), shape, minval=-0.5, maxval=0.5)


def mlp():
    parameters = [linear(784, 512), linear(512, 512), linear(512, 10)]

    def loss(p, x, y, key):
        for layer in p[:-1]:
            x = jax.nn.relu(apply_linear(layer, x))
        return cross_entropy(apply_linear(p[-1], x), y)

    return training(parameters, loss, numbers(128, 784), labels((128,), 10))


def conv(x, kernel, stride=1):
    pad = kernel.shape[0] // 2
    return jax.lax.conv_general_dilated(
        x, kernel, (stride, stride), [(pad, pad)] * 2, dimension_numbers=("NHWC", "HWIO", "NHWC")
    )


def max_pool(x):
    return jax.lax.reduce_window(
        x, -jnp.inf, jax.lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID"
    )


def mnist(size, batch):
    features = (size // 4) ** 2 * 64
    parameters = {
        "conv1": weights(5, 5, 1, 32),
        "bias1": jnp.zeros(32),
        "conv2": weights(5, 5, 32, 64),
        "bias2": jnp.zeros(64),
        "hidden": linear(features, 1024),
        "output": linear(1024, 10),
    }

    def loss(p, x, y, key):
        x = max_pool(jax.nn.relu(conv(x, p["conv1"]) + p["bias1"]))
        x = max_pool(jax.nn.relu(conv(x, p["conv2"]) + p["bias2"]))
        x = jax.nn.relu(apply_linear(p["hidden"], x.reshape(batch, features)))
        x = jnp.where(jax.random.bernoulli(key, 0.5, x.shape), x * 2, 0)
        return cross_entropy(apply_linear(p["output"], x), y)

    return training(parameters, loss, numbers(batch, size, size, 1), labels((batch,), 10))


def normalized_conv(source, target, size):
    return {"w": weights(size, size, source, target), "scale": jnp.ones(target), "b": jnp.zeros(target)}


def apply_normalized(p, x, stride=1):
    x = conv(x, p["w"], stride)
    mean = x.mean((0, 1, 2))
    variance = (x * x).mean((0, 1, 2)) - mean * mean
    return (x - mean) * (p["scale"] * jax.lax.rsqrt(variance + 1e-5)) + p["b"]


def residual():
    blocks, source = [], w.STAGES[0]
    for target in w.STAGES:
        for _ in range(2):
            block = {
                "first": normalized_conv(source, target, 3),
                "second": normalized_conv(target, target, 3),
            }
            if source != target:
                block["shortcut"] = normalized_conv(source, target, 1)
            blocks.append(block)
            source = target
    parameters = {"conv": weights(3, 3, 3, w.STAGES[0]), "blocks": blocks, "output": linear(source, 10)}

    def loss(p, x, y, key):
        x = conv(x, p["conv"])
        for block in p["blocks"]:
            stride = 2 if "shortcut" in block else 1
            other = apply_normalized(block["shortcut"], x, stride) if "shortcut" in block else x
            x = jax.nn.relu(apply_normalized(block["first"], x, stride))
            x = jax.nn.relu(apply_normalized(block["second"], x) + other)
        return cross_entropy(apply_linear(p["output"], x.mean((1, 2))), y)

    return training(parameters, loss, numbers(32, 32, 32, 3), labels((32,), 10))


def norm():
    return {"scale": jnp.ones(w.WIDTH), "b": jnp.zeros(w.WIDTH)}


def apply_norm(p, x):
    centred = x - x.mean(-1, keepdims=True)
    variance = (centred * centred).mean(-1, keepdims=True)
    return centred * jax.lax.rsqrt(variance + 1e-5) * p["scale"] + p["b"]


def attention(p, x):
    parts = apply_linear(p["inputs"], x).reshape(*x.shape[:2], 3, w.HEADS, w.WIDTH // w.HEADS)
    query, key, value = (parts[:, :, i] for i in range(3))
    result = jax.nn.dot_product_attention(query, key, value)
    return apply_linear(p["output"], result.reshape(x.shape))


def transformer(count):
    layers = [
        {
            "norm1": norm(),
            "inputs": linear(w.WIDTH, 3 * w.WIDTH),
            "output": linear(w.WIDTH, w.WIDTH),
            "norm2": norm(),
            "up": linear(w.WIDTH, 4 * w.WIDTH),
            "down": linear(4 * w.WIDTH, w.WIDTH),
        }
        for _ in range(count)
    ]
    parameters = {
        "embedding": weights(w.VOCABULARY, w.WIDTH),
        "layers": layers,
        "norm": norm(),
        "head": linear(w.WIDTH, w.VOCABULARY),
    }

    def loss(p, x, y, key):
        x = p["embedding"][x]
        for layer in p["layers"]:
            x = x + attention(layer, apply_norm(layer["norm1"], x))
            hidden = apply_linear(layer["up"], apply_norm(layer["norm2"], x))
            x = x + apply_linear(layer["down"], jax.nn.gelu(hidden, approximate=False))
        return cross_entropy(apply_linear(p["head"], apply_norm(p["norm"], x)), y)

    tokens = labels((w.SEQUENCES, w.LENGTH), w.VOCABULARY)
    return training(parameters, loss, tokens, jnp.roll(tokens, -1, 1))


def make_cases():
    return {
        w.MLP: mlp,
        w.MNIST: lambda: mnist(28, 64),
        w.DIGITS: lambda: mnist(8, 32),
        w.RESIDUAL: residual,
        w.TRANSFORMER: lambda: transformer(w.LAYERS),
        w.DEEP_TRANSFORMER: lambda: transformer(w.DEEP_LAYERS),
    }
