"""The cases of workloads.py in MLX: each step one compiled function, images in NHWC."""
from functools import partial

import mlx.core as mx
import mlx.nn as nn
import mlx.optimizers

import workloads as w


def training(model, x, y):
    model.train()
    mx.eval(model.parameters())
    optimizer = mlx.optimizers.Adam(learning_rate=w.LEARNING_RATE, bias_correction=True)

    def loss(model, x, y):
        return nn.losses.cross_entropy(model(x), y, reduction="mean")

    state = [model.state, optimizer.state, mx.random.state]

    @partial(mx.compile, inputs=state, outputs=state)
    def step(x, y):
        value, gradients = nn.value_and_grad(model, loss)(model, x, y)
        optimizer.update(model, gradients)
        return value

    def call():
        value = step(x, y)
        mx.eval(state, value)
        return value.item()

    return call


def labels(shape, classes):
    return mx.random.randint(0, classes, shape)


def numbers(*shape):
    return mx.random.uniform(-0.5, 0.5, shape)


def mlp():
    model = nn.Sequential(
        nn.Linear(784, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 10)
    )
    return training(model, numbers(128, 784), labels((128,), 10))


def mnist(size, batch):
    features = (size // 4) ** 2 * 64
    model = nn.Sequential(
        nn.Conv2d(1, 32, 5, padding=2),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(32, 64, 5, padding=2),
        nn.ReLU(),
        nn.MaxPool2d(2),
        lambda x: x.reshape(batch, features),
        nn.Linear(features, 1024),
        nn.ReLU(),
        nn.Dropout(0.5),
        nn.Linear(1024, 10),
    )
    return training(model, numbers(batch, size, size, 1), labels((batch,), 10))


def normalized_conv(source, target, size, stride=1):
    return nn.Sequential(
        nn.Conv2d(source, target, size, stride, size // 2, bias=False), nn.BatchNorm(target)
    )


class ResidualBlock(nn.Module):
    def __init__(self, source, target):
        super().__init__()
        stride = 1 if source == target else 2
        self.first = normalized_conv(source, target, 3, stride)
        self.second = normalized_conv(target, target, 3)
        same = source == target
        self.shortcut = nn.Identity() if same else normalized_conv(source, target, 1, stride)

    def __call__(self, x):
        return nn.relu(self.second(nn.relu(self.first(x))) + self.shortcut(x))


def residual():
    channels = w.STAGES[0]
    layers = [nn.Conv2d(3, channels, 3, padding=1, bias=False)]
    for target in w.STAGES:
        layers += [ResidualBlock(channels, target), ResidualBlock(target, target)]
        channels = target
    model = nn.Sequential(*layers, lambda x: x.mean((1, 2)), nn.Linear(channels, 10))
    return training(model, numbers(32, 32, 32, 3), labels((32,), 10))


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(w.WIDTH), nn.LayerNorm(w.WIDTH)
        self.inputs, self.output = nn.Linear(w.WIDTH, 3 * w.WIDTH), nn.Linear(w.WIDTH, w.WIDTH)
        self.up, self.down = nn.Linear(w.WIDTH, 4 * w.WIDTH), nn.Linear(4 * w.WIDTH, w.WIDTH)

    def attention(self, x):
        batch, time, width = x.shape
        parts = self.inputs(x).reshape(batch, time, 3, w.HEADS, width // w.HEADS)
        query, key, value = parts.transpose(2, 0, 3, 1, 4)
        scale = (width // w.HEADS) ** -0.5
        result = mx.fast.scaled_dot_product_attention(query, key, value, scale=scale)
        return self.output(result.transpose(0, 2, 1, 3).reshape(batch, time, width))

    def __call__(self, x):
        x = x + self.attention(self.norm1(x))
        return x + self.down(nn.gelu(self.up(self.norm2(x))))


def transformer(count):
    model = nn.Sequential(
        nn.Embedding(w.VOCABULARY, w.WIDTH),
        *[Layer() for _ in range(count)],
        nn.LayerNorm(w.WIDTH),
        nn.Linear(w.WIDTH, w.VOCABULARY),
    )
    tokens = labels((w.SEQUENCES, w.LENGTH), w.VOCABULARY)
    return training(model, tokens, mx.roll(tokens, -1, 1))


def make_cases():
    mx.set_default_device(mx.cpu)
    mx.random.seed(0)
    return {
        w.MLP: mlp,
        w.MNIST: lambda: mnist(28, 64),
        w.DIGITS: lambda: mnist(8, 32),
        w.RESIDUAL: residual,
        w.TRANSFORMER: lambda: transformer(w.LAYERS),
        w.DEEP_TRANSFORMER: lambda: transformer(w.DEEP_LAYERS),
    }
